import threading
from datetime import timedelta

import pytest

from identity import background_worker as worker_module
from identity.background_worker import BackgroundJob, BackgroundWorker

HOUR = timedelta(hours=1)


class WorkerClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> WorkerClock:
    clock = WorkerClock()
    monkeypatch.setattr(worker_module.time, "monotonic", clock)
    return clock


def test_no_jobs_run_without_requests(monotonic: WorkerClock) -> None:
    runs: list[int] = []
    worker = BackgroundWorker([BackgroundJob("job", HOUR, lambda: runs.append(1))])
    monotonic.now += 10_000
    assert worker._thread is None
    assert runs == []


def test_request_wakes_worker_when_a_job_is_due(monotonic: WorkerClock) -> None:
    ran = threading.Event()
    worker = BackgroundWorker([BackgroundJob("job", HOUR, ran.set)])
    worker.wake()
    assert worker._thread is None, "nothing was due yet, so there is nothing to start"
    monotonic.now += 2
    worker.wake()
    assert ran.wait(10)
    worker.stop()
    assert worker._thread is not None
    assert not worker._thread.is_alive()


def test_job_waits_for_its_interval(monotonic: WorkerClock) -> None:
    runs: list[str] = []
    jobs = [
        BackgroundJob("often", timedelta(minutes=1), lambda: runs.append("often")),
        BackgroundJob("seldom", HOUR, lambda: runs.append("seldom")),
    ]
    worker = BackgroundWorker(jobs)
    monotonic.now += 2
    worker.run_due()
    worker.run_due()
    assert runs == ["often", "seldom"]
    monotonic.now += 60
    worker.run_due()
    assert runs == ["often", "seldom", "often"]


def test_failing_job_is_logged_and_stops_no_other(monotonic: WorkerClock, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[str] = []

    def fail() -> None:
        raise RuntimeError("broken")

    worker = BackgroundWorker(
        [BackgroundJob("failing", HOUR, fail), BackgroundJob("good", HOUR, lambda: runs.append("good"))]
    )
    monotonic.now += 2
    worker.run_due()
    assert runs == ["good"]
    assert "background work failed: failing" in caplog.text
    monotonic.now += 3600
    worker.run_due()
    assert runs == ["good", "good"]


class TestCalled:
    """Jobs that must run without requests, such as sending mail."""

    def test_runs_at_once(self) -> None:
        ran = threading.Event()
        other: list[int] = []
        worker = BackgroundWorker(
            [BackgroundJob("mail", HOUR, lambda: ran.set()), BackgroundJob("other", HOUR, lambda: other.append(1))]
        )
        worker.run_now("mail")
        ran.wait()
        worker.stop()
        assert other == []

    def test_job_runs_again_after_its_returned_delay(self) -> None:
        spans: list[timedelta | None] = [timedelta(milliseconds=20), timedelta(milliseconds=1), None]
        done = threading.Event()

        def run() -> timedelta | None:
            span = spans.pop(0)
            if span is None:
                done.set()
            return span

        worker = BackgroundWorker([BackgroundJob("mail", HOUR, run)])
        worker.run_now("mail")
        done.wait()
        worker.stop()
        assert worker._seconds_until_wake() is None

    def test_call_during_a_run_is_not_lost(self) -> None:
        begun, go_on, again = threading.Event(), threading.Event(), threading.Event()

        def run() -> None:
            if begun.is_set():
                again.set()
            begun.set()
            go_on.wait()

        worker = BackgroundWorker([BackgroundJob("mail", HOUR, run)])
        worker.run_now("mail")
        begun.wait()
        worker.run_now("mail")
        go_on.set()
        again.wait()
        worker.stop()

    def test_failing_job_is_retried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(worker_module, "_RETRY_DELAY", timedelta(milliseconds=5))
        runs: list[int] = []
        done = threading.Event()

        def run() -> None:
            runs.append(1)
            if len(runs) < 3:
                raise RuntimeError("the database is away")
            done.set()

        worker = BackgroundWorker([BackgroundJob("mail", HOUR, run)])
        worker.run_now("mail")
        done.wait()
        worker.stop()
        assert len(runs) == 3

    def test_unknown_names_and_stopped_workers_do_nothing(self) -> None:
        worker = BackgroundWorker([BackgroundJob("mail", HOUR, lambda: None)])
        worker.run_now("other")
        worker.stop()
        worker.run_now("mail")
        assert worker._thread is None


class TestOwnThread:
    """Jobs in threads of their own, because they wait for other machines, such as a webhook receiver that hangs."""

    def test_blocked_job_delays_no_other(self) -> None:
        hanging, ran, other = threading.Event(), threading.Event(), threading.Event()
        go_on = threading.Event()

        def hang() -> None:
            hanging.set()
            go_on.wait()

        worker = BackgroundWorker(
            [
                BackgroundJob("hanging", HOUR, hang, has_own_thread=True),
                BackgroundJob("quick", HOUR, lambda: ran.set(), has_own_thread=True),
                BackgroundJob("housekeeping", HOUR, lambda: other.set()),
            ]
        )
        worker.run_now("hanging")
        assert hanging.wait(10)
        worker.run_now("quick")
        worker.run_now("housekeeping")
        assert ran.wait(10)
        assert other.wait(10)
        go_on.set()
        worker.stop()

    def test_requests_wake_jobs_with_own_thread(self, monotonic: WorkerClock) -> None:
        ran = threading.Event()
        worker = BackgroundWorker([BackgroundJob("job", HOUR, lambda: ran.set(), has_own_thread=True)])
        monotonic.now += 2
        worker.wake()
        assert ran.wait(10)
        worker.stop()

    def test_stop_does_not_wait_forever(self) -> None:
        hanging, go_on = threading.Event(), threading.Event()
        stopped: list[bool] = []

        def hang() -> None:
            hanging.set()
            go_on.wait()
            stopped.append(worker.is_stopping)

        worker = BackgroundWorker([BackgroundJob("hanging", HOUR, hang, has_own_thread=True)])
        worker.run_now("hanging")
        assert hanging.wait(10)
        worker.stop(timeout=0.05)
        go_on.set()
        worker.stop()
        assert stopped == [True]
