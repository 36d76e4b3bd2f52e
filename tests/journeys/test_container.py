"""The Containerfile of the documentation on a plain Debian. podman builds it, if installed; otherwise the test runs
its instructions in a chroot, as far as possible without a container engine. The result runs in a root directory
of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.house.service_processes import ROOT, ServiceProcess, free_port

pytestmark = pytest.mark.exhaustive

FILE = ROOT / "docs" / "how-to" / "operators" / "examples" / "Containerfile"
RELEASE = "bookworm"
#: The CA certificates of this machine, and their path in the container, whose installation writes its own list.
TRUSTED, CONTAINER_TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt"), "/trusted.crt"
READ = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
#: Not in memory, because a root file system is large.
FOLDER = Path("/var/tmp")  # noqa: S108


@dataclass
class Stage:
    """A root directory in which instructions run."""

    root: Path
    user: str = "root"
    folder: str = "/"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthy: list[str] = field(default_factory=list)

    def command_line(self, command: list[str]) -> list[str]:
        """The command line that starts a program in the container."""
        change = 'cd "$0" && exec "$@"'
        return [
            "chroot",
            f"--userspec={self.user}",
            str(self.root),
            "/bin/sh",
            "-c",
            change,
            self.folder,
            *command,
        ]

    def run(self, *arguments: str) -> str:
        done = run(*self.command_line(list(arguments)))
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def environ() -> dict[str, str]:
    proxies = {name: value for name, value in os.environ.items() if name.endswith("_proxy")}
    return proxies | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/"}


def words_for_pip() -> str:
    """The pip configuration of this machine as a file."""
    pip_environment = {
        name.removeprefix("PIP_"): value for name, value in os.environ.items() if name.startswith("PIP_")
    }
    if TRUSTED.exists():
        pip_environment["CERT"] = CONTAINER_TRUSTED
    return "\n".join(
        ["[global]", *(f"{name.lower().replace('_', '-')} = {value}" for name, value in pip_environment.items()), ""]
    )


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(item) for item in arguments], capture_output=True, text=True, env=environ())


def lines() -> list[tuple[str, str]]:
    """The instructions with their arguments."""
    found = (line.partition(" ") for line in FILE.read_text().splitlines() if line and not line.startswith("#"))
    return [(instruction, rest) for instruction, _, rest in found]


def copied(rest: str, into: Stage, stages: dict[str, Stage]) -> None:
    arguments = shlex.split(rest)
    base = ROOT
    if arguments[0].startswith("--from="):
        base = stages[arguments.pop(0).partition("=")[2]].root
    *sources, target = arguments
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
    """A Debian with essential packages only."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no container is tried: that takes root and debootstrap (Debian: apt-get install debootstrap).")
    folder = FOLDER / f"identity-container-{os.getpid()}"
    completed = run("debootstrap", "--variant=minbase", RELEASE, folder)
    if completed.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no container is tried: no bare Debian can be had here. {completed.stdout.splitlines()[-1:]}")
    shutil.copy("/etc/resolv.conf", folder / "etc")
    for path in Path("/etc/apt/apt.conf.d").glob("*"):
        shutil.copy(path, folder / "etc/apt/apt.conf.d")
    if TRUSTED.exists():
        shutil.copy(TRUSTED, folder / CONTAINER_TRUSTED.lstrip("/"))
    wheels = Path(os.environ.get("PIP_FIND_LINKS", ""))
    if wheels.is_absolute() and wheels.is_dir():
        shutil.copytree(wheels, folder / wheels.relative_to("/"))
    (folder / "etc/pip.conf").write_text(words_for_pip())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def container(bare: Path) -> Iterator[Stage]:
    """The result of the last stage."""
    with contextmanager(by_hand if shutil.which("podman") is None else built)(bare) as stage:
        yield stage


