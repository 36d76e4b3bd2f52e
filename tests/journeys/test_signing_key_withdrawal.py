"""Another process withdraws a compromised signing key: after their next poll, all processes reject its tokens."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from identity.domain.users import TokenFormat
from identity.services.signing_keys import CACHE_AGE
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_inactive_token, check_token_response
from identity.testing.world import World
from tests.nodes import withdraw_signing_keys

pytestmark = [pytest.mark.storages("sqlite", "postgresql"), pytest.mark.thorough]  # memory belongs to one process


def withdrawn_elsewhere(settings: Mapping[str, str], kid: str) -> str:
    """The id of the new key, after another process has replaced the withdrawn one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(withdraw_signing_keys, dict(settings), [kid]).result()


def test_withdrawn_key_is_neither_published_nor_accepted(isolated_world: World) -> None:
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    project = world.make_project(robot.organization)
    resource, scope = world.make_application(project.id), f"openid {world.audience_scope(project.id)}"
    token = robot.access_token(scope)
    assert world.client.introspect(token, resource).json["active"] is True
    opaque = world.make_service_user_program().access_token()
    browser, party = Browser(world), RelyingParty.register(world)
    browser.start_session(world.make_human_user())
    hint = party.sign_in_silently(browser).id_token
    [kid] = [key["kid"] for key in world.client.fetch_jwks().json["keys"]]
    assert decode_jwt_unverified(token)[0]["kid"] == decode_jwt_unverified(hint)[0]["kid"] == kid

    new = withdrawn_elsewhere(world.settings, kid)
    world.clock.advance(int(CACHE_AGE.total_seconds()) + 60)

    assert [key["kid"] for key in world.client.fetch_jwks().json["keys"]] == [new]
    check_inactive_token(world.client.introspect(token, resource))
    assert world.client.fetch_userinfo(token).status_int == 401
    assert world.client.fetch_userinfo(opaque).status_int == 200, "it is not signed"
    party.expect_error_at_once(browser, "invalid_request", prompt="none", id_token_hint=hint)
    again = check_token_response(robot.request_token(scope))
    assert (
        decode_jwt_unverified(again["access_token"])[0]["kid"]
        == decode_jwt_unverified(again["id_token"])[0]["kid"]
        == new
    )
    assert world.client.introspect(again["access_token"], resource).json["active"] is True


def test_new_key_is_accepted_by_clients_with_an_older_key_list(isolated_world: World) -> None:
    """Without a delay: this process reloads its copy of the keys for an unknown kid."""
    world = isolated_world
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    [kid] = [key["kid"] for key in world.client.fetch_jwks().json["keys"]]
    other = World(world.settings, clock=world.clock, key_pool=world.key_pool)
    try:
        other.operator_services.signing_keys.withdraw([kid])
        token = other.client.exchange_assertion(robot.assertion()).json["access_token"]
        assert decode_jwt_unverified(token)[0]["kid"] != kid
        assert world.client.fetch_userinfo(token).status_int == 200
    finally:
        other.close()
