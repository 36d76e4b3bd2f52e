"""The Containerfile of docs/operators, each line carried out in a bare Debian, as far as that takes no engine."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.house.served import ROOT, Served, free_port

pytestmark = pytest.mark.thorough

FILE = ROOT / "docs" / "operators" / "examples" / "Containerfile"
RELEASE = "bookworm"
#: Whom this machine trusts, and where it may be in the root: an installation there makes a list of its own.
TRUSTED, THERE = Path("/etc/ssl/certs/ca-certificates.crt"), "/trusted.crt"
#: Not in memory: a root is large.
FOLDER = Path("/var/tmp")  # noqa: S108


@dataclass
class Stage:
    """A root that lines are carried out in."""

    root: Path
    user: str = "root"
    folder: str = "/"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthy: list[str] = field(default_factory=list)

    def words(self, words: list[str]) -> list[str]:
        """How a program is started within."""
        change = 'cd "$0" && exec "$@"'
        return ["chroot", f"--userspec={self.user}", str(self.root), "/bin/sh", "-c", change, self.folder, *words]

    def run(self, *words: str) -> str:
        done = run(*self.words(list(words)))
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def environ() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")}
    trusted = dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), THERE) if TRUSTED.exists() else {}
    return own | trusted | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/"}


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(one) for one in words], capture_output=True, text=True, env=environ())


def lines() -> list[tuple[str, str]]:
    """Instructions and what they say."""
    found = (one.partition(" ") for one in FILE.read_text().splitlines() if one and not one.startswith("#"))
    return [(word, rest) for word, _, rest in found]


def copied(rest: str, into: Stage, stages: dict[str, Stage]) -> None:
    words = shlex.split(rest)
    base = ROOT
    if words[0].startswith("--from="):
        base = stages[words.pop(0).partition("=")[2]].root
    *sources, target = words
    for one in sources:
        source, place = base / one.lstrip("/"), into.root / target.lstrip("/")
        if source.is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, place, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        else:
            assert target.endswith("/")
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Debian with nothing in it that is not essential."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no container is tried: that takes root and debootstrap (Debian: apt-get install debootstrap).")
    folder = FOLDER / f"identity-container-{os.getpid()}"
    made = run("debootstrap", "--variant=minbase", RELEASE, folder)
    if made.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no container is tried: no bare Debian can be had here. {made.stdout.splitlines()[-1:]}")
    shutil.copy("/etc/resolv.conf", folder / "etc")
    for one in Path("/etc/apt/apt.conf.d").glob("*"):
        shutil.copy(one, folder / "etc/apt/apt.conf.d")
    if TRUSTED.exists():
        shutil.copy(TRUSTED, folder / THERE.lstrip("/"))
    wheels = Path(os.environ.get("PIP_FIND_LINKS", ""))
    if wheels.is_absolute() and wheels.is_dir():
        shutil.copytree(wheels, folder / wheels.relative_to("/"))
    return folder


@pytest.fixture(scope="module")
def container(bare: Path) -> Iterator[Stage]:
    """What the last stage leaves."""
    stages: dict[str, Stage] = {}
    stage = Stage(bare)
    try:
        for word, rest in lines():
            if word == "FROM":
                root = bare.with_name(f"{bare.name}-{len(stages)}")
                subprocess.run(["cp", "--archive", bare, root], check=True)
                stage = stages[rest.partition(" AS ")[2] or "last"] = Stage(root)
            elif word == "RUN":
                stage.run("/bin/sh", "-c", rest)
            elif word == "COPY":
                copied(rest, stage, stages)
            elif word == "USER":
                stage.user = rest
            elif word == "WORKDIR":
                stage.folder = rest
            elif word == "ENTRYPOINT":
                stage.entry = json.loads(rest)
            elif word == "CMD":
                stage.command = json.loads(rest)
            elif word == "HEALTHCHECK":
                stage.healthy = json.loads(rest.removeprefix("CMD "))
            else:
                assert word in ("EXPOSE", "VOLUME"), word
        yield stage
    finally:
        for one in (bare, *(other.root for other in stages.values())):
            shutil.rmtree(one, ignore_errors=True)


def test_it_serves_as_a_user_of_its_own(container: Stage, tmp_path: Path) -> None:
    """With the settings of a first look: a database of PostgreSQL is elsewhere."""
    container.run(*container.entry, "init", "--folder", "/var/lib/identity/ini")
    assert container.run("id", "-un").strip() == "identity"
    port = free_port()
    command = [*container.command[:2], "/var/lib/identity/ini/development.ini", f"http_port={port}"]
    log = tmp_path / "log"
    with log.open("w") as output:
        words = container.words([*container.entry, *command])
        process = subprocess.Popen(words, stdout=output, stderr=output, text=True, env=environ())
    served = Served(process, port, log)
    try:
        served.wait()
        assert process.poll() is None, served.output
        assert b'"issuer"' in served.get("/.well-known/openid-configuration")
        container.run(*(one.replace(":8080", f":{port}") for one in container.healthy))
    finally:
        assert served.stop() == 0
    # As it stands, it asks for the one thing that is not in it.
    ended = subprocess.run(
        container.words([*container.entry, *container.command]), capture_output=True, text=True, env=environ()
    )
    assert (ended.returncode, "production.ini" in ended.stderr) == (1, True), ended.stderr


def test_only_what_it_needs_is_in_it(container: Stage) -> None:
    assert not (container.root / "source").exists()
    assert sys.prefix not in container.run("/opt/identity/bin/pip", "list", "--verbose")
