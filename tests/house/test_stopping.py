"""A service that is told to stop answers what was asked, and nobody holds it up."""

import signal
import socket
import threading
import time

import pytest

from tests.house.served import DEVELOPMENT


@pytest.fixture(params=[None, "granian"], ids=["pserve", "granian"])
def server(request: pytest.FixtureRequest) -> str | None:
    """The web server that `identity serve` is to start; None for pserve."""
    found: str | None = request.param
    return found


class KeptAlive(threading.Thread):
    """Asks over and over on one connection, until that ends."""

    def __init__(self, port: int, *, pause: float) -> None:
        super().__init__(daemon=True)
        self._port, self._pause = port, pause
        self._connection: socket.socket | None = None
        self.well_under_way = threading.Event()
        self.outcome = "nothing yet"

    def connect(self) -> socket.socket:
        if self._connection is None:
            self._connection = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        return self._connection

    def run(self) -> None:
        with self.connect() as connection:
            try:
                self.outcome = self._ask(connection)
            except OSError as problem:
                self.outcome = f"a request was lost: {problem}"

    def _ask(self, connection: socket.socket) -> str:
        for number in range(10_000):
            time.sleep(self._pause)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                piece = connection.recv(4096)
                if not piece:
                    return f"a request was lost after {number} answers"
                answer += piece
            if b"\r\nconnection: close" in answer.lower():
                return "told to close, then closed" if connection.recv(1) == b"" else "told to close, and kept"
            if number == 3:
                self.well_under_way.set()
        return "never told to close"


class TestStopping:
    def test_a_request_under_way_is_answered_and_no_new_connection_taken(self, pserve, server, tmp_path):
        served = pserve(DEVELOPMENT, server=server, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as half:
            half.sendall(b"POST /oauth/v2/token HTTP/1.1\r\nHost: localhost:%d\r\n" % served.port)
            half.sendall(b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\ngrant")
            served.get("/healthz")
            served.process.send_signal(signal.SIGTERM)
            while True:
                try:
                    socket.create_connection(("127.0.0.1", served.port)).close()
                except OSError:
                    break
                # An address has so many connections, then whoever has waited longest has to go.
                time.sleep(0.05)
            half.sendall(b"_type")
            answer = half.makefile("rb").readline()
        assert answer.startswith(b"HTTP/1.1 400")
        assert served.process.wait(60) == 0

    @pytest.mark.thorough
    def test_kept_alive_connections_get_every_answer(self, pserve, server, tmp_path):
        served = pserve(DEVELOPMENT, server=server, data=tmp_path / "data")
        asking = [KeptAlive(served.port, pause=0.2 * (number % 4)) for number in range(30)]
        for one in asking:
            one.start()
        for one in asking:
            assert one.well_under_way.wait(60)
        # Connected, and about to ask.
        late = [KeptAlive(served.port, pause=0.5) for _ in range(10)]
        for one in late:
            one.connect()
        served.process.send_signal(signal.SIGTERM)
        for one in late:
            one.start()
        for one in (*asking, *late):
            one.join(60)
        assert [one.outcome for one in (*asking, *late)] == ["told to close, then closed"] * 40
        assert served.process.wait(60) == 0
        assert "Traceback" not in served.output

    def test_idle_connections_do_not_hold_it_up(self, pserve, server, tmp_path):
        served = pserve(DEVELOPMENT, server=server, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += idle.recv(4096)
            served.process.send_signal(signal.SIGTERM)
            assert idle.recv(4096) == b""
        assert served.process.wait(60) == 0

    @pytest.mark.thorough
    def test_being_told_twice_waits_for_nobody(self, pserve, server, tmp_path):
        served = pserve(DEVELOPMENT, server=server, data=tmp_path / "data")
        with socket.create_connection(("127.0.0.1", served.port)) as half:
            half.sendall(b"POST /oauth/v2/token HTTP/1.1\r\n")
            served.get("/healthz")
            served.process.send_signal(signal.SIGTERM)
            repeat = threading.Timer(0.5, served.process.send_signal, [signal.SIGTERM])
            repeat.start()
            assert served.process.wait(60) == 0
            repeat.join()
        assert "had no answer yet" in served.output
