"""Signed authorization responses (JARM)."""

from typing import Any

import pytest

from identity.testing.browser import Browser
from identity.testing.jwt_assertions import verify_jwt
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world, response_types=("code", "id_token token", "code id_token"))


def decoded(party: RelyingParty, page: Any, authorization: SentAuthorizationRequest, transport: str) -> dict[str, Any]:
    """The verified members of the response, which has no other members; without iss, aud and exp."""
    [(name, text)] = party.read_response(page, authorization, transport)
    assert name == "response"
    _, members = verify_jwt(text, party.client.fetch_jwks().json["keys"])
    assert members.pop("iss") == party.client.issuer_url
    assert members.pop("aud") == party.client_id
    assert party.now() < members.pop("exp") <= party.now() + 600
    assert members.pop("state", None) == authorization.parameters.get("state")
    return members


@pytest.mark.parametrize(
    ("mode", "transport"),
    [("jwt", "query"), ("query.jwt", "query"), ("fragment.jwt", "fragment"), ("form_post.jwt", "form_post")],
)
def test_code_comes_in_a_signed_response(browser: Browser, party: RelyingParty, mode: str, transport: str) -> None:
    authorization = party.open_request(browser, response_mode=mode)
    members = decoded(party, browser.page, authorization, transport)
    assert set(members) == {"code"}
    assert party.redeem(members["code"], authorization).status_int == 200


def test_tokens_come_in_the_fragment_and_never_in_a_query(browser: Browser, party: RelyingParty) -> None:
    """JARM §2.3.1: a query may contain tokens only if the response is encrypted."""
    for response_type, expected in (("id_token token", "access_token"), ("code id_token", "code")):
        authorization = party.open_request(browser, response_type, response_mode="jwt")
        assert {expected, "id_token"} <= set(decoded(party, browser.page, authorization, "fragment"))
        party.expect_error_at_once(
            browser, "invalid_request", response_type, response_mode="query.jwt", mode="fragment"
        )


def test_errors_are_signed(browser: Browser, party: RelyingParty) -> None:
    authorization = party.open_request(browser, scope="profile", response_mode="jwt")
    assert decoded(party, browser.page, authorization, "query")["error"] == "invalid_scope"


def test_application_that_requires_signed_responses_gets_no_other(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, require_encoded_response=True)
    for mode in (None, "query", "form_post"):
        party.expect_error_at_once(browser, "invalid_request", response_mode=mode)
    authorization = party.open_request(browser, response_mode="query.jwt")
    assert "code" in decoded(party, browser.page, authorization, "query")


def test_discovery_lists_modes_and_algorithms(world: World) -> None:
    discovery = world.client.discovery
    assert {"jwt", "query.jwt", "fragment.jwt", "form_post.jwt"} <= set(discovery["response_modes_supported"])
    assert "RS256" in discovery["authorization_signing_alg_values_supported"]
