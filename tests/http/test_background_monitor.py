"""Overdue background work is reported, by readiness too, but the node stays ready."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from identity import background_monitor
from identity import background_worker as worker_module
from identity.background_worker import BackgroundJob, BackgroundWorker
from identity.crypto.secrets import new_id
from identity.domain.audit import SYSTEM
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import HumanUser
from identity.services.mails import Mail, MailReason
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer

pytestmark = pytest.mark.every_storage

SECRET = "To whom it concerns"
LETTER = Mail(to="ada@acme.example", subject="Hello", text=SECRET, html=f"<p>{SECRET}</p>")


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_monitor, "_CACHE_SECONDS", 0)


@pytest.fixture
def world(make_world: WorldFactory) -> Iterator[World]:
    """A world whose mail server is down."""
    post = ReceivingMailServer()
    yield make_world(**post.settings)
    post.stop()


def degraded_counts(world: World, status: int = 200) -> dict[str, int]:
    answer = world.client.get(f"{world.issuer}/readyz")
    assert answer.status_int == status
    assert answer.json["status"] == ("degraded" if "degraded" in answer.json else "ready")
    assert SECRET not in answer.text
    degraded: dict[str, int] = answer.json.get("degraded", {})
    return degraded


def test_overdue_mail_is_reported_and_node_stays_ready(world: World) -> None:
    with world.transaction_services() as services:
        services.mails.queue(LETTER, MailReason.NOTICE)
    assert degraded_counts(world) == {}
    world.clock.advance(minutes=14)
    assert world.identity.senders["mail"].send_due() == 0, "it fails, and is tried again later"
    assert degraded_counts(world) == {}
    world.clock.advance(minutes=2)
    assert degraded_counts(world) == {"outbox: mail": 960}
    assert world.identity.system_checks.failures(readiness_only=True) == {}


@pytest.mark.thorough
def test_overdue_purge_is_reported(world: World) -> None:
    world.make_service_user_program().request_token()
    world.clock.advance(hours=1 + 24 + 11)
    assert "purge" not in degraded_counts(world)
    world.clock.advance(hours=3)
    assert degraded_counts(world)["purge"] >= 12 * 3600
    world.identity.background_jobs.purge()
    assert "purge" not in degraded_counts(world)


@pytest.mark.thorough
def test_overdue_key_rotation_is_reported(world: World) -> None:
    settings = world.identity.settings
    world.clock.advance(
        seconds=int((settings.signing_key_active_age - settings.key_announcement_period).total_seconds())
    )
    world.clock.advance(hours=11)
    assert "key rotation" not in degraded_counts(world)
    world.clock.advance(hours=2)
    assert degraded_counts(world)["key rotation"] // 3600 == 13
    world.identity.background_jobs.rotate_signing_key_if_due()
    assert "key rotation" not in degraded_counts(world)


def test_key_expiry_without_rotation_is_reported(world: World) -> None:
    robot = world.make_service_user_program()
    with world.transaction_services() as services:
        services.storage.credentials.add(
            ServiceUserKey(
                id=new_id(),
                user_id=robot.user.id,
                public_key=b"of nobody",
                created_at=world.clock(),
                expires_at=world.clock() + timedelta(days=20),
            )
        )
    world.identity.background_jobs.record_expiring_keys()
    world.clock.advance(hours=11)
    assert "expiring keys" not in degraded_counts(world)
    world.clock.advance(hours=2)
    assert degraded_counts(world)["expiring keys"] == 13 * 3600
    world.identity.background_jobs.record_expiring_keys()
    assert "expiring keys" not in degraded_counts(world)


def test_overdue_account_deletion_is_reported(world: World) -> None:
    person = world.make_human_user()
    due = world.clock() + timedelta(days=14)
    with world.transaction_services() as services:
        before = services.storage.users.find(person.id)
        assert isinstance(before, HumanUser)
        services.storage.users.update(replace(before, deletion_at=due, version=before.version + 1))
    world.clock.advance(days=14, hours=11)
    assert "account deletions" not in degraded_counts(world)
    world.clock.advance(hours=2)
    assert degraded_counts(world)["account deletions"] == 13 * 3600


class Hanging:
    """A job that blocks until it is released."""

    def __init__(self) -> None:
        self.begun, self.enough = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        self.enough.wait(60)


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Advances the monotonic clock of the worker."""
    passed = [0.0]
    monotonic = time.monotonic

    class Time:
        @staticmethod
        def monotonic() -> float:
            return monotonic() + passed[0]

    monkeypatch.setattr(worker_module, "time", Time)

    def let_pass(span: timedelta) -> None:
        passed[0] += span.total_seconds()

    return let_pass


