"""Service description §2.3: jti replay protection and the settings for assertions."""

import pytest

from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import ServiceUserProgram, World

AUD = "aud must be https://id.example.com"
REPLAYED = "jti was used before; each assertion needs a new one"


def test_jti_is_accepted_once(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.6."""
    assertion = robot.assertion(jti="transfer-1")
    check_token_response(world.client.exchange_assertion(assertion))
    check_oauth_error(world.client.exchange_assertion(assertion), "invalid_grant", description=REPLAYED)
    check_oauth_error(
        robot.request_token(jti="transfer-1", exp=world.clock.seconds + 60), "invalid_grant", description=REPLAYED
    )
    check_token_response(robot.request_token(jti="transfer-2"))


def test_jti_is_scoped_to_user(world: World, robot: ServiceUserProgram) -> None:
    check_token_response(robot.request_token(jti="transfer-1"))
    check_oauth_error(
        world.add_service_user_key(robot).request_token(jti="transfer-1"), "invalid_grant", description=REPLAYED
    )
    check_token_response(world.make_service_user_program(robot.organization).request_token(jti="transfer-1"))


def test_jti_is_remembered_while_assertion_is_valid(isolated_world: World) -> None:
    """Security 2.6: until max(exp, iat + 1 h) + skew, despite purges."""
    robot = isolated_world.make_service_user_program()
    assertion = robot.assertion(jti="long", exp=isolated_world.clock.seconds + 3600)
    check_token_response(isolated_world.client.exchange_assertion(assertion))
    isolated_world.clock.advance(3600)
    isolated_world.identity.background_jobs.purge()
    check_oauth_error(isolated_world.client.exchange_assertion(assertion), "invalid_grant", description=REPLAYED)


def test_refused_assertion_keeps_jti_usable(world: World, robot: ServiceUserProgram) -> None:
    """A refused request stores nothing, so it can be corrected and sent again."""
    assertion = robot.assertion(jti="mended")
    check_oauth_error(
        world.client.exchange_assertion(assertion, "openid urn:service:iam:org:project:id:none:aud"), "invalid_scope"
    )
    check_oauth_error(world.client.exchange_assertion(assertion, "profile"), "invalid_scope")
    check_oauth_error(robot.request_token(jti="mended", aud="elsewhere"), "invalid_grant")
    check_token_response(world.client.exchange_assertion(assertion))


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_jti_can_be_required_or_ignored(make_world: WorldFactory) -> None:
    """Security 2.6, setting ``identity.plugin.jwt_bearer.jti``."""
    robot = make_world(**{"identity.plugin.jwt_bearer.jti": "required"}).make_service_user_program()
    check_oauth_error(robot.request_token(), "invalid_grant", description="jti is missing")
    check_token_response(robot.request_token(jti="one"))
    robot = make_world(**{"identity.plugin.jwt_bearer.jti": "off"}).make_service_user_program()
    for _ in range(2):
        check_token_response(robot.request_token(jti="one"))


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_further_audiences_can_be_accepted(make_world: WorldFactory) -> None:
    """Security 2.4, setting ``identity.assertion_audiences``."""
    endpoint = "https://id.example.com/oauth/v2/token"
    robot = make_world(
        **{"identity.assertion_audiences": f"{endpoint} https://old.example"}
    ).make_service_user_program()
    for audience in (endpoint, "https://old.example", "https://id.example.com", [endpoint]):
        check_token_response(robot.request_token(aud=audience))
    check_oauth_error(robot.request_token(aud=f"{endpoint}/"), "invalid_grant", description=AUD)
    check_oauth_error(robot.request_token(aud=[endpoint, "https://old.example"]), "invalid_grant", description=AUD)


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_clock_skew_is_a_setting(make_world: WorldFactory) -> None:
    """Security 2.5, setting ``identity.clock_skew``."""
    world = make_world(**{"identity.clock_skew": "0"})
    robot, now = world.make_service_user_program(), world.clock.seconds
    check_token_response(robot.request_token())
    check_oauth_error(robot.request_token(iat=now + 1), "invalid_grant", description="iat is 1 s in the future")
    check_oauth_error(
        robot.request_token(iat=now - 9, exp=now), "invalid_grant", description="assertion expired 0 s ago"
    )
    check_oauth_error(robot.request_token(nbf=now + 1), "invalid_grant", description="nbf is 1 s in the future")


@pytest.mark.shows("8.1")
@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_age_and_lifetime_are_settings(make_world: WorldFactory) -> None:
    world = make_world(
        **{
            "identity.plugin.jwt_bearer.max_assertion_age": "10m",
            "identity.plugin.jwt_bearer.max_assertion_lifetime": "1h",
        }
    )
    robot, now = world.make_service_user_program(), world.clock.seconds
    check_token_response(robot.request_token(iat=now - 600, exp=now + 3000))
    check_oauth_error(
        robot.request_token(iat=now - 601), "invalid_grant", description="iat is 601 s ago, at most 600 s are accepted"
    )
    check_oauth_error(
        robot.request_token(exp=now + 3601), "invalid_grant", description="exp must be at most 3600 s after iat"
    )
