"""Security 12.4 and 18.10: a request whose end could be seen in two places is refused once, and the connection ends."""

import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from identity.domain.permissions import INSTANCE
from identity.testing.clock import RunningClock
from identity.testing.fixtures import Databases
from identity.testing.service import KeyPool
from identity.testing.serving import loopback_socket, serving
from identity.testing.world import World
from tests.server_conformance.framing import CHUNKED, CORPUS, SMUGGLED
from tests.servers import SERVERS

#: What granian reads, in the one way that RFC 9112 allows (§2.2, §5, §6.3), and waitress refuses nevertheless.
READ_BY_GRANIAN = {
    "the same length twice",
    "a length with a tab",
    "a bare line feed",
    "headers that end with bare line feeds",
    "line feeds alone",
    "empty lines before the request",
}


@pytest.fixture(scope="module", params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    """Under which web server."""
    return str(request.param)


@pytest.fixture(scope="module")
def listening(kind: str) -> socket.socket:
    """A socket of the loopback interface."""
    return loopback_socket()


@pytest.fixture(scope="module")
def port(listening: socket.socket) -> int:
    """Where a service listens."""
    port: int = listening.getsockname()[1]
    return port


@pytest.fixture(scope="module", autouse=True)
def server(databases: Databases, key_pool: KeyPool, listening: socket.socket, port: int, kind: str) -> Iterator[World]:
    """The service; nearly all is refused before any storage."""
    own = {"identity.development": "true", "identity.issuer_url": f"http://127.0.0.1:{port}"}
    world = World(databases.settings("memory") | own, clock=RunningClock(), key_pool=key_pool)
    world.bootstrap()
    with serving(world.app, listening, SERVERS[kind]):
        yield world
    world.close()


def said(port: int, *pieces: bytes) -> bytes:
    """All that the server answers until it closes the connection, which it does by itself."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        # Otherwise small pieces wait for each other.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # granian closes upon what it cannot read, whether we are still speaking or not.
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
            while piece := connection.recv(65536):
                received += piece
    return received


@pytest.fixture(scope="module")
def ambiguous(kind: str) -> dict[str, bytes]:
    """What the server refuses."""
    return {name: said for name, said in CORPUS.items() if kind == "waitress" or name not in READ_BY_GRANIAN}


class TestAmbiguousFraming:
    """One refusal, and the connection ends; nothing behind it is read."""

    def test_is_refused_once(self, port: int, ambiguous: dict[str, bytes]) -> None:
        for name, request in ambiguous.items():
            received = said(port, request + SMUGGLED)
            assert received.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), (name, received)
            assert received.count(b"HTTP/1.") == 1, name

    def test_is_refused_behind_a_good_request(self, port: int, ambiguous: dict[str, bytes]) -> None:
        for name, request in ambiguous.items():
            received = said(port, SMUGGLED + request + SMUGGLED)
            first, refusal = re.findall(rb"HTTP/1\.[01] (\d\d\d) ", received)
            assert (first, refusal[:1]) == (b"200", b"4"), name

    def test_is_refused_however_it_is_cut(self, port: int, ambiguous: dict[str, bytes], kind: str) -> None:
        for name, request in ambiguous.items():
            cuts = range(0, min(len(request), 400), 3)
            pieces = [request[at : at + 3] for at in cuts] + [request[len(cuts) * 3 :], SMUGGLED]
            received = said(port, *pieces)
            if received or kind == "waitress":
                assert received.count(b"HTTP/1.") == 1, name
                assert received.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), (name, received)


def test_the_server_says_nothing_of_itself(port: int) -> None:
    received = said(port, SMUGGLED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"")
    assert b" 200 " in received
    assert not re.search(rb"waitress|granian|hyper", received, re.IGNORECASE)


def test_what_granian_reads_nevertheless_ends_in_one_place(port: int, kind: str) -> None:
    """As a proxy sees it that knows the RFC, and the next request begins there."""
    if kind == "granian":
        for name in READ_BY_GRANIAN - {"headers that end with bare line feeds"}:
            received = said(port, CORPUS[name] + SMUGGLED.replace(b"x\r\n", b"x\r\nConnection: close\r\n"))
            first, second = re.findall(rb"HTTP/1\.1 (\d\d\d) ", received)
            assert (first[:1], second) in {(b"2", b"200"), (b"4", b"200")}, name


def test_a_body_without_a_length_is_refused_by_granian(port: int, kind: str) -> None:
    """It does not tell us whether it has come whole."""
    if kind == "granian":
        head = b"POST /oauth/v2/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert said(port, head + CHUNKED + SMUGGLED).startswith(b"HTTP/1.1 411 ")


def test_good_chunks_are_read(port: int, kind: str) -> None:
    """With an extension and a trailer, which mean nothing to us; the next request begins where they end."""
    if kind == "granian":
        pytest.skip("refused, see above")
    for cut in (1, 2, 7, 1000):
        body = b"4;a=b\r\ngran\r\n008\r\nt_type=x\r\n0\r\nX-Sum: 1\r\n\r\n"
        head = b"POST /oauth/v2/token HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n" % port
        head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        last = b"\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        whole = head + body + last
        received = said(port, *(whole[at : at + cut] for at in range(0, len(whole), cut)))
        assert re.findall(rb"HTTP/1\.1 (\d\d\d) ", received) == [b"400", b"200"]
        assert b"unsupported_grant_type" in received


def test_a_refusal_reaches_who_is_still_sending(port: int) -> None:
    """A connection closed over unread bytes is reset, and the answer lost."""
    head = b"POST /oauth/v2/token HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 5000000\r\n\r\n" % port
    for _ in range(5):
        assert b" 413 " in said(port, head + b"x" * 200_000)


def test_oversized_requests_are_refused_by_the_server(port: int) -> None:
    """Security 12.2: header 32 KiB."""
    head = b"GET /oauth/v2/keys HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 40000 + b"\r\n\r\n"
    assert b"431" in said(port, head).split(b"\r\n")[0]


#: Where a body is refused, and the type of what is answered; with a token where one is asked for first.
LARGE = {
    "/oauth/v2/token": b"application/json",
    "/oauth/v2/introspect": b"application/json",
    "/oauth/v2/userinfo": b"application/json",
    "/management/v1/organizations": b"application/json",
    "/sign-out": b"text/html",
}
SIZES = {
    "70 KB": (b"Content-Length: 70000", b"x" * 70_000),
    "1 MiB": (b"Content-Length: 1048576", b""),
    "2 MB": (b"Content-Length: 2000000", b"x" * 300_000),
    "1 MiB in chunks": (b"Transfer-Encoding: chunked", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
}


@pytest.mark.parametrize("path", LARGE)
def test_a_body_of_any_size_is_refused_in_the_same_words(server: World, port: int, path: str, kind: str) -> None:
    """Security 12.2: over 64 KiB by the application, over 1 MiB by the server, which reads no further."""
    token = server.a_manager("IAM_OWNER", resource=INSTANCE).managing_token().encode()
    answers = {}
    for size, (framing, body) in SIZES.items():
        if kind == "granian" and "chunks" in size:
            continue
        lines = [b"POST %s HTTP/1.1" % path.encode(), b"Host: 127.0.0.1:%d" % port, b"Accept: text/html", framing]
        lines += [b"Authorization: Bearer " + token] if "management" in path else []
        times = 20 if size == "1 MiB in chunks" else 1
        received = said(port, b"\r\n".join([*lines, b"Connection: close", b"", b""]), *[body] * times, SMUGGLED)
        head, _, content = received.partition(b"\r\n\r\n")
        assert received.count(b"HTTP/1.") == 1, size
        assert head.startswith(b"HTTP/1.1 413 "), (size, head)
        assert b"content-type: " + LARGE[path] in head.lower(), (size, head)
        assert b"cache-control: no-store" in head.lower(), (size, head)
        answers[size] = re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}|\d\d:\d\d:\d\d|nonce=\S+|value=\S+", b"", content)
    assert len(set(answers.values())) == 1, answers
