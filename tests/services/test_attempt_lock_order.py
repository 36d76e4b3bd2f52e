"""Attempt rows are locked in a fixed order, so that two sign-ins cannot deadlock."""

import pytest

from identity.domain.login_names import LoginName
from identity.services.commands.policies import ChangePolicy
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world()


@pytest.mark.parametrize("by_address", [False, True])
def test_success_locks_attempts_in_reservation_order(
    world: World, by_address: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = world.make_organization()
    person = world.make_human_user(organization)
    with world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(most_attempts=5))
        store = type(services.storage.attempts)
    locked: list[str] = []
    for method in ("reserve", "clear"):
        original = getattr(store, method)
        monkeypatch.setattr(
            store,
            method,
            lambda self, key, _original=original, **options: (locked.append(key), _original(self, key, **options))[1],
        )
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        reservation = services.attempts.reserve_password_attempt(
            LoginName.parse(subject.login_name), subject, None, by_email=by_address
        )
    reserved = [key for key in locked if not key.startswith("user:")]
    locked.clear()
    with world.transaction_services() as services:
        services.attempts.confirm_password(reservation, subject)
    assert len(reserved) == 2
    assert reserved == locked
