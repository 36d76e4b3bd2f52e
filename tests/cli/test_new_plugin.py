"""identity new-plugin: the plugin can be installed and passes its own tests; existing files are not overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.thorough
def test_generated_plugin_works(run, tmp_path: Path) -> None:
    folder = tmp_path / "billing"
    ran = run("new-plugin", "billing", "--folder", str(folder))
    assert ran.status == 0
    assert f"pip install --editable {folder}" in ran.out
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", tmp_path / "installed", folder], check=True)
    left_out = ("PYTEST_", "PYTHONPATH", "COV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--identity-plugin=billing", "tests"],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert " passed" in tests.stdout


def test_invalid_plugin_name_is_refused(run, tmp_path: Path) -> None:
    for name in ("Billing", "1st", "a-b", "", "a" * 50):
        ran = run("new-plugin", name, "--folder", str(tmp_path / "it"))
        assert ran.status == 1
        assert ran.err.startswith("identity: Choose a name of small letters")
        assert not (tmp_path / "it").exists()


def test_existing_files_are_not_overwritten(run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    ran = run("new-plugin", "billing", "--folder", str(tmp_path))
    assert ran.status == 1
    assert "holds something already" in ran.err
    assert sorted(tmp_path.iterdir()) == [tmp_path / "mine.py"]
