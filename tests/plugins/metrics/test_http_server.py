"""The separate metrics listener and its access control."""

import http.client
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from identity.instrumentation import PoolUsage
from identity.plugin_host import PluginHost
from identity.plugins.metrics import MetricsPluginSettings, exposition
from identity.plugins.metrics.counters import ProcessCounters
from identity.plugins.metrics.families import REQUEST_SECONDS, REQUESTS, MetricFamily
from identity.plugins.metrics.metric_files import MetricFiles, MetricPublisher
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


@pytest.mark.thorough
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
    """One of several processes that share a folder of metric files."""

    def __init__(self, folder: Path, generation: str = "") -> None:
        self.counters, self.usages = ProcessCounters(), [PoolUsage("reading", 0, 4, 0)]
        self.generation, self.replaced = generation, 0
        #: How often the pools were read.
        self.publications = 0
        self.files = MetricFiles(folder)
        self.publisher = MetricPublisher(
            self.files, self.counters, self.read_usages, lambda: (generation, self.replaced) if generation else None
        )

    def read_usages(self) -> list[PoolUsage]:
        self.publications += 1
        return self.usages

    def answer(self, times: int) -> None:
        for _ in range(times):
            self.counters.increment(REQUESTS, "token", "200")
            self.counters.observe(REQUEST_SECONDS, 0.02, "token")
        self.publisher.publish()

    def sum(self) -> float:
        return self.total("identity_requests_total", endpoint="token", status="200")

    def total(self, name: str, **labels: str) -> float:
        body, _ = exposition.render_exposition(*self.files.read(), {}, "")
        return ReadMetrics(body.decode()).value(name, **labels)

    def waiting(self) -> float:
        return self.total("identity_waiting", what="reading")

    def replacements(self) -> float:
        return self.total("identity_workers_replaced_total")

    def processes(self) -> float:
        return self.total("identity_processes")


BeginProcess = Callable[..., Process]


@pytest.fixture
def begin_process(tmp_path: Path) -> Iterator[BeginProcess]:
    with ExitStack() as stack:

        def begin(generation: str = "") -> Process:
            process = Process(tmp_path, generation)
            process.files.open()
            stack.callback(process.files.close)
            return process

        yield begin


def test_metrics_sum_includes_ended_processes(begin_process: BeginProcess, tmp_path: Path) -> None:
    first, second = begin_process(), begin_process()
    first.answer(2)
    second.answer(3)
    assert first.sum() == second.sum() == 5
    assert first.processes() == 2
    second.files.close()
    assert first.sum() == 5
    assert first.processes() == 1
    third = begin_process()
    third.answer(1)
    assert first.sum() == third.sum() == 6
    first.files.close()
    fourth = begin_process()
    assert fourth.sum() == third.sum() == 6
    # A new process reuses the file of one that has ended, so the folder does not grow.
    assert sorted(path.name for path in tmp_path.glob("counter_*")) == ["counter_0.db", "counter_1.db"]


def test_histograms_add_up(begin_process: BeginProcess) -> None:
    first, second = begin_process(), begin_process()
    first.answer(2)
    second.answer(3)
    assert first.total("identity_request_seconds_sum", endpoint="token") == pytest.approx(0.1)
    for bound, number in (("0.01", 0), ("0.025", 5), ("+Inf", 5)):
        assert first.total("identity_request_seconds_bucket", endpoint="token", le=bound) == number


def test_first_process_resets_metrics(begin_process: BeginProcess) -> None:
    before = begin_process()
    before.answer(7)
    before.files.close()
    after = begin_process()
    assert after.sum() == 0


def test_counts_of_another_version_are_left_out(begin_process: BeginProcess) -> None:
    process, other = begin_process(), begin_process()
    process.answer(2)
    older = MetricFamily("identity_requests", "", ("endpoint",))
    other.files.add({older: {("token",): [3]}, MetricFamily("identity_gone", ""): {(): [1]}})
    assert process.sum() == 2
    assert not process.total("identity_requests_total", endpoint="token")


def test_pools_of_ended_process_are_not_counted(begin_process: BeginProcess) -> None:
    first, second = begin_process(), begin_process()
    for process in (first, second):
        process.usages = [PoolUsage("reading", 4, 4, 3)]
        process.publisher.publish()
    assert first.waiting() == 6
    second.files.close()
    assert first.waiting() == 3


def test_forked_process_does_not_report_earlier_counts(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.counters.increment(REQUESTS, "token", "200")
    process.publisher.start()
    assert process.sum() == 0
    process.publisher.stop()


def test_busy_process_publishes_pool_usage(
    begin_process: BeginProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.plugins.metrics.metric_files._PUBLISH_SECONDS", 0.01)
    watching, busy = begin_process(), Process(tmp_path)
    busy.publisher.start()
    try:
        # The request first waits for something other than a pool.
        busy.counters.request_started()
        wait_for(lambda: busy.publications, lambda found: found > 5)
        for waiting in (3, 5):
            busy.usages = [PoolUsage("reading", 4, 4, waiting)]
            wait_for(watching.waiting, lambda found, expected=waiting: found == expected)
        # The request has ended without a count, and background work waits instead.
        busy.counters.request_ended()
        published = busy.publications
        wait_for(lambda: busy.publications, lambda found: found > published + 5)
        busy.usages = [PoolUsage("reading", 0, 4, 0)]
        wait_for(watching.waiting, lambda found: not found)
        published = busy.publications
        time.sleep(0.3)
        # One publication may have been in progress.
        assert busy.publications - published <= 1, "an idle process is not woken"
    finally:
        busy.publisher.stop()


def test_replaced_workers_are_counted_once_per_generation(begin_process: BeginProcess) -> None:
    first, second, reloaded = (begin_process(generation) for generation in ("1", "1", "2"))
    assert first.replacements() == 0
    first.replaced, second.replaced = 2, 3
    for process in (first, second):
        process.publisher.publish()
    assert first.replacements() == reloaded.replacements() == 3
    reloaded.replaced = 1
    reloaded.publisher.publish()
    for process in (first, second):
        process.files.close()
    # The previous generation has ended; its count stays.
    assert reloaded.replacements() == 4
    last = begin_process("2")
    last.replaced = 2
    last.publisher.publish()
    assert last.replacements() == 5
