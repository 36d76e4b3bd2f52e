"""`identity serve` with the service itself: two workers on PostgreSQL."""

import http.client
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]
import pytest

from identity.testing.fixtures import DatabaseFactory
from tests.house.service_processes import DEVELOPMENT, free_port
from tests.plugins.metrics.conftest import ReadMetrics
from tests.plugins.metrics.test_http_server import request_metrics
from tests.process_tree import list_process_tree
from tests.serving.conftest import LONG, PROGRAM, ServeProcess, wait_for

pytestmark = pytest.mark.storages("postgresql")

SERVER = "[server:main]\nuse = egg:gunicorn#main\nbind = 127.0.0.1:%(http_port)s\nworkers = 2\n"


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def service(
    database_factory: DatabaseFactory, storage_name: str, metrics_port: int, tmp_path: Path
) -> Iterator[ServeProcess]:
    """A service with development.ini."""
    settings = database_factory.empty_database_settings(storage_name)
    variables = {
        "identity.plugin.sql.url": settings["identity.plugin.sql.url"],
        "identity.plugin.metrics.listen": f"127.0.0.1:{metrics_port}",
    }
    text = DEVELOPMENT.read_text()
    for name, value in variables.items():
        line = f"{name} = {value.replace('%', '%%')}"
        text, count = re.subn(rf"(?m)^{re.escape(name)} *=.*$", line.replace("\\", r"\\"), text)
        assert count == 1, name
    text = re.sub(r"\[server:main\]\n(?:[^\[].*\n|\n)*", lambda _: f"{SERVER}\n", text)
    (tmp_path / "service.ini").write_text(text)
    port = free_port()
    command = [PROGRAM, "serve", "-c", "service.ini", f"http_port={port}", f"data={tmp_path / 'data'}"]
    with (tmp_path / "log").open("ab") as output:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output)
    yield ServeProcess(tmp_path, port, process)
    for item in list_process_tree(process.pid):
        with suppress(psutil.NoSuchProcess):
            item.kill()
    process.wait(LONG)
    database_factory.drop(settings)


@pytest.mark.thorough
def test_tokens_and_metrics_over_a_killed_worker_and_a_reload(service: ServeProcess, metrics_port: int) -> None:
    spans: list[tuple[float, float]] = []

    def is_shown(requests: int, replaced: int) -> None:
        def look() -> tuple[float, float, float]:
            with suppress(http.client.HTTPException):
                metrics = ReadMetrics(request_metrics(metrics_port)[1])
                labels = {"endpoint": "protocol.metadata", "status": "200"}
                counted = metrics.value("identity_requests_total", **labels)
                spans.append((counted, metrics.value("identity_workers_replaced_total")))
                return metrics.value("identity_processes"), *spans[-1]
            return 0, 0, 0

        wait_for(look, lambda found: found == (2, requests, replaced))

    def ask(times: int) -> None:
        for _ in range(times):
            with urlopen(f"http://localhost:{service.port}/.well-known/openid-configuration", timeout=LONG) as answer:
                assert answer.status == 200

    def gets_a_token() -> None:
        ask_for = [PROGRAM, "token", "--issuer", f"http://localhost:{service.port}", "--scope", "openid"]
        key = ["--key-file", str(service.folder / "data" / "example-service-user.json")]
        ran = subprocess.run([*ask_for, *key], capture_output=True, text=True, check=False, timeout=LONG)
        assert ran.returncode == 0, ran.stderr + service.log

    is_shown(0, 0)
    ask(6)
    is_shown(6, 0)
    # The counts of a worker's last second are lost with it; everything else is still reported.
    os.kill(service.workers()[0], signal.SIGKILL)
    is_shown(6, 1)
    before = service.workers()
    service.signal(signal.SIGHUP)
    ask(4)
    wait_for(service.workers, lambda found: not set(found) & set(before))
    ask(4)
    is_shown(14, 1)
    # Counters never decrease.
    for item in zip(*spans, strict=True):
        assert list(item) == sorted(item)
    for _ in range(4):
        gets_a_token()
    # A request that gunicorn itself refuses.
    with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nHost : y\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
    refused = {"endpoint": "server", "status": "400"}
    wait_for(
        lambda: ReadMetrics(request_metrics(metrics_port)[1]).value("identity_requests_total", **refused),
        lambda found: found == 1,
    )
    assert service.log.count("first owner") == 1
    service.signal(signal.SIGTERM)
    assert service.process.wait(LONG) == 0
    assert "Traceback" not in service.log
    assert "SIGSEGV" not in service.log
