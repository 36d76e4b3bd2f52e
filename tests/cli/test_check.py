"""identity check: whatever is wrong in the ini file, the sentence names the setting."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from identity.ini_file import APPLICATION, read_section
from identity.plugin_host import installed
from identity.settings import PLUGIN_PREFIX, PREFIX, Settings, SmtpSettings
from tests.cli.conftest import INI, Run

NOWHERE = "/dev/null/nowhere"

#: Texts of which any is as good as another, as far as a program can tell.
ANY = {
    "identity.assertion_audiences",
    "identity.default_domain",
    "identity.smtp.host",
    "identity.smtp.user",
    "identity.plugin.tracing.service_name",
    # Only the directory itself can judge them.
    *(
        f"identity.plugin.ldap.{name}"
        for name in ("base", "bind_dn", "id_attribute", "groups_attribute", "organization")
    ),
    # Made where it is needed.
    "identity.plugin.metrics.directory",
}
#: What will not do where the type alone does not say.
WRONG: Mapping[type, str] = {int: "x", bool: "perhaps", timedelta: "soon", Path: NOWHERE, str: "no such thing \\"}
#: What has to be there for a setting to count.
BESIDES: Mapping[str, Mapping[str, str]] = {
    "identity.smtp.sender": {"identity.smtp.host": "127.0.0.1"},
    "identity.smtp.password_file": {
        "identity.smtp.host": "127.0.0.1",
        "identity.smtp.sender": "a@example.com",
        "identity.smtp.user": "identity",
    },
    "identity.data": {"identity.master_keys": ""},
}


def every_setting() -> Iterator[tuple[str, str]]:
    """Each setting of the core and of the plugins that development.ini lists, with a value that will not do."""
    listed = read_section(INI, APPLICATION, {"data": NOWHERE})["identity.plugins"].split()
    available = installed()
    sections: list[tuple[str, type]] = [(PREFIX, Settings), (f"{PREFIX}smtp.", SmtpSettings)]
    sections += [(f"{PLUGIN_PREFIX}{name}.", available[name].load().Settings) for name in listed]
    for prefix, kind in sections:
        hints = get_type_hints(kind)
        for one in fields(kind):
            if "section" not in one.metadata and prefix + one.name not in ANY:
                yield prefix + one.name, wrong(hints[one.name])


def wrong(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "none of them"
    return WRONG[next(one for one in (kind, *get_args(kind)) if one in WRONG)]


@pytest.fixture
def with_settings(data: Path, tmp_path: Path) -> Any:
    """Makes an ini file like development.ini with other settings; returns its name."""

    def make(settings: Mapping[str, str]) -> Path:
        lines = Path(INI).read_text().splitlines()
        at = lines.index(f"[{APPLICATION}]")
        kept = []
        inside = False
        for line in lines:
            inside = line.startswith(tuple(f"{name} =" for name in settings)) or (inside and line[:1] in " \t")
            if not inside:
                kept.append(line)
        kept[at + 1 : at + 1] = [f"{name} = {value}" for name, value in settings.items()]
        file = tmp_path / "other.ini"
        file.write_text("\n".join(kept))
        return file

    return make


@pytest.mark.parametrize(("name", "value"), list(every_setting()))
def test_a_wrong_value_is_told_with_its_setting(
    run: Run, data: Path, with_settings: Any, name: str, value: str
) -> None:
    ini = with_settings({**BESIDES.get(name, {}), name: value})
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    told = [line for line in (ran.out + ran.err).splitlines() if name in line]
    assert told, ran.out + ran.err
    assert "Traceback" not in ran.err
