"""The Containerfile of docs/operators on a bare Debian: podman builds it where it is installed; else each line is
carried out as far as that takes no engine. What comes of it is run in a root of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.house.service_processes import ROOT, ServiceProcess, free_port

pytestmark = pytest.mark.thorough

FILE = ROOT / "docs" / "how-to" / "operators" / "examples" / "Containerfile"
RELEASE = "bookworm"
#: Whom this machine trusts, and where it may be in the root: an installation there makes a list of its own.
TRUSTED, THERE = Path("/etc/ssl/certs/ca-certificates.crt"), "/trusted.crt"
READ = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
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
    proxies = {name: value for name, value in os.environ.items() if name.endswith("_proxy")}
    return proxies | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/"}


def words_for_pip() -> str:
    """What this machine's own is told, as a file."""
    told = {name.removeprefix("PIP_"): value for name, value in os.environ.items() if name.startswith("PIP_")}
    if TRUSTED.exists():
        told["CERT"] = THERE
    return "\n".join(["[global]", *(f"{name.lower().replace('_', '-')} = {value}" for name, value in told.items()), ""])


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(item) for item in words], capture_output=True, text=True, env=environ())


def lines() -> list[tuple[str, str]]:
    """Instructions and what they say."""
    found = (line.partition(" ") for line in FILE.read_text().splitlines() if line and not line.startswith("#"))
    return [(word, rest) for word, _, rest in found]


def copied(rest: str, into: Stage, stages: dict[str, Stage]) -> None:
    words = shlex.split(rest)
    base = ROOT
    if words[0].startswith("--from="):
        base = stages[words.pop(0).partition("=")[2]].root
    *sources, target = words
    for item in sources:
        source, path = base / item.lstrip("/"), into.root / target.lstrip("/")
        if source.is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, path, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        else:
            assert target.endswith("/")
            path.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path)


@pytest.fixture(scope="module")
def bare() -> Iterator[Path]:
    """A Debian with nothing in it that is not essential."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no container is tried: that takes root and debootstrap (Debian: apt-get install debootstrap).")
    folder = FOLDER / f"identity-container-{os.getpid()}"
    made = run("debootstrap", "--variant=minbase", RELEASE, folder)
    if made.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no container is tried: no bare Debian can be had here. {made.stdout.splitlines()[-1:]}")
    shutil.copy("/etc/resolv.conf", folder / "etc")
    for path in Path("/etc/apt/apt.conf.d").glob("*"):
        shutil.copy(path, folder / "etc/apt/apt.conf.d")
    if TRUSTED.exists():
        shutil.copy(TRUSTED, folder / THERE.lstrip("/"))
    wheels = Path(os.environ.get("PIP_FIND_LINKS", ""))
    if wheels.is_absolute() and wheels.is_dir():
        shutil.copytree(wheels, folder / wheels.relative_to("/"))
    (folder / "etc/pip.conf").write_text(words_for_pip())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def container(bare: Path) -> Iterator[Stage]:
    """What the last stage leaves."""
    with contextmanager(by_hand if shutil.which("podman") is None else built)(bare) as stage:
        yield stage


def built(bare: Path) -> Iterator[Stage]:
    """By podman, which keeps it for itself."""
    path = bare.with_name(f"{bare.name}-podman")
    folders = (word for name in ("root", "runroot", "tmpdir") for word in (f"--{name}", path / name))
    podman = ["podman", *folders, "--storage-driver=vfs", "--events-backend=none"]

    def told(*words: object) -> str:
        done = run(*podman, *words)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    root, base = bare.with_name(f"{bare.name}-last"), path / "base.tar"
    path.mkdir()
    try:
        assert run("tar", "--create", "--file", base, "--directory", bare, ".").returncode == 0
        told("import", base, next(rest for word, rest in lines() if word == "FROM").partition(" ")[0])
        # As its first line says it, without a registry and without a name space that may not be had here.
        asked = shlex.split(FILE.read_text().splitlines()[0].partition(": podman ")[2])
        told(*asked[:-1], "--pull=never", "--isolation=chroot", "--layers=false", ROOT)
        [image] = json.loads(told("image", "inspect", "identity"))
        subprocess.run(["cp", "--archive", told("image", "mount", "identity").strip(), root], check=True)
        told("image", "unmount", "identity")
        of, test = image["Config"], image["Healthcheck"]["Test"]
        yield Stage(root, of["User"], of["WorkingDir"], of["Entrypoint"], of["Cmd"], test[1:])
    finally:
        for item in (path, root):
            shutil.rmtree(item, ignore_errors=True)


def by_hand(bare: Path) -> Iterator[Stage]:
    """Line by line."""
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
        for item in stages.values():
            shutil.rmtree(item.root, ignore_errors=True)


@contextmanager
def serving(container: Stage, command: list[str], log: Path) -> Iterator[ServiceProcess]:
    """Until the end of a block, in which it is healthy."""
    port = free_port()
    with log.open("w") as output:
        words = container.words([*container.entry, *command, f"http_port={port}"])
        process = subprocess.Popen(words, stdout=output, stderr=output, text=True, env=environ())
    served = ServiceProcess(process, port, log)
    try:
        served.wait()
        assert process.poll() is None, served.output
        container.run(*(item.replace(":8080", f":{port}") for item in container.healthy))
        yield served
    finally:
        assert served.stop() == 0


def test_it_serves_as_a_user_of_its_own(container: Stage, tmp_path: Path) -> None:
    """With the settings of a first look: a database of PostgreSQL is elsewhere."""
    container.run(*container.entry, "init-config", "--folder", "/var/lib/identity/ini")
    assert container.run("id", "-un").strip() == "identity"
    command = [*container.command[:2], "/var/lib/identity/ini/development.ini"]
    with serving(container, command, tmp_path / "log") as served:
        assert b'"issuer"' in served.get("/.well-known/openid-configuration")
    # As it stands, it asks for the one thing that is not in it.
    ended = subprocess.run(
        container.words([*container.entry, *container.command]), capture_output=True, text=True, env=environ()
    )
    assert (ended.returncode, "production.ini" in ended.stderr) == (1, True), ended.stderr


def test_what_the_ini_file_for_production_offers_is_in_it(container: Stage, tmp_path: Path) -> None:
    """Its command as it stands; the database alone is a file."""
    place, metrics = "/var/lib/identity/etc", free_port()
    container.run(*container.entry, "init-config", "--folder", place, "proxy=127.0.0.1", f"secrets={place}")
    ini = container.root / place.lstrip("/") / "production.ini"
    text = ini.read_text()
    for name, value in (
        ("database", "sqlite:////var/lib/identity/of-production.sqlite"),
        ("identity.plugin.sql.password_file", ""),
        ("identity.plugin.metrics.listen", f"127.0.0.1:{metrics}"),
        ("identity.plugin.tracing.endpoint", "http://127.0.0.1:9/v1/traces"),
    ):
        text, count = re.subn(rf"^{re.escape(name)} =.*$", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1, name
    ini.write_text(text)
    container.run(*container.entry, "master-key", f"{place}/master.key")
    for name in ("migrate", "bootstrap"):
        container.run(*container.entry, name, "-c", f"{place}/production.ini")
    command = [item.replace("/etc/identity", place) for item in container.command]
    with serving(container, command, tmp_path / "log"):
        seen = container.run("python3", "-c", READ, f"http://127.0.0.1:{metrics}/metrics")
        assert "identity_requests" in seen


def test_only_what_it_needs_is_in_it(container: Stage) -> None:
    assert not (container.root / "source").exists()
    assert sys.prefix not in container.run("/opt/identity/bin/pip", "list", "--verbose")
