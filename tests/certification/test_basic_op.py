"""Profile Basic OP: response type code."""

import json
from typing import Any

import pytest

from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified, encode_jwt_segment
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error, check_page
from identity.testing.service_test_client import bearer_headers

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

UNTRUSTED = "We cannot send you back to this application"


@pytest.mark.shows("4.2.5", "4.3.4", "5.3.2")
@pytest.mark.parametrize("client", ["first", "second"])
def test_code_flow_succeeds(suite: Any, client: str) -> None:
    """oidcc-server, oidcc-server-client-secret-post."""
    party: RelyingParty = getattr(suite, client)
    tokens = suite.tokens(relying_party=party, scope="openid")
    assert suite.pages == [""]
    assert tokens.members["token_type"] == "Bearer"
    assert tokens.members["expires_in"] > 0
    assert tokens.claims["sub"] == suite.person.id
    assert len(tokens.claims["sub"]) <= 255
    assert party.fetch_userinfo(tokens)["sub"] == suite.person.id


def test_missing_response_type_is_refused(suite: Any) -> None:
    """oidcc-response-type-missing: an error to the redirect URI or a page; never a code."""
    suite.first.expect_error_at_once(suite.browser, "invalid_request", None)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["get", "post", "body"])
def test_userinfo_returns_subject(suite: Any, how: str) -> None:
    """oidcc-userinfo-get, -post-header, -post-body."""
    client, token = suite.world.client, suite.tokens().access_token
    if how == "body":
        answer = client.post(client.discovery["userinfo_endpoint"], {"access_token": token})
    else:
        answer = client.fetch_userinfo(token, how.upper())
    assert (answer.status_int, answer.json["sub"]) == (200, suite.person.id)


@pytest.mark.parametrize("nonce", [None, "n-0S6_WzA2Mj"])
def test_code_flow_accepts_nonce(suite: Any, nonce: str | None) -> None:
    """oidcc-ensure-request-without-nonce-succeeds-for-code-flow."""
    assert suite.tokens(nonce=nonce).claims.get("nonce") == nonce


def test_optional_parameters_are_accepted(suite: Any) -> None:
    """oidcc-display-*, -ui-locales, -claims-locales, -ensure-request-with-unknown-parameter-succeeds, -login-hint …"""
    for parameters in (
        {"display": "page"},
        {"display": "popup"},
        {"extra": "foobar"},
        {"ui_locales": "se"},
        {"ui_locales": "fr-CA de"},
        {"claims_locales": "se"},
        {"login_hint": "buffy@id.example.com"},
        {"pkce": False},
    ):
        assert "refresh_token" not in suite.tokens(**parameters).members
    # oidcc-ensure-other-scope-order-succeeds
    assert suite.tokens(scope="email openid").scope == ["email", "openid"]


@pytest.mark.parametrize("scope", ["profile", "email", "address", "phone", "profile email address phone"])
def test_scopes_return_claims(suite: Any, claims_of: dict[str, set[str]], scope: str) -> None:
    """oidcc-scope-profile, -email, -address, -phone, -all: the claims of the scope, from userinfo, and no others."""
    tokens = suite.tokens(scope=f"openid {scope}")
    assert tokens.scope == ["openid", *scope.split()]
    userinfo = suite.first.fetch_userinfo(tokens)
    assert set(userinfo) == {"sub"}.union(*(claims_of[item] for item in scope.split()))
    every = set().union(*claims_of.values())
    assert not every & set(tokens.claims)
    if "address" in userinfo:
        assert isinstance(userinfo["address"], dict)
        assert userinfo["address"]["country"] == "UK"
    if "phone_number_verified" in userinfo:
        assert userinfo["phone_number_verified"] is False
    if "email_verified" in userinfo:
        assert userinfo["email_verified"] is False
    if "updated_at" in userinfo:
        assert isinstance(userinfo["updated_at"], int)
    assert all(value not in ("", None, {}) for value in userinfo.values())


