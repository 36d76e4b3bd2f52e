"""The built package runs outside the checkout."""

import os
import re
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.external_programs import judge
from tests.house.service_processes import ROOT, ServiceProcess, free_port

UNIT = ROOT / "docs" / "how-to" / "operators" / "examples" / "identity.service"
_BUILD = """
import shutil, sys
from pathlib import Path
from setuptools import build_meta

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
# The wheel is made of what the source distribution holds, as others make it.
archive = folder / build_meta.build_sdist(str(folder))
shutil.unpack_archive(archive, folder)
print(archive.name)
"""
_PROGRAM = "import sys; from identity.cli import main; sys.exit(main())"


def ran(command: list[object], folder: Path, **environ: str) -> str:
    done = subprocess.run(
        [str(item) for item in command], cwd=folder, capture_output=True, text=True, env={**os.environ, **environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, which is built from a copy, because building leaves files behind."""
    folder = tmp_path_factory.mktemp("built")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    source = folder / "source"
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    archive = ran([sys.executable, "-c", _BUILD, source, folder], source).split()[-1].removesuffix(".tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    ran([*pip, folder / archive], folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder]
    # The command from the page; an index would be searched for the bare name.
    ran([*pip, f"identity-iam[sql,postgresql] @ {wheel.as_uri()}"], folder)
    return folder


@pytest.mark.thorough
def test_wheel_contains_every_file_of_the_package(wheel: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "identity"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(tracked.stdout.split()) - set(zipfile.ZipFile(wheel).namelist()) == set()


@pytest.mark.thorough
def test_installed_wheel_serves_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    """From nothing: `identity init-config`, then the service with development.ini."""
    environment = {"PYTHONPATH": str(installed)}
    program = [sys.executable, "-c", _PROGRAM]
    written = ran(
        [*program, "init-config", "--folder", "here", "issuer=https://id.acme.example"], tmp_path, **environment
    )
    assert "here/development.ini and here/production.ini are written." in written
    ini, port = tmp_path / "here" / "development.ini", free_port()
    command = [*program, "serve", "-c", str(ini), f"http_port={port}"]
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, text=True, cwd=tmp_path, env={**os.environ, **environment}
        )
    served = ServiceProcess(process, port, log)
    try:
        served.wait()
        assert process.poll() is None, served.output
        assert b'"issuer"' in served.get("/.well-known/openid-configuration")
        assert b"password" in served.get("/password/reset")
        assert (tmp_path / "here" / "var" / "identity.sqlite").exists()
    finally:
        assert served.stop() == 0
    checked = ran([*program, "check", "-c", ini, f"http_port={port}"], tmp_path, **environment)
    assert "signing key" in checked, checked
    where = ran([sys.executable, "-c", "import identity; print(identity.__file__)"], tmp_path, **environment)
    assert Path(where.strip()).is_relative_to(installed)


def test_systemd_unit_restarts_without_limit() -> None:
    read = ConfigParser(interpolation=None, strict=False)
    read.read(UNIT)
    assert read["Service"]["Restart"] == "always"
    assert read["Unit"]["StartLimitIntervalSec"] == "0"


def test_unit_for_systemd_is_well_formed_and_sandboxed() -> None:
    """systemd-analyze rates the exposure from 0 (none) to 100 (a service with all rights)."""
    program = judge("systemd-analyze", "systemd")
    judged = subprocess.run(
        [program, "security", "--offline=true", "--threshold=15", UNIT], capture_output=True, text=True
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    read = subprocess.run([program, "verify", UNIT], capture_output=True, text=True).stderr.splitlines()
    # The program may be missing; nothing else.
    assert [line for line in read if str(UNIT) in line or UNIT.name in line] == [
        "identity.service: Command /opt/identity/bin/identity is not executable: No such file or directory"
    ]


_TEXTS = {".rst", ".md", ".py", ".ini", ".txt", ".toml", ".cfg", ".yaml", ".service", ".conf", ""}
#: The name as pip looks it up in an index; with "@" a URL follows.
_BARE = re.compile(
    r"""\bpip3?\s+install\b[^`\n]*?[\s"']identity(?:\[[^\]]*\])?+(?!\s*@|[\w./-])"""
    r"""|\bidentity\[[a-z,]+\](?!\s*@)|dependencies = .*"identity\""""
)


@pytest.mark.parametrize(
    "wrong",
    [
        "pip install identity",
        "Run ``pip install identity``.",
        "pip install 'identity[metrics]'",
        'pip install -q "identity[sql,postgresql]" more',
        "needs identity[tracing]",
        'dependencies = ["identity"]',
    ],
)
def test_bare_name_is_found(wrong: str) -> None:
    assert _BARE.search(wrong)


@pytest.mark.parametrize(
    "right",
    [
        'pip install "identity-iam[sql] @ file:///dist/identity_iam-0.1.0-py3-none-any.whl"',
        "pip install --editable ./identity-billing",
        "/opt/identity/bin/pip install '/source[sql,postgresql]'",
    ],
)
def test_direct_reference_is_no_package_name(right: str) -> None:
    assert not _BARE.search(right)


def test_install_instructions_avoid_the_bare_name() -> None:
    """On PyPI the name belongs to another project."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in filter(None, listed.split("\0")) if name != "tests/house/test_package.py"]
    paths = [ROOT / name for name in names if Path(name).suffix in _TEXTS and (ROOT / name).exists()]
    found = [(path, line) for path in paths for line in path.read_text().splitlines() if _BARE.search(line)]
    assert [f"{path.relative_to(ROOT)}: {line}" for path, line in found] == []
