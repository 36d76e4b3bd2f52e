"""A signing key is rotated while a resource server caches the key set for its max-age."""

import re
from typing import Any

import pytest
from joserfc import jwk, jwt
from joserfc.errors import JoseError

from identity.domain.users import TokenFormat
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.world import World

pytestmark = pytest.mark.every_storage


class ResourceServer:
    """Verifies signed access tokens; fetches the key set only when its copy has expired."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._keys: Any = None
        self._fresh_until = 0
        self.fetched = 0

    def accepts(self, token: str) -> bool:
        if self._world.clock.seconds >= self._fresh_until:
            answer = self._world.client.fetch_jwks()
            age = re.search(r"max-age=(\d+)", answer.headers["Cache-Control"])
            assert age is not None
            self._fresh_until = self._world.clock.seconds + int(age[1])
            self._keys = jwk.KeySet.import_key_set(answer.json)
            self.fetched += 1
        try:
            jwt.decode(token, self._keys, algorithms=["RS256"])
        except (JoseError, ValueError):
            return False
        return True


@pytest.mark.thorough
def test_tokens_stay_valid_over_a_rotation(isolated_world: World) -> None:
    """With a cached key set, each token verifies from its creation to its expiry."""
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    server = ResourceServer(world)
    issued: list[tuple[int, str]] = []
    kids = set()
    steps = 210
    for step in range(steps):
        if step == 5:
            with world.transaction_services() as services:
                services.signing_keys.rotate()
        token = robot.access_token()
        kids.add(decode_jwt_unverified(token)[0]["kid"])
        issued.append((world.clock.seconds + 3600, token))
        issued = [(end, item) for end, item in issued if end > world.clock.seconds]
        assert server.accepts(token)
        assert server.accepts(issued[0][1])
        world.clock.advance(minutes=4)
        if step % 30 == 0:
            world.identity.background_jobs.purge()
    assert len(kids) == 2
    assert server.fetched == steps / 2
    # After half a day no token of the first key is left, and the key is removed.
    assert len(world.client.fetch_jwks().json["keys"]) == 1


def test_emergency_rotation_reaches_clients_that_refetch_unknown_keys(isolated_world: World) -> None:
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    server = ResourceServer(world)
    assert server.accepts(robot.access_token())
    with world.transaction_services() as services:
        services.signing_keys.rotate(emergency=True)
    world.clock.advance(30)
    token = robot.access_token()
    # The cached copy lacks the key within its max-age; a new fetch has it.
    assert not server.accepts(token)
    assert ResourceServer(world).accepts(token)
