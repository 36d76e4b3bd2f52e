"""Request bodies that are refused unread, and streams whose client does not read."""

import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from tests.server_conformance.conformance_application import PIECE, PIECES
from tests.server_conformance.servers import WAIT, ServerProcess, read_head, wait_until

#: More than the buffers of kernel and server hold, and less than the test sends.
BUFFERED = 24 << 20
WHOLE = len(PIECE) * PIECES
MIB = b"x" * (1 << 20)


def request_head(path: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


@pytest.mark.requirement("A client that is still sending gets the refusal: no reset before 1 MiB of an unread body")
def test_refusal_reaches_a_client_that_is_still_sending(server: ServerProcess) -> None:
    """RFC 9112 §9.6: closing a connection with unread data resets it, and a proxy then answers 502."""
    for _ in range(5):
        with server.connect() as connection:
            connection.sendall(request_head("/refuse", f"Content-Length: {len(MIB)}"))
            head = read_head(connection)
            assert head.startswith(b"HTTP/1.1 413 ")
            for at in range(0, len(MIB), 1 << 16):
                connection.sendall(MIB[at : at + (1 << 16)])
            # Reads to the end without an error.
            while connection.recv(1 << 16):
                pass


@pytest.mark.requirement("A client that keeps sending after a refusal is disconnected within 1 GiB")
def test_endless_body_is_cut_off_after_its_refusal(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request_head("/refuse", "Content-Length: 100000000000"))
        assert read_head(connection).startswith(b"HTTP/1.1 413 ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 1 << 30:
                sent += connection.send(MIB)
        assert sent < 1 << 30


@pytest.mark.requirement("A body that the application does not read yet blocks the client and is not buffered")
def test_unread_body_waits_at_the_client(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request_head("/unread", f"Content-Length: {WHOLE}", "Connection: close"))
        connection.settimeout(0.5)
        sent = 0
        # Send until the connection blocks; the application starts to read only then.
        with suppress(TimeoutError):
            while sent < WHOLE:
                sent += connection.send(PIECE[: WHOLE - sent])
        assert sent < BUFFERED
        connection.settimeout(WAIT)
        while sent < WHOLE:
            sent += connection.send(PIECE[: WHOLE - sent])
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["length"] == WHOLE


@pytest.mark.requirement("A response that the client does not read blocks the application and is not buffered")
def test_unread_response_waits_in_the_application(server: ServerProcess) -> None:
    before = server.ask("/progress")["sent"]
    with server.connect() as connection:
        connection.sendall(request_head("/stream", "Connection: close", method="GET"))

        def stands_still() -> bool:
            first = server.ask("/progress")["sent"]
            time.sleep(0.5)
            return bool(before < first == server.ask("/progress")["sent"])

        wait_until(stands_still, "the application waits for the client")
        assert server.ask("/progress")["sent"] - before < BUFFERED
        received = sum(map(len, iter(lambda: connection.recv(1 << 20), b"")))
    assert received > WHOLE
    wait_until(lambda: bool(server.ask("/progress")["sent"] - before == WHOLE), "all of it was sent")


@pytest.mark.requirement("Expect: 100-continue is answered with 100 when the application reads the body")
def test_expected_continue_is_sent_when_the_body_is_read(server: ServerProcess) -> None:
    with server.connect() as connection:
        for _ in range(2):
            connection.sendall(request_head("/echo", "Content-Length: 3", "Expect: 100-continue"))
            assert read_head(connection).startswith(b"HTTP/1.1 100 ")
            connection.sendall(b"abc")
            head = read_head(connection)
            assert head.startswith(b"HTTP/1.1 200 ")
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
            body = b""
            while len(body) < length:
                body += connection.recv(length - len(body))
            assert json.loads(body)["length"] == 3


@pytest.mark.requirement("Expect: 100-continue is answered only with the refusal if the application refuses")
def test_refused_body_gets_no_100_continue(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request_head("/refuse", "Content-Length: 3000000", "Expect: 100-continue"))
        assert read_head(connection).startswith(b"HTTP/1.1 413 ")


@pytest.mark.requirement("A client that does not wait for 100 gets its response too")
def test_body_sent_without_waiting_for_continue_is_read(server: ServerProcess) -> None:
    answer = server.say(
        request_head("/echo", "Content-Length: 3", "Expect: 100-continue", "Connection: close") + b"abc"
    )
    assert answer.count(b'"length": 3') == 1


@pytest.mark.requirement("An incomplete body is not processed")
def test_incomplete_body_is_not_complete(server: ServerProcess) -> None:
    for framing, body in (("Content-Length: 10", b"abc"), ("Transfer-Encoding: chunked", b"a\r\nabc")):
        with server.connect() as connection:
            connection.sendall(request_head("/echo", framing) + body)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            with suppress(ConnectionError):
                received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        assert b" 200 " not in received
    assert server.answers()


@pytest.mark.requirement("Ten clients that send bodies slowly do not delay others")
def test_slow_bodies_do_not_delay_others(server: ServerProcess) -> None:
    slow = [server.connect() for _ in range(10)]
    ended = threading.Event()

    def trickle() -> None:
        while not ended.wait(0.2):
            for item in slow:
                with suppress(OSError):
                    item.send(b"x")

    thread = threading.Thread(target=trickle)
    try:
        for item in slow:
            item.sendall(request_head("/echo", "Content-Length: 100000"))
        thread.start()
        for _ in range(10):
            assert server.answers()
    finally:
        ended.set()
        thread.join()
        for item in slow:
            item.close()