def test_prompt_login_requires_password(suite: Any) -> None:
    """oidcc-prompt-login: the user has to sign in again, and auth_time changes."""
    first = suite.tokens(max_age=10_000)
    suite.world.clock.advance(1)
    second = suite.tokens(prompt="login", max_age=10_000)
    assert "password" in suite.pages
    assert second.claims["sub"] == first.claims["sub"]
    assert second.claims["auth_time"] > first.claims["auth_time"]


def test_prompt_none_without_session_is_refused(suite: Any) -> None:
    """oidcc-prompt-none-not-logged-in."""
    suite.first.expect_error_at_once(suite.browser, "login_required", prompt="none")


def test_prompt_none_within_session_succeeds(suite: Any) -> None:
    """oidcc-prompt-none-logged-in: same user, same auth_time, no page."""
    first = suite.tokens()
    suite.world.clock.advance(5)
    second = suite.tokens(prompt="none")
    assert suite.pages == []
    assert second.claims["sub"] == first.claims["sub"]
    assert second.claims["auth_time"] == first.claims["auth_time"]


def test_max_age_1_requires_password(suite: Any) -> None:
    """oidcc-max-age-1: after more than a second the user signs in again."""
    first = suite.tokens()
    suite.world.clock.advance(2)
    second = suite.tokens(max_age=1)
    assert "password" in suite.pages
    assert second.claims["auth_time"] == first.claims["auth_time"] + 2


def test_max_age_10000_keeps_session(suite: Any) -> None:
    """oidcc-max-age-10000: no page is shown, and auth_time stays."""
    first = suite.tokens(max_age=15_000)
    suite.world.clock.advance(60)
    second = suite.tokens(max_age=10_000)
    assert suite.pages == []
    assert second.claims["auth_time"] == first.claims["auth_time"]


def test_id_token_hint_is_accepted(suite: Any) -> None:
    """oidcc-id-token-hint: with prompt=none, for the same user."""
    first = suite.tokens()
    second = suite.tokens(prompt="none", id_token_hint=first.id_token)
    assert second.claims["sub"] == first.claims["sub"]


def test_login_hint_is_accepted(suite: Any) -> None:
    """oidcc-login-hint: the form contains the hint, and the user can sign in."""
    request = suite.first.new_request(login_hint=suite.login_name)
    suite.browser.open(request.url, initiator=suite.first.origin)
    assert suite.browser.find_form()["login_name"].value == suite.login_name
    suite.first.obtain_tokens(suite.browser.sign_in(suite.login_name), request)


def test_acr_values_are_accepted(suite: Any) -> None:
    """oidcc-ensure-request-with-acr-values-succeeds; an unmet acr is not claimed."""
    assert suite.tokens(acr_values="1 2").claims["acr"] not in ("1", "2")
    supported = suite.world.client.discovery["acr_values_supported"]
    assert suite.tokens(acr_values=" ".join(supported)).claims["acr"] in supported


def test_state_is_returned(suite: Any) -> None:
    """Every response is checked against its state; without a state it has none."""
    suite.tokens(state="some-state")
    suite.tokens(state=None)


def test_code_is_accepted_once(suite: Any) -> None:
    """oidcc-codereuse: at once."""
    request = suite.first.new_request()
    code = suite.first.extract_code(suite.authorize(request), request)
    assert suite.first.redeem(code, request).status_int == 200
    check_oauth_error(suite.first.redeem(code, request), "invalid_grant")


def test_code_replay_after_30_seconds_revokes_tokens(suite: Any) -> None:
    """oidcc-codereuse-30seconds: invalid_grant, and the access token is revoked (RFC 6749 §4.1.2)."""
    request = suite.first.new_request(scope="openid offline_access")
    code = suite.first.extract_code(suite.authorize(request), request)
    brought = suite.first.redeem(code, request).json
    assert suite.world.client.fetch_userinfo(brought["access_token"]).status_int == 200
    suite.world.clock.advance(30)
    check_oauth_error(suite.first.redeem(code, request), "invalid_grant")
    assert suite.world.client.fetch_userinfo(brought["access_token"]).status_int == 401
    check_oauth_error(suite.first.refresh(brought["refresh_token"]), "invalid_grant")


