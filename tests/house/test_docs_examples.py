"""Examples in the documentation have the command that runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs").glob("how-to/*/examples/*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_without_arguments_shows_usage(example: Path) -> None:
    ran = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"python {example.name} " in ran.stderr
    assert "Traceback" not in ran.stderr
