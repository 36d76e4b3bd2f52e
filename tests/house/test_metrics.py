"""Metrics of several processes."""

import http.client
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.house.served import DEVELOPMENT, Pserve, free_port
from tests.house.workers import LONG, end, start, wait_for
from tests.plugins.metrics.conftest import Told
from tests.plugins.metrics.test_listening import asked


def an_ini(folder: Path, address: str) -> Path:
    """development.ini with metrics at an address, and a folder for its data."""
    text = DEVELOPMENT.read_text().replace(
        "identity.plugin.metrics.listen =", f"identity.plugin.metrics.listen = {address}"
    )
    path = folder / "development.ini"
    path.write_text(text.replace("%(here)s", str(folder)))
    return path


def test_one_process_tells_what_another_one_has_counted_and_goes_on_when_that_is_killed(
    pserve: Pserve, tmp_path: Path
) -> None:
    port = free_port()
    ini = an_ini(tmp_path, f"127.0.0.1:{port}")
    first = pserve(ini, data=tmp_path / "data")
    second = pserve(ini, data=tmp_path / "data")
    for _ in range(5):
        second.get("/.well-known/openid-configuration")
    name, labels = "identity_requests_total", {"endpoint": "protocol.metadata", "status": "200"}

    def until(processes: int) -> Told:
        while True:
            with suppress(OSError, http.client.HTTPException):
                told = Told(asked(port)[1])
                if told.value(name, **labels) >= 5 and told.value("identity_processes") == processes:
                    return told

    assert until(2).value(name, **labels) == 5
    # What it has counted within the last second dies with it.
    [path] = (tmp_path / "data" / "metrics").glob(f"{second.process.pid}-*.json")
    while '["protocol.metadata","200"],[5]' not in path.read_text():
        time.sleep(0.05)
    os.kill(second.process.pid, signal.SIGKILL)
    second.process.wait(60)
    assert until(1).value(name, **labels) == 5
    assert first.stop() == 0
    assert "Traceback" not in first.output


def test_workers_add_up_at_one_address_though_one_is_killed_and_all_are_reloaded(tmp_path: Path) -> None:
    port = free_port()
    serving = start(tmp_path, "--workers", "2", f"data={tmp_path / 'data'}", ini=an_ini(tmp_path, f"127.0.0.1:{port}"))
    told: list[tuple[float, float]] = []

    def ask(times: int) -> None:
        for _ in range(times):
            connection = serving.connect()
            host = {"Host": f"localhost:{serving.port}"}
            connection.request("GET", "/.well-known/openid-configuration", headers=host)
            assert connection.getresponse().status == 200
            connection.close()

    def told_by(processes: int, requests: int, replaced: int) -> None:
        def look() -> tuple[float, float, float]:
            with suppress(http.client.HTTPException):
                found = Told(asked(port)[1])
                labels = {"endpoint": "protocol.metadata", "status": "200"}
                counted = found.value("identity_requests_total", **labels)
                told.append((counted, found.value("identity_workers_replaced_total")))
                return found.value("identity_processes"), *told[-1]
            return 0, 0, 0

        wait_for(look, lambda found: found == (processes, requests, replaced), (processes, requests, replaced))

    try:
        told_by(2, 0, 0)
        ask(6)
        told_by(2, 6, 0)
        os.kill(serving.workers()[0], signal.SIGKILL)
        told_by(2, 6, 1)
        before = serving.workers()
        serving.signal(signal.SIGHUP)
        ask(4)
        wait_for(lambda: set(serving.workers()) & set(before), lambda found: not found)
        ask(4)
        told_by(2, 14, 1)
        # Of what was told nothing was taken back.
        for one in zip(*told, strict=True):
            assert list(one) == sorted(one)
        serving.signal(signal.SIGTERM)
        assert serving.process.wait(LONG) == 0
    finally:
        end(serving)
    assert "Traceback" not in serving.log
