"""A plugin in a separate distribution: installed elsewhere, found by its entry point, and using only public names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent / "sample_plugin"


@pytest.fixture(scope="module")
def installed_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the sample was installed, without a network."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(SAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run = subprocess.run(
        [*command, "--disable-pip-version-check", "--target", folder / "installed", folder / "source"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def environment(folder: Path) -> dict[str, str]:
    """An environment that finds the installed sample, but not its source."""
    left_out = ("PYTEST_", "PYTHONPATH", "COV")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)} | {
        "PYTHONPATH": str(folder / "installed")
    }


@pytest.mark.thorough
def test_sample_plugin_passes_its_own_tests(installed_sample: Path) -> None:
    """The contracts of plugin, grant and storage, and tokens and a sign-in with the sample's storage."""
    # Far more tests than the sample defines, so the contracts ran.
    assert passed(installed_sample, "--identity-storage=sample", "tests") > 100


@pytest.mark.exhaustive
def test_sample_plugin_works_on_every_storage(installed_sample: Path) -> None:
    """Without the sample's own storage."""
    arguments = (
        "--identity-plugin=sample",
        "--every-storage",
        "tests/test_door_pin.py",
        "tests/test_token_exchange.py",
    )
    assert passed(installed_sample, *arguments) > 50


def passed(installed_sample: Path, *options: str) -> int:
    """The number of its tests that pass with these options; none may fail."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "error", "-W", "ignore::DeprecationWarning"),
            *("-p", "no:cacheprovider", "--import-mode=importlib"),
            *options,
        ],
        cwd=installed_sample / "source",
        env=environment(installed_sample),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    counted = re.search(r"(\d+) passed", run.stdout)
    assert counted is not None, run.stdout
    return int(counted[1])


def test_missing_sample_plugin_is_reported() -> None:
    code = "from identity.plugin_host import PluginHost; PluginHost.load(['sample'], {})"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert 'identity.plugins lists "sample", which is not installed. Installed are: ' in run.stderr


def test_sample_plugin_is_not_in_the_package() -> None:
    """The package neither contains nor mentions the sample."""
    root = SAMPLE.parent.parent.parent
    assert not [path for path in (root / "identity").rglob("*.py") if "sample_plugin" in path.read_text()]
    assert "sample_plugin" not in (root / "setup.cfg").read_text()