def built(bare: Path) -> Iterator[Stage]:
    """The image built by podman."""
    path = bare.with_name(f"{bare.name}-podman")
    folders = (instruction for name in ("root", "runroot", "tmpdir") for instruction in (f"--{name}", path / name))
    podman = ["podman", *folders, "--storage-driver=vfs", "--events-backend=none"]

    def buildah(*arguments: object) -> str:
        done = run(*podman, *arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    root, base = bare.with_name(f"{bare.name}-last"), path / "base.tar"
    path.mkdir()
    try:
        assert run("tar", "--create", "--file", base, "--directory", bare, ".").returncode == 0
        buildah("import", base, "localhost/base")
        # The command in the file's first line, with the local base image.
        arguments = shlex.split(FILE.read_text().splitlines()[0].partition(": podman ")[2])
        base_image = "--build-arg=BASE=localhost/base"
        buildah(*arguments[:-1], base_image, "--pull=never", "--isolation=chroot", "--layers=false", ROOT)
        [image] = json.loads(buildah("image", "inspect", "identity"))
        subprocess.run(["cp", "--archive", buildah("image", "mount", "identity").strip(), root], check=True)
        buildah("image", "unmount", "identity")
        config, test = image["Config"], image["Healthcheck"]["Test"]
        yield Stage(root, config["User"], config["WorkingDir"], config["Entrypoint"], config["Cmd"], test[1:])
    finally:
        for item in (path, root):
            shutil.rmtree(item, ignore_errors=True)


def by_hand(bare: Path) -> Iterator[Stage]:
    """The result of running each instruction."""
    stages: dict[str, Stage] = {}
    stage = Stage(bare)
    try:
        for instruction, rest in lines():
            if instruction == "FROM":
                root = bare.with_name(f"{bare.name}-{len(stages)}")
                subprocess.run(["cp", "--archive", bare, root], check=True)
                stage = stages[rest.partition(" AS ")[2] or "last"] = Stage(root)
            elif instruction == "RUN":
                stage.run("/bin/sh", "-c", rest)
            elif instruction == "COPY":
                copied(rest, stage, stages)
            elif instruction == "USER":
                stage.user = rest
            elif instruction == "WORKDIR":
                stage.folder = rest
            elif instruction == "ENTRYPOINT":
                stage.entry = json.loads(rest)
            elif instruction == "CMD":
                stage.command = json.loads(rest)
            elif instruction == "HEALTHCHECK":
                stage.healthy = json.loads(rest.removeprefix("CMD "))
            else:
                assert instruction in ("ARG", "EXPOSE", "VOLUME"), instruction
        yield stage
    finally:
        for item in stages.values():
            shutil.rmtree(item.root, ignore_errors=True)


@contextmanager
def serving(container: Stage, command: list[str], log: Path) -> Iterator[ServiceProcess]:
    """A running container during the block, which starts once it is healthy."""
    port = free_port()
    with log.open("w") as output:
        arguments = container.command_line([*container.entry, *command, f"http_port={port}"])
        process = subprocess.Popen(arguments, stdout=output, stderr=output, text=True, env=environ())
    served = ServiceProcess(process, port, log)
    try:
        served.wait()
        assert process.poll() is None, served.output
        container.run(*(item.replace(":8080", f":{port}") for item in container.healthy))
        yield served
    finally:
        assert served.stop() == 0


def test_container_serves_as_unprivileged_user(container: Stage, tmp_path: Path) -> None:
    """With development.ini, since production.ini needs a PostgreSQL server."""
    container.run(*container.entry, "init-config", "--folder", "/var/lib/identity/ini")
    assert container.run("id", "-un").strip() == "identity"
    command = [*container.command[:2], "/var/lib/identity/ini/development.ini"]
    with serving(container, command, tmp_path / "log") as served:
        assert b'"issuer"' in served.get("/.well-known/openid-configuration")
    # Unchanged, only the file that the image does not contain is missing.
    ended = subprocess.run(
        container.command_line([*container.entry, *container.command]), capture_output=True, text=True, env=environ()
    )
    assert (ended.returncode, "production.ini" in ended.stderr) == (1, True), ended.stderr


def test_container_serves_with_production_ini(container: Stage, tmp_path: Path) -> None:
    """The image's own command; only the database is replaced by a file."""
    folder, metrics = "/var/lib/identity/etc", free_port()
    container.run(*container.entry, "init-config", "--folder", folder, "proxy=127.0.0.1", f"secrets={folder}")
    ini = container.root / folder.lstrip("/") / "production.ini"
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
    container.run(*container.entry, "master-key", f"{folder}/master.key")
    for name in ("migrate", "bootstrap"):
        container.run(*container.entry, name, "-c", f"{folder}/production.ini")
    command = [item.replace("/etc/identity", folder) for item in container.command]
    with serving(container, command, tmp_path / "log"):
        metrics_text = container.run("python3", "-c", READ, f"http://127.0.0.1:{metrics}/metrics")
        assert "identity_requests" in metrics_text


def test_container_contains_only_runtime_files(container: Stage) -> None:
    assert not (container.root / "source").exists()
    assert sys.prefix not in container.run("/opt/identity/bin/pip", "list", "--verbose")


def test_compose_file_agrees_with_image_and_settings() -> None:
    compose = yaml.safe_load((FILE.parent / "compose.yaml").read_text())
    service, database, proxy = (compose["services"][name] for name in ("identity", "database", "proxy"))
    assert ROOT / service["build"]["dockerfile"] == FILE
    assert service["command"] == json.loads(dict(lines())["CMD"])
    assert "data:" + dict(lines())["VOLUME"] in service["volumes"]
    parser = ConfigParser()
    parser.read(ROOT / "production.ini")
    production = parser.defaults()
    folder = next(volume for volume in service["volumes"] if volume.startswith("./etc:")).partition(":")[2]
    assert production["secrets"] == folder
    assert compose["secrets"]["database_password"]["file"] == "./etc/database.password"
    assert production["database_password_file"] == "%(secrets)s/database.password"
    assert database["environment"]["POSTGRES_PASSWORD_FILE"] == f"/run/secrets/{database['secrets'][0]}"
    guide = (FILE.parents[1] / "install-and-run.rst").read_text()
    assert f"proxy={proxy['networks']['inside']['ipv4_address']} " in guide
    assert (
        f"//{database['environment']['POSTGRES_USER']}@database/{database['environment']['POSTGRES_USER']}\n" in guide
    )
