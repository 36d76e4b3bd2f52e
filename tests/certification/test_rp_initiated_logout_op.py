"""Profile RP-Initiated Logout OP, for each response type."""

from typing import Any

import pytest

from identity.testing.relying_party import ReceivedTokens
from identity.testing.response_checks import check_page

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

CONFIRMATION, SIGNED_OUT, UNTRUSTED = "Sign out?", "You are signed out", "We cannot send you back to this application"

every = pytest.mark.parametrize("response_type", ["code", "id_token", "id_token token"])


@pytest.fixture(params=["code", "id_token", "id_token token"])
def signed_in(suite: Any, request: pytest.FixtureRequest) -> ReceivedTokens:
    """Tokens by each response type, from a session that began on the pages."""
    tokens: ReceivedTokens = suite.tokens(request.param)
    return tokens


def is_signed_in(suite: Any) -> bool:
    """Whether an authorization request with prompt=none succeeds."""
    request = suite.first.new_request(prompt="none")
    members = suite.first.check_response(suite.browser.tab().open(request.url), request)
    assert members.get("error") in (None, "login_required")
    return "code" in members


def sign_out(suite: Any, id_token: str | None, **parameters: str | None) -> Any:
    """The response to a logout request."""
    return suite.browser.open(suite.first.logout_url(id_token, **parameters), initiator=suite.first.origin)


@pytest.mark.modules("oidcc-rp-initiated-logout-discovery-endpoint-verification")
def test_discovery_lists_end_session_endpoint(suite: Any) -> None:
    assert suite.world.client.discovery["end_session_endpoint"].startswith("https://")


@pytest.mark.modules("oidcc-rp-initiated-logout")
@pytest.mark.shows("4.7.2")
def test_sign_out_with_hint_redirects(suite: Any, signed_in: ReceivedTokens) -> None:
    sign_out(suite, signed_in.id_token, state="some-state")
    assert suite.browser.external_redirect == f"{suite.first.post_logout_redirect_uri}?state=some-state"
    assert not is_signed_in(suite)


def test_sign_out_by_post_redirects(suite: Any, signed_in: ReceivedTokens) -> None:
    """RP-Initiated Logout §2: GET and POST must be supported."""
    form = {
        "id_token_hint": signed_in.id_token,
        "post_logout_redirect_uri": suite.first.post_logout_redirect_uri,
        "state": "some-state",
    }
    suite.browser.post_form(suite.world.client.discovery["end_session_endpoint"], form, initiator=suite.first.origin)
    assert suite.browser.external_redirect == f"{suite.first.post_logout_redirect_uri}?state=some-state"
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-no-state")
def test_sign_out_without_state_redirects(suite: Any, signed_in: ReceivedTokens) -> None:
    """No state is returned."""
    sign_out(suite, signed_in.id_token)
    assert suite.browser.external_redirect == suite.first.post_logout_redirect_uri
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-no-post-logout-redirect-uri")
def test_sign_out_without_redirect_uri_shows_page(suite: Any, signed_in: ReceivedTokens) -> None:
    check_page(sign_out(suite, signed_in.id_token, post_logout_redirect_uri=None), 200, SIGNED_OUT)
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-no-params")
def test_sign_out_without_parameters_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    """The user must confirm and is not redirected."""
    check_page(sign_out(suite, None, post_logout_redirect_uri=None), 200, CONFIRMATION)
    check_page(suite.browser.submit(), 200, SIGNED_OUT)
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-only-state")
def test_sign_out_with_state_only_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    """No redirect."""
    check_page(sign_out(suite, None, post_logout_redirect_uri=None, state="some-state"), 200, CONFIRMATION)
    check_page(suite.browser.submit(), 200, SIGNED_OUT)
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-no-id-token-hint")
def test_sign_out_without_hint_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    """The user must confirm, and an unassigned URI is not redirected to."""
    check_page(sign_out(suite, None, state="some-state"), 200, CONFIRMATION)
    check_page(suite.browser.submit(), 200, SIGNED_OUT)
    assert suite.browser.external_redirect is None
    assert not is_signed_in(suite)


def test_sign_out_with_client_id_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    """RP-Initiated Logout §2: the user confirms, then is redirected."""
    check_page(sign_out(suite, None, client_id=suite.first.client_id, state="some-state"), 200, CONFIRMATION)
    suite.browser.submit()
    assert suite.browser.external_redirect == f"{suite.first.post_logout_redirect_uri}?state=some-state"
    assert not is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-modified-id-token-hint")
def test_modified_hint_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    """Never back to the application."""
    head, body, signature = signed_in.id_token.split(".")
    turned = "A" if signature[10] != "A" else "B"
    for hint in (f"{head}.{body}.{signature[:10]}{turned}{signature[11:]}", f"{head}.{body}."):
        check_page(sign_out(suite, hint, state="some-state"), 200, CONFIRMATION)
    check_page(suite.browser.submit(), 200, SIGNED_OUT)


@pytest.mark.modules("oidcc-rp-initiated-logout-bad-id-token-hint")
def test_invalid_hint_needs_confirmation(suite: Any, signed_in: ReceivedTokens) -> None:
    check_page(sign_out(suite, "bad", state="some-state"), 200, CONFIRMATION)
    assert is_signed_in(suite)


@pytest.mark.modules("oidcc-rp-initiated-logout-bad-post-logout-redirect-uri")
@pytest.mark.sampled(8)
@pytest.mark.parametrize("uri", ["https://app.example/bye/no", "https://evil.example/bye", "https://app.example"])
def test_unregistered_post_logout_uri_never_redirects(suite: Any, signed_in: ReceivedTokens, uri: str) -> None:
    """An error, and no redirect."""
    check_page(sign_out(suite, signed_in.id_token, post_logout_redirect_uri=uri), 400, UNTRUSTED)


@pytest.mark.modules("oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri")
def test_post_logout_uri_with_added_query_never_redirects(suite: Any, signed_in: ReceivedTokens) -> None:
    uri = f"{suite.first.post_logout_redirect_uri}?extra=foobar"
    check_page(sign_out(suite, signed_in.id_token, post_logout_redirect_uri=uri), 400, UNTRUSTED)


def test_sign_in_after_sign_out_requires_password(suite: Any, signed_in: ReceivedTokens) -> None:
    sign_out(suite, signed_in.id_token)
    again = suite.tokens()
    assert suite.pages == [""]
    assert again.claims["sid"] != signed_in.claims["sid"]


@every
def test_sign_out_ends_issued_tokens(suite: Any, response_type: str) -> None:
    tokens = suite.tokens(response_type)
    offline = suite.tokens(scope="openid offline_access", prompt="none")
    sign_out(suite, tokens.id_token)
    for item in (tokens, offline):
        if "access_token" in item.members:
            assert suite.world.client.fetch_userinfo(item.access_token).status_int == 401
    assert suite.first.refresh(offline.refresh_token).status_int == 200