def test_code_of_other_client_is_refused(suite: Any) -> None:
    request = suite.first.new_request()
    code = suite.first.extract_code(suite.authorize(request), request)
    check_oauth_error(suite.second.redeem(code, request), "invalid_grant")
    assert suite.first.redeem(code, request).status_int == 200


def test_unregistered_redirect_uri_is_refused(suite: Any) -> None:
    """oidcc-ensure-registered-redirect-uri: a page, and no redirect."""
    request = suite.first.new_request(redirect_uri=f"{suite.first.redirect_uri}/somewhere")
    check_page(suite.browser.open(request.url), 400, UNTRUSTED)


def test_missing_redirect_uri_is_refused(suite: Any) -> None:
    check_page(suite.browser.open(suite.first.new_request(redirect_uri=None).url), 400, UNTRUSTED)


def test_redirect_uri_with_query_is_accepted(suite: Any) -> None:
    """oidcc-redirect-uri-query-OK: it is kept."""
    party = RelyingParty.register(suite.world, redirect_uri="https://app.example/cb?dummy1=lorem&dummy2=ipsum")
    assert suite.tokens(relying_party=party).claims["sub"] == suite.person.id
    assert "?dummy1=lorem&dummy2=ipsum&" in suite.browser.external_redirect


@pytest.mark.parametrize("query", ["?dummy1=lorem", "?dummy1=lorem&dummy2=other", "?dummy2=ipsum&dummy1=lorem", ""])
def test_redirect_uri_with_other_query_is_refused(suite: Any, query: str) -> None:
    """oidcc-redirect-uri-query-mismatch and -added."""
    party = RelyingParty.register(suite.world, redirect_uri="https://app.example/cb?dummy1=lorem&dummy2=ipsum")
    check_page(suite.browser.open(party.new_request(redirect_uri=f"https://app.example/cb{query}").url), 400, UNTRUSTED)
    added = suite.first.new_request(redirect_uri=f"{suite.first.redirect_uri}{query or '?'}")
    check_page(suite.browser.open(added.url), 400, UNTRUSTED)


def test_request_by_post_is_accepted(suite: Any) -> None:
    """oidcc-ensure-post-request-succeeds: cross-site, hence without the service's cookies."""
    request = suite.first.new_request()
    tokens = suite.first.obtain_tokens(suite.authorize(request, posted=True), request)
    assert tokens.claims["sub"] == suite.person.id
    request = suite.first.new_request(prompt="none")
    again = suite.first.obtain_tokens(suite.authorize(request, posted=True), request)
    assert suite.pages == []
    assert again.claims["sub"] == suite.person.id


def test_unsigned_request_object_is_refused(suite: Any) -> None:
    """oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported."""
    assert "none" not in suite.world.client.discovery["request_object_signing_alg_values_supported"]
    inner = encode_jwt_segment(json.dumps(dict(suite.first.new_request(state="inner").parameters)))
    suite.first.expect_error_at_once(
        suite.browser, "request_not_supported", request=f"{encode_jwt_segment({'alg': 'none'})}.{inner}."
    )


def test_request_uri_is_refused(suite: Any) -> None:
    """oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported."""
    assert suite.world.client.discovery["request_uri_parameter_supported"] is False
    suite.first.expect_error_at_once(
        suite.browser, "request_uri_not_supported", request_uri="https://app.example/request.jwt#abc"
    )


def test_request_object_with_redirect_uri_is_refused(suite: Any) -> None:
    """oidcc-ensure-request-object-with-redirect-uri: only the parameter outside the object counts."""
    inner = encode_jwt_segment(json.dumps({"redirect_uri": suite.first.redirect_uri}))
    request = suite.first.new_request(
        redirect_uri="https://evil.example", request=f"{encode_jwt_segment({'alg': 'none'})}.{inner}."
    )
    check_page(suite.browser.open(request.url), 400, UNTRUSTED)


