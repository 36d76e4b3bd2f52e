"""How many connections the server takes, from whom, and for how long (security 12.3, 18.6)."""

import logging
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from waitress.channel import HTTPChannel

from identity.server.connections import Channel, Listener
from identity.server.waitress_server import Server
from identity.testing.serving import loopback_socket
from tests.servers import SERVERS, Kind

WAIT = 30
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: x\r\n"

Serve = Callable[..., int]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers with two letters, soon or late, with who asks, or with more than anybody's buffers hold."""
    pieces = [b"ok"] if environ["PATH_INFO"] == "/" else [bytes(1 << 20)] * 64
    if environ["PATH_INFO"] == "/late":
        time.sleep(1.1)
        pieces = [b"ok"]
    if environ["PATH_INFO"] == "/who":
        pieces = [f"{environ['REMOTE_ADDR']} {environ.get('HTTP_X_FORWARDED_FOR')}".encode()]
    start_response("200 OK", [("Content-Length", str(sum(map(len, pieces))))])
    return pieces


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts waitress with these settings; returns its port."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(_serving(Server, settings))


@pytest.fixture(params=SERVERS)
def serve_each(request: pytest.FixtureRequest) -> Iterator[Serve]:
    """The same, for what holds under every web server."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(_serving(SERVERS[request.param], settings))


@contextmanager
def _serving(kind: Kind, settings: dict[str, str]) -> Iterator[int]:
    bound = loopback_socket()
    port: int = bound.getsockname()[1]
    usual = {"threads": "1", "connection_limit": "1000"}
    server = kind({**usual, **settings, "sockets": [bound]})
    thread = threading.Thread(target=server.serve, args=[application])
    thread.start()
    yield port
    server.stop(grace=0)
    thread.join(WAIT)
    assert not thread.is_alive()
    bound.close()


def connected(port: int, address: str = "127.0.0.1") -> socket.socket:
    """A connection from one of this machine's addresses."""
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT, source_address=(address, 0))


def answers(connection: socket.socket) -> bool:
    """True if a request is answered; False if the connection was closed."""
    try:
        connection.sendall(ASK)
        return connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
    except OSError:
        return False


def is_closed(connection: socket.socket) -> bool:
    """True if the other side has closed it; waits for that, or for words."""
    try:
        return connection.recv(4096) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def in_the_end(holds: Callable[[], bool]) -> bool:
    """True as soon as it holds."""
    give_up_at = time.monotonic() + WAIT
    while not holds():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.1)
    return True


def test_a_thousand_idle_connections_keep_nobody_out(serve: Serve) -> None:
    port = serve()
    with ExitStack() as idle:
        for _ in range(1000):
            idle.enter_context(connected(port))
        with connected(port, "127.0.0.2") as other:
            assert answers(other)
        # Not even from the same address, once they have waited for a moment.
        assert in_the_end(lambda: _is_answered(port))


def test_neither_do_connections_that_never_finish_a_request(serve: Serve) -> None:
    port = serve(connection_limit="100")
    with ExitStack() as idle:
        for number in range(100):
            half = idle.enter_context(connected(port, f"127.0.0.{number + 10}"))
            half.sendall(HALF)
        assert in_the_end(lambda: _is_answered(port))


def test_an_address_has_its_number_of_connections(serve: Serve) -> None:
    port = serve(connections_per_address="3")
    with ExitStack() as open_:
        first, *_ = [open_.enter_context(connected(port)) for _ in range(3)]
        with connected(port) as fourth:
            assert is_closed(fourth)
        assert answers(first)
        assert in_the_end(lambda: _is_answered(port))


def test_a_trusted_proxy_has_any_number(serve_each: Serve) -> None:
    port = serve_each(connections_per_address="3", trusted_proxy="127.0.0.1", trusted_proxy_headers="x-forwarded-for")
    with ExitStack() as open_:
        assert all(answers(open_.enter_context(connected(port))) for _ in range(20))


@pytest.mark.parametrize(
    ("proxy", "seen"),
    [("127.0.0.1", b"192.0.2.7 192.0.2.7"), ("127.0.0.9", b"127.0.0.1 None"), ("none", b"127.0.0.1 None")],
)
def test_who_asks_is_what_a_trusted_proxy_says_and_nobody_else(serve_each: Serve, proxy: str, seen: bytes) -> None:
    port = serve_each(
        trusted_proxy=proxy, trusted_proxy_headers="x-forwarded-for", clear_untrusted_proxy_headers="true"
    )
    with connected(port) as one:
        one.sendall(b"GET /who HTTP/1.0\r\nX-Forwarded-For: 192.0.2.7\r\nX_Forwarded_For: 192.0.2.8\r\n\r\n")
        assert one.makefile("rb").read().endswith(b"\r\n\r\n" + seen)


