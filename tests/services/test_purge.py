from datetime import timedelta

import pytest

from identity.domain.users import Subject
from identity.process import Identity
from identity.services import purge
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.users import CreateHumanUser
from identity.services.leases import acquire
from identity.testing.clock import MovableClock
from identity.testing.factories import an_access_token, an_outgoing_message


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
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        assert acquire(services.storage, "purge", at=clock(), until=clock() + timedelta(minutes=1))
    identity.jobs.purge_if_free()
    clock.advance(minutes=1)
    identity.jobs.purge_if_free()
    assert identity.jobs.purge() == {}


def test_a_node_that_finds_the_lease_taken_deletes_nothing(
    identity: Identity, expired: dict[str, object], clock: MovableClock
) -> None:
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        acquire(services.storage, "purge", at=clock(), until=clock() + timedelta(minutes=1))
    identity.jobs.purge_if_free()
    assert identity.jobs.purge() == {"access tokens": 1}


def test_what_a_sign_in_leaves_behind_goes_too(identity: Identity, clock: MovableClock) -> None:
    with identity.transaction() as services:
        organization = services.organizations.create(CreateOrganization(name="Acme"))
        command = CreateHumanUser(user_name="anna", given_name="Anna", family_name="B")
        anna = Subject(services.users.create(organization.id, command), organization)
        # Who has no password yet may use a link for longer.
        services.passwords.set_one_time(anna.user.id)
        services.sessions.sign_in(anna, (), methods=("pwd",), user_agent="")
        services.sign_ins.begin({"client_id": "c"})
        services.passwords.issue_link(anna.user.id)
        services.storage.attempts.reserve("name:nobody", at=services.now)
        services.storage.outbox.add(an_outgoing_message(next_at=clock(), expires_at=clock() + timedelta(hours=1)))
    clock.advance(hours=26)
    gone = identity.jobs.purge()
    assert gone == {
        "authorization requests": 1,
        "outgoing messages": 1,
        "records": 1,
    }
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
