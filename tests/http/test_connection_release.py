"""Requests that wait for a password hash hold no database connection."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.password_hashing import PasswordHasher
from identity.testing.browser import PASSWORD, Browser
from identity.testing.world import World
from tests.spec.password_attempts import at_password, enters, make_password_user, tried

pytestmark = pytest.mark.storages("sqlite", "postgresql")


@pytest.fixture
def connection_counts(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of connections in use at the start of each hash."""
    found: list[int] = []
    run = PasswordHasher._run

    def noting(self: PasswordHasher, work: Callable[[], Any]) -> Any:
        found.append(sum(load.in_use for load in isolated_world.identity.backend.pool_usages))
        return run(self, work)

    monkeypatch.setattr(PasswordHasher, "_run", noting)
    return found


def test_password_hashing_holds_no_connection(isolated_world: World, connection_counts: list[int]) -> None:
    ada = make_password_user(isolated_world)
    connection_counts.clear()
    assert enters(at_password(isolated_world, ada))
    assert tried(at_password(isolated_world, ada), "wrong password") != 303
    stranger = Browser(isolated_world)
    stranger.open("/login")
    stranger.submit({"login_name": "nobody"})
    stranger.submit({"password": PASSWORD})
    assert connection_counts
    assert set(connection_counts) == {0}
