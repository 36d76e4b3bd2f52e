"""Profiles Basic, Implicit and Hybrid OP, each also by Form Post: the modules that they share.

Each test runs with every response type that the modules are for, and with both response modes.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified, encode_jwt_segment
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error, check_page
from identity.testing.service_test_client import bearer_headers
from tests.certification.plans import Flow, flows

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

UNTRUSTED = "We cannot send you back to this application"

every = flows()
with_code = flows(lambda values: "code" in values)
with_id_token = flows(lambda values: "id_token" in values)
without_id_token = flows(lambda values: "id_token" not in values)
with_access_token = flows(lambda values: bool(values & {"code", "token"}))


@pytest.mark.shows("4.2.5", "4.3.4", "5.3.2")
@pytest.mark.modules("oidcc-server", "oidcc-idtoken-signature")
@every
def test_sign_in_returns_what_was_requested(suite: Any, flow: Flow) -> None:
    """Signature, iss, aud, exp, iat, nonce, at_hash and c_hash are checked on the way, as is the response mode."""
    tokens = suite.tokens(**flow.parameters)
    assert suite.pages == [""]
    assert tokens.claims["sub"] == suite.person.id
    assert len(tokens.claims["sub"]) <= 255
    assert decode_jwt_unverified(tokens.id_token)[0]["kid"]
    if "access_token" in tokens.members:
        assert tokens.members["token_type"] == "Bearer"
        assert int(tokens.members["expires_in"]) > 0
        assert suite.first.fetch_userinfo(tokens)["sub"] == suite.person.id


@pytest.mark.shows("4.2.5", "4.3.4", "5.3.2")
@pytest.mark.modules("oidcc-server-client-secret-post")
@with_code
def test_client_authenticates_in_the_form(suite: Any, flow: Flow) -> None:
    assert suite.tokens(relying_party=suite.second, **flow.parameters).claims["sub"] == suite.person.id


@pytest.mark.modules("oidcc-response-type-missing")
@every
def test_missing_response_type_is_refused(suite: Any, flow: Flow) -> None:
    """An error to the redirect URI, never a code."""
    parameters = flow.parameters | {"response_type": None}
    suite.first.expect_error_at_once(suite.browser, "invalid_request", **parameters)


@pytest.mark.modules("oidcc-userinfo-get", "oidcc-userinfo-post-header", "oidcc-userinfo-post-body")
@with_access_token
def test_userinfo_returns_subject(suite: Any, flow: Flow) -> None:
    """For the token of each endpoint."""
    client, tokens = suite.world.client, suite.tokens(**flow.parameters)
    for members in (tokens.members, tokens.front_channel):
        if token := members.get("access_token"):
            endpoint = client.discovery["userinfo_endpoint"]
            for answer in (
                client.fetch_userinfo(token),
                client.fetch_userinfo(token, "POST"),
                client.post(endpoint, {"access_token": token}),
            ):
                assert (answer.status_int, answer.json["sub"]) == (200, suite.person.id)


@pytest.mark.modules("oidcc-ensure-request-without-nonce-fails")
@with_id_token
def test_missing_nonce_is_refused(suite: Any, flow: Flow) -> None:
    """OpenID Connect Core §3.2.2.1, §3.3.2.11."""
    suite.first.expect_error_at_once(suite.browser, "invalid_request", **flow.parameters, nonce=None)


@pytest.mark.modules("oidcc-ensure-request-without-nonce-succeeds-for-code-flow")
@without_id_token
def test_nonce_is_optional_without_id_token_in_the_response(suite: Any, flow: Flow) -> None:
    assert "nonce" not in suite.tokens(**flow.parameters, nonce=None).claims


@pytest.mark.modules(
    "oidcc-scope-profile", "oidcc-scope-email", "oidcc-scope-address", "oidcc-scope-phone", "oidcc-scope-all"
)
@every
def test_scopes_return_claims(suite: Any, claims_of: dict[str, set[str]], flow: Flow) -> None:
    """From userinfo; from the ID token only if there will be no access token (OpenID Connect Core §5.4)."""
    all_claims = set().union(*claims_of.values())
    for scope in ("profile", "email", "address", "phone", "profile email address phone"):
        expected = set().union(*(claims_of[item] for item in scope.split()))
        tokens = suite.tokens(**flow.parameters, scope=f"openid {scope}")
        assert tokens.scope == ["openid", *scope.split()]
        if "access_token" not in tokens.members:
            assert all_claims & set(tokens.claims) == expected
            continue
        for members in (tokens.members, tokens.front_channel):
            if "id_token" in members:
                assert not all_claims & set(decode_jwt_unverified(members["id_token"])[1])
        userinfo = suite.first.fetch_userinfo(tokens)
        assert set(userinfo) == expected | {"sub"}
        assert all(value not in ("", None, {}) for value in userinfo.values())
    if "access_token" in tokens.members:
        assert isinstance(userinfo["address"], dict)
        assert userinfo["address"]["country"] == "UK"
        assert userinfo["phone_number_verified"] is False
        assert userinfo["email_verified"] is False
        assert isinstance(userinfo["updated_at"], int)


@pytest.mark.modules(
    "oidcc-display-page",
    "oidcc-display-popup",
    "oidcc-ensure-request-with-unknown-parameter-succeeds",
    "oidcc-ui-locales",
    "oidcc-claims-locales",
    "oidcc-ensure-other-scope-order-succeeds",
)
@every
def test_optional_parameters_are_accepted(suite: Any, flow: Flow) -> None:
    for parameters in (
        {"display": "page"},
        {"display": "popup"},
        {"extra": "foobar"},
        {"ui_locales": "se"},
        {"ui_locales": "fr-CA de"},
        {"claims_locales": "se"},
        {"pkce": False},
        {"state": None},
    ):
        assert "refresh_token" not in suite.tokens(**flow.parameters, **parameters).members
    assert suite.tokens(**flow.parameters, scope="email openid").scope == ["email", "openid"]


@pytest.mark.modules("oidcc-ensure-request-with-acr-values-succeeds")
@every
def test_acr_values_are_accepted(suite: Any, flow: Flow) -> None:
    """An unmet acr is not claimed."""
    assert suite.tokens(**flow.parameters, acr_values="1 2").claims["acr"] not in ("1", "2")
    supported = suite.world.client.discovery["acr_values_supported"]
    assert suite.tokens(**flow.parameters, acr_values=" ".join(supported)).claims["acr"] in supported


@pytest.mark.modules("oidcc-prompt-login", "oidcc-max-age-1", "oidcc-max-age-10000")
@every
def test_password_is_asked_for_again(suite: Any, flow: Flow) -> None:
    """With prompt=login, and after max_age; auth_time says when."""
    times = [suite.tokens(**flow.parameters, max_age=15_000).claims["auth_time"]]
    suite.world.clock.advance(2)
    times.append(suite.tokens(**flow.parameters, max_age=10_000).claims["auth_time"])
    assert suite.pages == []
    for parameters in ({"max_age": 1}, {"prompt": "login", "max_age": 10_000}):
        suite.world.clock.advance(2)
        tokens = suite.tokens(**flow.parameters, **parameters)
        assert "password" in suite.pages
        assert tokens.claims["sub"] == suite.person.id
        times.append(tokens.claims["auth_time"])
    assert times == [times[0], times[0], times[0] + 4, times[0] + 6]


@pytest.mark.modules("oidcc-prompt-none-not-logged-in", "oidcc-prompt-none-logged-in", "oidcc-id-token-hint")
@every
def test_prompt_none_follows_the_session(suite: Any, flow: Flow) -> None:
    """The same user, the same auth_time, no page."""
    suite.first.expect_error_at_once(suite.browser, "login_required", **flow.parameters, prompt="none")
    first = suite.tokens(**flow.parameters, max_age=10_000)
    suite.world.clock.advance(5)
    for parameters in ({}, {"id_token_hint": first.id_token}):
        second = suite.tokens(**flow.parameters, prompt="none", max_age=10_000, **parameters)
        assert suite.pages == []
        assert second.claims["sub"] == first.claims["sub"]
        assert second.claims["auth_time"] == first.claims["auth_time"]


@pytest.mark.modules("oidcc-login-hint")
@every
def test_login_hint_is_filled_in(suite: Any, flow: Flow) -> None:
    request = suite.first.new_request(**flow.parameters, login_hint=suite.login_name)
    suite.browser.open(request.url, initiator=suite.first.origin)
    assert suite.browser.find_form()["login_name"].value == suite.login_name
    suite.first.obtain_tokens(suite.browser.sign_in(suite.login_name), request)


@pytest.mark.modules("oidcc-codereuse", "oidcc-codereuse-30seconds")
@with_code
def test_replayed_code_revokes_tokens(suite: Any, flow: Flow) -> None:
    """At once and after 30 seconds (RFC 6749 §4.1.2); the tokens of the authorization endpoint end, too."""
    for seconds in (0, 30):
        request = suite.first.new_request(**flow.parameters, scope="openid offline_access")
        front = suite.first.check_response(suite.authorize(request), request)
        redeemed = suite.first.redeem(front["code"], request).json
        tokens = [members["access_token"] for members in (redeemed, front) if "access_token" in members]
        assert {suite.world.client.fetch_userinfo(token).status_int for token in tokens} == {200}
        suite.world.clock.advance(seconds)
        check_oauth_error(suite.first.redeem(front["code"], request), "invalid_grant")
        assert {suite.world.client.fetch_userinfo(token).status_int for token in tokens} == {401}
        check_oauth_error(suite.first.refresh(redeemed["refresh_token"]), "invalid_grant")


@with_code
def test_code_of_other_client_is_refused(suite: Any, flow: Flow) -> None:
    request = suite.first.new_request(**flow.parameters)
    code = suite.first.check_response(suite.authorize(request), request)["code"]
    check_oauth_error(suite.second.redeem(code, request), "invalid_grant")
    assert suite.first.redeem(code, request).status_int == 200


@pytest.mark.modules("oidcc-ensure-registered-redirect-uri")
@every
def test_unregistered_redirect_uri_is_refused(suite: Any, flow: Flow) -> None:
    """A page, without redirect or form."""
    for uri in (f"{suite.first.redirect_uri}/somewhere", "https://evil.example/cb", None):
        request = suite.first.new_request(**flow.parameters, redirect_uri=uri)
        page = check_page(suite.browser.open(request.url), 400, UNTRUSTED)
        assert page.find_all("form") == []


@pytest.mark.modules("oidcc-ensure-post-request-succeeds")
@every
def test_request_by_post_is_accepted(suite: Any, flow: Flow) -> None:
    """Cross-site, hence without the service's cookies."""
    for parameters in ({}, {"prompt": "none"}):
        request = suite.first.new_request(**flow.parameters, **parameters)
        tokens = suite.first.obtain_tokens(suite.authorize(request, posted=True), request)
        assert tokens.claims["sub"] == suite.person.id
    assert suite.pages == []


