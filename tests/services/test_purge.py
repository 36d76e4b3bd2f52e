from datetime import timedelta

import pytest

from identity.app import Identity
from identity.services import purge
from identity.testing.clock import MovableClock
from identity.testing.factories import an_access_token


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
    assert identity.purge() == {"access tokens": purge.BATCH + 3}
    assert identity.purge() == {}


def test_one_node_at_a_time(identity: Identity, expired: dict[str, object], clock: MovableClock) -> None:
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        assert services.storage.leases.acquire("purge", at=clock(), until=clock() + timedelta(minutes=1))
    identity.purge_if_free()
    clock.advance(minutes=1)
    identity.purge_if_free()
    assert identity.purge() == {}


def test_a_node_that_finds_the_lease_taken_deletes_nothing(
    identity: Identity, expired: dict[str, object], clock: MovableClock
) -> None:
    fill(identity, 1, **expired)
    with identity.transaction() as services:
        services.storage.leases.acquire("purge", at=clock(), until=clock() + timedelta(minutes=1))
    identity.purge_if_free()
    assert identity.purge() == {"access tokens": 1}
