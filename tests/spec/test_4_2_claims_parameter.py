"""Service description §4.2 and decisions, authorization endpoint: the claims parameter, acr and amr (Core §5.5)."""

import json
from typing import Any

import pytest

from identity.domain.users import HumanUser
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.world import ServiceUserProgram, World

ONE_FACTOR, TWO_FACTORS = "urn:service:iam:acr:1", "urn:service:iam:acr:2"
RESPONSE_TYPES = ["code", "id_token", "id_token token"]


@pytest.fixture
def person(world: World) -> HumanUser:
    """A user with an email address, a nickname and a phone number."""
    person = world.make_human_user()
    command = ChangeHumanUser(email="ada@example.com", nickname="Countess", phone="+4412345")
    return world.operator_services.users.change(person.id, command)


def ask(party: RelyingParty, claims: Any, response_type: str = "code", **parameters: Any) -> SentAuthorizationRequest:
    """An authorization request for these single claims."""
    return party.new_request(
        response_type, claims=claims if isinstance(claims, str) else json.dumps(claims), **parameters
    )


def signed_in(
    browser: Browser, party: RelyingParty, claims: Any, response_type: str = "code", **more: Any
) -> ReceivedTokens:
    authorization = ask(party, claims, response_type, **more)
    return party.obtain_tokens(browser.open(authorization.url), authorization)


def test_discovery_announces_claims_parameter(world: World) -> None:
    document = world.client.discovery
    assert document["claims_parameter_supported"] is True
    assert {"acr", "amr", "email", "nickname"} <= set(document["claims_supported"])
    assert document["acr_values_supported"] == [ONE_FACTOR, TWO_FACTORS, "urn:service:iam:acr:phr"]


def test_userinfo_returns_requested_claims_only(browser: Browser, party: RelyingParty) -> None:
    tokens = signed_in(browser, party, {"userinfo": {"email": {"essential": True}, "nickname": None, "magic": None}})
    assert {name: value for name, value in party.fetch_userinfo(tokens).items() if name != "sub"} == {
        "email": "ada@example.com",
        "nickname": "Countess",
    }
    assert not tokens.claims.keys() & {"email", "nickname"}


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
def test_id_token_has_requested_claims(browser: Browser, party: RelyingParty, response_type: str) -> None:
    """Even if an access token is issued, because the request names the ID token (Core §5.5)."""
    request = {"id_token": {"email": {"value": "ada@example.com"}, "auth_time": {"essential": True}}}
    claims = signed_in(browser, party, request, response_type).claims
    assert claims["email"] == "ada@example.com"
    assert claims["auth_time"]
    assert not claims.keys() & {"nickname", "phone_number", "email_verified"}


def test_unknown_claims_are_omitted(browser: Browser, party: RelyingParty) -> None:
    """Core §5.5.1: a missing essential claim is no error."""
    tokens = signed_in(browser, party, {"userinfo": {"birthdate": {"essential": True}}})
    assert party.fetch_userinfo(tokens).keys() == {"sub"}


def test_requested_claims_add_to_scopes(browser: Browser, party: RelyingParty) -> None:
    tokens = signed_in(browser, party, {"userinfo": {"nickname": None}}, scope="openid email")
    assert party.fetch_userinfo(tokens).keys() == {"sub", "email", "email_verified", "nickname"}


def test_refresh_keeps_requested_claims(world: World, browser: Browser, party: RelyingParty) -> None:
    claims = {"userinfo": {"nickname": None}, "id_token": {"email": None}}
    first = signed_in(browser, party, claims, scope="openid offline_access")
    world.clock.advance(60)
    members = party.refresh(first.members["refresh_token"]).json
    _, refreshed = decode_jwt_unverified(members["id_token"])
    assert refreshed["email"] == "ada@example.com"
    assert {name: refreshed[name] for name in ("amr", "acr", "auth_time")} == {
        name: first.claims[name] for name in ("amr", "acr", "auth_time")
    }
    assert world.client.fetch_userinfo(members["access_token"]).json["nickname"] == "Countess"


def test_requested_claims_are_not_shared_between_applications(
    world: World, browser: Browser, party: RelyingParty
) -> None:
    signed_in(browser, party, {"userinfo": {"nickname": None}})
    relying_party = RelyingParty.register(world)
    assert relying_party.fetch_userinfo(relying_party.sign_in_silently(browser)).keys() == {"sub"}


