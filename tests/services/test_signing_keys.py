"""Signing keys are announced before use, published until their tokens have expired, and safe with several nodes."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from identity.application import IdentityApplication
from identity.application_factory import create_application
from identity.crypto.sealing import MasterKey, Sealer, UnsealingError, read_master_keys
from identity.domain.errors import NotFound
from identity.domain.signing_keys import KeyState
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.services.signing_keys import CACHE_AGE, EMERGENCY_DELAY, LAST_KNOWN_AGE, KeyRing, NoSigningKey
from identity.storage.errors import StorageUnavailable
from identity.storage.memory.signing_keys import MemorySigningKeyStore
from identity.testing.clock import FakeClock


def add_first(identity: IdentityApplication) -> str:
    with identity.transaction() as services:
        return services.signing_keys.add_first().id


def rotate(identity: IdentityApplication, *, emergency: bool = False) -> str:
    with identity.transaction() as services:
        return services.signing_keys.rotate(emergency=emergency).id


def current(identity: IdentityApplication) -> str:
    with identity.read_session() as services:
        return services.signing_keys.current_signing_key()[0]


def published(identity: IdentityApplication) -> list[str]:
    with identity.read_session() as services:
        return [key.id for key, _ in services.signing_keys.published_keys()]


def test_signing_without_keys_is_refused(identity: IdentityApplication) -> None:
    for attempt in (current, published, rotate):
        with pytest.raises(NoSigningKey, match="identity bootstrap"):
            attempt(identity)


def test_first_key_is_created_once_and_signs_at_once(identity: IdentityApplication) -> None:
    first = add_first(identity)
    assert add_first(identity) == first
    assert current(identity) == first
    assert published(identity) == [first]


def test_new_key_is_announced_before_use(identity: IdentityApplication, clock: FakeClock) -> None:
    first = add_first(identity)
    second = rotate(identity)
    assert rotate(identity) == second, "one waits already"
    assert published(identity) == [second, first]
    clock.advance(int(identity.settings.key_announcement_period.total_seconds()) - 1)
    assert current(identity) == first
    clock.advance(1)
    assert current(identity) == second
    assert published(identity) == [second, first]


def test_retired_key_is_published_until_its_tokens_expire(identity: IdentityApplication, clock: FakeClock) -> None:
    first = add_first(identity)
    second = rotate(identity)
    clock.advance(int(identity.settings.key_announcement_period.total_seconds()))
    longest = MAX_TOKEN_LIFETIME + identity.settings.clock_skew
    clock.advance(int(longest.total_seconds()) - 1)
    assert published(identity) == [second, first]
    clock.advance(1)
    assert published(identity) == [second]
    with identity.transaction() as services:
        assert services.signing_keys.remove_unpublished() == 1
        assert [key.id for key in services.storage.signing_keys.list_all()] == [second]


def test_emergency_key_signs_once_every_node_has_it(identity: IdentityApplication, clock: FakeClock) -> None:
    assert CACHE_AGE < EMERGENCY_DELAY
    first = add_first(identity)
    other_node = assemble_on(identity, clock)
    assert published(other_node) == [first]
    second = rotate(identity, emergency=True)
    clock.advance(int(EMERGENCY_DELAY.total_seconds()) - 1)
    assert current(identity) == first
    assert second in published(other_node)
    clock.advance(1)
    assert current(identity) == second
    assert published(other_node) == published(identity) == [second, first]


def assemble_on(identity: IdentityApplication, clock: FakeClock) -> IdentityApplication:
    """Another process with the same storage and master key, but its own key ring."""
    settings = {
        "identity.issuer_url": identity.settings.issuer_url,
        "identity.storage": "memory",
        "identity.plugins": "memory jwt_bearer oidc_scopes project_audience manager_roles",
        "identity.development": "true",
        "identity.data": str(identity.settings.data),
    }
    node = create_application(settings, clock=clock)
    node.backend = identity.backend
    return node


def test_emergency_key_overtakes_announced_key(identity: IdentityApplication, clock: FakeClock) -> None:
    add_first(identity)
    waiting = rotate(identity)
    emergency = rotate(identity, emergency=True)
    assert emergency != waiting
    clock.advance(hours=1)
    assert current(identity) == emergency


def test_rotation_is_due_just_in_time_for_the_announcement(identity: IdentityApplication, clock: FakeClock) -> None:
    first = add_first(identity)
    age = identity.settings.signing_key_active_age - identity.settings.key_announcement_period
    clock.advance(int(age.total_seconds()) - 1)
    identity.background_jobs.rotate_signing_key_if_due()
    assert published(identity) == [first]
    clock.advance(1)
    identity.background_jobs.rotate_signing_key_if_due()
    assert len(published(identity)) == 2
    identity.background_jobs.rotate_signing_key_if_due()
    assert len(published(identity)) == 2


def test_concurrent_rotation_creates_one_key(identity: IdentityApplication, clock: FakeClock) -> None:
    add_first(identity)
    app = assemble_on(identity, clock)
    second = rotate(identity)
    with app.transaction() as services:
        # The slower node chose generation 2 before the faster one committed it.
        assert services.signing_keys._add("RS256", 2, clock() + timedelta(minutes=6)).id == second
    with identity.read_session() as services:
        assert len(services.storage.signing_keys.list_all()) == 2


def test_private_keys_are_sealed_at_rest(identity: IdentityApplication) -> None:
    add_first(identity)
    with identity.read_session() as services:
        key = services.storage.signing_keys.list_all()[0]
        private_key = services.signing_keys.current_signing_key()[1]
    assert private_key.to_der() not in key.sealed_private_key
    stranger = KeyRing(Sealer((MasterKey("x", sha256(b"x").digest()),)), published_age=timedelta(hours=1))
    with pytest.raises(UnsealingError):
        stranger.private_key(key)


def test_rewrapping_seals_under_the_active_master_key(identity: IdentityApplication) -> None:
    key_id = add_first(identity)
    ring = identity.process_state.key_ring
    old_keys = read_master_keys((f"development:{identity.settings.data / 'master.key'}",))
    new_key = MasterKey("next", sha256(b"next").digest())
    ring.sealer = Sealer((new_key, *old_keys))
    with identity.transaction() as services:
        assert services.signing_keys.rekey() == (1, [])
        assert services.signing_keys.rekey() == (0, [])
    alone = KeyRing(Sealer((new_key,)), published_age=timedelta(hours=1))
    with identity.read_session() as services:
        key = services.storage.signing_keys.list_all()[0]
    assert key.id == key_id
    alone.private_key(key)


def test_cached_keys_are_used_during_storage_outage(
    identity: IdentityApplication, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add_first(identity)
    assert published(identity) == [first]

    def away() -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(identity.backend, "read_session", away)
    clock.advance(int(LAST_KNOWN_AGE.total_seconds()) - 1)
    assert published(identity) == [first]
    clock.advance(1)
    with pytest.raises(StorageUnavailable):
        published(identity)


def test_key_list_has_state_and_schedule(identity: IdentityApplication, clock: FakeClock) -> None:
    first = add_first(identity)
    second = rotate(identity)
    with identity.read_session() as services:
        newer, older = services.signing_keys.list_key_states()
        later, _ = services.signing_keys.list_key_states(newer.key.active_at)
    assert (newer.key.id, newer.state, newer.retires_at, newer.published_until) == (
        second,
        KeyState.WAITING,
        None,
        None,
    )
    assert (older.key.id, older.state, older.retires_at) == (first, KeyState.ACTIVE, newer.key.active_at)
    assert older.published_until is not None
    assert older.published_until > older.retires_at
    assert later.state is KeyState.ACTIVE


# --- withdrawn keys ---------------------------------------------------------------------------------------------------


def withdraw(identity: IdentityApplication, *key_ids: str) -> str | None:
    with identity.transaction() as services:
        new = services.signing_keys.withdraw(key_ids)
    return new[0].id if new else None


def test_withdrawal_replaces_the_active_key_at_once(identity: IdentityApplication, clock: FakeClock) -> None:
    first, second = two_keys(identity, clock)
    third = withdraw(identity, second)
    assert third not in (None, first, second)
    assert published(identity) == [third, first]
    assert current(identity) == third
    with identity.read_session() as services:
        assert not services.signing_keys.is_valid_key_id(second)
        assert services.signing_keys.is_valid_key_id(first)
        assert second not in [signing_key.id for signing_key in services.storage.signing_keys.list_all()]
        events = [event for event in services.storage.audit.page().items if event.event == "signing_key.withdrawn"]
    assert [event.object_id for event in events] == [second]
    clock.advance(days=1)
    assert current(identity) == third


@pytest.mark.thorough
def test_all_keys_can_be_withdrawn_at_once(identity: IdentityApplication, clock: FakeClock) -> None:
    keys = (*two_keys(identity, clock), rotate(identity))
    new = withdraw(identity, *keys)
    assert published(identity) == [new]
    assert current(identity) == new


def test_withdrawing_inactive_key_creates_no_key(identity: IdentityApplication, clock: FakeClock) -> None:
    first, second = two_keys(identity, clock)
    waiting = rotate(identity)
    assert withdraw(identity, first, waiting) is None
    assert published(identity) == [second]
    assert current(identity) == second


def test_withdrawal_replaces_damaged_key(identity: IdentityApplication, clock: FakeClock) -> None:
    first, second = two_keys(identity, clock)
    damage(identity, second, sealed_private_key=b"\x00" * 64)
    assert current(identity) == first
    new = withdraw(identity, first)
    assert new is not None
    assert current(identity) == new


def test_concurrent_announcement_does_not_delay_replacement(
    identity: IdentityApplication, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add_first(identity)
    app = assemble_on(identity, clock)
    remove = MemorySigningKeyStore.delete
    with identity.read_session() as services:
        [stored] = services.storage.signing_keys.list_all()

    def announced_meanwhile(store: MemorySigningKeyStore, key_id: str) -> None:
        remove(store, key_id)
        store.add(replace(stored, id="other", generation=2, active_at=clock() + timedelta(minutes=6)))

    monkeypatch.setattr(MemorySigningKeyStore, "delete", announced_meanwhile)
    new = withdraw(identity, first)
    assert published(identity) == [new, "other"]
    assert new not in (None, first, "other")
    assert current(identity) == new
    assert current(app) == new


def test_withdrawing_unknown_key_changes_nothing(identity: IdentityApplication) -> None:
    first = add_first(identity)
    with pytest.raises(NotFound):
        withdraw(identity, first, "unknown")
    assert published(identity) == [first]
    assert current(identity) == first


# --- damaged rows (security 9.8) --------------------------------------------------------------------------------------


def damage(identity: IdentityApplication, key_id: str, **members: object) -> None:
    """Replace the stored key with damaged data; every node loads it again."""
    with identity.transaction() as services:
        [key] = [signing_key for signing_key in services.storage.signing_keys.list_all() if signing_key.id == key_id]
        services.storage.signing_keys.delete(key_id)
        services.storage.signing_keys.add(replace(key, **members))  # type: ignore[arg-type]
    identity.process_state.key_ring.__init__(  # type: ignore[misc]
        identity.process_state.key_ring.sealer, published_age=identity.process_state.key_ring.published_age
    )


def two_keys(identity: IdentityApplication, clock: FakeClock) -> tuple[str, str]:
    """Two keys; the second is active."""
    first, second = add_first(identity), rotate(identity)
    clock.advance(int(identity.settings.key_announcement_period.total_seconds()))
    assert current(identity) == second
    return first, second


def test_damaged_active_key_falls_back_to_previous_key(
    identity: IdentityApplication, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = two_keys(identity, clock)
    damage(identity, second, sealed_private_key=b"\x00" * 64)
    assert current(identity) == first
    assert published(identity) == [second, first], "what it signed can be verified still"
    assert f"the signing key {second} cannot sign" in caplog.text
    identity.background_jobs.rotate_signing_key_if_due()
    third = published(identity)[0]
    assert third not in (first, second)
    assert current(identity) == first
    clock.advance(int(identity.settings.key_announcement_period.total_seconds()))
    assert current(identity) == third


def test_damaged_announced_key_is_replaced(identity: IdentityApplication, clock: FakeClock) -> None:
    first, second = add_first(identity), rotate(identity)
    damage(identity, second, sealed_private_key=b"\x00" * 64)
    third = rotate(identity)
    assert third not in (first, second)
    clock.advance(int(identity.settings.key_announcement_period.total_seconds()))
    assert current(identity) == third


def test_invalid_public_key_is_not_published(identity: IdentityApplication, clock: FakeClock) -> None:
    first, second = two_keys(identity, clock)
    damage(identity, first, public_key=b"no key")
    assert published(identity) == [second]
    assert current(identity) == second


def test_service_is_unavailable_without_usable_key(identity: IdentityApplication, clock: FakeClock) -> None:
    for key_id in two_keys(identity, clock):
        damage(identity, key_id, sealed_private_key=b"\x00" * 64)
    with pytest.raises(NoSigningKey):
        current(identity)


def test_unreadable_key_generation_is_skipped(
    identity: IdentityApplication, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_keys(identity, clock)
    read = MemorySigningKeyStore.list_all
    monkeypatch.setattr(
        MemorySigningKeyStore,
        "list_all",
        lambda store: tuple(signing_key for signing_key in read(store) if signing_key.id != second),
    )
    identity.process_state.key_ring.invalidate()
    assert current(identity) == first
    third = rotate(identity)
    with identity.read_session() as services:
        assert [
            signing_key.generation
            for signing_key in services.storage.signing_keys.list_all()
            if signing_key.id == third
        ] == [3]
