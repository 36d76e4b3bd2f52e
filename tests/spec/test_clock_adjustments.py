"""Security 16.3: after the clock is set back or forward, nothing that ended revives, and the service continues."""

import logging

import pytest

from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_inactive_token, check_token_response
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")  # time behaves the same in all storages

STEPS = pytest.mark.parametrize("hours", [-24, -1, 1])


def signed_with(world: World, token: str) -> str:
    header, _ = decode_jwt_unverified(token)
    return str(header["kid"])


@pytest.mark.parametrize("hours", [-1, -24, -24 * 365])
def test_oldest_key_signs_before_first_key_is_active(
    isolated_world: World, hours: int, caplog: pytest.LogCaptureFixture
) -> None:
    robot = isolated_world.make_service_user_program()
    [first] = isolated_world.client.fetch_jwks().json["keys"]
    isolated_world.operator_services.signing_keys.rotate()
    isolated_world.clock.advance(hours=hours)
    with caplog.at_level(logging.WARNING):
        assert signed_with(isolated_world, check_token_response(robot.request_token())["id_token"]) == first["kid"]
        keys = isolated_world.client.fetch_jwks().json["keys"]
    assert first in keys
    assert "bootstrap" not in caplog.text
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1, "it is said as often as the key list is read"
    assert warnings[0].startswith("set the clock: it says ")
    assert isolated_world.client.get(f"{isolated_world.issuer}/readyz").status_int == 200
    isolated_world.clock.reset()
    assert signed_with(isolated_world, check_token_response(robot.request_token())["id_token"]) == first["kid"]


def test_key_created_by_fast_clock_signs(isolated_world: World) -> None:
    """With the clock a year ahead, a key was created and the old one was removed; then the clock was corrected."""
    robot = isolated_world.make_service_user_program()
    isolated_world.clock.advance(days=365)
    isolated_world.identity.background_jobs.rotate_signing_key_if_due()
    isolated_world.clock.advance(days=2)
    isolated_world.identity.background_jobs.purge()
    [left] = isolated_world.client.fetch_jwks().json["keys"]
    isolated_world.clock.reset()
    assert signed_with(isolated_world, check_token_response(robot.request_token())["id_token"]) == left["kid"]
    # A rotation instead of waiting a year.
    isolated_world.operator_services.signing_keys.rotate(emergency=True)
    isolated_world.clock.advance(minutes=1)
    assert signed_with(isolated_world, check_token_response(robot.request_token())["id_token"]) != left["kid"]


@STEPS
def test_clock_set_back_revives_nothing(make_world: WorldFactory, hours: int) -> None:
    world = make_world()
    client, session = world.make_web_application(), world.make_browser_session()
    tokens = world.obtain_tokens(client, session)
    code = world.make_code(client, session)
    rotated = world.refresh(tokens["refresh_token"], client).json
    revoked = world.make_service_user_program().management_token()
    assert world.client.revoke(revoked, world.introspector).status_int == 200
    world.redeem(code, client)
    ended = world.make_browser_session()
    subject = world.operator_services.storage.users.find_subject(ended.user.id)
    world.operator_services.sessions.end_by_id(subject, ended.id)
    world.clock.advance(hours=hours)
    check_inactive_token(world.client.introspect(revoked, world.introspector))
    assert world.redeem(code, client).json["error"] == "invalid_grant"
    assert "login_required" in ended.authorize(client, prompt="none").headers["Location"]
    assert world.refresh(tokens["refresh_token"], client).json["error"] == "invalid_grant"
    # A replay revokes the family at any clock time.
    assert world.refresh(rotated["refresh_token"], client).json["error"] == "invalid_grant"


@STEPS
def test_clock_adjustment_keeps_sessions(make_world: WorldFactory, hours: int) -> None:
    world = make_world()
    client, session = world.make_web_application(), world.make_browser_session()
    world.clock.advance(hours=hours)
    assert "code=" in session.authorize(client, prompt="none").headers["Location"]
