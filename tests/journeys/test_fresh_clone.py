"""A clone in a folder with a space in its name: every make target in README.md, from the installation on."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.house.service_processes import ROOT, ServiceProcess, cut_off, free_port

pytestmark = pytest.mark.thorough

#: A test that starts no service, and one that starts `make run` with another folder name.
QUICK = "tests/domain/test_applications.py"
STARTING = "tests/house/test_makefile.py::TestMakefile::test_banner_commands_work_verbatim"


def environ() -> dict[str, str]:
    """The environment without the variables of an outer make or pytest."""
    ours = ("MAKE", "PYTEST_", "ARGS", "PORT", "DATA", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def make(folder: Path, *arguments: str, before: list[str] | None = None) -> str:
    ran = subprocess.run(
        [*(before or []), "make", *arguments], cwd=folder, env=environ(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A clone with everything installed. Not in memory, because it is large."""
    with TemporaryDirectory(dir="/var/tmp", prefix="identity ") as scratch:
        folder = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        make(folder, ".venv/.develops")
        yield folder


@pytest.fixture
def served(clone: Path) -> Iterator[ServiceProcess]:
    port, log = free_port(), clone / "var" / "log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(
            ["make", "run", f"PORT={port}"],
            cwd=clone, env=environ(), stdout=output, stderr=output, text=True, start_new_session=True,
        )  # fmt: skip
    served = ServiceProcess(process, port, log, group=True).wait()
    yield served
    served.stop()


def test_fresh_clone_serves_and_commands_find_it(clone: Path, served: ServiceProcess) -> None:
    assert served.status("/readyz") == 200, served.output
    assert "All 10 steps went" in make(clone, "demo", f"PORT={served.port}")
    listing = subprocess.run(
        [clone / ".venv" / "bin" / "identity", "password-link", "-c", "development.ini", "--user", "admin"],
        cwd=clone, env=environ(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert re.search(rf"http://localhost:{served.port}/\S+", listing.stdout), listing.stderr


def test_fresh_clone_builds_its_documentation(clone: Path) -> None:
    make(clone, "docs")
    assert (clone / "docs" / "_build" / "html" / "index.html").exists()


def test_fresh_clone_passes_its_checks(clone: Path) -> None:
    assert "Success: no issues found" in make(clone, "lint")


def test_fresh_clone_works_offline(clone: Path) -> None:
    output = make(clone, "test", f"ARGS={QUICK} {STARTING} --thorough", before=cut_off())
    assert "Installing" not in output
    assert re.search(r"^=+ [0-9]+ passed in", output, re.MULTILINE), output
