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


def test_all_wrong_values_are_told_at_once_and_nothing_is_opened(run: Run, tmp_path: Path, with_settings: Any) -> None:
    """Of the core, of mail, of plugins, of what is not known there, and of the web server."""
    wrong = {
        "identity.purge_interval": "soon",
        "identity.login_url": "ftp://id.example.com",
        "identity.smtp.port": "many",
        "identity.nonsense": "1",
        "identity.plugin.sql.pool_size": "x",
        "identity.plugin.jwt_bearer.max_assertion_age": "never",
    }
    ini = with_settings(wrong)
    text = ini.read_text().replace("\nthreads = ", "\nworker_timeout = 1\nno_such_word = 1\nthreads = some")
    ini.write_text(text.replace("\nlisten = ", "\nlisten = nowhere:x "))
    ran = run("check", "-c", ini, f"data={tmp_path}/nothing")
    assert (ran.status, ran.err) == (1, "")
    told = [line.removeprefix("FAILED  ").partition(":")[0] for line in ran.out.splitlines() if "[server" not in line]
    assert sorted(told) == sorted(wrong)
    of_server = [line.partition("[server:main] ")[2].split(":")[0] for line in ran.out.splitlines()]
    assert sorted(filter(None, of_server)) == ["listen", "no_such_word", "threads", "worker_timeout"]
    assert "must be a whole number, not some" in ran.out
    assert not (tmp_path / "nothing").exists()


def test_words_that_do_not_fit_each_other_are_told(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({})
    ini.write_text(ini.read_text().replace("\nlisten = ", "\nhost = 127.0.0.1\nlisten = "))
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert ran.out.startswith("FAILED  [server:main]: ")


def test_words_for_another_web_server_are_its_own(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({})
    ini.write_text(ini.read_text().replace("paste.server_factory = identity.server:listen", "use = egg:other\nx = 1"))
    ran = run("check", "-c", ini, f"data={data}")
    assert (ran.status, ran.err) == (0, "")
    assert "FAILED" not in ran.out


def test_a_plugin_that_is_not_installed_hides_nothing_else(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({"identity.plugins": "sql nowhere", "identity.purge_interval": "soon"})
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert "identity.purge_interval: must be a span" in ran.out
    assert 'identity.plugins lists "nowhere", which is not installed' in ran.out
