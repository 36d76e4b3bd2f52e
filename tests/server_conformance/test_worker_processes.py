"""Stopping, reloading, killed and blocked workers under load."""

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.server_conformance.servers import WAIT, ServerProcess, wait_until

ASK = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"


def everything(connection: socket.socket) -> bytes:
    """All data up to the end of the connection."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def is_begun(server: ServerProcess, count: int = 1) -> None:
    wait_until(lambda: bool(server.ask("/progress")["begun"] >= count), "the request has begun")


@pytest.mark.requirement("At SIGTERM, requests in progress are answered, and the process exits")
def test_begun_request_is_answered_at_sigterm(own_server: ServerProcess) -> None:
    with own_server.connect() as connection:
        connection.sendall(ASK % b"/slow")
        is_begun(own_server)
        own_server.signal(signal.SIGTERM)
        assert everything(connection).endswith(b"slow")
    # Some servers end by raising the signal again.
    assert own_server.process.wait(WAIT) in (0, -signal.SIGTERM)


@pytest.mark.thorough
@pytest.mark.requirement("At SIGTERM, idle connections do not delay the exit beyond their keep-alive time")
def test_idle_connections_do_not_delay_sigterm(own_server: ServerProcess) -> None:
    with own_server.connect() as idle_connection, own_server.connect():
        idle_connection.sendall(ASK % b"/progress")
        assert idle_connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        own_server.signal(signal.SIGTERM)
        begun = time.monotonic()
        own_server.process.wait(WAIT)
        # An order of magnitude, not a measurement: running requests get 30 seconds.
        assert time.monotonic() - begun < 20


@pytest.mark.requirement("At SIGTERM, new responses have Connection: close")
def test_response_says_close_after_sigterm(own_server: ServerProcess) -> None:
    with own_server.connect() as connection:
        connection.sendall(ASK % b"/slow")
        is_begun(own_server)
        own_server.signal(signal.SIGTERM)
        assert b"\r\nconnection: close\r\n" in everything(connection).lower()


@pytest.mark.requirement("At SIGTERM, a request arriving on a keep-alive connection is answered")
def test_request_on_its_way_is_answered_at_sigterm(own_server: ServerProcess) -> None:
    """The previous response had started, without Connection: close."""
    with own_server.connect() as connection:
        connection.sendall(ASK % b"/drip")
        received = b""
        while not received.endswith(b"\r\n\r\ndr"):
            received += connection.recv(1 << 16)
        assert b"close" not in received.lower()
        own_server.signal(signal.SIGTERM)
        connection.sendall(ASK % b"/next")
        received += everything(connection)
    assert b'"path": "/next"' in received, received


class SteadyLoad:
    """Clients that send requests continuously on keep-alive connections and record failures."""

    def __init__(self, server: ServerProcess, clients: int = 8) -> None:
        self.failures: list[str] = []
        self.answered = 0
        self._server = server
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=[number]) for number in range(clients)]

    @contextmanager
    def going_on(self) -> Iterator["SteadyLoad"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def _ask(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=WAIT)
        body = b"x" * 900
        while not self._ended.is_set():
            try:
                connection.request("POST", f"/{number}", body)
                answer = connection.getresponse()
                found = json.loads(answer.read())
                assert (answer.status, found["length"]) == (200, len(body))
                self.answered += 1
            except Exception as error:
                self.failures.append(repr(error))
                connection.close()
        connection.close()


@pytest.mark.thorough
@pytest.mark.requirement("Three SIGHUPs under load lose no request")
def test_reload_under_load_loses_no_request(own_server: ServerProcess) -> None:
    with SteadyLoad(own_server).going_on() as load:
        for number in range(3):
            old = own_server.worker()
            answered = load.answered
            own_server.release.write_text(f"release {number}")
            own_server.signal(signal.SIGHUP)
            wait_until(lambda old=old: not old.is_running(), "the old worker has ended")  # type: ignore[misc]
            wait_until(lambda least=answered + 100: load.answered > least, "requests are answered")  # type: ignore[misc]
    assert load.failures == []


@pytest.mark.requirement("SIGHUP reloads code and settings")
def test_reload_brings_the_new_application(own_server: ServerProcess) -> None:
    assert own_server.ask()["release"] == "first"
    own_server.release.write_text("second")
    own_server.signal(signal.SIGHUP)
    wait_until(lambda: own_server.answers() and own_server.ask()["release"] == "second", "the new application answers")


@pytest.mark.requirement("A killed worker is replaced")
def test_killed_worker_is_replaced(own_server: ServerProcess) -> None:
    worker = own_server.worker()
    worker.kill()
    wait_until(lambda: own_server.answers() and own_server.worker().pid != worker.pid, "another worker answers")


@pytest.mark.thorough
@pytest.mark.requirement("A worker with a blocked event loop is replaced")
def test_stuck_worker_is_replaced(own_server: ServerProcess) -> None:
    worker = own_server.worker()
    with own_server.connect() as connection:
        connection.sendall(ASK % b"/stuck")
        wait_until(lambda: not worker.is_running(), "the stuck worker has ended")
    wait_until(own_server.answers, "another worker answers")


@pytest.mark.thorough
@pytest.mark.requirement("A request runs to its end after its client has disconnected")
def test_begun_request_ends_without_its_client(server: ServerProcess) -> None:
    before = server.ask("/progress")
    with server.connect() as connection:
        connection.sendall(ASK % b"/long")
        is_begun(server, before["begun"] + 1)
    give_up_at = time.monotonic() + 15
    while server.ask("/progress")["finished"] == before["finished"]:
        assert time.monotonic() < give_up_at, "it was cancelled"
        time.sleep(0.2)
