"""identity_client is a small distribution of its own, which shares the version of the service."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import identity_client
import pytest

import identity

CLIENT = Path(__file__).resolve().parents[2] / "client"
SOURCES = sorted((CLIENT / "src" / "identity_client").glob("*.py"))
#: Modules for a framework, which is optional, or for tests.
OPTIONAL = {"django.py", "fastapi.py", "flask.py", "starlette.py", "pytest_plugin.py"}


def test_version_is_that_of_the_service() -> None:
    assert identity_client.__version__ == identity.__version__


def test_it_stays_small() -> None:
    lines = [line for path in SOURCES for line in path.read_text().splitlines() if line.strip()]
    assert 500 < len(lines) <= 1500


def test_it_needs_httpx_and_joserfc_only() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == ["httpx", "joserfc"]
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").partition(".")[0]
        for path in SOURCES
        if path.name not in OPTIONAL
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - sys.stdlib_module_names == {"httpx", "joserfc", "identity_client"}


def test_plugin_is_declared_for_pytest() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    (module,) = project["entry-points"]["pytest11"].values()
    assert CLIENT.joinpath("src", *module.split(".")).with_suffix(".py") in SOURCES


@pytest.mark.thorough
def test_wheel_contains_the_package(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "client"], cwd=CLIENT.parent, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in tracked:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((CLIENT.parent / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", tmp_path, tmp_path / "client"], check=True)
    (wheel,) = tmp_path.glob("identity_iam_client-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {name.removeprefix("client/src/") for name in tracked if name.startswith("client/src/")} <= packed
    assert "identity_client/py.typed" in packed
