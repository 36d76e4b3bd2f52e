"""Profile Form Post OP: for every response type, a page posts the response to the redirect URI."""

from dataclasses import replace
from typing import Any

import pytest

from identity.testing.jwt_assertions import encode_jwt_segment
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error, check_page

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

CODE, ID_TOKEN, TOKEN = "code", "id_token", "id_token token"

every = pytest.mark.parametrize("response_type", [CODE, ID_TOKEN, TOKEN])


def tokens(suite: Any, response_type: str, **parameters: Any) -> Any:
    """The tokens of a posted response."""
    return suite.tokens(response_type, response_mode="form_post", **parameters)


@every
def test_response_is_posted(suite: Any, response_type: str) -> None:
    """oidcc-server: one form for the redirect URI, submitted by a script file, with a button where scripts are off.

    OAuth 2.0 Form Post Response Mode §4: it contains codes and tokens, and is never cached.
    """
    assert tokens(suite, response_type).claims["sub"] == suite.person.id
    page, headers = check_page(suite.browser.page), suite.browser.page.headers
    (form,) = page.find_all("form")
    assert (form["action"], form["method"]) == (suite.first.redirect_uri, "post")
    assert form.get("enctype") in (None, "application/x-www-form-urlencoded")
    assert [field["type"] for field in form.find_all("input")] == ["hidden"] * len(form.find_all("input"))
    assert form.find("button", attrs={"type": "submit"})
    assert suite.browser.external_redirect is None
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    (sender,) = (item["src"] for item in page.find_all("script") if "form_post" in item["src"])
    script = suite.browser.tab().open(sender)
    assert script.status_int == 200
    assert "submit" in script.text


@every
def test_errors_are_posted_too(suite: Any, response_type: str) -> None:
    """oidcc-prompt-none-not-logged-in and the like."""
    for parameters, error in (
        ({"prompt": "none"}, "login_required"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"request": "x.y."}, "request_not_supported"),
    ):
        suite.first.expect_error_at_once(
            suite.browser, error, response_type, **{"response_mode": "form_post"} | parameters
        )


def test_missing_response_type_error_is_posted(suite: Any) -> None:
    """oidcc-response-type-missing."""
    suite.first.expect_error_at_once(suite.browser, "invalid_request", None, response_mode="form_post")


@pytest.mark.parametrize("response_type", [ID_TOKEN, TOKEN])
def test_missing_nonce_error_is_posted(suite: Any, response_type: str) -> None:
    suite.first.expect_error_at_once(
        suite.browser, "invalid_request", response_type, nonce=None, response_mode="form_post"
    )


@every
def test_unsafe_redirect_error_is_shown(suite: Any, response_type: str) -> None:
    """oidcc-ensure-registered-redirect-uri."""
    request = suite.first.new_request(response_type, response_mode="form_post", redirect_uri="https://evil.example/cb")
    page = check_page(suite.browser.open(request.url), 400)
    assert page.find_all("form") == []


@every
def test_active_session_is_reused(suite: Any, response_type: str) -> None:
    """oidcc-prompt-none-logged-in, -max-age-10000, -id-token-hint."""
    first = tokens(suite, response_type)
    suite.world.clock.advance(5)
    second = tokens(suite, response_type, prompt="none", max_age=10_000, id_token_hint=first.id_token)
    assert suite.pages == []
    assert second.claims["auth_time"] == first.claims["auth_time"]


@every
def test_prompt_login_response_is_posted(suite: Any, response_type: str) -> None:
    """oidcc-prompt-login, oidcc-max-age-1."""
    first = tokens(suite, response_type)
    for parameters in ({"prompt": "login"}, {"max_age": 1}):
        suite.world.clock.advance(2)
        again = tokens(suite, response_type, **parameters)
        assert "password" in suite.pages
        assert again.claims["auth_time"] > first.claims["auth_time"]


@every
def test_request_by_post_is_accepted(suite: Any, response_type: str) -> None:
    """oidcc-ensure-post-request-succeeds: posted there and back."""
    request = suite.first.new_request(response_type, response_mode="form_post")
    suite.first.obtain_tokens(suite.authorize(request, posted=True), request)


@every
def test_redirect_uri_with_query_is_accepted(suite: Any, response_type: str) -> None:
    """oidcc-redirect-uri-query-OK: it is the form's action, unmodified."""
    party = RelyingParty.register(suite.world, redirect_uri="https://app.example/cb?a=1&b=%41")
    tokens(suite, response_type, by=party)


@every
def test_state_is_posted_unmodified(suite: Any, response_type: str) -> None:
    for state in ('"><script>alert(1)</script>', "a&amp;b", "line\nbreak", "ü☃", " spaces  within "):
        tokens(suite, response_type, state=state)
        assert "<script>alert" not in suite.browser.page.text


def test_posted_code_is_accepted_once(suite: Any) -> None:
    """oidcc-codereuse."""
    request = suite.first.new_request(response_mode="form_post")
    code = suite.first.extract_code(suite.authorize(request), request)
    assert suite.first.redeem(code, request).status_int == 200
    check_oauth_error(suite.first.redeem(code, request), "invalid_grant")


def test_page_reload_issues_new_code(suite: Any) -> None:
    """Reloading the page repeats the request; no code is shown twice."""
    request = suite.first.new_request(response_mode="form_post")
    suite.authorize(request)
    codes = {suite.first.extract_code(suite.browser.open(request.url), request) for _ in range(2)}
    assert len(codes) == 2


@every
def test_unsigned_request_object_is_refused(suite: Any, response_type: str) -> None:
    """oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported: the object contains the
    parameters.
    """
    request = suite.first.new_request(response_type, response_mode="form_post")
    inner = encode_jwt_segment(request.parameters)
    outer = {name: request.parameters[name] for name in ("client_id", "redirect_uri", "response_type", "scope")}
    sent = replace(request, parameters={**outer, "request": f"{encode_jwt_segment({'alg': 'none'})}.{inner}."})
    suite.first.check_error_response(suite.browser.open(sent.url), request, "request_not_supported", mode="form_post")
