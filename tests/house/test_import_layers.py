"""The import layers: the contracts of import-linter in pyproject.toml hold."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def linter() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return settings


@pytest.mark.thorough
def test_every_contract_is_kept() -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=ROOT,
        env=dict(os.environ) | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"Contracts: {len(linter()['contracts'])} kept, 0 broken." in run.stdout


def test_every_package_has_a_layer() -> None:
    """A package without a layer could import anything."""
    (layers,) = (item["layers"] for item in linter()["contracts"] if item["type"] == "layers")
    floors = {name.strip() for layer in layers for name in layer.split("|")}
    packages = {f"identity.{path.parent.name}" for path in (ROOT / "identity").glob("*/__init__.py")}
    assert packages - floors == set()


def test_third_party_imports_stay_in_their_layer() -> None:
    protected = {
        tuple(item["protected_modules"]): set(item["allowed_importers"])
        for item in linter()["contracts"]
        if item["type"] == "protected"
    }
    assert protected[("oic",)] == {"identity.provider.pyoidc_provider", "identity.provider.pyoidc_messages"}
    (never,) = (item for item in linter()["contracts"] if item["name"] == "pyjwkest is never used")
    assert (never["source_modules"], never["forbidden_modules"]) == (["identity"], ["jwkest"])
    assert protected[("joserfc",)] == {"identity.crypto.jwt"}
    assert protected[("sqlalchemy",)] == {"identity.plugins.sql"}
    assert protected[("identity.plugins",)] == set()
