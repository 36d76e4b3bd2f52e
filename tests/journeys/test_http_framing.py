"""Security 12.4: a request whose length could be read in two ways gets one refusal, and the connection ends."""

import socket
from urllib.parse import urlsplit

import pytest

from identity.testing.world import World

BODY = b"grant_type=x"

AMBIGUOUS = {
    "length and chunks": [b"Content-Length: 12", b"Transfer-Encoding: chunked"],
    "chunks and length": [b"Transfer-Encoding: chunked", b"Content-Length: 12"],
    "two lengths": [b"Content-Length: 12", b"Content-Length: 7"],
    "two lengths in one": [b"Content-Length: 12, 7"],
    "a negative length": [b"Content-Length: -12"],
    "a length with a sign": [b"Content-Length: +12"],
    "a length in hexadecimal": [b"Content-Length: 0xc"],
    "an unknown encoding": [b"Transfer-Encoding: gzip, chunked"],
    "space before the colon": [b"Content-Length : 12"],
    "a bare line feed": [b"X: y\nContent-Length: 12"],
}


@pytest.mark.storages("memory")  # refused before any storage
@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_framing_is_refused_once(served: World, headers: list[bytes]) -> None:
    parts = urlsplit(served.issuer)
    head = [b"POST /oauth/v2/token HTTP/1.1", f"Host: {parts.netloc}".encode(), *headers]
    smuggled = f"GET /oauth/v2/keys HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    assert parts.port is not None
    with socket.create_connection(("127.0.0.1", parts.port), timeout=10) as connection:
        connection.sendall(b"\r\n".join([*head, b"", BODY + smuggled]))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    assert received.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 501")), received
    assert received.count(b"HTTP/1.") == 1


@pytest.mark.storages("memory")  # refused before any storage
def test_oversized_requests_are_refused_by_the_server(served: World) -> None:
    """Security 12.2: header 32 KiB, body 1 MiB."""
    parts = urlsplit(served.issuer)
    assert parts.port is not None
    for head, status in (
        (b"GET /oauth/v2/keys HTTP/1.1\r\nX: " + b"x" * 40000 + b"\r\n\r\n", b"431"),
        (b"POST /oauth/v2/token HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n", b"413"),
    ):
        with socket.create_connection(("127.0.0.1", parts.port), timeout=10) as connection:
            connection.sendall(head)
            assert status in connection.recv(65536).split(b"\r\n")[0]
