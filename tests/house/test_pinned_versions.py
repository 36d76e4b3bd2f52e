"""The pinned versions can be installed on every supported Python."""

import re
from configparser import ConfigParser
from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

from tests.house.service_processes import ROOT


def test_every_pinned_version_runs_on_the_oldest_python() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    oldest = setup["options"]["python_requires"].removeprefix(">=") + ".0"
    pinned = {_plain(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    needs = {
        _plain(distribution.name): distribution.metadata.get("Requires-Python") or ""
        for distribution in distributions()
    }
    assert len(pinned & needs.keys()) > 50
    assert [name for name in pinned & needs.keys() if not SpecifierSet(needs[name]).contains(oldest)] == []


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