@pytest.mark.modules(
    "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported",
    "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported",
)
@every
def test_unsigned_request_objects_are_refused(suite: Any, flow: Flow) -> None:
    """Some parameters are only in the object."""
    discovery = suite.world.client.discovery
    assert "none" not in discovery["request_object_signing_alg_values_supported"]
    assert discovery["request_uri_parameter_supported"] is False
    request = suite.first.new_request(**flow.parameters)
    names = ("client_id", "redirect_uri", "response_type", "response_mode", "scope")
    outer = {name: request.parameters[name] for name in names if name in request.parameters}
    inner = encode_jwt_segment(json.dumps(dict(request.parameters)))
    for sent, parameter in (
        (outer, {"request": f"{encode_jwt_segment({'alg': 'none'})}.{inner}."}),
        (request.parameters, {"request_uri": "https://app.example/request.jwt#abc"}),
    ):
        answer = suite.browser.open(replace(request, parameters={**sent, **parameter}).url)
        suite.first.check_error_response(answer, request, f"{next(iter(parameter))}_not_supported")


@pytest.mark.modules("oidcc-ensure-request-object-with-redirect-uri")
@every
def test_request_object_cannot_change_the_redirect_uri(suite: Any, flow: Flow) -> None:
    """Only the parameter outside the object counts."""
    inner = encode_jwt_segment(json.dumps({"redirect_uri": suite.first.redirect_uri}))
    unsigned = f"{encode_jwt_segment({'alg': 'none'})}.{inner}."
    request = suite.first.new_request(**flow.parameters, redirect_uri="https://evil.example", request=unsigned)
    check_page(suite.browser.open(request.url), 400, UNTRUSTED)


