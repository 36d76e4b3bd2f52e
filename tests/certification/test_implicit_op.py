"""Profile Implicit OP: response types id_token and id_token token."""

from typing import Any

import pytest

from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

ID_TOKEN, TOKEN = "id_token", "id_token token"
UNTRUSTED = "We cannot send you back to this application"

both = pytest.mark.parametrize("response_type", [ID_TOKEN, TOKEN])


@pytest.mark.shows("4.2.5")
@both
def test_implicit_flow_succeeds(suite: Any, response_type: str) -> None:
    """oidcc-server: tokens in the fragment; signature, iss, aud, exp, iat, nonce and at_hash are checked on the way."""
    tokens = suite.tokens(response_type)
    assert suite.pages == [""]
    assert tokens.claims["sub"] == suite.person.id
    assert ("at_hash" in tokens.claims) == (response_type == TOKEN)
    assert "refresh_token" not in tokens.members
    assert "code" not in tokens.members
    assert "#" in suite.browser.external_redirect
    assert "?" not in suite.browser.external_redirect


def test_missing_response_type_is_refused(suite: Any) -> None:
    """oidcc-response-type-missing."""
    suite.first.expect_error_at_once(suite.browser, "invalid_request", None)


@both
def test_missing_nonce_is_refused(suite: Any, response_type: str) -> None:
    """oidcc-ensure-request-without-nonce-fails (OpenID Connect Core §3.2.2.1)."""
    suite.first.expect_error_at_once(suite.browser, "invalid_request", response_type, nonce=None)


@pytest.mark.parametrize("how", ["get", "post", "body"])
def test_userinfo_returns_subject(suite: Any, how: str) -> None:
    """oidcc-userinfo-get, -post-header, -post-body."""
    client, token = suite.world.client, suite.tokens(TOKEN).access_token
    if how == "body":
        answer = client.post(client.discovery["userinfo_endpoint"], {"access_token": token})
    else:
        answer = client.fetch_userinfo(token, how.upper())
    assert (answer.status_int, answer.json["sub"]) == (200, suite.person.id)


@pytest.mark.parametrize("scope", ["profile", "email", "address", "phone", "profile email address phone"])
def test_scopes_return_claims(suite: Any, claims_of: dict[str, set[str]], scope: str) -> None:
    """oidcc-scope-*: with id_token alone the ID token has the claims (OpenID Connect Core §5.4), otherwise userinfo."""
    expected = set().union(*(claims_of[item] for item in scope.split()))
    every = set().union(*claims_of.values())
    assert every & set(suite.tokens(ID_TOKEN, scope=f"openid {scope}").claims) == expected
    tokens = suite.tokens(TOKEN, scope=f"openid {scope}")
    assert not every & set(tokens.claims)
    assert set(suite.first.fetch_userinfo(tokens)) == expected | {"sub"}


def test_scope_order_is_free(suite: Any) -> None:
    """oidcc-ensure-other-scope-order-succeeds."""
    assert suite.tokens(TOKEN, scope="email openid").scope == ["email", "openid"]


@both
def test_optional_parameters_are_accepted(suite: Any, response_type: str) -> None:
    """oidcc-display-*, -ensure-request-with-unknown-parameter-succeeds, -ui-locales, -claims-locales, -login-hint …"""
    for parameters in (
        {"display": "page"},
        {"display": "popup"},
        {"extra": "foobar"},
        {"ui_locales": "se"},
        {"claims_locales": "se"},
        {"acr_values": "1 2"},
        {"login_hint": "buffy@id.example.com"},
        {"claims": '{"id_token": {"auth_time": {"essential": true}}}'},
        {"state": None},
    ):
        suite.tokens(response_type, **parameters)


@both
def test_prompt_login_requires_password(suite: Any, response_type: str) -> None:
    """oidcc-prompt-login."""
    first = suite.tokens(response_type)
    suite.world.clock.advance(1)
    second = suite.tokens(response_type, prompt="login")
    assert "password" in suite.pages
    assert second.claims["auth_time"] > first.claims["auth_time"]


@both
def test_prompt_none_follows_session(suite: Any, response_type: str) -> None:
    """oidcc-prompt-none-not-logged-in, -logged-in: the error is in the fragment."""
    suite.first.expect_error_at_once(suite.browser, "login_required", response_type, prompt="none")
    first = suite.tokens(response_type)
    second = suite.tokens(response_type, prompt="none", id_token_hint=first.id_token)
    assert suite.pages == []
    assert second.claims["sub"] == first.claims["sub"]


@both
def test_max_age_is_enforced(suite: Any, response_type: str) -> None:
    """oidcc-max-age-1, oidcc-max-age-10000."""
    first = suite.tokens(response_type)
    suite.world.clock.advance(2)
    second = suite.tokens(response_type, max_age=10_000)
    assert suite.pages == []
    third = suite.tokens(response_type, max_age=1)
    assert "password" in suite.pages
    assert first.claims["auth_time"] == second.claims["auth_time"] < third.claims["auth_time"]


@both
def test_invalid_redirect_uris_are_refused(suite: Any, response_type: str) -> None:
    """oidcc-ensure-registered-redirect-uri, oidcc-redirect-uri-query-*."""
    check_page(
        suite.browser.open(suite.first.new_request(response_type, redirect_uri="https://app.example/no").url),
        400,
        UNTRUSTED,
    )
    check_page(suite.browser.open(suite.first.new_request(response_type, redirect_uri=None).url), 400, UNTRUSTED)
    party = RelyingParty.register(suite.world, redirect_uri="https://app.example/cb?dummy1=lorem")
    suite.tokens(response_type, relying_party=party)
    check_page(
        suite.browser.open(party.new_request(response_type, redirect_uri="https://app.example/cb").url), 400, UNTRUSTED
    )


@both
def test_request_objects_are_refused(suite: Any, response_type: str) -> None:
    """oidcc-unsigned-request-object…, oidcc-request-uri-unsigned…: rejected as unsupported."""
    for name in ("request", "request_uri"):
        suite.first.expect_error_at_once(
            suite.browser, f"{name}_not_supported", response_type, **{name: "https://app.example/r.jwt"}
        )


@both
def test_request_by_post_is_accepted(suite: Any, response_type: str) -> None:
    """oidcc-ensure-post-request-succeeds."""
    request = suite.first.new_request(response_type)
    suite.first.obtain_tokens(suite.authorize(request, posted=True), request)


@both
def test_client_without_implicit_grant_is_refused(suite: Any, response_type: str) -> None:
    """The implicit flow is off by default."""
    party = RelyingParty.register(suite.world, response_types=["code"])
    party.expect_error_at_once(suite.browser, "unauthorized_client", response_type)
