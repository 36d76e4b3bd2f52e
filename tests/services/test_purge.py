from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from identity import jobs, watching
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.legal_holds import EVERYTHING, Held, Hold
from identity.process import Identity
from identity.services import legal_holds, purge
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.legal_holds import PlaceLegalHold
from identity.services.leases import acquire
from identity.storage.backend import Storage
from identity.storage.errors import Unavailable
from identity.storage.stores.purges import Found, Purged
from identity.testing.clock import MovableClock
from identity.testing.factories import an_access_token, an_outgoing_message
from tests.services.people import a_person, an_organization, subject_of


def fill(identity: Identity, count: int, **fields: object) -> None:
    with identity.transaction() as services:
        for _ in range(count):
            services.storage.tokens.add_access(an_access_token(**fields))


@pytest.fixture
def expired(identity: Identity, clock: MovableClock) -> dict[str, object]:
    at = clock() - identity.settings.token_retention - timedelta(hours=1)
    return {
        "issued_at": at,
        "expires_at": at,
        "user_id": None,
        "application_id": None,
        "family_id": None,
        "key_id": None,
    }


def test_expired_rows_go_in_batches_and_live_ones_stay(
    identity: Identity, expired: dict[str, object], clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(identity, purge.BATCH + 3, **expired)
    live = {**expired, "expires_at": clock() - identity.settings.token_retention}
    fill(identity, 2, **live)
    assert identity.jobs.purge() == {"access tokens": purge.BATCH + 3}
    assert identity.jobs.purge() == {}


def test_others_are_relieved_after_each_batch_and_whoever_watches_hears_of_it(
    identity: Identity, expired: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    class Watching(watching.Watcher):
        def took(self, what: str, name: str, seconds: float) -> None:
            if what == watching.PURGE:
                told.append(name)

    def relieve() -> None:
        told.append("relieved")
        # The batch is committed by then, and whoever waited may write.
        fill(identity, 1)

    monkeypatch.setattr(identity.backend, "relieve", relieve)
    monkeypatch.setattr(purge.Batch, "next_limit", lambda _self, limit: limit)
    fill(identity, 2 * purge.BATCH + 1, **expired)
    watcher = Watching()
    watching.begin([watcher])
    try:
        assert identity.jobs.purge() == {"access tokens": 2 * purge.BATCH + 1}
    finally:
        watching.end([watcher])
    assert told == 3 * ["access tokens", "relieved"]


def test_whoever_waits_has_as_long_as_the_batch_took(
    identity: Identity, expired: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    moments = iter([10.0, 10.1, 10.2, 10.25, 20.0, 20.001, 20.002, 20.002])
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=slept.append))
    monkeypatch.setattr(purge.Batch, "next_limit", lambda _self, limit: limit)
    fill(identity, purge.BATCH + 1, **expired)
    identity.jobs.purge()
    assert slept == pytest.approx([0.15, 0.005])


def test_nobody_waits_for_a_purge_that_has_nothing_to_delete(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "purge", None)
    assert identity.jobs.purge() == {}


def test_one_node_at_a_time(identity: Identity, expired: dict[str, object], clock: MovableClock) -> None:
    for waited, left in ((0, {"access tokens": 1}), (1, {})):
        fill(identity, 1, **expired)
        with identity.transaction() as services:
            assert acquire(services.storage, "purge", at=clock(), until=clock() + timedelta(minutes=1))
        clock.advance(minutes=waited)
        identity.jobs.purge_if_free()
        assert identity.jobs.purge() == left
        clock.advance(minutes=1)


def test_a_purge_that_takes_long_stays_the_only_one(
    identity: Identity, expired: dict[str, object], clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[bool] = []

    def relieve() -> None:
        clock.advance(minutes=1)
        with identity.transaction() as services:
            others.append(acquire(services.storage, "purge", at=clock(), until=clock() + timedelta(minutes=1)))

    monkeypatch.setattr(identity.backend, "relieve", relieve)
    monkeypatch.setattr(purge.Batch, "next_limit", lambda _self, limit: limit)
    for purging in (identity.jobs.purge_if_free, identity.jobs.purge):
        fill(identity, 6 * purge.BATCH, **expired)
        others.clear()
        purging()
        assert others == 6 * [False]
        assert identity.jobs.purge() == {}
        clock.advance(hours=1)


def test_a_purge_ends_when_another_node_has_begun_one(
    identity: Identity, expired: dict[str, object], clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process was asleep for longer than its turn."""

    def relieve() -> None:
        monkeypatch.undo()
        clock.advance(minutes=10)
        with identity.transaction() as services:
            assert acquire(services.storage, "purge", at=clock(), until=clock() + timedelta(minutes=1))

    monkeypatch.setattr(identity.backend, "relieve", relieve)
    fill(identity, 2 * purge.BATCH, **expired)
    identity.jobs.purge_if_free()
    assert identity.jobs.purge() == {"access tokens": purge.BATCH}


def test_nothing_else_waits_for_a_purge(identity: Identity) -> None:
    assert [job.name for job in identity.jobs.table if job.alone] == ["purge"]


@pytest.mark.parametrize("failure", [Unavailable("too slow"), RuntimeError("broken")])
def test_a_kind_that_cannot_be_purged_stops_no_other(
    identity: Identity,
    expired: dict[str, object],
    clock: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock()))
    clock.advance(hours=26)

    def failing(storage: Storage, kind: Purged, *given: Any) -> Found:
        if kind is Purged.ACCESS_TOKENS:
            raise failure
        return purge.find(storage, kind, *given)

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "find", failing)
        with pytest.raises(type(failure)):
            identity.jobs.purge()
    assert "access tokens could not all be purged" in caplog.text
    assert identity.jobs.purge() == {"access tokens": 1}, "the message went"


def test_what_a_sign_in_leaves_behind_goes_too(identity: Identity, clock: MovableClock) -> None:
    with identity.transaction() as services:
        anna = subject_of(services, a_person(services, an_organization(services)))
        # Who has no password yet may use a link for longer.
        services.passwords.set_one_time(anna.user.id)
        services.sessions.sign_in(anna, (), proofs=(), user_agent="")
        services.sign_ins.begin({"client_id": "c"})
        services.passwords.issue_link(anna.user.id)
        services.storage.attempts.reserve("name:nobody", at=services.now)
        services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock() + timedelta(hours=1)))
    clock.advance(hours=26)
    gone = identity.jobs.purge()
    assert gone == dict.fromkeys(("authorization requests", "outgoing messages", "records"), 1)
    clock.advance(hours=7 * 24 - 26)
    assert identity.jobs.purge() == {}, "the session has just reached its end"
    # A token that names the session may live for another twelve hours, and is dead only because the session says so.
    clock.advance(hours=24 + 12)
    assert identity.jobs.purge() == {}
    clock.advance(seconds=1)
    assert identity.jobs.purge() == {"sessions": 1}
    clock.advance(days=30)
    assert identity.jobs.purge() == {"attempts": 1}


class TestAges:
    @pytest.fixture
    def further(self) -> dict[str, str]:
        return {"identity.session_retention": "3d", "identity.token_retention": "2d", "identity.purge_after": "1d"}

    def test_sessions_and_tokens_each_have_their_own(
        self, identity: Identity, expired: dict[str, object], clock: MovableClock
    ) -> None:
        """A session may be named by tokens for twelve hours after its end, which come first."""
        fill(identity, 1, **{**expired, "expires_at": clock()})
        with identity.transaction() as services:
            anna = subject_of(services, a_person(services, an_organization(services)))
            signed_in, _ = services.sessions.sign_in(anna, (), proofs=(), user_agent="")
            services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock()))
        gone: dict[str, timedelta] = {}
        began = clock()
        for _ in range(12 * 24):
            clock.advance(hours=1)
            gone |= dict.fromkeys(identity.jobs.purge(), clock() - began)
        hour, day = timedelta(hours=1), timedelta(days=1)
        after_its_end = gone["sessions"] - (signed_in.session.ends_at - began)
        assert (gone["outgoing messages"], gone["access tokens"]) == (day + hour, 2 * day + hour)
        assert after_its_end == 3 * day + 12 * hour + hour


def test_mails_that_may_still_go_out_stay(identity: Identity, clock: MovableClock) -> None:
    with identity.transaction() as services:
        services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock() + timedelta(days=3)))
    clock.advance(hours=26)
    assert identity.jobs.purge() == {}


@pytest.fixture
def further() -> dict[str, str]:
    return {"identity.audit_retention": "90d"}


def test_audit_events_go_when_they_are_old_enough(identity: Identity, clock: MovableClock) -> None:
    with identity.transaction() as services:
        an_organization(services)
    clock.advance(days=90)
    assert identity.jobs.purge() == {}, "they have just reached their age"
    clock.advance(seconds=1)
    with identity.transaction() as services:
        an_organization(services, "Other")
    [gone] = identity.jobs.purge().values()
    assert gone
    with identity.reading() as services:
        assert {event.at for event in services.storage.audit.after(0, 100)} == {clock()}


def hold(services: Services, kind: Held, held_id: str | None = None, reason: str = "Case 12") -> Hold:
    return services.legal_holds.place(PlaceLegalHold(kind=kind, held_id=held_id, reason=reason))


class TestLegalHold:
    def test_what_an_organization_has_stays_as_long_as_it_is_held(
        self, identity: Identity, clock: MovableClock
    ) -> None:
        held = {}
        for name in ("Held", "Other"):
            with identity.transaction() as services:
                organization = an_organization(services, name)
                anna = subject_of(services, a_person(services, organization))
                services.sessions.sign_in(anna, (), proofs=(), user_agent="")
                held[name] = organization.id
        with identity.transaction() as services:
            placed = hold(services, Held.ORGANIZATION, held["Held"])
        clock.advance(days=365)
        gone = identity.jobs.purge()
        assert gone["sessions"] == 1
        with identity.reading() as services:
            events = services.storage.audit.after(0, 100)
            assert held["Other"] not in {event.organization_id for event in events}
            assert sum(event.organization_id == held["Held"] for event in events) > 2
        assert identity.jobs.purge() == {}
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert set(identity.jobs.purge()) == {"sessions", "audit events"}

    def test_what_is_held_is_passed_over_once(
        self, identity: Identity, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(purge, "LOOK", 2)
        with identity.transaction() as services:
            held = an_organization(services, "Held")
            people = [a_person(services, one) for one in (held, an_organization(services, "Other"))]
            hold(services, Held.ORGANIZATION, held.id)
        for person in [people[0]] * 3 + [people[1]] * 3 + [people[0], people[1]]:
            with identity.transaction() as services:
                services.sessions.sign_in(subject_of(services, person), (), proofs=(), user_agent="")
            clock.advance(seconds=1)
        clock.advance(days=365)
        looked: list[object] = []
        find = purge.find

        def looking(storage: Storage, kind: Purged, *given: Any) -> Found:
            found = find(storage, kind, *given)
            if kind is Purged.SESSIONS:
                looked.append((given[-1], len(found.keys)))
            return found

        monkeypatch.setattr(jobs, "find", looking)
        assert identity.jobs.purge()["sessions"] == 4
        places = [since for since, _ in looked]
        assert places[0] is None
        assert places[1:] == sorted(set(places[1:]))
        # Two at a time, whether they go or not.
        assert [found for _, found in looked] == [0, 1, 2, 1, 0]

    def test_everything_can_be_held(self, identity: Identity, expired: dict[str, object], clock: MovableClock) -> None:
        fill(identity, 1, **expired)
        with identity.transaction() as services:
            placed = hold(services, Held.INSTANCE)
            services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock()))
        clock.advance(days=365)
        assert identity.jobs.purge() == {"outgoing messages": 1}, "which tell nothing of anybody"
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert identity.jobs.purge()["access tokens"] == 1

    def test_an_account_that_was_to_be_deleted_stays_for_another_day(
        self, identity: Identity, clock: MovableClock
    ) -> None:
        with identity.transaction() as services:
            organization = an_organization(services)
            anna = a_person(services, organization)
            services.storage.users.update(replace(anna, deletion_at=clock(), version=anna.version + 1))
            placed = hold(services, Held.ORGANIZATION, organization.id)
        clock.advance(1)
        assert identity.jobs.delete_accounts() == 0
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert identity.jobs.delete_accounts() == 0
        clock.advance(days=1)
        assert identity.jobs.delete_accounts() == 1

    def test_what_is_about_one_person_can_be_held(self, identity: Identity, clock: MovableClock) -> None:
        """And of nobody else in the organization."""
        with identity.transaction() as services:
            organization = an_organization(services)
            anna, bert = (subject_of(services, a_person(services, organization, name)) for name in ("anna", "bert"))
            for one in (anna, bert):
                services.sessions.sign_in(one, (), proofs=(), user_agent="")
            placed = hold(services, Held.USER, anna.user.id)
        clock.advance(days=365)
        assert identity.jobs.purge()["sessions"] == 1
        with identity.reading() as services:
            left = services.storage.audit.after(0, 100)
        assert {event.event for event in left} >= {"user.created", "session.started"}
        assert {anna.user.id} == {event.object_id for event in left if event.object_kind == "user"}
        assert identity.jobs.purge() == {}
        with identity.transaction() as services:
            services.legal_holds.release(placed.id)
        assert set(identity.jobs.purge()) == {"sessions", "audit events"}

    def test_it_is_audited_and_placed_once(self, identity: Identity) -> None:
        with identity.transaction() as services:
            organization = an_organization(services)
            anna = a_person(services, organization)
            placed = [
                hold(services, Held.ORGANIZATION, organization.id, "Case 1"),
                hold(services, Held.USER, anna.id, "Case 2"),
                hold(services, Held.INSTANCE, None, "Case 3"),
            ]
        with identity.transaction() as services:
            for kind, held_id in zip(Held, (anna.id, organization.id, None), strict=True):
                with pytest.raises(Conflict, match="held already"):
                    hold(services, kind, held_id)
            assert list(services.legal_holds.all()) == [organization.id, anna.id, EVERYTHING]
            for one in placed:
                services.legal_holds.release(one.id)
                with pytest.raises(NotFound):
                    services.legal_holds.release(one.id)
            assert services.legal_holds.all() == {}
            again = hold(services, Held.USER, anna.id)
            assert again.id not in {one.id for one in placed}, "what was let go does not come back"
            services.legal_holds.release(again.id)
        with identity.reading() as services:
            told = [event for event in services.storage.audit.after(0, 100) if event.event == "legal_hold.placed"]
        assert [(one.object_kind, one.object_id, one.organization_id, one.detail) for one in told[:3]] == [
            ("organization", organization.id, organization.id, {"reason": "Case 1"}),
            ("legal_hold", placed[1].id, organization.id, {"user_id": anna.id, "reason": "Case 2"}),
            ("instance", None, None, {"reason": "Case 3"}),
        ]

    @pytest.mark.parametrize("kind", Held)
    def test_what_is_not_there_cannot_be_held(self, identity: Identity, kind: Held) -> None:
        with identity.transaction() as services, pytest.raises(Invalid):
            hold(services, kind, "nobody")

    def test_there_is_an_end_to_how_many_there_are(self, identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(legal_holds, "MOST", 1)
        with identity.transaction() as services:
            first, second = (an_organization(services, name) for name in ("First", "Second"))
            hold(services, Held.ORGANIZATION, first.id)
            with pytest.raises(Conflict, match="There are 1 legal holds"):
                hold(services, Held.ORGANIZATION, second.id)

    @pytest.mark.parametrize("kind", Held)
    def test_nobody_who_is_held_is_removed(self, identity: Identity, kind: Held) -> None:
        """Neither by themselves nor with the organization; what is not held goes."""
        with identity.transaction() as services:
            organization, other = (an_organization(services, name) for name in ("Held", "Other"))
            anna, bert = (a_person(services, one) for one in (organization, other))
            held = {Held.USER: anna.id, Held.ORGANIZATION: organization.id, Held.INSTANCE: None}
            placed = hold(services, kind, held[kind])
        with identity.transaction() as services:
            with pytest.raises(Conflict, match="legal hold"):
                services.users.remove(anna.id, by=THE_OPERATOR)
            with pytest.raises(Conflict, match="legal hold"):
                services.organizations.remove(organization.id, by=THE_OPERATOR)
            services.users.deactivate(anna.id, by=THE_OPERATOR)
            if kind is not Held.INSTANCE:
                services.users.remove(bert.id, by=THE_OPERATOR)
                services.organizations.remove(other.id, by=THE_OPERATOR)
            services.legal_holds.release(placed.id)
            services.users.remove(anna.id, by=THE_OPERATOR)
            services.organizations.remove(organization.id, by=THE_OPERATOR)


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
def test_batches_become_as_small_as_they_have_to_and_no_smaller_for_a_slow_disk(
    limit: int, deletion: float, whole: float, following: int
) -> None:
    assert purge.Batch(limit, deletion, whole).next_limit(limit) == following
