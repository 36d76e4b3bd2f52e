"""Service description §4.8: the published signing keys, and their rotation."""

import base64

import pytest
from joserfc import jwk, jwt

from identity.domain.users import TokenFormat
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import ServiceUserProgram, World

#: A JWKS max-age and a minute.
ANNOUNCEMENT = 360
#: The longest lifetime of any token, and the clock skew.
PUBLISHED_AFTER = 12 * 3600 + 30


def published(world: World) -> list[str]:
    return [key["kid"] for key in world.client.fetch_jwks().json["keys"]]


def signing(robot: ServiceUserProgram) -> str:
    """The kid of the current signing key; ID token and access token must agree."""
    members = check_token_response(robot.request_token())
    kids = {decode_jwt_unverified(members[name])[0]["kid"] for name in ("id_token", "access_token")}
    assert len(kids) == 1
    return str(kids.pop())


def rotate(world: World, *, emergency: bool = False) -> str:
    key_id: str = world.operator_services.signing_keys.rotate(emergency=emergency).id
    return key_id


@pytest.mark.shows("4.8.1")
def test_only_public_members_are_published(world: World) -> None:
    """Security 8.4."""
    for key in world.client.fetch_jwks().json["keys"]:
        assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
        assert isinstance(key["kid"], str)
        modulus = base64.urlsafe_b64decode(key["n"] + "==")
        assert len(modulus) == 256
        assert modulus[0] != 0


@pytest.mark.shows("4.8.2")
def test_tokens_are_signed_under_a_published_kid(world: World) -> None:
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    assert signing(robot) in published(world)
    members = check_token_response(robot.request_token())
    keys = jwk.KeySet.import_key_set(world.client.fetch_jwks().json)
    for name in ("id_token", "access_token"):
        assert jwt.decode(members[name], keys, algorithms=["RS256"]).claims["sub"] == robot.id


@pytest.mark.shows("4.8.3")
def test_key_set_is_cacheable(world: World) -> None:
    answer = world.client.fetch_jwks()
    assert answer.content_type == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    unchanged = world.client.fetch_jwks({"If-None-Match": answer.headers["ETag"]})
    assert unchanged.status_int == 304
    assert unchanged.body == b""


def test_new_key_changes_etag(isolated_world: World) -> None:
    etag = isolated_world.client.fetch_jwks().headers["ETag"]
    rotate(isolated_world)
    answer = isolated_world.client.fetch_jwks({"If-None-Match": etag})
    assert answer.status_int == 200
    assert answer.headers["ETag"] != etag


@pytest.mark.shows("4.8.3")
def test_other_methods_are_refused(world: World) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = world.client.request(method, world.client.discovery["jwks_uri"])
        check_oauth_error(answer, "invalid_request", status=405)


def test_rotation_steps_follow_schedule(isolated_world: World) -> None:
    """Security 8.2, each step to the second: a client that follows the cache headers never meets an unknown kid."""
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    [first] = published(world)
    last_of_first = ""
    second = rotate(world)
    assert published(world) == [second, first]
    assert signing(robot) == first
    world.clock.advance(ANNOUNCEMENT - 1)
    last_of_first = robot.access_token()
    assert signing(robot) == first
    world.clock.advance(1)
    assert signing(robot) == second
    assert published(world) == [second, first]
    # While a token of the first key can be valid, it verifies and is active.
    world.clock.advance(3598)
    assert world.client.fetch_userinfo(last_of_first).status_int == 200
    assert first in published(world)
    world.clock.advance(PUBLISHED_AFTER - 3598 - 1)
    assert published(world) == [second, first]
    world.clock.advance(1)
    assert published(world) == [second]
    assert world.client.fetch_userinfo(last_of_first).status_int == 401
    with world.read_only_services() as services:
        assert len(services.storage.signing_keys.list_all()) == 2
    world.identity.background_jobs.purge()
    with world.read_only_services() as services:
        assert [key.id for key in services.storage.signing_keys.list_all()] == [second]
    assert signing(robot) == second


def test_announced_key_is_not_announced_again(isolated_world: World) -> None:
    assert rotate(isolated_world) == rotate(isolated_world)
    assert len(published(isolated_world)) == 2


@pytest.mark.thorough
def test_emergency_rotation_skips_the_announcement(isolated_world: World) -> None:
    """Decisions, lifetimes: it takes effect within 30 s, when every node publishes the key."""
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    [first] = published(world)
    second = rotate(world, emergency=True)
    assert published(world) == [second, first]
    world.clock.advance(29)
    assert signing(robot) == first
    world.clock.advance(1)
    assert signing(robot) == second
    assert set(published(world)) == {first, second}


def test_emergency_rotation_overtakes_announced_rotation(isolated_world: World) -> None:
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    announced = rotate(world)
    emergency = rotate(world, emergency=True)
    assert emergency != announced
    world.clock.advance(30)
    assert signing(robot) == emergency
    world.clock.advance(ANNOUNCEMENT)
    assert signing(robot) == emergency


def test_rotation_follows_key_age(isolated_world: World) -> None:
    """Security 8.4: every 90 days, announced in time."""
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    [first] = published(world)
    with world.read_only_services() as services:
        [key] = services.signing_keys.schedule().keys
    # The first key may be older than the world: databases are copied from a template.
    age = int((world.clock() - key.active_at).total_seconds())
    world.clock.advance(days=90, seconds=-ANNOUNCEMENT - 60 - age)
    world.identity.background_jobs.rotate_signing_key_if_due()
    assert published(world) == [first]
    world.clock.advance(60)
    world.identity.background_jobs.rotate_signing_key_if_due()
    assert len(published(world)) == 2
    world.identity.background_jobs.rotate_signing_key_if_due()
    assert len(published(world)) == 2
    assert signing(robot) == first
    world.clock.advance(ANNOUNCEMENT)
    assert signing(robot) != first


@pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process
def test_rotation_of_other_node_is_loaded_before_signing(isolated_world: World) -> None:
    """Decisions, lifetimes: nodes may cache the key set, but not longer than an emergency rotation takes."""
    published(isolated_world)
    world = World(isolated_world.settings, clock=isolated_world.clock, key_pool=isolated_world.key_pool)
    try:
        second = rotate(world, emergency=True)
        isolated_world.clock.advance(29)
        assert second in published(isolated_world)
    finally:
        world.close()


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_key_stays_published_for_longest_token_lifetime(make_world: WorldFactory) -> None:
    """Security 7.3 and 8.2: a token of 12 h verifies until its last second."""
    world = make_world(**{"identity.access_token_lifetime": "12h"})
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    rotate(world)
    world.clock.advance(ANNOUNCEMENT - 1)
    token = robot.access_token()
    world.clock.advance(12 * 3600 - 1)
    assert world.client.fetch_userinfo(token).status_int == 200
    assert decode_jwt_unverified(token)[0]["kid"] in published(world)


def test_key_changes_are_audited(isolated_world: World) -> None:
    world = isolated_world
    [first] = published(world)
    second = rotate(world)
    world.clock.advance(ANNOUNCEMENT + PUBLISHED_AFTER)
    world.identity.background_jobs.purge()
    assert {event.object_id for event in world.audit_events(event="signing_key.added")} == {first, second}
    assert [event.object_id for event in world.audit_events(event="signing_key.removed")] == [first]
    assert "PRIVATE" not in repr(world.audit_events(event="signing_key.added"))
