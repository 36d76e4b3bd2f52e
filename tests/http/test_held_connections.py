"""Whoever waits for a password to be hashed keeps no connection to the database from others."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.hashing import Hasher
from identity.testing.browser import PASSWORD, Browser
from identity.testing.world import World
from tests.spec.guesses import at_password, enters, somebody, tried

pytestmark = pytest.mark.storages("sqlite", "postgresql")


@pytest.fixture
def held(own_world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many connections were in use when a hash began."""
    found: list[int] = []
    run = Hasher._run

    def noting(self: Hasher, work: Callable[[], Any]) -> Any:
        found.append(sum(load.in_use for load in own_world.identity.backend.loads))
        return run(self, work)

    monkeypatch.setattr(Hasher, "_run", noting)
    return found


def test_passwords_are_judged_without_a_connection(own_world: World, held: list[int]) -> None:
    ada = somebody(own_world)
    held.clear()
    assert enters(at_password(own_world, ada))
    assert tried(at_password(own_world, ada), "wrong password") != 303
    stranger = Browser(own_world)
    stranger.open("/login")
    stranger.submit({"login_name": "nobody"})
    stranger.submit({"password": PASSWORD})
    assert held
    assert set(held) == {0}
