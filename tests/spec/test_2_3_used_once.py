"""Service description §2.3: an assertion with a jti serves once; and what settings say of assertions."""

import pytest

from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_granted, check_refused
from identity.testing.world import Robot, World

AUD = "aud must be https://id.example.com"
REPLAYED = "jti was used before; each assertion needs a new one"


def test_a_jti_serves_once(world: World, robot: Robot) -> None:
    """Security 2.6."""
    assertion = robot.assertion(jti="transfer-1")
    check_granted(world.client.assertion(assertion))
    check_refused(world.client.assertion(assertion), "invalid_grant", description=REPLAYED)
    check_refused(robot.token(jti="transfer-1", exp=world.clock.seconds + 60), "invalid_grant", description=REPLAYED)
    check_granted(robot.token(jti="transfer-2"))


def test_a_jti_counts_for_its_user_and_not_for_its_key(world: World, robot: Robot) -> None:
    check_granted(robot.token(jti="transfer-1"))
    check_refused(world.another_key(robot).token(jti="transfer-1"), "invalid_grant", description=REPLAYED)
    check_granted(world.a_robot(robot.organization).token(jti="transfer-1"))


def test_a_jti_is_remembered_for_as_long_as_an_assertion_could_be_accepted(own_world: World) -> None:
    """Security 2.6: until max(exp, iat + 1 h) + skew, whatever is purged meanwhile."""
    robot = own_world.a_robot()
    assertion = robot.assertion(jti="long", exp=own_world.clock.seconds + 3600)
    check_granted(own_world.client.assertion(assertion))
    own_world.clock.advance(3600)
    own_world.identity.jobs.purge()
    check_refused(own_world.client.assertion(assertion), "invalid_grant", description=REPLAYED)


def test_a_refused_assertion_does_not_use_up_its_jti(world: World, robot: Robot) -> None:
    """What was wrong can be mended and sent again: nothing is kept of a refused request."""
    assertion = robot.assertion(jti="mended")
    check_refused(world.client.assertion(assertion, "openid urn:service:iam:org:project:id:none:aud"), "invalid_scope")
    check_refused(world.client.assertion(assertion, "profile"), "invalid_scope")
    check_refused(robot.token(jti="mended", aud="elsewhere"), "invalid_grant")
    check_granted(world.client.assertion(assertion))


@pytest.mark.storages("memory")  # a setting, judged before any storage
def test_a_jti_can_be_required_or_ignored(make_world: MakeWorld) -> None:
    """Security 2.6, setting ``identity.plugin.jwt_bearer.jti``."""
    robot = make_world(**{"identity.plugin.jwt_bearer.jti": "required"}).a_robot()
    check_refused(robot.token(), "invalid_grant", description="jti is missing")
    check_granted(robot.token(jti="one"))
    robot = make_world(**{"identity.plugin.jwt_bearer.jti": "off"}).a_robot()
    for _ in range(2):
        check_granted(robot.token(jti="one"))


@pytest.mark.storages("memory")  # a setting, judged before any storage
def test_further_audiences_can_be_accepted(make_world: MakeWorld) -> None:
    """Security 2.4, setting ``identity.assertion_audiences``."""
    endpoint = "https://id.example.com/oauth/v2/token"
    robot = make_world(**{"identity.assertion_audiences": f"{endpoint} https://old.example"}).a_robot()
    for audience in (endpoint, "https://old.example", "https://id.example.com", [endpoint]):
        check_granted(robot.token(aud=audience))
    check_refused(robot.token(aud=f"{endpoint}/"), "invalid_grant", description=AUD)
    check_refused(robot.token(aud=[endpoint, "https://old.example"]), "invalid_grant", description=AUD)


@pytest.mark.storages("memory")  # a setting, judged before any storage
def test_the_skew_is_a_setting(make_world: MakeWorld) -> None:
    """Security 2.5, setting ``identity.clock_skew``."""
    world = make_world(**{"identity.clock_skew": "0"})
    robot, now = world.a_robot(), world.clock.seconds
    check_granted(robot.token())
    check_refused(robot.token(iat=now + 1), "invalid_grant", description="iat is 1 s in the future")
    check_refused(robot.token(iat=now - 9, exp=now), "invalid_grant", description="assertion expired 0 s ago")
    check_refused(robot.token(nbf=now + 1), "invalid_grant", description="nbf is 1 s in the future")


@pytest.mark.shows("8.1")
@pytest.mark.storages("memory")  # a setting, judged before any storage
def test_age_and_lifetime_are_settings(make_world: MakeWorld) -> None:
    world = make_world(
        **{
            "identity.plugin.jwt_bearer.max_assertion_age": "10m",
            "identity.plugin.jwt_bearer.max_assertion_lifetime": "1h",
        }
    )
    robot, now = world.a_robot(), world.clock.seconds
    check_granted(robot.token(iat=now - 600, exp=now + 3000))
    check_refused(
        robot.token(iat=now - 601), "invalid_grant", description="iat is 601 s ago, at most 600 s are accepted"
    )
    check_refused(robot.token(exp=now + 3601), "invalid_grant", description="exp must be at most 3600 s after iat")