def test_claims_parameter_is_honored(suite: Any) -> None:
    """oidcc-claims-essential."""
    assert suite.world.client.discovery["claims_parameter_supported"] is True
    tokens = suite.tokens(claims='{"userinfo": {"name": {"essential": true}}}')
    userinfo = suite.first.fetch_userinfo(tokens)
    assert userinfo.keys() == {"sub", "name"}
    assert userinfo["name"]


@pytest.mark.shows("4.3.12", "5.3.2")
@pytest.mark.parametrize("client", ["first", "second"])
def test_refresh_token_grant_succeeds(suite: Any, client: str) -> None:
    """oidcc-refresh-token: the ID token follows OpenID Connect Core §12.2; other clients cannot use the refresh
    token.
    """
    party: RelyingParty = getattr(suite, client)
    relying_party: RelyingParty = suite.second if party is suite.first else suite.first
    first = suite.tokens(relying_party=party, scope="openid offline_access", prompt="consent")
    assert "consent" in suite.pages
    suite.world.clock.advance(10)
    answer = party.refresh(first.refresh_token)
    assert answer.status_int == 200
    claims = party.check_id_token(answer.json["id_token"], access_token=answer.json["access_token"])
    same = {"iss", "sub", "aud", "azp", "auth_time"}
    assert {name: claims[name] for name in same} == {name: first.claims[name] for name in same}
    assert claims["iat"] == first.claims["iat"] + 10
    assert answer.json["refresh_token"] != first.refresh_token
    assert answer.json["access_token"] != first.access_token
    check_oauth_error(relying_party.refresh(answer.json["refresh_token"]), "invalid_grant")
    assert party.refresh(answer.json["refresh_token"]).status_int == 200


def test_pkce_is_enforced(suite: Any) -> None:
    """oidcc-ensure-request-with-valid-pkce-succeeds; ``ask`` does so by itself."""
    request = suite.first.new_request()
    assert request.parameters["code_challenge_method"] == "S256"
    suite.first.obtain_tokens(suite.authorize(request), request)
    request = suite.first.new_request()
    code = suite.first.extract_code(suite.authorize(request), request)
    check_oauth_error(suite.first.redeem(code, request, code_verifier="x" * 43), "invalid_grant")


@pytest.mark.shows("4.3.4", "4.3.14", "5.3.2", "7.9")
def test_wrong_secret_is_refused(suite: Any) -> None:
    request = suite.first.new_request()
    code = suite.first.extract_code(suite.authorize(request), request)
    impostor = RelyingParty(
        suite.world.client,
        suite.first.client_id,
        "wrong",
        redirect_uri=suite.first.redirect_uri,
        now=suite.first.now,
    )
    check_oauth_error(impostor.redeem(code, request), "invalid_client", status=401)
    assert suite.first.redeem(code, request).status_int == 200


def test_wrong_access_token_is_refused(suite: Any) -> None:
    client = suite.world.client
    answer = client.request("GET", client.discovery["userinfo_endpoint"], headers=bearer_headers("wrong"))
    assert answer.status_int == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_second_user_in_second_browser_signs_in(suite: Any) -> None:
    """Two users never share a subject."""
    first = suite.tokens()
    other = type(suite)(suite.world)
    other.browser = Browser(suite.world)
    assert other.tokens(by=suite.first).claims["sub"] != first.claims["sub"]


def test_key_rotation_keeps_old_tokens_verifiable(own_suite: Any) -> None:
    """oidcc-server-rotate-keys: new tokens verify by the published keys, and so do the old ones."""
    first = own_suite.tokens()
    own_suite.world.operator_services.signing_keys.rotate(emergency=True)
    own_suite.world.clock.advance(30)
    second = own_suite.tokens(prompt="none")
    headers = [decode_jwt_unverified(item.id_token)[0] for item in (first, second)]
    assert headers[0]["kid"] != headers[1]["kid"]
    assert own_suite.first.check_id_token(first.id_token) == first.claims
    assert second.claims["sub"] == first.claims["sub"]
