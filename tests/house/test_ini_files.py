"""Both ini files: the same keys, and both serve for real, as `pserve` starts them."""

import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from identity.cli import main as identity_program
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT = ROOT / "development.ini"
PRODUCTION = ROOT / "production.ini"
PASSWORD = re.compile(r"password +(\S+) +\(one-time; shown only now\)")


def sections(ini: Path) -> RawConfigParser:
    parser = RawConfigParser(default_section="never")
    parser.optionxform = str
    parser.read(ini)
    return parser


class TestKeys:
    def test_are_the_same_in_both_files(self):
        development, production = sections(DEVELOPMENT), sections(PRODUCTION)
        assert development.sections() == production.sections()
        for section in development.sections():
            if section != "DEFAULT":
                assert list(development[section]) == list(production[section]), section

    def test_production_is_production(self):
        settings = sections(PRODUCTION)
        assert settings["app:main"]["identity.development"] == "false"
        assert settings["DEFAULT"]["database"].startswith("postgresql+psycopg://")
        assert len({settings["DEFAULT"][name] for name in ("issuer", "base", "login")}) == 3

    @pytest.mark.parametrize("ini", [DEVELOPMENT, PRODUCTION], ids=lambda ini: ini.stem)
    def test_the_server_is_limited(self, ini):
        server = sections(ini)["server:main"]
        assert int(server["connection_limit"]) >= 1000
        assert int(server["connections_per_address"]) <= 100
        assert int(server["channel_timeout"]) <= 30
        assert int(server["header_timeout"]) <= 10
        assert int(server["max_request_header_size"]) == 32 * 1024
        assert int(server["max_request_body_size"]) == 1024 * 1024
        assert server["asyncore_use_poll"] == server["clear_untrusted_proxy_headers"] == "true"
        assert server["trusted_proxy_headers"] == "x-forwarded-for"
        assert "channel_request_lookahead" not in server


