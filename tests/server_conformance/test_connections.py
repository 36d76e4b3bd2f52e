"""Many connections, slow connections, and abandoned connections."""

import socket
import struct
import time
from contextlib import ExitStack, suppress

import pytest

from tests.server_conformance.servers import KEEP_ALIVE, ServerProcess, wait_until

HALF = b"GET / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.requirement("1,000 idle connections and 300 slow header senders do not delay others")
def test_idle_and_slow_connections_do_not_delay_others(server: ServerProcess) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(1300)]
        for connection in connections[1000:]:
            connection.sendall(HALF)
        for _ in range(10):
            for connection in connections[1000:]:
                with suppress(ConnectionError):
                    connection.sendall(b"X: y\r\n")
            # The socket's timeout limits the duration.
            assert server.ask()["path"] == "/"
    wait_until(server.answers, "it answers when they are gone")


@pytest.mark.requirement("Clients that do not read their responses do not delay others")
def test_slow_readers_do_not_delay_others(server: ServerProcess) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(server.connect())
            connection.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(10):
            assert server.ask()["path"] == "/"


@pytest.mark.requirement("An idle keep-alive connection is closed after a timeout")
def test_idle_connection_is_closed_after_its_request(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(HALF + b"\r\n")
        while connection.recv(1 << 16):
            pass


def is_cut_off(connection: socket.socket, piece: bytes) -> bool:
    """True if the connection is closed although the client sends a piece every half second."""
    connection.settimeout(0.5)
    give_up_at = time.monotonic() + 3 * KEEP_ALIVE
    while time.monotonic() < give_up_at:
        try:
            connection.sendall(piece)
            if connection.recv(1 << 16) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.thorough
@pytest.mark.requirement("A slow header section is cut off after a total time")
def test_slow_header_is_cut_off(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(HALF)
        assert is_cut_off(connection, b"X: y\r\n")


@pytest.mark.thorough
@pytest.mark.requirement("A slow body is cut off after a total time")
def test_slow_body_is_cut_off(server: ServerProcess) -> None:
    with server.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        assert is_cut_off(connection, b"x")


@pytest.mark.thorough
@pytest.mark.requirement("Connections per address are limited")
def test_connections_of_an_address_are_limited(server: ServerProcess) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(200)]
        refused = 0
        for connection in connections:
            with suppress(ConnectionError):
                connection.sendall(HALF + b"\r\n")
            try:
                refused += connection.recv(1) == b""
            except ConnectionError:
                refused += 1
        assert refused


@pytest.mark.thorough
@pytest.mark.requirement("Connections that are reset, abandoned or half-closed leave no open file")
def test_left_connections_leave_no_open_file(server: ServerProcess) -> None:
    worker = server.worker()
    before = worker.num_fds()
    for wave in range(20):
        with ExitStack() as stack:
            for number in range(100):
                connection = stack.enter_context(server.connect())
                if number % 2:
                    connection.sendall(HALF)
                if number % 3 == 0:
                    connection.sendall(HALF.replace(b"GET /", b"POST /echo") + b"Content-Length: 100\r\n\r\nabc")
                if wave % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: bool(worker.num_fds() <= before + 2), "its files are closed")
    assert server.worker().pid == worker.pid