@pytest.mark.modules("oidcc-claims-essential")
@every
def test_claims_parameter_is_honored(suite: Any, flow: Flow) -> None:
    assert suite.world.client.discovery["claims_parameter_supported"] is True
    member = "userinfo" if flow.values & {"code", "token"} else "id_token"
    tokens = suite.tokens(**flow.parameters, claims=json.dumps({member: {"name": {"essential": True}}}))
    if member == "id_token":
        assert tokens.claims["name"]
    else:
        userinfo = suite.first.fetch_userinfo(tokens)
        assert userinfo.keys() == {"sub", "name"}
        assert userinfo["name"]


@pytest.mark.shows("4.3.12", "5.3.2")
@pytest.mark.modules("oidcc-refresh-token")
@with_code
def test_refresh_token_grant_succeeds(suite: Any, flow: Flow) -> None:
    """The ID token follows OpenID Connect Core §12.2; another client cannot use the refresh token."""
    for party, other in ((suite.first, suite.second), (suite.second, suite.first)):
        first = suite.tokens(**flow.parameters, relying_party=party, scope="openid offline_access", prompt="consent")
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
        check_oauth_error(other.refresh(answer.json["refresh_token"]), "invalid_grant")
        assert party.refresh(answer.json["refresh_token"]).status_int == 200


