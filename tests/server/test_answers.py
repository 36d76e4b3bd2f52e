"""What the application is told, and what becomes of its answer, in the loop and in threads (PEP 3333)."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from identity import fibers
from identity.fibers import Apart
from identity.server.connections import Channel
from identity.server.framing import ADMIT_BODY
from identity.server.sockets import Sockets
from identity.server.waitress_server import Server
from identity.testing.serving import loopback_socket

WAIT = 30
PLAIN = [("Content-Type", "text/plain")]


class Application:
    """Answers each path in its own way; ``registry`` says which are answered in the loop."""

    def __init__(self, *, in_loop: bool) -> None:
        apart: tuple[Apart, ...] = ()
        self.registry = SimpleNamespace(in_loop=SimpleNamespace(takes=lambda _: in_loop, apart=apart, most=10))
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer: Callable[..., Iterable[bytes]] = getattr(self, environ["PATH_INFO"].strip("/"))
        return answer(environ, start_response)

    def told(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        told = {name: value for name, value in environ.items() if isinstance(value, str)}
        told["body"] = environ["wsgi.input"].read().decode()
        start_response("200 OK", PLAIN)
        return [json.dumps(told).encode()]

    def admits(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if ADMIT_BODY in environ:
            environ[ADMIT_BODY](1000)
        return self.told(environ, start_response)

    def pieces(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        return iter([b"one", b"", b"two"])

    def measured_pieces(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("content-length", "6")])
        return iter([b"one", b"two"])

    def written(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "6")])(b"one")
        return [b"two"]

    def nothing(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("204 No Content", [])
        return []

    def short(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "6")])
        return [b"one"]

    def long(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "3")])
        return [b"onetwo"]

    def two_headers(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("X", "a\r\nSet-Cookie: b=c"), ("Content-Length", "0")])
        return []

    def two_lines(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK\nX: y", [("Content-Length", "0")])
        return []

    def hop_by_hop(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Connection", "x"), ("Content-Length", "0")])
        return []

    def other_mind(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("X", "first")])
        try:
            raise KeyError("late")
        except KeyError as error:
            start_response("500 Failed", PLAIN, (KeyError, error, None))
        return [b"failed"]

    def twice(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        start_response("200 OK", PLAIN)
        return [b"twice"]

    def to_be_closed(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "2")])
        return _Closable(self)

    def patient(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fibers.sleep(0.3)
        start_response("200 OK", [*PLAIN, ("Content-Length", "7")])
        return [b"patient"]

    def large(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", str(40 << 20))])
        return [bytes(1 << 20)] * 40


class _Closable:
    def __init__(self, application: Application) -> None:
        self._application = application

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"ok"])

    def close(self) -> None:
        self._application.closed += 1


@pytest.fixture(params=["loop", "threads"])
def application(request: pytest.FixtureRequest) -> Application:
    return Application(in_loop=request.param == "loop")


@contextmanager
def serving(application: Application, **settings: str) -> Iterator[int]:
    bound = loopback_socket()
    server = Server({"sockets": [bound], "threads": "2", "clear_untrusted_proxy_headers": "true", **settings})
    thread = threading.Thread(target=server.serve, args=[application])
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        server.stop(grace=0)
        thread.join(WAIT)
        bound.close()
    assert not thread.is_alive()


@pytest.fixture
def client(application: Application) -> Iterator[http.client.HTTPConnection]:
    with serving(application) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
        yield connection
        connection.close()


def ask(client: http.client.HTTPConnection, path: str, method: str = "GET", **more: Any) -> tuple[int, Any, bytes]:
    client.request(method, path, **more)
    answer = client.getresponse()
    return answer.status, answer.headers, answer.read()


def told(client: http.client.HTTPConnection, **more: Any) -> dict[str, str]:
    found: dict[str, str] = json.loads(ask(client, "/told?a=b", **more)[2])
    return found


def test_one_connection_after_another_request_tells_the_same(client: http.client.HTTPConnection) -> None:
    first = told(client, headers={"Authorization": "Basic YTpi", "Cookie": "a=b"})
    assert first["HTTP_AUTHORIZATION"] == "Basic YTpi"
    plain = told(client)
    for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": "c=d"}, {}, {"X-Other": "y"}, {}):
        names = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        assert told(client, headers=headers) == plain | names
    assert plain["QUERY_STRING"] == "a=b"
    assert plain["REMOTE_ADDR"] == "127.0.0.1"
    assert plain["REQUEST_METHOD"] == "GET"


def test_each_body_is_its_own(client: http.client.HTTPConnection) -> None:
    for body in ("first", "other", "longer than those", "first"):
        found = told(client, method="POST", body=body)
        assert (found["body"], found["CONTENT_LENGTH"]) == (body, str(len(body)))
    assert told(client, method="POST", body=iter([b"in ", b"chunks"]), encode_chunked=True)["body"] == "in chunks"
    assert told(client, method="POST", body="last")["body"] == "last"


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_a_large_body_that_is_admitted_is_told_as_a_small_one(application: Application, pause: float) -> None:
    head = b"POST /admits HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
    with (
        serving(application, max_request_body_size="10") as port,
        socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection,
    ):
        for letter in (b"y", b"z"):
            for piece in [head, letter * 20] if pause else [head + letter * 20]:
                connection.sendall(piece)
                time.sleep(pause)
            heard = b""
            while not heard.endswith(b"}"):
                heard += connection.recv(4096)
            assert b'"body": "%s"' % (letter * 20) in heard
            assert b"HTTP_CONNECTION" not in heard


def test_words_of_a_proxy_are_thrown_away_or_believed(application: Application) -> None:
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    believes = {"trusted_proxy": "127.0.0.1", "trusted_proxy_headers": "x-forwarded-for"}
    for settings, expected in (({}, "127.0.0.1"), (believes, "192.0.2.1")):
        with serving(application, **settings) as port:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
            for headers in ({}, forwarded, forwarded, {}):
                found = told(client, headers=headers)
                assert found["REMOTE_ADDR"] == (expected if headers else "127.0.0.1")
                assert ("HTTP_X_FORWARDED_FOR" in found) == (bool(headers) and bool(settings))
            client.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [("/pieces", b"onetwo"), ("/measured_pieces", b"onetwo"), ("/written", b"onetwo"), ("/long", b"one")],
)
def test_what_is_answered_in_pieces_arrives_whole(client: http.client.HTTPConnection, path: str, body: bytes) -> None:
    for _ in range(2):
        assert ask(client, path)[::2] == (200, body)


def test_an_answer_without_a_body_has_no_length(client: http.client.HTTPConnection) -> None:
    status, headers, body = ask(client, "/nothing")
    assert (status, body) == (204, b"")
    assert "Content-Length" not in headers
    status, headers, body = ask(client, "/measured_pieces", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "6", b"")


def test_who_gets_too_little_is_not_kept_waiting(client: http.client.HTTPConnection) -> None:
    client.request("GET", "/short")
    with pytest.raises(http.client.IncompleteRead):
        client.getresponse().read()


@pytest.mark.parametrize("path", ["/two_headers", "/two_lines", "/hop_by_hop", "/twice"])
def test_what_is_no_answer_is_an_error(client: http.client.HTTPConnection, path: str) -> None:
    status, headers, body = ask(client, path)
    assert status == 500
    assert "Set-Cookie" not in headers
    assert "X" not in headers
    assert b"Traceback" not in body


def test_the_application_may_change_its_mind_before_anything_is_sent(client: http.client.HTTPConnection) -> None:
    status, headers, body = ask(client, "/other_mind")
    assert (status, body) == (500, b"failed")
    assert "X" not in headers


def test_what_was_answered_is_closed(application: Application, client: http.client.HTTPConnection) -> None:
    assert ask(client, "/to_be_closed")[2] == b"ok"
    # It may be read before it is closed; after the next answer it has been.
    assert ask(client, "/measured_pieces")[2] == b"onetwo"
    assert application.closed == 1


def test_whoever_reads_slowly_gets_everything(client: http.client.HTTPConnection) -> None:
    assert ask(client, "/large")[2] == bytes(40 << 20)
    assert ask(client, "/measured_pieces")[2] == b"onetwo"


@pytest.mark.parametrize("path", ["/patient", "/large"])
def test_who_asks_on_before_the_answer_is_answered_in_order(
    application: Application, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    looks: list[object] = []
    handle = Sockets._handle
    monkeypatch.setattr(Sockets, "_handle", lambda *given: looks.append(given[1]) or handle(*given))
    with serving(application) as port, socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.1)
        connection.sendall(b"GET /measured_pieces HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        assert len(looks) < 100, "nobody looks again and again at what is not read yet"
        heard = b""
        while not heard.endswith(b"\r\n\r\nonetwo"):
            heard = heard[-100:] + connection.recv(1 << 20)
        connection.sendall(b"GET /measured_pieces HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_who_sends_the_body_without_waiting_for_leave_is_answered(application: Application) -> None:
    asked = b"POST /told HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"
    with serving(application) as port, socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        for _ in range(3):
            connection.sendall(asked)
            heard = b""
            while b'"body": "abc"' not in heard:
                heard += connection.recv(4096)


def test_who_sends_a_large_body_without_waiting_for_leave_is_answered(application: Application) -> None:
    asked = b"POST /admits HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n" + b"y" * 20
    with (
        serving(application, max_request_body_size="10") as port,
        socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection,
    ):
        for _ in range(2):
            connection.sendall(asked)
            heard = b""
            while piece := b"" if heard.endswith(b"}") else connection.recv(4096):
                heard += piece
            assert heard.startswith(b"HTTP/1.1 200 OK")


def test_who_waits_for_leave_is_told_once_while_the_loop_looks_at_what_a_thread_sends(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    twice = threading.Event()
    send = Channel.send

    def slowly(channel: Channel, data: bytes, *more: Any, **named: Any) -> int:
        sent: int = send(channel, data, *more, **named)
        if data.startswith(b"HTTP/1.1 100"):
            told.append(True)
            if len(told) > 1:
                twice.set()
            else:
                # What was sent is still in the buffer, and the loop is told that there is something to send.
                channel.server.pull_trigger()
                twice.wait(0.5)
        return sent

    monkeypatch.setattr(Channel, "send", slowly)
    with (
        serving(application, max_request_body_size="10") as port,
        socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection,
    ):
        connection.sendall(b"POST /admits HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"y" * 20)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
    assert len(told) == 1


def test_the_oldest_clients_are_answered(application: Application) -> None:
    with serving(application) as port, socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        connection.sendall(b"GET /measured_pieces HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nonetwo")
