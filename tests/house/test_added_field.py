"""A field declared on an entity is in storage, API, OpenAPI document, export, audit trail, form and page."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "added_field"


def test_declared_field_is_everywhere() -> None:
    """On both kinds of storage."""
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull]
    options += [
        f"--rootdir={FOLDER}",
        f"--confcutdir={FOLDER}",
        "--identity-storage=memory",
        "--identity-storage=sqlite",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "field_checks.py"],
        cwd=FOLDER,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "8 passed" in run.stdout
