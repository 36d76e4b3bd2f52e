"""`make run`, a newcomer's first command: the commands that it prints work verbatim."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.service_processes import ROOT, ServiceProcess, cut_off, free_port


@pytest.mark.skipif(os.name != "posix", reason="signals and file modes")
class TestMakefile:
    REQUEST = re.compile(
        r"[-0-9]+ [:,0-9]+ INFO +identity\.http\.access_log: (GET|POST) (\S+|no route) (\d+), \d+ ms\Z"
    )

    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch):
        """The environment without the variables of an outer make, which would print its folder and pass on its
        arguments."""
        for name in os.environ:
            if name.startswith("MAKE") or name in ("ARGS", "PORT", "DATA"):
                monkeypatch.delenv(name)

    @pytest.fixture
    def checkout(self, tmp_path):
        """A folder in which `make run` starts the installed package."""
        folder = tmp_path / "check out"
        folder.mkdir()
        for name in ("Makefile", "development.ini"):
            shutil.copy(ROOT / name, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        return folder

    @pytest.fixture
    def make_run(self, checkout):
        """Start `make run`; returns once it responds."""
        started: list[ServiceProcess] = []

        def make_run(port: int | None = None, **variables: object) -> ServiceProcess:
            port, log = port or free_port(), checkout / f"log-{len(started)}"
            command = ["make", "--assume-old=.venv/.runs", "run", f"PORT={port}"]
            command += [f"{name}={value}" for name, value in variables.items()]
            with log.open("w") as output:
                process = subprocess.Popen(
                    command, stdout=output, stderr=output, text=True, cwd=checkout, start_new_session=True
                )
            started.append(ServiceProcess(process, port, log, group=True))
            return started[-1].wait()

        yield make_run
        for served in started:
            served.stop()

    @pytest.mark.thorough
    def test_run_prints_its_banner_and_one_line_for_each_request(self, make_run):
        for beginning in ("first owner", "A first token"):
            served = make_run()
            served.get("/.well-known/openid-configuration?code=secret")
            assert served.status("/password/reset/a-secret-of-a-link") == 410
            assert served.status("/no-such-page/a-secret") == 404
            assert served.stop(signal.SIGINT) in (0, 2, -signal.SIGINT)
            banner, separator, rest = served.output.partition("Stop: Ctrl-C\n\n")
            assert separator
            assert banner.startswith("\n  identity is served at http://localhost")
            assert beginning in banner
            matches = [self.REQUEST.match(line) for line in rest.splitlines() if not line.startswith("make: ***")]
            assert None not in matches, rest
            assert [line.groups() for line in matches if line and line[2] != "/healthz"] == [
                ("GET", "/.well-known/openid-configuration", "200"),
                ("GET", "/password/reset/{code}", "410"),
                ("GET", "no route", "404"),
            ]
            assert "secret" not in rest

    @pytest.mark.thorough
    def test_banner_commands_work_verbatim(self, make_run, checkout):
        served = make_run(DATA="some folder")
        commands = [line.strip() for line in served.output.splitlines() if " token --issuer " in line]
        assert len(commands) == 2
        commands.append(re.search(r"make demo .*?(?=  )", served.output)[0].replace("make", "make -o .venv/.runs", 1))
        for command in commands:
            ran = subprocess.run(command, shell=True, cwd=checkout, capture_output=True, text=True, check=False)  # noqa: S602
            assert ran.returncode == 0, ran.stderr

    @pytest.mark.thorough
    def test_commands_use_the_last_started_service(self, make_run, checkout, tmp_path):
        def identity(*arguments: object) -> "subprocess.CompletedProcess[str]":
            program = [str(Path(sys.prefix) / "bin" / "identity"), *map(str, arguments)]
            return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)

        ini = checkout / "development.ini"
        served = make_run(DATA="elsewhere")
        link = identity("password-link", "-c", ini, "--user", "admin")
        [address] = re.findall(rf"http://localhost:{served.port}(/\S+)", link.stdout) or [link.stderr]
        assert b"admin" in served.get(address)
        assert sorted(path.name for path in checkout.glob("*/identity.sqlite")) == ["identity.sqlite"]
        named = identity("check", "-c", ini, f"data={tmp_path}/nowhere")
        assert named.returncode == 1
        assert "Is that where the service keeps its data" in named.stderr + named.stdout
        assert not (tmp_path / "nowhere" / "identity.sqlite").exists()

    @pytest.mark.thorough
    def test_second_make_run_changes_nothing(self, make_run, checkout):
        served = make_run(DATA="first")
        noted = (checkout / "var" / ".last").read_text()
        assert noted.splitlines() == [f"http_port={served.port}", f"data={checkout}/first"]
        second = make_run(port=served.port, DATA="second")
        assert second.process.wait(60) != 0
        address_line = second.output.splitlines()[0]
        assert f"cannot listen on 127.0.0.1:{served.port}: Address already in use" in address_line
        assert "make run: PORT=…" in address_line
        assert not (checkout / "second").exists()
        assert (checkout / "var" / ".last").read_text() == noted
        assert served.status("/readyz") == 200

    @pytest.mark.thorough
    def test_failed_make_run_is_not_recorded(self, make_run, checkout):
        (checkout / "file").touch()
        failed = make_run(DATA="file/data")
        assert failed.process.wait(60) != 0
        assert "Not a directory" in failed.output
        assert not (checkout / "var").exists()

    @pytest.mark.thorough
    def test_run_needs_no_network(self):
        """Only the loopback interface exists."""
        without_network = cut_off()
        test = f"{__file__}::TestMakefile::test_second_make_run_changes_nothing"
        command = [*without_network, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--thorough", test]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def test_makefile_tries_every_supported_python(self):
        package = re.findall(r"Language :: Python :: (3\.\d+)\n", (ROOT / "setup.cfg").read_text())
        [looked_for] = re.findall(r"\nfor one in python3 (.*); do", (ROOT / "Makefile").read_text())
        assert looked_for.split() == [f"python{item}" for item in reversed(package)]
        assert f"Python {package[0]} or newer ({package[-1]} is the newest" in (ROOT / "README.md").read_text()

    def test_help_lists_the_targets(self):
        completed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
        for target in ("run", "test", "lint", "bench", "docs", "demo", "clean"):
            assert re.search(rf"^  {target} +\w", completed.stdout, re.MULTILINE)

    def test_missing_python_is_one_line(self, tmp_path):
        command = ["make", "-f", str(ROOT / "Makefile"), "test", "PYTHON=no-such-python"]
        (tmp_path / "client").mkdir()
        for name in ("setup.cfg", "pyproject.toml", "constraints.txt", "client/pyproject.toml"):
            (tmp_path / name).write_text("")
        completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert completed.returncode != 0
        assert "This needs Python 3.11 or newer" in completed.stdout
