"""Security 16.3: the clock is set back or forward. Nothing that was ended revives, and the service goes on."""

import logging

import pytest

from identity.testing.assertions import decoded
from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_granted, check_inactive
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")  # what time does is the same in all

STEPS = pytest.mark.parametrize("hours", [-24, -1, 1])


def signed_with(world: World, token: str) -> str:
    header, _ = decoded(token)
    return str(header["kid"])


@pytest.mark.parametrize("hours", [-1, -24, -24 * 365])
def test_before_the_first_key_the_oldest_signs(own_world: World, hours: int, caplog: pytest.LogCaptureFixture) -> None:
    robot = own_world.a_robot()
    [first] = own_world.client.keys().json["keys"]
    own_world.operator.signing_keys.rotate()
    own_world.clock.advance(hours=hours)
    with caplog.at_level(logging.WARNING):
        assert signed_with(own_world, check_granted(robot.token())["id_token"]) == first["kid"]
        keys = own_world.client.keys().json["keys"]
    assert first in keys
    assert "bootstrap" not in caplog.text
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1, "it is said as often as the key list is read"
    assert said[0].startswith("set the clock: it says ")
    assert own_world.client.get(f"{own_world.issuer}/readyz").status_int == 200
    own_world.clock.reset()
    assert signed_with(own_world, check_granted(robot.token())["id_token"]) == first["kid"]


def test_a_key_from_a_clock_that_ran_ahead(own_world: World) -> None:
    """A year ahead a new key took over and the old one was removed; then the clock was set right."""
    robot = own_world.a_robot()
    own_world.clock.advance(days=365)
    own_world.identity.jobs.rotate_if_due()
    own_world.clock.advance(days=2)
    own_world.identity.jobs.purge()
    [left] = own_world.client.keys().json["keys"]
    own_world.clock.reset()
    assert signed_with(own_world, check_granted(robot.token())["id_token"]) == left["kid"]
    # And so does a rotation that nobody waits a year for.
    own_world.operator.signing_keys.rotate(emergency=True)
    own_world.clock.advance(minutes=1)
    assert signed_with(own_world, check_granted(robot.token())["id_token"]) != left["kid"]


@STEPS
def test_nothing_that_was_ended_revives(make_world: MakeWorld, hours: int) -> None:
    world = make_world()
    client, session = world.a_web_application(), world.a_session()
    tokens = world.tokens(client, session)
    code = world.a_code(client, session)
    rotated = world.refresh(tokens["refresh_token"], client).json
    revoked = world.a_robot().managing_token()
    assert world.client.revoke(revoked, world.introspector).status_int == 200
    world.redeem(code, client)
    ended = world.a_session()
    subject = world.operator.storage.users.find_subject(ended.person.id)
    world.operator.sessions.end_one_of(subject, ended.id)
    world.clock.advance(hours=hours)
    check_inactive(world.client.introspect(revoked, world.introspector))
    assert world.redeem(code, client).json["error"] == "invalid_grant"
    assert "login_required" in ended.authorize(client, prompt="none").headers["Location"]
    assert world.refresh(tokens["refresh_token"], client).json["error"] == "invalid_grant"
    # A replay ends the family, whatever the clock says.
    assert world.refresh(rotated["refresh_token"], client).json["error"] == "invalid_grant"


@STEPS
def test_who_is_signed_in_stays_so(make_world: MakeWorld, hours: int) -> None:
    world = make_world()
    client, session = world.a_web_application(), world.a_session()
    world.clock.advance(hours=hours)
    assert "code=" in session.authorize(client, prompt="none").headers["Location"]
