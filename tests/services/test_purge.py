from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from identity import background_jobs, instrumentation
from identity.application import IdentityApplication
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.legal_holds import ALL_TARGETS, LegalHold, LegalHoldKind
from identity.services import legal_holds, purge
from identity.services.access_control import Principal
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.container import Services
from identity.services.leases import acquire_lease
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.errors import StorageUnavailable
from identity.storage.stores.purges import PurgeCandidates, PurgeKind
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, subject_of


def fill(identity: IdentityApplication, count: int, **fields: object) -> None:
    with identity.transaction() as services:
        for _ in range(count):
            services.storage.tokens.add_access_token(make.access_token(**fields))


@pytest.fixture
def expired(identity: IdentityApplication, clock: FakeClock) -> dict[str, object]:
    at = clock() - identity.settings.token_retention - timedelta(hours=1)
    return {
        "issued_at": at,
        "expires_at": at,
        "user_id": None,
        "application_id": None,
        "family_id": None,
        "key_id": None,
    }


def test_purge_deletes_expired_rows_in_batches(
    identity: IdentityApplication, expired: dict[str, object], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(identity, purge.BATCH_SIZE + 3, **expired)
    live = {**expired, "expires_at": clock() - identity.settings.token_retention}
    fill(identity, 2, **live)
    assert identity.background_jobs.purge() == {"access tokens": purge.BATCH_SIZE + 3}
    assert identity.background_jobs.purge() == {}


def test_each_batch_commits_and_reports_progress(
    identity: IdentityApplication, expired: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[str] = []

    class Watching(instrumentation.InstrumentationObserver):
        def record_duration(self, kind: str, name: str, seconds: float) -> None:
            if kind == instrumentation.Measurement.PURGE:
                recorded.append(name)

    def relieve() -> None:
        recorded.append("relieved")
        # The batch is committed by then, so that waiting writers can continue.
        fill(identity, 1)

    monkeypatch.setattr(identity.backend, "checkpoint", relieve)
    monkeypatch.setattr(purge.PurgeBatch, "next_limit", lambda _self, limit: limit)
    fill(identity, 2 * purge.BATCH_SIZE + 1, **expired)
    watcher = Watching()
    instrumentation.add_observers([watcher])
    try:
        assert identity.background_jobs.purge() == {"access tokens": 2 * purge.BATCH_SIZE + 1}
    finally:
        instrumentation.remove_observers([watcher])
    assert recorded == 3 * ["access tokens", "relieved"]


def test_pause_lasts_as_long_as_the_batch(
    identity: IdentityApplication, expired: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    moments = iter([10.0, 10.1, 10.2, 10.25, 20.0, 20.001, 20.002, 20.002])
    monkeypatch.setattr(background_jobs, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=slept.append))
    monkeypatch.setattr(purge.PurgeBatch, "next_limit", lambda _self, limit: limit)
    fill(identity, purge.BATCH_SIZE + 1, **expired)
    identity.background_jobs.purge()
    assert slept == pytest.approx([0.15, 0.005])


def test_empty_purge_takes_no_write_lock(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "purge_batch", None)
    assert identity.background_jobs.purge() == {}


def test_purge_runs_on_one_node_at_a_time(
    identity: IdentityApplication, expired: dict[str, object], clock: FakeClock
) -> None:
    for waited, left in ((0, {"access tokens": 1}), (1, {})):
        fill(identity, 1, **expired)
        with identity.transaction() as services:
            assert acquire_lease(
                services.storage, "purge", starts_at=clock(), expires_at=clock() + timedelta(minutes=1)
            )
        clock.advance(minutes=waited)
        identity.background_jobs.purge_with_lease()
        assert identity.background_jobs.purge() == left
        clock.advance(minutes=1)


def test_long_purge_keeps_its_lease(
    identity: IdentityApplication, expired: dict[str, object], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[bool] = []

    def relieve() -> None:
        clock.advance(minutes=1)
        with identity.transaction() as services:
            results.append(
                acquire_lease(services.storage, "purge", starts_at=clock(), expires_at=clock() + timedelta(minutes=1))
            )

    monkeypatch.setattr(identity.backend, "checkpoint", relieve)
    monkeypatch.setattr(purge.PurgeBatch, "next_limit", lambda _self, limit: limit)
    for purging in (identity.background_jobs.purge_with_lease, identity.background_jobs.purge):
        fill(identity, 6 * purge.BATCH_SIZE, **expired)
        results.clear()
        purging()
        assert results == 6 * [False]
        assert identity.background_jobs.purge() == {}
        clock.advance(hours=1)


def test_purge_ends_after_losing_its_lease(
    identity: IdentityApplication, expired: dict[str, object], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had been suspended until its lease expired."""

    def relieve() -> None:
        monkeypatch.undo()
        clock.advance(minutes=10)
        with identity.transaction() as services:
            assert acquire_lease(
                services.storage, "purge", starts_at=clock(), expires_at=clock() + timedelta(minutes=1)
            )

    monkeypatch.setattr(identity.backend, "checkpoint", relieve)
    fill(identity, 2 * purge.BATCH_SIZE, **expired)
    identity.background_jobs.purge_with_lease()
    assert identity.background_jobs.purge() == {"access tokens": purge.BATCH_SIZE}


def test_other_jobs_do_not_wait_for_purge(identity: IdentityApplication) -> None:
    assert [job.name for job in identity.background_jobs.jobs if job.has_own_thread] == [
        "purge",
        "user imports",
        "people",
    ]


@pytest.mark.parametrize("failure", [StorageUnavailable("too slow"), RuntimeError("broken")])
def test_failing_kind_stops_no_other_kind(
    identity: IdentityApplication,
    expired: dict[str, object],
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        services.storage.outbox.add(make.outbox_message(next_at=clock(), expires_at=clock()))
    clock.advance(hours=26)

    def failing(storage: Storage, kind: PurgeKind, *arguments: Any) -> PurgeCandidates:
        if kind is PurgeKind.ACCESS_TOKENS:
            raise failure
        return purge.find_expired(storage, kind, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(background_jobs, "find_expired", failing)
        with pytest.raises(type(failure)):
            identity.background_jobs.purge()
    assert "access tokens could not all be purged" in caplog.text
    assert identity.background_jobs.purge() == {"access tokens": 1}, "the message went"


def test_purge_deletes_sign_in_leftovers(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        anna = subject_of(services, make_human_user(services, make_organization(services)))
        # A link of a user without a password lives longer.
        services.passwords.set_one_time_password(anna.user.id)
        services.sessions.start(anna, (), proofs=(), user_agent="")
        services.sign_ins.begin({"client_id": "c"})
        services.passwords.issue_reset_link(anna.user.id)
        services.storage.attempts.reserve("name:nobody", reserved_at=services.now)
        services.storage.outbox.add(make.outbox_message(next_at=clock(), expires_at=clock() + timedelta(hours=1)))
    clock.advance(hours=26)
    purged = identity.background_jobs.purge()
    assert purged == dict.fromkeys(("authorization requests", "outgoing messages", "records"), 1)
    clock.advance(hours=7 * 24 - 26)
    assert identity.background_jobs.purge() == {}, "the session has just reached its end"
    # A token of the session may live for another twelve hours, and is invalid only because the session has ended.
    clock.advance(hours=24 + 12)
    assert identity.background_jobs.purge() == {}
    clock.advance(seconds=1)
    assert identity.background_jobs.purge() == {"sessions": 1}
    clock.advance(days=30)
    assert identity.background_jobs.purge() == {"attempts": 1}


class TestAges:
    @pytest.fixture
    def further(self) -> dict[str, str]:
        return {"identity.session_retention": "3d", "identity.token_retention": "2d", "identity.purge_after": "1d"}

    @pytest.mark.thorough
    def test_sessions_and_tokens_have_separate_ages(
        self, identity: IdentityApplication, expired: dict[str, object], clock: FakeClock
    ) -> None:
        """Tokens of an ended session are purged first, since they may refer to it for twelve hours."""
        fill(identity, 1, **{**expired, "expires_at": clock()})
        with identity.transaction() as services:
            anna = subject_of(services, make_human_user(services, make_organization(services)))
            signed_in, _ = services.sessions.start(anna, (), proofs=(), user_agent="")
            services.storage.outbox.add(make.outbox_message(next_at=clock(), expires_at=clock()))
        purged: dict[str, timedelta] = {}
        began = clock()
        for _ in range(12 * 24):
            clock.advance(hours=1)
            purged |= dict.fromkeys(identity.background_jobs.purge(), clock() - began)
        hour, day = timedelta(hours=1), timedelta(days=1)
        after_its_end = purged["sessions"] - (signed_in.session.ends_at - began)
        assert (purged["outgoing messages"], purged["access tokens"]) == (day + hour, 2 * day + hour)
        assert after_its_end == 3 * day + 12 * hour + hour


def test_sendable_mails_are_kept(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        services.storage.outbox.add(make.outbox_message(next_at=clock(), expires_at=clock() + timedelta(days=3)))
    clock.advance(hours=26)
    assert identity.background_jobs.purge() == {}


@pytest.fixture
def further() -> dict[str, str]:
    return {"identity.audit_retention": "90d"}


def test_audit_events_are_purged_after_retention(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        make_organization(services)
    clock.advance(days=90)
    assert identity.background_jobs.purge() == {}, "they have just reached their age"
    clock.advance(seconds=1)
    with identity.transaction() as services:
        make_organization(services, "Other")
    [count] = identity.background_jobs.purge().values()
    assert count
    with identity.read_session() as services:
        assert {event.at for event in services.storage.audit.list_after(0, 100)} == {clock()}


def hold(services: Services, kind: LegalHoldKind, held_id: str | None = None, reason: str = "Case 12") -> LegalHold:
    return services.legal_holds.create(CreateLegalHold(kind=kind, held_id=held_id, reason=reason))


class TestLegalHold:
    def test_held_organization_data_is_kept(self, identity: IdentityApplication, clock: FakeClock) -> None:
        legal_holds = {}
        for name in ("Held", "Other"):
            with identity.transaction() as services:
                organization = make_organization(services, name)
                anna = subject_of(services, make_human_user(services, organization))
                services.sessions.start(anna, (), proofs=(), user_agent="")
                legal_holds[name] = organization.id
        with identity.transaction() as services:
            placed = hold(services, LegalHoldKind.ORGANIZATION, legal_holds["Held"])
        clock.advance(days=365)
        purged = identity.background_jobs.purge()
        assert purged["sessions"] == 1
        with identity.read_session() as services:
            events = services.storage.audit.list_after(0, 100)
            assert legal_holds["Other"] not in {event.organization_id for event in events}
            assert sum(event.organization_id == legal_holds["Held"] for event in events) > 2
        assert identity.background_jobs.purge() == {}
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert set(identity.background_jobs.purge()) == {"sessions", "audit events"}

    def test_held_rows_are_skipped_once(
        self, identity: IdentityApplication, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(purge, "SCAN_LIMIT", 2)
        with identity.transaction() as services:
            organization = make_organization(services, "Held")
            people = [make_human_user(services, item) for item in (organization, make_organization(services, "Other"))]
            hold(services, LegalHoldKind.ORGANIZATION, organization.id)
        for person in [people[0]] * 3 + [people[1]] * 3 + [people[0], people[1]]:
            with identity.transaction() as services:
                services.sessions.start(subject_of(services, person), (), proofs=(), user_agent="")
            clock.advance(seconds=1)
        clock.advance(days=365)
        looked: list[object] = []
        find = purge.find_expired

        def looking(storage: Storage, kind: PurgeKind, *arguments: Any) -> PurgeCandidates:
            purge_candidates = find(storage, kind, *arguments)
            if kind is PurgeKind.SESSIONS:
                looked.append((arguments[-1], len(purge_candidates.keys)))
            return purge_candidates

        monkeypatch.setattr(background_jobs, "find_expired", looking)
        assert identity.background_jobs.purge()["sessions"] == 4
        cursors = [since for since, _ in looked]
        assert cursors[0] is None
        assert cursors[1:] == sorted(set(cursors[1:]))
        # At most two at a time, held or not.
        assert [found for _, found in looked] == [0, 1, 2, 1, 0]

    def test_legal_hold_on_instance_keeps_everything(
        self, identity: IdentityApplication, expired: dict[str, object], clock: FakeClock
    ) -> None:
        fill(identity, 1, **expired)
        with identity.transaction() as services:
            placed = hold(services, LegalHoldKind.INSTANCE)
            services.storage.outbox.add(make.outbox_message(next_at=clock(), expires_at=clock()))
        clock.advance(days=365)
        assert identity.background_jobs.purge() == {"outgoing messages": 1}, "which tell nothing of anybody"
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert identity.background_jobs.purge()["access tokens"] == 1

    def test_held_account_deletion_is_postponed(self, identity: IdentityApplication, clock: FakeClock) -> None:
        with identity.transaction() as services:
            organization = make_organization(services)
            anna = make_human_user(services, organization)
            services.storage.users.update(replace(anna, deletion_at=clock(), version=anna.version + 1))
            placed = hold(services, LegalHoldKind.ORGANIZATION, organization.id)
        clock.advance(1)
        assert identity.background_jobs.delete_due_accounts() == 0
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert identity.background_jobs.delete_due_accounts() == 0
        clock.advance(days=1)
        assert identity.background_jobs.delete_due_accounts() == 1

    def test_legal_hold_on_user_keeps_user_data(self, identity: IdentityApplication, clock: FakeClock) -> None:
        """Other users of the organization are not held."""
        with identity.transaction() as services:
            organization = make_organization(services)
            anna, bert = (
                subject_of(services, make_human_user(services, organization, name)) for name in ("anna", "bert")
            )
            for subject in (anna, bert):
                services.sessions.start(subject, (), proofs=(), user_agent="")
            placed = hold(services, LegalHoldKind.USER, anna.user.id)
        clock.advance(days=365)
        assert identity.background_jobs.purge()["sessions"] == 1
        with identity.read_session() as services:
            events = services.storage.audit.list_after(0, 100)
        assert {event.event for event in events} >= {"user.created", "session.started"}
        assert {anna.user.id} == {event.object_id for event in events if event.object_kind == "user"}
        assert identity.background_jobs.purge() == {}
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert set(identity.background_jobs.purge()) == {"sessions", "audit events"}

    def test_legal_hold_is_audited_and_placed_once(self, identity: IdentityApplication) -> None:
        with identity.transaction() as services:
            organization = make_organization(services)
            anna = make_human_user(services, organization)
            placed = [
                hold(services, LegalHoldKind.ORGANIZATION, organization.id, "Case 1"),
                hold(services, LegalHoldKind.USER, anna.id, "Case 2"),
                hold(services, LegalHoldKind.INSTANCE, None, "Case 3"),
            ]
        with identity.transaction() as services:
            for kind, held_id in zip(LegalHoldKind, (anna.id, organization.id, None), strict=True):
                with pytest.raises(Conflict, match="already on hold"):
                    hold(services, kind, held_id)
            assert list(services.legal_holds.list_holds()) == [organization.id, anna.id, ALL_TARGETS]
            for legal_hold in placed:
                services.legal_holds.release(legal_hold.id)
                with pytest.raises(NotFound):
                    services.legal_holds.release(legal_hold.id)
            assert services.legal_holds.list_holds() == {}
            again = hold(services, LegalHoldKind.USER, anna.id)
            assert again.id not in {legal_hold.id for legal_hold in placed}, "what was let go does not come back"
            services.legal_holds.release(again.id)
        with identity.read_session() as services:
            events = [
                event for event in services.storage.audit.list_after(0, 100) if event.event == "legal_hold.placed"
            ]
        assert [(event.object_kind, event.object_id, event.organization_id, event.detail) for event in events[:3]] == [
            ("organization", organization.id, organization.id, {"reason": "Case 1"}),
            ("legal_hold", placed[1].id, organization.id, {"user_id": anna.id, "reason": "Case 2"}),
            ("instance", None, None, {"reason": "Case 3"}),
        ]

    @pytest.mark.parametrize("kind", LegalHoldKind)
    def test_unknown_target_cannot_be_held(self, identity: IdentityApplication, kind: LegalHoldKind) -> None:
        with identity.transaction() as services, pytest.raises(Invalid):
            hold(services, kind, "nobody")

    def test_number_of_legal_holds_is_limited(
        self, identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(legal_holds, "MAX_HOLDS", 1)
        with identity.transaction() as services:
            first, second = (make_organization(services, name) for name in ("First", "Second"))
            hold(services, LegalHoldKind.ORGANIZATION, first.id)
            with pytest.raises(Conflict, match="There are 1 legal holds"):
                hold(services, LegalHoldKind.ORGANIZATION, second.id)

    @pytest.mark.parametrize("kind", LegalHoldKind)
    def test_held_user_cannot_be_removed(self, identity: IdentityApplication, kind: LegalHoldKind) -> None:
        """Neither directly nor with the organization; the rest is removed."""
        with identity.transaction() as services:
            organization, other = (make_organization(services, name) for name in ("Held", "Other"))
            anna, bert = (make_human_user(services, item) for item in (organization, other))
            retained = {
                LegalHoldKind.USER: anna.id,
                LegalHoldKind.ORGANIZATION: organization.id,
                LegalHoldKind.INSTANCE: None,
            }
            placed = hold(services, kind, retained[kind])
        with identity.transaction() as services:
            with pytest.raises(Conflict, match="legal hold"):
                services.users.remove(anna.id, principal=Principal.OPERATOR)
            with pytest.raises(Conflict, match="legal hold"):
                services.organizations.remove(organization.id, principal=Principal.OPERATOR)
            services.users.deactivate(anna.id, principal=Principal.OPERATOR)
            if kind is not LegalHoldKind.INSTANCE:
                services.users.remove(bert.id, principal=Principal.OPERATOR)
                services.organizations.remove(other.id, principal=Principal.OPERATOR)
            services.legal_holds.release(placed.id)
            services.users.remove(anna.id, principal=Principal.OPERATOR)
            services.organizations.remove(organization.id, principal=Principal.OPERATOR)


@pytest.mark.parametrize(
    ("limit", "deletion", "whole", "following"),
    [
        (200, 0.006, 0.007, 100),
        (200, 0.001, 0.021, 100),
        (200, 0.004, 0.019, 200),
        (200, 0.001, 0.019, 400),
        (25, 0.1, 0.1, 25),
        (30, 0.1, 0.1, 25),
        (1000, 0.001, 0.001, 1000),
    ],
)
def test_batch_size_adapts_to_duration(limit: int, deletion: float, whole: float, following: int) -> None:
    assert purge.PurgeBatch(limit, deletion, whole).next_limit(limit) == following