@pytest.mark.modules("oidcc-ensure-request-with-valid-pkce-succeeds")
@with_code
def test_pkce_is_enforced(suite: Any, flow: Flow) -> None:
    """Valid PKCE is part of every request here."""
    for verifier, status in ((None, 400), ("x" * 43, 400)):
        request = suite.first.new_request(**flow.parameters)
        assert request.parameters["code_challenge_method"] == "S256"
        code = suite.first.check_response(suite.authorize(request), request)["code"]
        assert suite.first.redeem(code, request, code_verifier=verifier).status_int == status


@pytest.mark.modules(
    "oidcc-redirect-uri-query-OK", "oidcc-redirect-uri-query-mismatch", "oidcc-redirect-uri-query-added"
)
@every
def test_query_of_the_redirect_uri_is_part_of_it(suite: Any, flow: Flow) -> None:
    """It comes back unmodified."""
    uri = "https://app.example/cb?dummy1=lorem&dummy2=%41"
    party = RelyingParty.register(suite.world, redirect_uri=uri, response_types=(flow.response_type,))
    assert suite.tokens(relying_party=party, **flow.parameters).claims["sub"] == suite.person.id
    plain = suite.first.redirect_uri
    mismatches = (
        "",
        "?dummy1=lorem",
        "?dummy1=lorem&dummy2=other",
        "?dummy2=%41&dummy1=lorem",
        "?dummy1=lorem&dummy2=A",
    )
    for sender, wrong in (*((party, plain + query) for query in mismatches), (suite.first, f"{plain}?a=b")):
        request = sender.new_request(**flow.parameters, redirect_uri=wrong)
        check_page(suite.browser.open(request.url), 400, UNTRUSTED)


@every
def test_client_without_the_response_type_is_refused(suite: Any, flow: Flow) -> None:
    other = "id_token" if flow.response_type == "code" else "code"
    party = RelyingParty.register(suite.world, response_types=(other,))
    party.expect_error_at_once(suite.browser, "unauthorized_client", **flow.parameters)


@every
def test_state_is_returned_unmodified(suite: Any, flow: Flow) -> None:
    for state in ('"><script>alert(1)</script>', "a&amp;b", "line\nbreak", "ü☃", " spaces  within "):
        suite.tokens(**flow.parameters, state=state)
        assert "<script>alert" not in suite.browser.page.text


@every
def test_second_user_in_second_browser_signs_in(suite: Any, flow: Flow) -> None:
    """Two users never share a subject."""
    first, other = suite.tokens(**flow.parameters), type(suite)(suite.world)
    other.browser = Browser(suite.world)
    assert other.tokens(relying_party=suite.first, **flow.parameters).claims["sub"] != first.claims["sub"]


@pytest.mark.modules("oidcc-idtoken-unsigned")
def test_id_tokens_are_always_signed(suite: Any) -> None:
    assert "none" not in suite.world.client.discovery["id_token_signing_alg_values_supported"]
    with pytest.raises(ValueError, match="id_token_signed_response_alg"):
        RelyingParty.register(suite.world, id_token_signed_response_alg="none")


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


@pytest.mark.modules("oidcc-server-rotate-keys")
def test_key_rotation_keeps_old_tokens_verifiable(own_suite: Any) -> None:
    """New tokens verify by the published keys, and so do the old ones."""
    first = own_suite.tokens()
    own_suite.world.operator_services.signing_keys.rotate(emergency=True)
    own_suite.world.clock.advance(30)
    second = own_suite.tokens(prompt="none")
    headers = [decode_jwt_unverified(item.id_token)[0] for item in (first, second)]
    assert headers[0]["kid"] != headers[1]["kid"]
    assert own_suite.first.check_id_token(first.id_token) == first.claims
    assert second.claims["sub"] == first.claims["sub"]
