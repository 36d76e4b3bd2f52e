"""What granian is not trusted with, and how its requests become those of a WSGI application."""

import asyncio
import io
import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from identity.server.granian_server import Server
from identity.server.rsgi import Answer, Headers, Incoming, Refused, call, environment, length_of, send

HOST = ("host", "id.example.com")


@dataclass
class Scope:
    """A request as granian tells of it."""

    headers: Any
    method: str = "POST"
    path: str = "/oauth/v2/token"
    query_string: str = ""
    http_version: str = "1.1"
    client: str = "192.0.2.7:4711"


def asked(*headers: tuple[str, str], **others: str) -> dict[str, Any]:
    """The environment of a request."""
    scope = Scope(SimpleNamespace(items=lambda: list(headers)), **others)
    return environment(scope, {"wsgi.url_scheme": "http"}, 1000)


def refusal_of(*headers: tuple[str, str], **others: str) -> int:
    """The status with which it is refused."""
    with pytest.raises(Refused) as refusal:
        length_of(asked(*headers, **others))
    return refusal.value.answer.status


class Exchange:
    """A body in pieces, behind which nothing comes, and what was answered."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = iter(pieces)
        self.sent: list[tuple[int, Headers, bytes]] = []

    def __aiter__(self) -> "Exchange":
        return self

    def __anext__(self) -> "asyncio.Future[bytes]":
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        piece = next(self._pieces, None)
        if piece is not None:
            future.set_result(piece)
        return future

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.sent.append((status, headers, body))


def received(*pieces: bytes, seconds: float = 9, silence: float = 9, late: float = 0) -> bytes | int:
    """What a body of three bytes is read as, or with which status it is refused; looked at so many seconds later."""

    async def receive() -> bytes | int:
        told: list[Refused | None] = []
        into = io.BytesIO()
        body = Incoming(Exchange(*pieces), 3, into, told.append, seconds=seconds, silence=silence)
        for _ in range(9):
            await asyncio.sleep(0)
        body.give_up_if_late(time.monotonic() + late)
        await asyncio.sleep(0)
        [refused] = told
        return into.read() if refused is None else refused.answer.status

    return asyncio.run(receive())


class TestEnvironment:
    def test_is_what_waitress_would_make(self) -> None:
        headers = [HOST, ("accept", "a"), ("accept", "b"), ("content-type", "x/y"), ("content-length", "3")]
        assert asked(*headers, query_string="a=b") == {
            "wsgi.url_scheme": "http",
            "REMOTE_ADDR": "192.0.2.7",
            "REMOTE_HOST": "192.0.2.7",
            "REMOTE_PORT": "4711",
            # As our waitress says whose connection it is, before words of a proxy are taken for it.
            "identity.peer": "192.0.2.7",
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/oauth/v2/token",
            "QUERY_STRING": "a=b",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "id.example.com",
            "HTTP_ACCEPT": "a, b",
            "CONTENT_TYPE": "x/y",
            "CONTENT_LENGTH": "3",
        }

    def test_has_addresses_of_both_kinds_without_brackets(self) -> None:
        assert asked(HOST, client="[2001:db8::1]:80")["REMOTE_ADDR"] == "2001:db8::1"

    @pytest.mark.parametrize(
        ("path", "seen"), [("//a", "/a"), ("*", "/*"), ("", "/"), ("/ü", "/\xc3\xbc"), ("/a//b", "/a//b")]
    )
    def test_has_a_path_as_wsgi_has_it(self, path: str, seen: str) -> None:
        assert asked(HOST, path=path)["PATH_INFO"] == seen

    def test_leaves_out_what_could_be_mistaken_for_a_proxys_word(self) -> None:
        assert "HTTP_X_FORWARDED_FOR" not in asked(HOST, ("x_forwarded_for", "10.0.0.1"))

    def test_is_refused_where_it_could_be_understood_in_two_ways(self) -> None:
        assert refusal_of() == 400
        assert refusal_of(HOST, HOST) == 400
        assert refusal_of(HOST, ("content-length", "1"), ("content-length", "1")) == 400
        assert refusal_of(HOST, ("content-length", "-1")) == 400
        assert refusal_of(HOST, ("content-length", "1" * 16)) == 400
        assert refusal_of(HOST, ("transfer-encoding", "chunked")) == 411
        assert refusal_of(HOST, ("x", "y" * 1000)) == 431
        assert "HTTP_HOST" not in asked(http_version="1")


class TestBody:
    def test_is_read_to_its_length(self) -> None:
        assert received(b"ab", b"c", b"more") == b"abc"
        assert received(b"ab", b"c", late=60) == b"abc"

    def test_that_ends_too_early_is_refused(self) -> None:
        assert received(b"ab", b"") == 400

    def test_has_so_much_time(self) -> None:
        assert received(b"ab", seconds=60, silence=900, late=61) == 408
        assert received(b"ab", seconds=900, silence=60, late=61) == 408
        with pytest.raises(ValueError, match="unpack"):
            # Nothing is told yet.
            received(b"ab", seconds=60, silence=60, late=50)


class TestAnswer:
    def test_is_read_to_its_end_and_closed(self) -> None:
        ended: list[bool] = []

        class Content(list[bytes]):
            def close(self) -> None:
                ended.append(True)

        def application(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            start_response("200 OK", [("A", "1")])
            # A commit that fails: the answer becomes another one.
            start_response("503 Away", [("A", "2")], (None, None, None))
            return Content([b"a", b"b"])

        assert call(application, {}) == Answer(503, [("A", "2")], b"ab")
        assert ended == [True]

    def test_is_500_where_the_application_raises(self, caplog: pytest.LogCaptureFixture) -> None:
        def application(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            start_response("200 OK", [])
            yield b"half"
            raise ValueError("secret")

        with caplog.at_level(logging.CRITICAL):
            answer = call(application, {})
        assert answer.status == 500
        assert b"secret" not in answer.body

    def test_has_headers_that_granian_takes(self) -> None:
        exchange = Exchange()
        send(exchange, Answer(200, [("Location", "/ü?a=b c")], b""), [("Server", "")])
        assert exchange.sent == [(200, [("Location", "/%FC?a=b c"), ("Server", "")], b"")]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"unix_socket_perms": "600"}, "unix_socket_perms"),
        ({"channel_request_lookahead": "1"}, "channel_request_lookahead"),
        ({"url_prefix": "/x"}, "url_prefix"),
        ({"nonsense": "1"}, "nonsense"),
        ({"expose_tracebacks": "true"}, "expose_tracebacks"),
        ({"listen": "127.0.0.1:0 127.0.0.2:0"}, "listen"),
        ({"listen": "0.0.0.0:0"}, "connections_per_address"),
        ({"listen": "0.0.0.0:0", "trusted_proxy": "none"}, "connections_per_address"),
    ],
)
def test_settings_that_granian_cannot_keep_are_refused(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Server({"listen": "127.0.0.1:0", **settings})


@pytest.mark.parametrize("families", [[socket.AF_UNIX], [socket.AF_INET, socket.AF_INET]], ids=["path", "two"])
def test_it_takes_one_socket_with_a_port(families: list[int]) -> None:
    """As workers are given theirs."""
    with ExitStack() as ended:
        given = [ended.enter_context(socket.socket(family)) for family in families]
        with pytest.raises(ValueError, match="granian takes one address with a port"):
            Server({"sockets": given})


def test_behind_a_proxy_that_is_named_it_may_listen_anywhere() -> None:
    server = Server({"listen": "0.0.0.0:0", "trusted_proxy": "10.0.0.2", "trusted_proxy_headers": "x-forwarded-for"})
    server.stop(grace=0)
    server.serve(lambda *_: [])
