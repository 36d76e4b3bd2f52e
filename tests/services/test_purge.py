from datetime import timedelta

import pytest

from identity.process import Identity
from identity.services import purge
from identity.services.leases import acquire
from identity.testing.clock import MovableClock
from identity.testing.factories import an_access_token, an_outgoing_message
from tests.services.people import a_person, an_organization, subject_of


def fill(identity: Identity, count: int, **fields: object) -> None:
    with identity.transaction() as services:
        for _ in range(count):
            services.storage.tokens.add_access(an_access_token(**fields))


@pytest.fixture
def expired(identity: Identity, clock: MovableClock) -> dict[str, object]:
    at = clock() - identity.settings.purge_after - timedelta(hours=1)
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
    live = {**expired, "expires_at": clock() - identity.settings.purge_after}
    fill(identity, 2, **live)
    assert identity.jobs.purge() == {"access tokens": purge.BATCH + 3}
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


def test_mails_that_may_still_go_out_stay(identity: Identity, clock: MovableClock) -> None:
    with identity.transaction() as services:
        services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock() + timedelta(days=3)))
    clock.advance(hours=26)
    assert identity.jobs.purge() == {}