@dataclass
class Served:
    """A running `pserve`."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    #: True if it is told to stop as a terminal does it: with all that it started.
    group: bool = False

    @property
    def output(self) -> str:
        return self.log.read_text()

    def get(self, path: str, host: str | None = None) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        request.add_header("Host", host or f"localhost:{self.port}")
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            content: bytes = response.read()
        return content

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            if self.group:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        return self.process.wait(60)


Pserve = Callable[..., Served]


def free_port() -> int:
    """One below those that the system gives to connections: nothing takes it before the service does."""
    while True:
        port = random.randrange(10_000, 32_000)  # noqa: S311 - no secret
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


@pytest.fixture
def pserve(tmp_path: Path) -> Iterator[Pserve]:
    """Starts `pserve INI NAME=VALUE …` and returns once it answers, or has ended."""
    started: list[Served] = []

    def pserve(ini: Path, *, port: int | None = None, **variables: object) -> Served:
        port = port or free_port()
        log = tmp_path / f"log-{len(started)}"
        words = [sys.executable, "-m", "pyramid.scripts.pserve", str(ini), f"http_port={port}"]
        words += [f"{name}={value}" for name, value in variables.items()]
        with log.open("w") as output:
            process = subprocess.Popen(words, stdout=output, stderr=output, text=True, cwd=tmp_path)
        served = Served(process, port, log)
        started.append(served)
        while process.poll() is None:
            with suppress(OSError):
                served.get("/healthz")
                break
            time.sleep(0.05)
        return served

    yield pserve
    for served in started:
        served.stop()


class TestDevelopment:
    def test_the_first_start_makes_everything_and_the_second_finds_it(self, pserve, tmp_path):
        data = tmp_path / "some folder" / "data"
        first = pserve(DEVELOPMENT, data=data)
        assert json.loads(first.get("/readyz")) == {"status": "ready", "failed": []}
        issuer = json.loads(first.get("/.well-known/openid-configuration"))["issuer"]
        assert issuer == f"http://localhost:{first.port}"
        assert first.stop() == 0
        assert len(PASSWORD.findall(first.output)) == 1
        files = {path.name: path.read_bytes() for path in data.glob("*.json")}

        second = pserve(DEVELOPMENT, data=data)
        assert second.stop() == 0
        assert not PASSWORD.search(second.output)
        assert {path.name: path.read_bytes() for path in data.glob("*.json")} == files

    def test_what_is_secret_is_for_its_owner_alone(self, pserve, tmp_path):
        data = tmp_path / "data"
        pserve(DEVELOPMENT, data=data).stop()
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
        assert {"identity.sqlite", "master.key", "example-service-user.json", "introspection-client.json"} <= set(modes)
        assert set(modes.values()) == {0o600}

    def test_the_key_file_has_exactly_the_four_members(self, pserve, tmp_path):
        pserve(DEVELOPMENT, data=tmp_path / "data").stop()
        members = json.loads((tmp_path / "data" / "example-service-user.json").read_text())
        assert set(members) == {"type", "keyId", "key", "userId"}
        assert members["type"] == "serviceaccount"
        assert members["key"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")

    def test_says_where_to_go_next(self, pserve, tmp_path):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        served.stop()
        assert f"http://localhost:{served.port}/.well-known/openid-configuration" in served.output
        assert "token --issuer" in served.output
        assert "Warning" not in served.output
        assert f"make demo PORT={served.port} DATA=data" in served.output

    def test_a_taken_port_is_one_line_and_nothing_is_made(self, pserve, tmp_path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            served = pserve(DEVELOPMENT, port=taken.getsockname()[1], data=tmp_path / "data")
            assert served.process.wait(60) == 1
        assert served.output.count("\n") == 1
        assert f"cannot listen on 127.0.0.1:{served.port}: Address already in use" in served.output
        assert not (tmp_path / "data").exists()

    def test_a_data_folder_that_cannot_be_made_is_one_line(self, pserve, tmp_path):
        (tmp_path / "file").write_text("")
        served = pserve(DEVELOPMENT, data=tmp_path / "file" / "data")
        assert served.process.wait(60) == 1
        assert re.search(r"^identity cannot start\. .*Not a directory", served.output, re.MULTILINE)
        assert "Traceback" not in served.output


class KeptAlive(threading.Thread):
    """Asks over and over on one connection, until that ends."""

    def __init__(self, port: int, *, pause: float) -> None:
        super().__init__(daemon=True)
        self._port, self._pause = port, pause
        self._connection: socket.socket | None = None
        self.well_under_way = threading.Event()
        self.outcome = "nothing yet"

    def connect(self) -> socket.socket:
        if self._connection is None:
            self._connection = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        return self._connection

    def run(self) -> None:
        with self.connect() as connection:
            try:
                self.outcome = self._ask(connection)
            except OSError as problem:
                self.outcome = f"a request was lost: {problem}"

    def _ask(self, connection: socket.socket) -> str:
        for number in range(10_000):
            time.sleep(self._pause)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                piece = connection.recv(4096)
                if not piece:
                    return f"a request was lost after {number} answers"
                answer += piece
            if b"Connection: close" in answer:
                return "told to close, then closed" if connection.recv(1) == b"" else "told to close, and kept"
            if number == 3:
                self.well_under_way.set()
        return "never told to close"


class TestStopping:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
    def test_is_clean(self, pserve, tmp_path, number):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        assert served.stop(number) == 0
        assert "Traceback" not in served.output

    def test_a_request_under_way_is_answered_and_no_new_connection_taken(self, pserve, tmp_path):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as half:
            half.sendall(b"POST /oauth/v2/token HTTP/1.1\r\nHost: localhost:%d\r\n" % served.port)
            half.sendall(b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\ngrant")
            served.get("/healthz")
            served.process.send_signal(signal.SIGTERM)
            while True:
                try:
                    socket.create_connection(("127.0.0.1", served.port)).close()
                except OSError:
                    break
                # An address has so many connections, then whoever has waited longest has to go.
                time.sleep(0.05)
            half.sendall(b"_type")
            answer = half.makefile("rb").readline()
        assert answer.startswith(b"HTTP/1.1 400")
        assert served.process.wait(60) == 0

    def test_kept_alive_connections_get_every_answer(self, pserve, tmp_path):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        asking = [KeptAlive(served.port, pause=0.2 * (number % 4)) for number in range(30)]
        for one in asking:
            one.start()
        for one in asking:
            assert one.well_under_way.wait(60)
        # Connected, and about to ask.
        late = [KeptAlive(served.port, pause=0.5) for _ in range(10)]
        for one in late:
            one.connect()
        served.process.send_signal(signal.SIGTERM)
        for one in late:
            one.start()
        for one in (*asking, *late):
            one.join(60)
        assert [one.outcome for one in (*asking, *late)] == ["told to close, then closed"] * 40
        assert served.process.wait(60) == 0
        assert "Traceback" not in served.output

    def test_idle_connections_do_not_hold_it_up(self, pserve, tmp_path):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += idle.recv(4096)
            served.process.send_signal(signal.SIGTERM)
            assert idle.recv(4096) == b""
        assert served.process.wait(60) == 0

    def test_being_told_twice_waits_for_nobody(self, pserve, tmp_path):
        served = pserve(DEVELOPMENT, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as half:
            half.sendall(b"POST /oauth/v2/token HTTP/1.1\r\n")
            served.get("/healthz")
            served.process.send_signal(signal.SIGTERM)
            repeat = threading.Timer(0.5, served.process.send_signal, [signal.SIGTERM])
            repeat.start()
            assert served.process.wait(60) == 0
            repeat.join()
        assert "had no answer yet" in served.output


@dataclass
class Place:
    """What production.ini needs outside of it."""

    secrets: Path
    data: Path
    database: str
    proxy: str = "none"

    @property
    def variables(self) -> dict[str, object]:
        return {
            "secrets": self.secrets,
            "data": self.data,
            "database": self.database.replace("%", "%%"),
            "proxy": self.proxy,
        }

    def run(self, command: str, *words: str) -> int:
        given = [f"{name}={value}" for name, value in self.variables.items()]
        return identity_program([command, "-c", str(PRODUCTION), *given, *words])


@pytest.fixture
def empty_place(postgresql_server: PostgresqlServer, tmp_path: Path) -> Iterator[Place]:
    """An empty PostgreSQL database, and a folder with secrets."""
    url = new_database(postgresql_server)
    place = Place(tmp_path / "secrets", tmp_path / "data", url)
    place.secrets.mkdir(mode=0o700)
    assert identity_program(["master-key", str(place.secrets / "master.key")]) == 0
    password = place.secrets / "database.password"
    password.write_text("not needed by this server\n")
    password.chmod(0o600)
    yield place
    drop_database(postgresql_server, url)


@pytest.fixture
def place(empty_place: Place) -> Place:
    """Migrated and bootstrapped, as production.ini says."""
    assert empty_place.run("migrate") == 0
    assert empty_place.run("bootstrap") == 0
    return empty_place


class TestProduction:
    def test_serves_three_hosts_on_postgresql(self, pserve, place):
        assert place.run("check") == 0
        served = pserve(PRODUCTION, **place.variables)
        document = json.loads(served.get("/.well-known/openid-configuration", host="id.example.com"))
        assert document["issuer"] == "https://id.example.com"
        assert document["token_endpoint"] == "https://api.example.com/oauth/v2/token"
        assert json.loads(served.get("/oauth/v2/keys", host="api.example.com"))["keys"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            served.get("/oauth/v2/keys", host="id.example.com")
        with pytest.raises(urllib.error.HTTPError, match="421"):
            served.get("/oauth/v2/keys", host="elsewhere.example.com")
        assert served.stop() == 0

    @pytest.mark.thorough
    def test_the_check_asks_for_a_decision_on_the_proxy(self, place, capsys):
        assert sections(PRODUCTION)["DEFAULT"]["proxy"] == ""
        for decision, status in (("", 1), ("none", 0), ("10.0.0.2", 0), ("2001:db8::2", 0)):
            place.proxy = decision
            assert place.run("check") == status
            told = capsys.readouterr().out
            assert (
                "FAILED  proxy: identity.trusted_proxy does not say whether there is a proxy in front." in told
            ) == bool(status)

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("decision", "address"), [("none", "127.0.0.1"), ("10.0.0.2", "127.0.0.1"), ("127.0.0.1", "192.0.2.7")]
    )
    def test_believes_the_proxy_that_is_named_alone(self, pserve, place, capsys, decision, address):
        """What a client wrote into the header before the proxy added its word counts nowhere."""
        place.proxy = decision
        served = pserve(PRODUCTION, **place.variables)
        request = urllib.request.Request(
            f"http://127.0.0.1:{served.port}/oauth/v2/introspect",
            b"token=x",
            {"Host": "api.example.com", "X-Forwarded-For": "203.0.113.9, 192.0.2.7", "Authorization": "Basic eDp5"},
        )
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=30)  # noqa: S310
        assert served.stop() == 0
        capsys.readouterr()
        assert place.run("audit", "--event", "authentication.refused") == 0
        [event] = map(json.loads, capsys.readouterr().out.splitlines())
        assert event["actor"]["client_address"] == address

    @pytest.mark.thorough
    def test_logs_json(self, pserve, place):
        served = pserve(PRODUCTION, **place.variables)
        served.stop()
        lines = [json.loads(line) for line in served.output.splitlines() if not line.startswith("Starting server")]
        assert lines
        for line in lines:
            assert {"time", "level", "logger", "message"} <= set(line)

    def test_does_not_migrate_or_bootstrap_by_itself(self, pserve, empty_place):
        self.refused(pserve, empty_place, "identity migrate")
        assert empty_place.run("migrate") == 0
        self.refused(pserve, empty_place, "identity bootstrap")

    @pytest.mark.thorough
    @pytest.mark.parametrize("name", ["master.key", "database.password"])
    @pytest.mark.parametrize("mode", [0o640, 0o604])
    def test_refuses_a_secret_that_others_may_read(self, pserve, place, name, mode):
        (place.secrets / name).chmod(mode)
        self.refused(pserve, place, "chmod 600")

    @pytest.mark.thorough
    @pytest.mark.parametrize("content", ["change me", "0" * 64, "A" * 43 + "="])
    def test_refuses_a_default_secret(self, pserve, place, content):
        (place.secrets / "master.key").write_text(content)
        self.refused(pserve, place, "master key")

    def test_refuses_a_missing_secret(self, pserve, place):
        (place.secrets / "master.key").unlink()
        self.refused(pserve, place, "does not exist")

    @pytest.mark.thorough
    def test_refuses_another_master_key_than_the_database_was_sealed_with(self, pserve, place):
        (place.secrets / "master.key").unlink()
        assert identity_program(["master-key", str(place.secrets / "master.key")]) == 0
        self.refused(pserve, place, "key")

    def test_refuses_a_database_that_is_away(self, pserve, place):
        place.database = "postgresql://identity@127.0.0.1:1/identity"
        self.refused(pserve, place, "database")

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("before", "after", "sentence"),
        [
            ("identity.storage = sql", "identity.storage = paper", 'identity.storage: "paper" is offered by no'),
            ("identity.development = false", "identity.developing = false", "identity.developing: is not known"),
            ("%(issuer)s", "http://id.example.com", "identity.issuer_url: must start with https://"),
            ("%(issuer)s", "https://id.example.com/path", "identity.issuer_url: must be scheme and host alone"),
            ("1:%(secrets)s/master.key", "", "identity.master_keys: is missing"),
            ("= sql client", "= nonsense sql client", '"nonsense", which is not installed'),
            ("identity.trusted_proxy = %(proxy)s", "identity.trusted_proxy = *", "must be one address"),
            ("identity.attempts_per_address = 100", "identity.attempts_per_address = -1", "must not be negative"),
            ("threads = 8", "threads = many", "[server:main]"),
            ("threads = 8", "thraeds = 8", "[server:main]"),
        ],
    )
    def test_refuses_bad_settings(self, pserve, place, tmp_path, before, after, sentence):
        ini = tmp_path / "bad.ini"
        text = PRODUCTION.read_text()
        assert before in text
        ini.write_text(text.replace(before, after))
        self.refused(pserve, place, sentence, ini)

    @staticmethod
    def refused(pserve, place: Place, sentence: str, ini: Path = PRODUCTION) -> None:
        served = pserve(ini, **place.variables)
        assert served.process.wait(60) == 1
        last = served.output.splitlines()[-1]
        assert last.startswith("identity cannot start. ")
        assert sentence in last
        assert "Traceback" not in served.output


@pytest.mark.skipif(os.name != "posix", reason="signals and file modes")
class TestMakefile:
    REQUEST = re.compile(r"[-0-9]+ [:,0-9]+ INFO +identity\.http\.request_log: (GET|POST) (\S+) (\d+), \d+ ms\Z")

    @pytest.fixture
    def checkout(self, tmp_path):
        """A folder from which `make run` starts what is installed here."""
        folder = tmp_path / "check out"
        folder.mkdir()
        for name in ("Makefile", "development.ini"):
            shutil.copy(ROOT / name, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        return folder

    @pytest.fixture
    def make_run(self, checkout):
        """Starts `make run` and returns once it answers."""
        started: list[Served] = []

        def make_run(**variables: object) -> Served:
            port, log = free_port(), checkout / f"log-{len(started)}"
            words = ["make", "--assume-old=.venv/.runs", "run", f"PORT={port}"]
            words += [f"{name}={value}" for name, value in variables.items()]
            with log.open("w") as output:
                # Without what a make around this one would tell it: then it says which folder it enters.
                alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
                process = subprocess.Popen(
                    words, stdout=output, stderr=output, text=True, cwd=checkout, start_new_session=True, env=alone
                )
            started.append(served := Served(process, port, log, group=True))
            while process.poll() is None:
                with suppress(OSError):
                    served.get("/healthz")
                    break
                time.sleep(0.05)
            return served

        yield make_run
        for served in started:
            served.stop()

    def test_run_prints_its_banner_and_one_line_for_each_request(self, make_run):
        for beginning in ("first owner", "A first token"):
            served = make_run()
            served.get("/.well-known/openid-configuration?code=secret")
            with pytest.raises(urllib.error.HTTPError, match="410"):
                served.get("/password/reset/a-secret-of-a-link")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                served.get("/no-such-page/a-secret")
            assert served.stop(signal.SIGINT) in (0, 2, -signal.SIGINT)
            banner, separator, rest = served.output.partition("Stop: Ctrl-C\n\n")
            assert separator
            assert banner.startswith("\n  identity is served at http://localhost")
            assert beginning in banner
            told = [self.REQUEST.match(line) for line in rest.splitlines() if not line.startswith("make: ***")]
            assert None not in told, rest
            assert [line.groups() for line in told if line and line[2] != "/healthz"] == [
                ("GET", "/.well-known/openid-configuration", "200"),
                ("GET", "/password/reset/{code}", "410"),
                ("GET", "/no-such-page…", "404"),
            ]
            assert "secret" not in rest

    def test_what_the_banner_says_works_as_it_stands(self, make_run, checkout):
        served = make_run(DATA="some folder")
        commands = [line.strip() for line in served.output.splitlines() if " token --issuer " in line]
        assert len(commands) == 2
        commands.append(re.search(r"make demo .*?(?=  )", served.output)[0].replace("make", "make -o .venv/.runs", 1))
        for command in commands:
            ran = subprocess.run(command, shell=True, cwd=checkout, capture_output=True, text=True, check=False)  # noqa: S602
            assert ran.returncode == 0, ran.stderr

    def test_commands_find_the_service_that_was_started_last(self, make_run, checkout, tmp_path):
        def identity(*words: object) -> "subprocess.CompletedProcess[str]":
            program = [str(Path(sys.prefix) / "bin" / "identity"), *map(str, words)]
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

    def test_help_lists_the_targets(self):
        made = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
        for target in ("run", "test", "lint", "bench", "docs", "demo", "clean"):
            assert re.search(rf"^  {target} +\w", made.stdout, re.MULTILINE)

    def test_a_missing_python_is_one_line(self, tmp_path):
        words = ["make", "-f", str(ROOT / "Makefile"), "test", "PYTHON=no-such-python"]
        for name in ("setup.cfg", "pyproject.toml", "constraints.txt"):
            (tmp_path / name).write_text("")
        made = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert made.returncode != 0
        assert "This needs Python 3.11 or newer" in made.stdout