def test_stuck_thread_is_reported(
    world: World, passing: Callable[[timedelta], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Hanging()
    worker = BackgroundWorker(
        [
            BackgroundJob("job", timedelta(hours=1), job),
            BackgroundJob("long", timedelta(hours=1), lambda: None, has_own_thread=True),
        ]
    )
    monkeypatch.setattr(world.identity, "background_worker", worker)
    worker.run_now("job")
    assert job.begun.wait(60)
    passing(timedelta(minutes=4))
    assert degraded_counts(world) == {}
    passing(timedelta(minutes=2))
    assert set(degraded_counts(world)) == {"hung: job"}
    job.enough.set()
    worker.stop(60)
    assert degraded_counts(world) == {}


def test_long_job_that_polls_for_stop_is_alive(passing: Callable[[timedelta], None]) -> None:
    step, stepped, enough = threading.Event(), threading.Event(), threading.Event()

    def steps() -> None:
        stepped.set()
        step.wait(60)
        assert not worker.is_stopping
        stepped.set()
        enough.wait(60)

    worker = BackgroundWorker([BackgroundJob("long", timedelta(hours=1), steps, has_own_thread=True)])
    worker.run_now("long")
    assert stepped.wait(60)
    stepped.clear()
    passing(timedelta(minutes=9))
    step.set()
    assert stepped.wait(60)
    assert worker.hung_jobs(timedelta(minutes=5)) == {}
    passing(timedelta(minutes=9))
    assert set(worker.hung_jobs(timedelta(minutes=5))) == {"long"}
    enough.set()
    worker.stop(60)


def test_failing_job_is_reported(passing: Callable[[timedelta], None]) -> None:
    fails = [True]

    def run() -> None:
        if fails[0]:
            raise RuntimeError("no")

    worker = BackgroundWorker([BackgroundJob("job", timedelta(hours=1), run)])
    for _ in range(3):
        passing(timedelta(hours=6))
        worker.run_due()
    assert worker.failing_jobs(timedelta(hours=12)) == {}
    passing(timedelta(hours=6))
    assert set(worker.failing_jobs(timedelta(hours=12))) == {"job"}
    fails[0] = False
    worker.run_due()
    assert worker.failing_jobs(timedelta()) == {}


@pytest.mark.thorough
def test_unreadable_backlog_keeps_node_ready(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("identity.services.statistics.StatisticsService.backlog_ages", broken)
    assert degraded_counts(world) == {}


def test_readiness_caches_the_backlog(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_monitor, "_CACHE_SECONDS", 3600)
    with world.transaction_services() as services:
        services.mails.queue(LETTER, MailReason.NOTICE)
    assert degraded_counts(world) == {}
    world.clock.advance(minutes=30)
    assert degraded_counts(world) == {}
    monkeypatch.setattr(background_monitor, "_CACHE_SECONDS", 0)
    assert degraded_counts(world) == {"outbox: mail": 1800}
    with world.identity.read_session(SYSTEM) as services:
        assert services.statistics.backlog_ages()["outbox: mail"] == timedelta(minutes=30)
