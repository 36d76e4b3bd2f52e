"""The requirements with the service itself: `identity serve` with development.ini, on SQLite.

tests/serving tests reloading and stopping under load, with two workers and a small application.
"""

import http.client
import json
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.server_conformance.ambiguous_requests import CORPUS
from tests.server_conformance.servers import ROOT, WAIT, end, free_port, read_head, wait_until

pytestmark = pytest.mark.thorough

PROGRAM = str(Path(sys.executable).with_name("identity"))
SERVER = "[server:main]\nuse = egg:gunicorn#main\nbind = 127.0.0.1:%(http_port)s\nhttp_parser = {parser}\n"
#: Unusual but unambiguous: RFC 9110 allows a tab before a value, and the trailer has no meaning.
READ = {"a length with a tab", "an encoding with a tab", "a huge extension", "a trailer that is none"}
#: The Python parser waits for the rest of the chunk size; the body limit ends it.
WAITS = {"a chunk of 17 digits"}
WATCHED = 3.0
FORM = "Content-Type: application/x-www-form-urlencoded"
DISCOVERY = "/.well-known/openid-configuration"


class ConformanceService:
    """A running `identity serve`."""

    def __init__(self, folder: Path, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.folder, self.port, self.process = folder, port, process

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        return connection

    def head(self, method: str, path: str, *headers: str) -> bytes:
        return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: localhost:{self.port}", *headers, "", ""]).encode()

    def status(self, path: str) -> int:
        """The status of a response on a new connection."""
        with self.connect() as connection:
            connection.sendall(self.head("GET", path, "Connection: close"))
            return status_of(read_head(connection))

    def answers(self) -> bool:
        try:
            return self.status("/healthz") == 200
        except (OSError, AssertionError):
            return False

    def grants(self) -> set[str]:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=WAIT)
        connection.request("GET", DISCOVERY)
        found = set(json.loads(connection.getresponse().read())["grant_types_supported"])
        connection.close()
        return found

    def workers(self) -> set[int]:
        return {item.pid for item in psutil.Process(self.process.pid).children()}

    def static_file(self) -> str:
        """The path of a large static file, which a thread sends."""
        with self.connect() as connection:
            connection.sendall(self.head("GET", "/login/none", "Connection: close"))
            found = re.search(rb"/static/[^\"]+\.css", rest_of(connection))
        assert found is not None
        return found[0].decode()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


def status_of(head: bytes) -> int:
    return int(head.split(b" ", 2)[1])


def rest_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@contextmanager
def running(folder: Path, parser: str) -> Iterator[ConformanceService]:
    if parser == "fast" and find_spec("gunicorn_h1c") is None:
        pytest.skip("gunicorn's parser in C (gunicorn_h1c) is not installed")
    port, reservation = free_port()
    text = (ROOT / "development.ini").read_text()
    server = SERVER.format(parser=parser)
    text, count = re.subn(r"\[server:main\]\n(?:[^\[].*\n|\n)*", lambda _: f"{server}\n", text)
    assert count == 1
    (folder / "service.ini").write_text(text)
    command = [PROGRAM, "serve", "-c", "service.ini", f"http_port={port}", f"data={folder / 'data'}"]
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    service = ConformanceService(folder, port, process)
    try:
        wait_until(lambda: process.poll() is not None or service.answers(), "the service answers")
        assert process.poll() is None, service.log
        yield service
        assert "Traceback" not in service.log, service.log
    finally:
        end(process)
        reservation.close()


