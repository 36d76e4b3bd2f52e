"""The server's threads: whoever waits for a hash steps aside, so that one thread is enough for all others."""

import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from identity import hashing
from identity.server.waitress_server import Server
from identity.testing.serving import loopback_socket
from tests.servers import SERVERS

WAIT = 30


class Application:
    """Answers /slow only after /quick was answered."""

    def __init__(self) -> None:
        self.slow_begun = threading.Event()
        self.quick_answered = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            self.slow_begun.set()
            with hashing.stepping_aside():
                answered = self.quick_answered.wait(WAIT)
        else:
            answered = True
            self.quick_answered.set()
        start_response("200 OK" if answered else "500 Waited in vain", [("Content-Length", "0")])
        return []


@pytest.fixture(params=SERVERS)
def served(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[tuple[Application, str]]:
    bound = loopback_socket()
    host, port = bound.getsockname()
    server = SERVERS[request.param]({"sockets": [bound], "threads": "1"})
    monkeypatch.setattr(hashing, "stepping_aside", server.stepping_aside)
    application = Application()
    thread = threading.Thread(target=server.serve, args=[application])
    thread.start()
    yield application, f"http://{host}:{port}"
    server.stop()
    thread.join(WAIT)
    assert not thread.is_alive()
    bound.close()


def test_one_thread_answers_while_another_request_waits_for_a_hash(served: tuple[Application, str]) -> None:
    application, address = served
    statuses: list[int] = []
    slow = threading.Thread(target=lambda: statuses.append(_status(f"{address}/slow")))
    slow.start()
    assert application.slow_begun.wait(WAIT)
    assert _status(f"{address}/quick") == 200
    slow.join(WAIT)
    assert statuses == [200]


def test_afterwards_there_is_one_thread_again(served: tuple[Application, str]) -> None:
    application, address = served
    application.quick_answered.set()
    for _ in range(3):
        assert _status(f"{address}/slow") == 200
    for _ in range(3):
        assert _status(f"{address}/quick") == 200


def test_it_gives_a_sign_of_life_before_it_waits_for_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts it, and others after it, waits for that."""
    server = Server({"listen": "127.0.0.1:0", "threads": "1"})
    happened: list[str] = []
    monkeypatch.setattr(server._sockets, "look", lambda _: happened.append("looks"))

    def beat() -> None:
        happened.append("beats")
        server.stop(grace=0)

    server.beat = beat
    server.serve(Application())
    assert happened[0] == "beats"


def test_once_it_has_ended_nobody_writes_to_what_woke_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file may be somebody else's by then."""
    server = Server({"listen": "127.0.0.1:0", "threads": "1"})
    thread = threading.Thread(target=server.serve, args=[Application()])
    thread.start()
    server.stop(grace=0)
    thread.join(WAIT)
    assert not thread.is_alive()
    written: list[int] = []
    monkeypatch.setattr(os, "write", lambda file, _: written.append(file))
    server.stop()
    for one in server.listeners:
        one.pull_trigger()
    assert written == []


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=2 * WAIT) as answer:  # noqa: S310 - a loopback address
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code
