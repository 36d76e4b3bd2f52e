"""One declaration: what is added to an entity is in storage, API, document, export, audit trail, form and page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "added_field"


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_a_declared_field_is_everywhere(storage: str) -> None:
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", f"--identity-storage={storage}"]
    left_out = ("PYTEST_", "COV")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "-c",
            os.devnull,
            f"--rootdir={HERE}",
            f"--confcutdir={HERE}",
            "checks.py",
        ],
        cwd=HERE,
        env={name: value for name, value in os.environ.items() if not name.startswith(left_out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "4 passed" in run.stdout