def test_whoever_closes_makes_room(serve_each: Serve) -> None:
    port = serve_each(connections_per_address="3")
    for _ in range(20):
        assert in_the_end(lambda: _is_answered(port))


@pytest.mark.parametrize(
    "said", [HALF, b"", HALF + b"Content-Length: 100000\r\n\r\nhalf"], ids=["half", "nothing", "body"]
)
def test_time_is_limited_in_all(serve_each: Serve, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a piece arrives."""
    monkeypatch.setattr("identity.server.connections._WHOLE_REQUEST", 1.0)
    monkeypatch.setattr("identity.server.granian_server._WHOLE_REQUEST", 1.0)
    port = serve_each(header_timeout="1", channel_timeout="1")
    with connected(port) as slow:
        slow.sendall(said)
        slow.settimeout(0.2)
        for _ in range(WAIT * 5):
            if is_closed(slow):
                break
            if said:
                slow.sendall(b"a")
        else:
            pytest.fail("it was never closed")
    assert _is_answered(port)


def test_who_does_not_read_the_answer_holds_up_nobody(serve_each: Serve) -> None:
    port = serve_each(channel_timeout="1")
    with connected(port) as deaf:
        deaf.sendall(ASK.replace(b"GET /", b"GET /large"))
        assert _is_answered(port)


def test_an_answer_that_took_long_is_not_taken_for_silence(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of somebody who has not been sent anything to read."""
    overdue: list[bool] = []
    write_soon = HTTPChannel.write_soon

    def watched(channel: Channel, data: Any) -> Any:
        overdue.append(time.time() - channel.last_activity > 1)
        return write_soon(channel, data)

    monkeypatch.setattr(HTTPChannel, "write_soon", watched)
    with connected(serve(channel_timeout="1")) as one:
        one.sendall(ASK.replace(b"GET /", b"GET /late"))
        assert one.recv(4096).startswith(b"HTTP/1.1 200 OK")
    assert overdue
    assert not any(overdue)


def test_descriptors_return_to_where_they_were(serve_each: Serve) -> None:
    """10,000 connections: reset, closed in the middle of a request, left in the middle of a request."""
    port = serve_each(connections_per_address="1000", header_timeout="1")
    assert _is_answered(port)
    before = _descriptors()
    for wave in range(50):
        with ExitStack() as open_:
            for number in range(200):
                one = open_.enter_context(connected(port))
                if number % 2:
                    one.sendall(HALF)
                if wave % 2:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert in_the_end(lambda: _descriptors() <= before)
    assert _is_answered(port)


def test_the_log_says_so_once(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    port = serve(connections_per_address="1")
    with caplog.at_level(logging.WARNING), ExitStack() as open_:
        for _ in range(50):
            open_.enter_context(connected(port)).sendall(ASK)
        assert in_the_end(lambda: bool(caplog.records))
        for depth in range(50):
            logging.getLogger("waitress.queue").warning("Task queue depth is %d", depth)
    said = [record.getMessage() for record in caplog.records]
    assert len([one for one in said if one.startswith("Task queue depth")]) == 1
    assert len([one for one in said if re.match("one address has all", one)]) <= 2


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        (("192.0.2.7", 4711), "192.0.2.7"),
        (("2001:db8:1:2:3::4", 4711, 0, 0), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 4711, 0, 2), "fe80::/64"),
        (("10.0.0.2", 4711), None),
        (("localhost", None), None),
    ],
)
def test_whom_a_connection_counts_for(address: tuple[Any, ...], origin: str | None) -> None:
    """An IPv6 address for its network; neither a trusted proxy nor a socket in the file system."""
    server = Server({"listen": "127.0.0.1:0", "trusted_proxy": "10.0.0.2", "trusted_proxy_headers": "x-forwarded-for"})
    [listener] = server.listeners
    assert isinstance(listener, Listener)
    assert listener.origin_of(address) == origin
    server.stop(grace=0)
    server.serve(application)


@pytest.mark.parametrize("kind", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
@pytest.mark.parametrize("name", ["connections_per_address", "header_timeout"])
def test_other_limits_are_refused(name: str, value: str, kind: Kind) -> None:
    with pytest.raises(ValueError, match=name):
        kind({"listen": "127.0.0.1:0", name: value})


def _is_answered(port: int) -> bool:
    with connected(port) as one:
        return answers(one)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