@pytest.mark.parametrize("target", ["userinfo", "id_token"])
def test_requested_subject_must_match(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, target: str
) -> None:
    """Core §5.5.1: as with id_token_hint."""
    other_person = world.make_human_user()
    browser.start_session(other_person)
    claims = {target: {"sub": {"value": person.id}}}
    assert signed_in(browser, party, claims, prompt="none").claims["sub"] == person.id
    authorization = ask(party, {target: {"sub": {"value": "nobody"}}}, prompt="none")
    party.check_error_response(browser.open(authorization.url), authorization, "login_required")
    both = {"userinfo": {"sub": {"value": person.id}}, "id_token": {"sub": {"value": other_person.id}}}
    authorization = ask(party, both, prompt="none")
    party.check_error_response(browser.open(authorization.url), authorization, "invalid_request")


def test_malformed_claims_parameter_is_refused(browser: Browser, party: RelyingParty) -> None:
    for claims in (
        "no json",
        "[1",
        "[]",
        '"userinfo"',
        "7",
        '{"userinfo": []}',
        '{"userinfo": {"email": "yes"}}',
        '{"id_token": {"sub": {"value": 7}}}',
        '{"id_token": {"acr": {"essential": true, "values": "x"}}}',
        '{"id_token": {"acr": {"essential": true, "value": {}}}}',
        '{"userinfo":' * 700,
        "[" * 4000,
    ):
        authorization = ask(party, claims)
        party.check_error_response(browser.open(authorization.url), authorization, "invalid_request")


def test_null_and_unknown_members_request_no_claims(browser: Browser, party: RelyingParty) -> None:
    for claims in ("{}", '{"userinfo": null, "id_token": null}', '{"other": {"email": null}}', '{"\\u0000": {}}'):
        assert party.fetch_userinfo(signed_in(browser, party, claims)).keys() == {"sub"}


# --- authentication context -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
def test_id_token_has_acr_and_amr(world: World, party: RelyingParty, person: HumanUser, response_type: str) -> None:
    """RFC 8176; after a sign-in on the pages, and from its session without a page."""
    browser = Browser(world)
    for prompt in (None, "none"):
        authorization = party.new_request(response_type, prompt=prompt)
        browser.open(authorization.url, initiator=party.origin)
        if prompt is None:
            browser.sign_in(set_password(world, person))
        claims = party.obtain_tokens(browser.page, authorization).claims
        assert (claims["amr"], claims["acr"]) == (["pwd"], ONE_FACTOR)


def test_service_user_id_token_has_amr(robot: ServiceUserProgram) -> None:
    assert not decode_jwt_unverified(robot.request_token().json["id_token"])[1].keys() & {"amr", "acr"}


def test_essential_acr_is_met_or_refused(browser: Browser, party: RelyingParty) -> None:
    """Core §5.5.1.1, and OpenID Connect Core Error Code unmet_authentication_requirements; a voluntary acr is
    returned.
    """
    for asked_for, reached in (
        ({"essential": True, "values": [TWO_FACTORS, ONE_FACTOR]}, True),
        ({"essential": True, "value": ONE_FACTOR}, True),
        ({"essential": True}, True),
        ({"value": TWO_FACTORS}, True),
        ({"essential": False, "values": [TWO_FACTORS]}, True),
        (None, True),
        ({"essential": True, "value": TWO_FACTORS}, False),
        ({"essential": True, "values": [TWO_FACTORS, "urn:mace:incommon:iap:silver"]}, False),
        ({"essential": True, "values": []}, False),
    ):
        for prompt in (None, "none"):
            authorization = ask(party, {"id_token": {"acr": asked_for}}, prompt=prompt)
            answer = browser.open(authorization.url)
            if reached:
                assert party.obtain_tokens(answer, authorization).claims["acr"] == ONE_FACTOR
                continue
            if browser.sign_in_step is not None:
                # An essential factor can be enrolled or declined.
                assert browser.sign_in_step == "factors/new"
                answer = browser.submit(button=("factor", "none"))
            party.check_error_response(answer, authorization, "unmet_authentication_requirements")


def test_consent_page_lists_single_claims(world: World, party: RelyingParty, person: HumanUser) -> None:
    """Claims of the claims parameter appear on the consent page, too."""
    browser = Browser(world)
    authorization = ask(party, {"userinfo": {"email": None}, "id_token": {"phone_number": None}})
    browser.open(authorization.url, initiator=party.origin)
    browser.submit({"login_name": set_password(world, person)})
    page = browser.page.html.get_text()
    assert "your email address" in page
    assert "your phone number" in page
    assert "your postal address" not in page
