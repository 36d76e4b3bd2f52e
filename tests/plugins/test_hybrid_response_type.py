"""The hybrid flow: codes and tokens in one response (OpenID Connect Core §3.3)."""

import pytest

from identity.crypto.jwt import UnverifiedToken
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

HYBRID = ("code id_token", "code token", "code id_token token")


@pytest.mark.parametrize("response_type", HYBRID)
def test_hybrid_response_contains_code_and_tokens(world: World, browser: Browser, response_type: str) -> None:
    party = RelyingParty.register(world, response_types=frozenset({response_type}))
    authorization = party.new_request(response_type=response_type)
    members = party.check_response(browser.open(authorization.url, initiator=party.origin), authorization)
    response_types = response_type.split()
    assert ("access_token" in members, "id_token" in members) == (
        "token" in response_types,
        "id_token" in response_types,
    )
    assert "refresh_token" not in members
    if "id_token" in members:
        _, claims = decode_jwt_unverified(members["id_token"])
        assert claims["c_hash"] == UnverifiedToken.left_half_hash(members["code"], "RS256")
        assert ("at_hash" in claims) == ("token" in response_types)
        assert claims["nonce"] == authorization.parameters["nonce"]
    answer = party.redeem(members["code"], authorization)
    assert answer.status_int == 200
    # One sign-in is one token family: replaying the code revokes the front-channel tokens, too.
    assert party.redeem(members["code"], authorization).json["error"] == "invalid_grant"
    if "access_token" in members:
        assert world.client.fetch_userinfo(members["access_token"]).status_int == 401


def test_hybrid_flow_is_off_until_an_application_enables_it(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world)
    for response_type in HYBRID:
        party.expect_error_at_once(browser, "unauthorized_client", response_type)


def test_nonce_is_required_if_the_response_has_an_id_token(world: World, browser: Browser) -> None:
    """OpenID Connect Core §3.3.2.11: it protects ID tokens that pass through the browser."""
    party = RelyingParty.register(world, response_types=frozenset(HYBRID))
    for response_type in ("code id_token", "code id_token token"):
        party.expect_error_at_once(browser, "invalid_request", response_type, nonce=None)
    authorization = party.open_request(browser, "code token", nonce=None)
    assert "code" in party.check_response(browser.page, authorization)


def test_hybrid_tokens_are_not_sent_in_a_query(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, response_types=frozenset(HYBRID))
    for response_type in HYBRID:
        party.expect_error_at_once(browser, "invalid_request", response_type, response_mode="query", mode="fragment")


def test_public_client_needs_pkce_in_the_hybrid_flow(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, response_types=frozenset(HYBRID), authentication_method="none")
    for response_type in HYBRID:
        party.expect_error_at_once(browser, "invalid_request", response_type, pkce=False)