@pytest.fixture(scope="module", params=["python", "fast"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConformanceService]:
    """A shared service, for tests that leave it unchanged, with enough open files for all connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"2,000 connections take 4,096 open files; the system allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    with running(tmp_path_factory.mktemp("service"), request.param) as service:
        yield service


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[ConformanceService]:
    """A service of its own, for tests that stop, kill or reload it."""
    with running(tmp_path, "auto") as service:
        yield service


def statuses(service: ConformanceService, pieces: list[bytes]) -> list[int] | None:
    """The statuses of the responses until the service closes the connection; None if it waits for more data."""
    received = b""
    with service.connect() as connection:
        connection.settimeout(WATCHED if len(pieces) == 1 else WAIT)
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
        try:
            while piece := connection.recv(1 << 16):
                received += piece
        except ConnectionError:
            pass
        except TimeoutError:
            return None
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d\d\d) ", received)]


def whole(request: bytes) -> list[bytes]:
    return [request]


def small_pieces(request: bytes) -> list[bytes]:
    cut = min(len(request), 300)
    return [*(request[at : at + 3] for at in range(0, cut, 3)), request[(cut + 2) // 3 * 3 :]]


@pytest.mark.parametrize("cut", [whole, small_pieces])
def test_ambiguous_request_is_refused_once(service: ConformanceService, cut: Callable[[bytes], list[bytes]]) -> None:
    host = f"Host: localhost:{service.port}".encode()

    def ask(name: str) -> list[int] | None:
        last = service.head("GET", "/smuggled", "Connection: close")
        pieces = [*cut(CORPUS[name].replace(b"Host: x", host)), last]
        return statuses(service, [b"".join(pieces)] if cut is whole else pieces)

    names = [name for name in CORPUS if name not in WAITS or cut is whole]
    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(names, pool.map(ask, names), strict=True))
    for name, answers in found.items():
        if answers is None:
            assert name in WAITS
        elif name in READ:
            # Either read to its end, so that the next request is answered too, or refused.
            assert len(answers) <= 2, (name, answers)
        else:
            assert len(answers) == 1 or len(CORPUS[name]) > 1 << 16, (name, answers)
        assert all(400 <= status < 500 or status in (501, 505) for status in answers or []), (name, answers)


def test_body_over_the_limit_is_refused_unread(service: ConformanceService) -> None:
    """The refusal reaches a client that sends no body, and one that keeps sending (RFC 9112 §9.6)."""
    refusals = {"/oauth/v2/token": 413, "/login/none": 404, "/management/v1/organizations": 401}
    for path, status in refusals.items():
        for body in (b"", b"x" * (8 << 20)):
            with service.connect() as connection:
                connection.sendall(service.head("POST", path, FORM, "Content-Length: 300000000"))
                for at in range(0, len(body), 1 << 16):
                    connection.sendall(body[at : at + (1 << 16)])
                head = read_head(connection)
                assert status_of(head) == status, (path, head)
                assert b"\r\nconnection: close\r\n" in head.lower()
                # The connection is closed without a reset.
                rest_of(connection)


def test_expect_is_answered(service: ConformanceService) -> None:
    with service.connect() as connection:
        for _ in range(2):
            connection.sendall(
                service.head("POST", "/oauth/v2/token", FORM, "Content-Length: 12", "Expect: 100-continue")
            )
            assert status_of(read_head(connection)) == 100
            connection.sendall(b"grant_type=x")
            head = read_head(connection)
            assert status_of(head) == 400
            connection.recv(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))  # type: ignore[index]
    with service.connect() as connection:
        connection.sendall(
            service.head("POST", "/oauth/v2/token", FORM, "Content-Length: 3000000", "Expect: 100-continue")
        )
        assert status_of(read_head(connection)) == 413
        assert b"HTTP/1.1 100" not in rest_of(connection)


def test_idle_and_slow_clients_do_not_delay_others(service: ConformanceService) -> None:
    """1,000 idle clients, and 300 each with slow headers, with slow bodies, and without reading."""
    file = service.static_file()
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(service.connect())
        headers = [stack.enter_context(service.connect()) for _ in range(300)]
        for body in headers:
            body.sendall(service.head("GET", "/login")[:-2])
        bodies = [stack.enter_context(service.connect()) for _ in range(300)]
        for number, body in enumerate(bodies):
            path = ("/login", "/oauth/v2/token", "/management/v1/organizations")[number % 3]
            body.sendall(service.head("POST", path, FORM, "Content-Length: 60000"))
        for number in range(300):
            reader = stack.enter_context(service.connect(receive_buffer=4096))
            reader.sendall(service.head("GET", (file, DISCOVERY)[number % 2]) * 100)
            if number % 10 == 0:
                # The thread queue may be full until the kernel's buffers are filled.
                wait_until(lambda: service.status(file) == 200, "threads are free")
        wait_until(lambda: service.status(file) == 200, "threads are free")
        slowest = 0.0
        for _ in range(5):
            for body in headers:
                with suppress(ConnectionError):
                    body.sendall(b"X: y\r\n")
            for body in bodies:
                with suppress(ConnectionError):
                    body.sendall(b"x")
            for path, status in (("/healthz", 200), (DISCOVERY, 200), (file, 200), ("/login", 303)):
                began = time.monotonic()
                assert service.status(path) == status
                slowest = max(slowest, time.monotonic() - began)
        # An order of magnitude, not a measurement: a blocked thread would stay blocked for the duration of a body.
        assert slowest < 20
    wait_until(service.answers, "it answers when they are gone")


class ServiceLoad:
    """Clients on keep-alive connections that request an endpoint, a page, and an endpoint with an invalid token."""

    REQUESTS = (
        ("GET", DISCOVERY, b""),
        ("GET", "/static/identity.css", b""),
        ("POST", "/oauth/v2/token", b"grant_type=x"),
    )

    def __init__(self, service: ConformanceService) -> None:
        self.failures: list[str] = []
        self.answered = 0
        token = ("POST", "/oauth/v2/token", b"grant_type=x")
        self._requests = (("GET", DISCOVERY, b""), ("GET", service.static_file(), b""), token)
        self._service = service
        self._ended = threading.Event()

    @contextmanager
    def going_on(self) -> Iterator["ServiceLoad"]:
        with ThreadPoolExecutor(6) as pool:
            for number in range(6):
                pool.submit(self._ask, *self._requests[number % 3])
            try:
                yield self
            finally:
                self._ended.set()

    def more(self, count: int = 50) -> None:
        enough = self.answered + count
        wait_until(lambda: self.answered >= enough, "requests are answered")

    def _ask(self, method: str, path: str, body: bytes) -> None:
        connection = http.client.HTTPConnection("localhost", self._service.port, timeout=WAIT)
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        while not self._ended.is_set():
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status != (400 if body else 200):
                    self.failures.append(f"{path}: {answer.status}")
                self.answered += 1
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{path}: {error!r}")
                connection.close()
                time.sleep(0.01)
        connection.close()


def test_reload_under_load_brings_the_setting_and_loses_no_request(own_service: ConformanceService) -> None:
    assert "client_credentials" in own_service.grants()
    ini = own_service.folder / "service.ini"
    with ServiceLoad(own_service).going_on() as load:
        load.more()
        before = own_service.workers()
        ini.write_text(re.sub(r"\bclient_credentials\b", "", ini.read_text()))
        own_service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not before & own_service.workers(), "the old worker has ended")
        load.more()
        assert "client_credentials" not in own_service.grants()
    assert load.failures == []


def test_killed_worker_is_replaced(own_service: ConformanceService) -> None:
    with ServiceLoad(own_service).going_on() as load:
        load.more()
        [killed] = own_service.workers()
        psutil.Process(killed).kill()
        wait_until(lambda: killed not in own_service.workers() and own_service.answers(), "another worker answers")
        load.more()
    # Each client loses at most its request in progress, because the sockets keep listening.
    assert len(load.failures) <= 6, load.failures
    assert not [failure for failure in load.failures if "Refused" in failure]


def test_sigterm_under_load_ends_every_connection_in_order(own_service: ConformanceService) -> None:
    with ServiceLoad(own_service).going_on() as load:
        load.more()
        own_service.process.send_signal(signal.SIGTERM)
        assert own_service.process.wait(WAIT) == 0
    # Responses announce the close. The kernel resets connections that no process had accepted.
    lost = {re.sub(r"^.*: (\w+)\(.*$", r"\1", failure) for failure in load.failures}
    assert lost <= {"ConnectionRefusedError", "ConnectionResetError"}, load.failures
