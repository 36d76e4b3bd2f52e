"""`identity serve`: start, stop, reload and replacement of workers under gunicorn."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.serving.conftest import LONG, PROGRAM, ServeProcess, Start, wait_for

#: The C parser with uvloop, if installed, and the portable alternatives.
LOOPS = [{}, {"asgi_loop": "asyncio", "http_parser": "python"}]


class KeepAliveClient(threading.Thread):
    """Sends requests on a keep-alive connection; reconnects only after ``Connection: close``."""

    def __init__(self, service: ServeProcess) -> None:
        super().__init__(daemon=True)
        self._service = service
        self.answers: list[str] = []
        self.lost: list[str] = []
        self.slowest = 0.0
        self.enough = threading.Event()

    def run(self) -> None:
        connection = self._service.connect()
        is_kept = False
        while not self.enough.is_set():
            began = time.monotonic()
            try:
                connection.request("POST", "/", body=b"x" * 100)
                answer = connection.getresponse()
                self.answers.append(answer.read().decode())
                is_kept = answer.getheader("connection") != "close"
                if not is_kept:
                    connection.close()
            except (OSError, HTTPException) as problem:
                self.lost.append(f"{'kept' if is_kept else 'new'} connection: {problem!r}")
                is_kept = False
                connection.close()
            self.slowest = max(self.slowest, time.monotonic() - began)
        connection.close()

    def more(self, count: int = 20) -> None:
        expected_count = len(self.answers) + count
        wait_for(lambda: len(self.answers), lambda found: found >= expected_count)


@contextmanager
def load(service: ServeProcess, clients: int = 8) -> Iterator[list[KeepAliveClient]]:
    asking = [KeepAliveClient(service) for _ in range(clients)]
    for keep_alive_client in asking:
        keep_alive_client.start()
    try:
        for keep_alive_client in asking:
            keep_alive_client.more()
        yield asking
    finally:
        for keep_alive_client in asking:
            keep_alive_client.enough.set()
        for keep_alive_client in asking:
            keep_alive_client.join(LONG)


class TestStart:
    def test_all_workers_answer(self, start: Start) -> None:
        service = start()
        workers = {str(worker) for worker in service.workers()}
        wait_for(lambda: {service.ask().split()[0] for _ in range(20)}, workers.__eq__)

    def test_used_port_is_reported_in_one_line(self, start: Start) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            service = start(waits=False, port=port)
            assert service.process.wait(LONG) == 1
        assert service.log.startswith(f"identity: It cannot listen on 127.0.0.1:{port}: Address already in use. Stop")
        assert service.log.count("\n") == 1

    @pytest.mark.parametrize("code", ["broken", "fails"])
    def test_failing_worker_start_is_reported_clearly(self, start: Start, code: str) -> None:
        service = start(waits=False, greeting=code, workers=3)
        assert service.process.wait(LONG) == 1
        # --search-logs adds debug lines.
        lines = [line for line in service.log.splitlines() if " DEBUG: " not in line]
        assert sum("identity cannot start." in line for line in lines) == 1
        assert "Traceback" not in service.log

    @pytest.mark.sampled(8)
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"listen": "127.0.0.1:1"}, "[server:main] listen: is now bind"),
            ({"worker_timeout": "4"}, "[server:main] worker_timeout: is now timeout"),
            ({"connections_per_address": "4"}, "[server:main] connections_per_address: is gone: set this limit in the"),
            ({"trusted_proxy": "10.0.0.1"}, "[server:main] trusted_proxy: is gone: only identity.trusted_proxy"),
            (
                {"forwarded_allow_ips": "*"},
                "[server:main] forwarded_allow_ips: cannot be set: only identity.trusted_proxy",
            ),
            ({"preload_app": "true"}, "[server:main] preload_app: cannot be set: after SIGHUP"),
            ({"workers": "auto"}, "[server:main] workers: is now empty for one worker per processor"),
            ({"no_such_setting": "1"}, "[server:main] no_such_setting: is no setting of gunicorn"),
            ({"bind": None}, "[server:main] bind: is missing"),
        ],
    )
    def test_old_and_wrong_settings_are_refused(
        self, start: Start, settings: dict[str, str | None], message: str
    ) -> None:
        service = start(waits=False, **settings)
        assert service.process.wait(LONG) == 1
        assert message in service.log
        assert service.log.count("\n") == 1

    def test_storage_with_one_writer_gets_one_worker(self, start: Start) -> None:
        service = start(single="yes", workers=3)
        service.says("the storage has one writer: one worker serves, not 3")
        (worker,) = service.workers(1)
        service.signal(signal.SIGHUP)
        service.says("ASGI server listening", 2)
        wait_for(lambda: service.workers(1), lambda found: found != [worker])

    def test_control_socket_is_closed_to_others(self, start: Start, tmp_path: Path) -> None:
        service = start()
        path = tmp_path / "data" / "gunicorn.ctl"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        command = [PROGRAM, "status", "-c", "service.ini", f"http_port={service.port}"]
        # A worker sends its first heartbeat at its start.
        output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=True).stdout
        assert f"arbiter  process {service.process.pid}" in output
        for worker in service.workers():
            assert f"worker   process {worker}" in output
        service.signal(signal.SIGTERM)
        assert service.process.wait(LONG) == 0
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=LONG, check=False).returncode == 1

    def test_systemd_hands_over_its_socket(self, start: Start) -> None:
        """The socket has number 3, and LISTEN_PID is the service's PID (sd_listen_fds(3))."""
        launch = (
            "import os, socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[-1].partition('=')[2])));"
            "os.dup2(s.fileno(), 3); os.set_inheritable(3, True);"
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()));"
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        service = start(launcher=(sys.executable, "-c", launch), bind="127.0.0.1:1")
        assert service.ask().endswith("first one")

    def test_systemd_is_notified(self, start: Start, tmp_path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.settimeout(LONG)
            systemd.bind(str(tmp_path / "notify"))
            service = start(waits=False, environment={"NOTIFY_SOCKET": str(tmp_path / "notify")})
            assert systemd.recv(100) == b"READY=1"
            assert service.ask().endswith("first one")
            service.signal(signal.SIGHUP)
            assert systemd.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert systemd.recv(100) == b"READY=1"


@pytest.mark.parametrize("settings", LOOPS, ids=["fast", "plain"])
class TestStop:
    def test_sigterm_completes_requests_and_accepts_no_connection(self, start: Start, settings: dict[str, str]) -> None:
        service = start(**settings)
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as half:
            half.sendall(b"POST /hangs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
            time.sleep(0.2)
            service.signal(signal.SIGTERM)
            wait_for(lambda: refuses(service.port), bool)
            answer = half.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert b"\r\nconnection: close" in answer.lower()
        assert service.process.wait(LONG) == 0
        assert service.log.count("stopped") == 2

    def test_keep_alive_connections_get_connection_close(self, start: Start, settings: dict[str, str]) -> None:
        service = start(**settings)
        with load(service) as clients:
            service.signal(signal.SIGTERM)
            assert service.process.wait(LONG) == 0
        # A response announces the close; the client then opens a new connection, which is refused.
        lost = {failure.partition("(")[0] for client in clients for failure in client.lost}
        # The kernel resets connections that no process had accepted when the socket was closed.
        assert lost <= {"new connection: ConnectionRefusedError", "new connection: ConnectionResetError"}

    def test_rest_of_a_refused_request_does_not_reset_the_answer(self, start: Start, settings: dict[str, str]) -> None:
        service = start(**settings)
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 8000000\r\n\r\n")
            for _ in range(80):
                client.sendall(b"x" * 100_000)
            answer = b""
            while piece := client.recv(1000):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 400 ")

    def test_number_that_python_does_not_read_is_refused(self, start: Start, settings: dict[str, str]) -> None:
        service = start(**settings)
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"x" + b"1" * 5000 + b"\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert "Traceback" not in service.log


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LONG).close()
    except ConnectionRefusedError:
        return True
    return False


class TestReload:
    @pytest.mark.parametrize("settings", LOOPS, ids=["fast", "plain"])
    def test_reload_applies_settings_and_code_without_losing_requests(
        self, start: Start, settings: dict[str, str]
    ) -> None:
        service = start(**settings)
        with load(service) as clients:
            for greeting in ("second", "third"):
                before = set(service.workers())
                service.write(greeting=greeting, code=greeting, **settings)
                service.signal(signal.SIGHUP)
                wait_for(lambda before=before: before & set(service.workers()), lambda found: not found)  # type: ignore[misc]
                for client in clients:
                    client.more()
                    assert client.answers[-1].endswith(f"{greeting} {greeting}")
        assert [failure for client in clients for failure in client.lost] == []

    def test_old_workers_continue_if_new_ones_cannot_start(self, start: Start) -> None:
        service = start()
        before = service.workers()
        unfit: list[Callable[[], object]] = [
            lambda: service.write(greeting="broken"),
            lambda: service.write(greeting="fails"),
            lambda: service.write(workers="many"),
            lambda: service.write(no_such_setting="1"),
            lambda: (service.folder / "code_that_changes.py").write_text("no Python"),
            lambda: (service.folder / "service.ini").unlink(),
        ]
        for count, spoil in enumerate(unfit, start=1):
            spoil()
            service.signal(signal.SIGHUP)
            service.says("the workers from before go on", count)
            assert service.workers() == before
        assert service.ask().endswith("first one")
        service.write(greeting="second")
        service.signal(signal.SIGHUP)
        wait_for(service.ask, lambda answer: answer.endswith("second one"))

    def test_address_change_needs_a_restart(self, start: Start) -> None:
        service = start()
        service.write(greeting="second", bind="127.0.0.1:1")
        service.signal(signal.SIGHUP)
        service.says("bind has changed: that takes a restart")
        wait_for(service.ask, lambda answer: answer.endswith("second one"))


class TestReplacement:
    def test_killed_worker_loses_only_its_own_requests(self, start: Start) -> None:
        service = start()
        with load(service) as clients:
            victim = service.workers()[0]
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: victim not in service.workers(), bool)
            for client in clients:
                client.more()
        assert all(len(client.lost) <= 1 for client in clients)
        assert not [failure for client in clients for failure in client.lost if "Refused" in failure]

    def test_hanging_worker_is_replaced_and_logs_its_stack(self, start: Start) -> None:
        service = start(timeout=5, workers=1)
        (worker,) = service.workers(1)
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as client:
            client.sendall(b"POST /blocks HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            service.says("WORKER TIMEOUT")
            wait_for(lambda: service.workers(1), lambda found: found != [worker])
        assert "minimal_application.py" in service.log
        assert service.ask().endswith("first one")

    def test_worker_that_cannot_start_later_is_tried_again(self, start: Start) -> None:
        service = start(workers=1)
        service.write(greeting="broken", workers=1)
        os.kill(service.workers(1)[0], signal.SIGKILL)
        service.says("The greeting is broken", 2)
        service.write(greeting="second", workers=1)
        wait_for(service.ask, lambda answer: answer.endswith("second one"))

    def test_workers_end_with_a_killed_arbiter(self, start: Start) -> None:
        service = start()
        workers = [psutil.Process(worker) for worker in service.workers()]
        os.kill(service.process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, timeout=LONG)
        assert alive == []
