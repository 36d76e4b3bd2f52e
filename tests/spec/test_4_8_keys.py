"""Service description §4.8: the published signing keys, and their rotation."""

import base64

import pytest
from joserfc import jwk, jwt

from identity.domain.users import TokenFormat
from identity.testing.assertions import decoded
from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_granted, check_refused
from identity.testing.world import Robot, World

#: A JWKS max-age and a minute.
ANNOUNCEMENT = 360
#: The longest lifetime that any token may have, and the skew.
PUBLISHED_AFTER = 12 * 3600 + 30


def published(world: World) -> list[str]:
    return [key["kid"] for key in world.client.keys().json["keys"]]


def signing(robot: Robot) -> str:
    """The kid under which tokens are signed now; ID token and access token agree."""
    members = check_granted(robot.token())
    kids = {decoded(members[name])[0]["kid"] for name in ("id_token", "access_token")}
    assert len(kids) == 1
    return str(kids.pop())


def rotate(world: World, *, emergency: bool = False) -> str:
    key_id: str = world.operator.signing_keys.rotate(emergency=emergency).id
    return key_id


@pytest.mark.shows("4.8.1")
def test_only_public_members_are_published(world: World) -> None:
    """Security 8.4."""
    for key in world.client.keys().json["keys"]:
        assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
        assert isinstance(key["kid"], str)
        modulus = base64.urlsafe_b64decode(key["n"] + "==")
        assert len(modulus) == 256
        assert modulus[0] != 0


@pytest.mark.shows("4.8.2")
def test_tokens_are_signed_under_a_published_kid(world: World) -> None:
    robot = world.a_robot(token_format=TokenFormat.JWT)
    assert signing(robot) in published(world)
    members = check_granted(robot.token())
    keys = jwk.KeySet.import_key_set(world.client.keys().json)
    for name in ("id_token", "access_token"):
        assert jwt.decode(members[name], keys, algorithms=["RS256"]).claims["sub"] == robot.id


@pytest.mark.shows("4.8.3")
def test_the_keys_may_be_cached(world: World) -> None:
    answer = world.client.keys()
    assert answer.content_type == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    unchanged = world.client.keys({"If-None-Match": answer.headers["ETag"]})
    assert unchanged.status_int == 304
    assert unchanged.body == b""


def test_a_new_key_changes_the_etag(own_world: World) -> None:
    etag = own_world.client.keys().headers["ETag"]
    rotate(own_world)
    answer = own_world.client.keys({"If-None-Match": etag})
    assert answer.status_int == 200
    assert answer.headers["ETag"] != etag


@pytest.mark.shows("4.8.3")
def test_other_methods_are_refused(world: World) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = world.client.request(method, world.client.discovery["jwks_uri"])
        check_refused(answer, "invalid_request", status=405)


def test_rotation_announces_signs_retires_and_removes(own_world: World) -> None:
    """Security 8.2, each step to the second: a client that trusts the cache headers never meets an unknown kid."""
    world = own_world
    robot = world.a_robot(token_format=TokenFormat.JWT)
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
    # As long as a token of the first key may live, it verifies and is live.
    world.clock.advance(3598)
    assert world.client.userinfo(last_of_first).status_int == 200
    assert first in published(world)
    world.clock.advance(PUBLISHED_AFTER - 3598 - 1)
    assert published(world) == [second, first]
    world.clock.advance(1)
    assert published(world) == [second]
    assert world.client.userinfo(last_of_first).status_int == 401
    with world.reading() as services:
        assert len(services.storage.signing_keys.all()) == 2
    world.identity.jobs.purge()
    with world.reading() as services:
        assert [key.id for key in services.storage.signing_keys.all()] == [second]
    assert signing(robot) == second


def test_an_announced_key_is_not_announced_again(own_world: World) -> None:
    assert rotate(own_world) == rotate(own_world)
    assert len(published(own_world)) == 2


def test_an_emergency_rotation_skips_the_announcement(own_world: World) -> None:
    """Decisions, lifetimes: it takes hold within 30 s, when every node publishes the key."""
    world = own_world
    robot = world.a_robot(token_format=TokenFormat.JWT)
    [first] = published(world)
    second = rotate(world, emergency=True)
    assert published(world) == [second, first]
    world.clock.advance(29)
    assert signing(robot) == first
    world.clock.advance(1)
    assert signing(robot) == second
    assert set(published(world)) == {first, second}


def test_an_emergency_overtakes_an_announced_rotation(own_world: World) -> None:
    world = own_world
    robot = world.a_robot(token_format=TokenFormat.JWT)
    announced = rotate(world)
    emergency = rotate(world, emergency=True)
    assert emergency != announced
    world.clock.advance(30)
    assert signing(robot) == emergency
    world.clock.advance(ANNOUNCEMENT)
    assert signing(robot) == emergency


def test_rotation_happens_by_age(own_world: World) -> None:
    """Security 8.4: every 90 days, announced in time."""
    world = own_world
    robot = world.a_robot(token_format=TokenFormat.JWT)
    [first] = published(world)
    with world.reading() as services:
        [key] = services.signing_keys.schedule().keys
    # Its first key may be older than the world: databases are copied from one that was made before.
    age = int((world.clock() - key.active_at).total_seconds())
    world.clock.advance(days=90, seconds=-ANNOUNCEMENT - 60 - age)
    world.identity.jobs.rotate_if_due()
    assert published(world) == [first]
    world.clock.advance(60)
    world.identity.jobs.rotate_if_due()
    assert len(published(world)) == 2
    world.identity.jobs.rotate_if_due()
    assert len(published(world)) == 2
    assert signing(robot) == first
    world.clock.advance(ANNOUNCEMENT)
    assert signing(robot) != first


@pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process
def test_another_node_s_rotation_is_seen_before_its_key_signs(own_world: World) -> None:
    """Decisions, lifetimes: nodes may cache the key list, but never longer than an emergency leaves them."""
    published(own_world)
    other = World(own_world.settings, clock=own_world.clock, key_pool=own_world.key_pool)
    try:
        second = rotate(other, emergency=True)
        own_world.clock.advance(29)
        assert second in published(own_world)
    finally:
        other.close()


@pytest.mark.storages("memory")  # a setting, judged before any storage
def test_a_key_stays_published_for_the_longest_tokens_that_may_be_set(make_world: MakeWorld) -> None:
    """Security 7.3 and 8.2: a token of 12 h verifies until its last second."""
    world = make_world(**{"identity.access_token_lifetime": "12h"})
    robot = world.a_robot(token_format=TokenFormat.JWT)
    rotate(world)
    world.clock.advance(ANNOUNCEMENT - 1)
    token = robot.access_token()
    world.clock.advance(12 * 3600 - 1)
    assert world.client.userinfo(token).status_int == 200
    assert decoded(token)[0]["kid"] in published(world)


def test_adding_and_removing_keys_are_audit_events(own_world: World) -> None:
    world = own_world
    [first] = published(world)
    second = rotate(world)
    world.clock.advance(ANNOUNCEMENT + PUBLISHED_AFTER)
    world.identity.jobs.purge()
    assert {event.object_id for event in world.audit_events(event="signing_key.added")} == {first, second}
    assert [event.object_id for event in world.audit_events(event="signing_key.removed")] == [first]
    assert "PRIVATE" not in repr(world.audit_events(event="signing_key.added"))
