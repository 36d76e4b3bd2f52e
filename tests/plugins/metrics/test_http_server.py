"""The separate metrics listener and its access control."""

import http.client
import os
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from identity.instrumentation import PoolUsage
from identity.plugin_host import PluginHost
from identity.plugins.metrics import MetricsPluginSettings, exposition
from identity.plugins.metrics.counters import ProcessCounters
from identity.plugins.metrics.families import POOL_QUEUED, REQUESTS, WORKERS_REPLACED, MetricFamily
from identity.plugins.metrics.process_samples import ProcessSampleFolder, ProcessSamples, SamplePublisher
from identity.settings_parser import InvalidSetting
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.house.service_processes import free_port
from tests.plugins.metrics.conftest import TOKEN, ReadMetrics, make_token_file
from tests.serving.conftest import wait_for


def request_metrics(
    port: int, path: str = "/metrics", method: str = "GET", token: str | None = None
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@contextmanager
def metrics_listener(make_world: WorldFactory, folder: Path, **settings: str) -> Iterator[tuple[World, int]]:
    port = free_port()
    plugin_settings = {"listen": f"127.0.0.1:{port}", "directory": str(folder / "metrics"), **settings}
    world = make_world(**{f"identity.plugin.metrics.{name}": value for name, value in plugin_settings.items()})
    assert world.app is not None
    with world.identity.lifespan():
        yield world, port


def test_metrics_listener_serves_only_metrics(make_world: WorldFactory, tmp_path: Path) -> None:
    with metrics_listener(make_world, tmp_path) as (world, port):
        status, text = request_metrics(port)
        assert status == 200
        assert ReadMetrics(text).value("identity_storage_up") == 1
        assert request_metrics(port, "/")[0] == 404
        assert request_metrics(port, "/metrics", "POST")[0] == 501
        assert world.client.get(f"{world.issuer}/metrics").status_int == 404
    with pytest.raises(OSError, match="refused"):
        request_metrics(port)


def test_metrics_listener_requires_token(make_world: WorldFactory, tmp_path: Path) -> None:
    with metrics_listener(make_world, tmp_path, token_file=str(make_token_file(tmp_path))) as (_, port):
        assert request_metrics(port)[0] == 401
        assert request_metrics(port, token=f"{TOKEN}.")[0] == 401
        assert request_metrics(port, token=TOKEN)[0] == 200


def test_silent_connection_does_not_block_metrics(make_world: WorldFactory, tmp_path: Path) -> None:
    with metrics_listener(make_world, tmp_path) as (_, port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        assert request_metrics(port)[0] == 200
        for item in silent:
            item.close()


def test_occupied_listen_address_stops_startup(make_world: WorldFactory, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        world = make_world(**{"identity.plugin.metrics.listen": listen})
        message = re.escape(f"identity.plugin.metrics.listen: {listen}")
        with pytest.raises(InvalidSetting, match=message), world.identity.lifespan():
            pass


def setting_error(**settings: str) -> str:
    with pytest.raises(InvalidSetting) as refused:
        PluginHost.load(["metrics"], {"metrics": settings})
    assert TOKEN not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("address", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"])
def test_public_listen_address_requires_token(address: str, tmp_path: Path) -> None:
    assert setting_error(listen=address).startswith("identity.plugin.metrics.listen: ")
    assert "token_file" in setting_error(listen=address)
    host = PluginHost.load(["metrics"], {"metrics": {"listen": address, "token_file": str(make_token_file(tmp_path))}})
    assert host.plugin_names == ("metrics",)


@pytest.mark.parametrize("address", ["9464", "localhost:9464", "127.0.0.1:99999", "127.0.0.1:", "127.0.0.1:x"])
def test_malformed_listen_address_is_refused(address: str) -> None:
    assert "must be an address and a port" in setting_error(listen=address)


def test_token_file_must_be_private_and_hold_one_secret(tmp_path: Path) -> None:
    path = make_token_file(tmp_path)
    path.chmod(0o640)
    assert "chmod 600" in setting_error(token_file=str(path))
    path.chmod(0o600)
    for text in ("", "short", "two words that are long enough together", f"{TOKEN}\n{TOKEN}", f"{TOKEN}é"):
        path.write_text(text)
        assert "must hold one token" in setting_error(token_file=str(path))
    assert "cannot be read" in setting_error(token_file=str(tmp_path / "missing"))


def test_missing_library_error_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.metrics.find_spec", lambda name: None)
    assert "the extra metrics of this package" in setting_error(listen="127.0.0.1:9464")
    assert not MetricsPluginSettings().is_enabled


class Process:
    """One of several processes that share a sample folder."""

    def __init__(self, folder: Path, generation: str = "") -> None:
        self.counts, self.loads = ProcessCounters(), [PoolUsage("reading", 0, 4, 0)]
        self.generation, self.replaced = generation, 0
        #: How often a snapshot was requested.
        self.snapshots = 0
        self.shares = ProcessSampleFolder(folder, self.read_samples)
        self.telling = SamplePublisher(self.shares, self.counts.is_busy)

    def read_samples(self) -> ProcessSamples:
        self.snapshots += 1
        common = {(self.generation,): [float(self.replaced)]} if self.generation else {}
        return ProcessSamples(self.counts.snapshot() | {WORKERS_REPLACED.name: common}, self.loads, os.getpid())

    def answer(self, times: int) -> None:
        self.count(times)
        self.shares.publish()

    def count(self, times: int) -> None:
        for _ in range(times):
            self.counts.increment(REQUESTS, "token", "200")

    def sum(self) -> float:
        return self.total(REQUESTS, "token", "200")

    def total(self, family: MetricFamily, *labels: str) -> float:
        name = family.name if family.is_gauge else f"{family.name}_total"
        body, _ = exposition.render_exposition(self.shares.read_all(), {}, "")
        return ReadMetrics(body.decode()).value(name, **dict(zip(family.labels, labels, strict=True)))


def begin_process(folder: Path, generation: str = "") -> Process:
    process = Process(folder, generation)
    process.shares.join()
    return process


def test_metrics_sum_includes_ended_processes(tmp_path: Path) -> None:
    first, second = begin_process(tmp_path), begin_process(tmp_path)
    first.answer(2)
    second.answer(3)
    assert first.sum() == second.sum() == 5
    second.shares.leave()
    assert first.sum() == 5
    assert [process_samples.process_id for process_samples in first.shares.read_all()] == [os.getpid(), None]
    third = begin_process(tmp_path)
    third.answer(1)
    assert first.sum() == third.sum() == 6
    first.shares.leave()
    fourth = begin_process(tmp_path)
    # Samples of ended processes are compacted, so the folder does not grow.
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert fourth.sum() == third.sum() == 6


def test_first_process_resets_metrics(tmp_path: Path) -> None:
    before = begin_process(tmp_path)
    before.answer(7)
    before.shares.leave()
    after = begin_process(tmp_path)
    assert not list(tmp_path.glob("*.json"))
    assert after.sum() == 0


@pytest.mark.parametrize("content", ["", "[]", '{"counted": {"identity_requests": [[["a"], [1]], [["a", "b"], []]]}}'])
def test_unreadable_sample_files_are_ignored(tmp_path: Path, content: str) -> None:
    process = begin_process(tmp_path)
    process.answer(2)
    (tmp_path / "1-other.json").write_text(content)
    assert process.sum() == 2


def test_counters_do_not_decrease_when_a_process_ends(tmp_path: Path) -> None:
    """Prometheus treats a decreasing counter as reset and counts its value twice."""
    first, second = begin_process(tmp_path), begin_process(tmp_path)
    first.answer(2)
    first.count(3)
    assert first.sum() == 5
    # It ends before its next publication.
    first.shares.leave()
    assert second.sum() == 5


def test_compaction_of_ended_processes_blocks_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = begin_process(tmp_path), begin_process(tmp_path)
    first.answer(2)
    second.answer(3)
    second.shares.leave()
    write = ProcessSampleFolder._write
    reading: list[Future[float]] = []

    with ThreadPoolExecutor(1) as pool:

        def half_way(self: ProcessSampleFolder, name: str, members: Any) -> None:
            if name == "gone.json":
                reading.append(pool.submit(first.sum))
                # Long enough for a reader that does not block.
                wait(reading, 0.5)
            write(self, name, members)

        monkeypatch.setattr(ProcessSampleFolder, "_write", half_way)
        third = begin_process(tmp_path)
    assert [future.result() for future in reading] == [5]
    assert third.sum() == 5


def test_busy_process_publishes_pool_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.metrics.process_samples._PUBLISH_SECONDS", 0.01)
    busy, watching = Process(tmp_path), begin_process(tmp_path)
    busy.telling.start()
    busy.counts.on_change = busy.telling.notify_change
    try:
        # It first waits for something else and uses no pool.
        busy.counts.request_started()
        wait_for(lambda: busy.snapshots, lambda found: found > 5)
        for waiting in (3, 5):
            busy.loads = [PoolUsage("reading", 4, 4, waiting)]
            wait_for(lambda: watching.total(POOL_QUEUED, "reading"), lambda found, expected=waiting: found == expected)
        # The request has ended without a count, and background work waits instead.
        busy.counts.request_ended()
        sampled = busy.snapshots
        wait_for(lambda: busy.snapshots, lambda found: found > sampled + 5)
        busy.loads = [PoolUsage("reading", 0, 4, 0)]
        wait_for(lambda: watching.total(POOL_QUEUED, "reading"), lambda found: not found)
        sampled = busy.snapshots
        time.sleep(0.3)
        # One snapshot may have been in progress.
        assert busy.snapshots - sampled <= 1, "an idle process is not woken"
    finally:
        busy.telling.stop()


def test_replaced_workers_are_counted_once_per_generation(tmp_path: Path) -> None:
    first, second, reloaded = (begin_process(tmp_path, generation) for generation in ("1", "1", "2"))
    assert first.total(WORKERS_REPLACED) == 0
    first.replaced, second.replaced = 2, 3
    first.shares.publish()
    assert second.total(WORKERS_REPLACED) == 3
    assert first.total(WORKERS_REPLACED) == reloaded.total(WORKERS_REPLACED) == 3
    reloaded.replaced = 1
    for process in (first, second):
        process.shares.leave()
    # The previous generation has ended; its count stays.
    assert reloaded.total(WORKERS_REPLACED) == 4
    last = begin_process(tmp_path, "2")
    last.replaced = 2
    assert last.total(WORKERS_REPLACED) == 5
