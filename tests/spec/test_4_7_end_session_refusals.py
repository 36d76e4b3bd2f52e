"""Decisions, end session: refused requests neither redirect nor end a session."""

from urllib.parse import urlencode

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from identity.testing.browser import Browser
from identity.testing.fixtures import WorldCache
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World
from tests.spec.logout_requests import (
    BYE,
    CONFIRMATION,
    ENDPOINT,
    SIGNED_OUT,
    UNKNOWN,
    UNREADABLE,
    UNTRUSTED,
    is_signed_in,
)


def bad_hints(tokens: ReceivedTokens) -> list[str]:
    """Texts that resemble the ID token."""
    head, body, signature = tokens.id_token.split(".")
    return [
        tokens.access_token,
        tokens.refresh_token,
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-2]}",
        f"{head}.{body[:-4]}.{signature}",
        f"eyJhbGciOiJub25lIn0.{body}.",
        "x",
        "..",
        str(decode_jwt_unverified(tokens.id_token)[1]["sid"]),
        "x" * 8000,
    ]


def test_bad_hint_never_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens, world: World) -> None:
    """Decisions: users with a session must confirm, others see a page, whatever the other parameters are."""
    for hint in bad_hints(tokens):
        for parameters in ({}, {"client_id": party.client_id}):
            check_page(browser.open(party.logout_url(hint, state="s", **parameters)), 200, CONFIRMATION)
            nobody = Browser(world)
            check_page(nobody.open(party.logout_url(hint, state="s", **parameters)), 200, SIGNED_OUT)
    assert is_signed_in(browser.tab(), party)
    check_page(browser.open(party.logout_url("x", client_id=party.client_id)), 200, CONFIRMATION)
    check_page(browser.submit(), 200, SIGNED_OUT)


#: Near misses of BYE; a redirect URI is no post-logout URI.
NOT_REGISTERED = (
    *(f"https://app.example/{path}" for path in ("bye/", "bye?x=1", "bye#x", "BYE", "b%79e", "bye\n", "cb")),
    *(
        f"{start}/bye"
        for start in ("https://evil.example", "https://APP.example", " https://app.example", "http://app.example")
    ),
    *(f"{start}/bye" for start in ("https://app.example:443", "https://app.example@evil.example", "//app.example", "")),
    "javascript:alert(1)",
)


def test_unregistered_uri_never_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    """Security 7.8: string equality. No session ends."""
    for uri in NOT_REGISTERED:
        for hint, parameters in ((tokens.id_token, {}), (None, {"client_id": party.client_id})):
            answer = browser.open(party.logout_url(hint, post_logout_redirect_uri=uri, **parameters))
            page = check_page(answer, 400, UNTRUSTED)
            assert "evil" not in page.get_text()
    assert is_signed_in(browser, party)


@pytest.mark.parametrize("uri", [BYE, "https://evil.example/bye"])
def test_post_logout_uri_without_client_is_not_followed(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, uri: str
) -> None:
    """RP-Initiated Logout §2: without hint and client_id the user must confirm and is not redirected."""
    page = check_page(
        browser.open(party.logout_url(None, post_logout_redirect_uri=uri, state="s3cret")), 200, CONFIRMATION
    )
    assert "evil" not in page.get_text()
    page = check_page(browser.submit(), 200, SIGNED_OUT)
    assert uri not in [link["href"] for link in page.find_all("a")]
    assert all("s3cret" not in answer.headers.get("Location", "") for answer in browser.answers)
    assert not is_signed_in(browser, party)


def test_unknown_client_never_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    for client_id in ("unknown", "0" * 32, "' OR 1=1 --"):
        for uri in (BYE, None):
            answer = browser.open(party.logout_url(None, post_logout_redirect_uri=uri, client_id=client_id))
            check_page(answer, 400, UNKNOWN)
    assert is_signed_in(browser, party)


def test_deactivated_application_uri_never_redirects(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    world.operator_services.applications.deactivate(party.client_id)
    check_page(browser.open(party.logout_url(None, client_id=party.client_id)), 400, UNKNOWN)
    # The session can still be ended: the hint identifies it.
    check_page(browser.open(party.logout_url(tokens.id_token)), 200, SIGNED_OUT)
    assert not browser.session_cookies


def test_too_long_state_error_is_shown(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    check_page(browser.open(party.logout_url(tokens.id_token, state="s" * 2049)), 400, UNREADABLE)
    assert is_signed_in(browser, party)


def test_duplicate_parameter_is_refused(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    right = {"id_token_hint": tokens.id_token, "client_id": party.client_id, "post_logout_redirect_uri": BYE}
    for name in (*right, "state", "ui_locales", "logout_hint", "unheard"):
        pairs = [*({name: "x"} | right).items(), (name, right.get(name, "x"))]
        url = f"{ENDPOINT}?{urlencode(pairs)}"
        for answer in (browser.open(url), browser.post_form(ENDPOINT, pairs, initiator=party.origin)):
            assert f"{name} was given twice" in check_page(answer, 400, UNREADABLE).main.get_text()
    assert is_signed_in(browser, party)


@pytest.mark.thorough
@pytest.mark.parametrize("encoded", ["state=%", "state=%ff", "state=%00", "x" * (16 * 1024 + 1)])
def test_unreadable_request_is_refused(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, encoded: str
) -> None:
    status = 413 if len(encoded) > 16 * 1024 else 400
    check_page(browser.open(f"{ENDPOINT}?{encoded}"), status, UNREADABLE)
    check_page(browser.post_form(ENDPOINT, encoded.encode(), initiator=party.origin), status, UNREADABLE)
    assert is_signed_in(browser, party)


def test_body_without_form_is_refused(world: World) -> None:
    for content_type in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
        answer = world.client.request("POST", ENDPOINT, headers={"Content-Type": content_type}, body=b"{}")
        check_page(answer, 400, UNREADABLE)


def test_other_methods_do_not_sign_out(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    """A HEAD request of a link checker is not a click."""
    headers = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
    for method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = world.client.request(method, party.logout_url(tokens.id_token), headers=headers)
        assert answer.status_int == 405
        assert "Set-Cookie" not in answer.headers
    assert is_signed_in(browser, party)


@pytest.fixture
def target(world_cache: WorldCache, storage_name: str) -> tuple[Browser, RelyingParty, str]:
    """A browser with a session, an application, and an ID token. hypothesis forbids the function-scoped ``world``."""
    world = world_cache.shared_world(storage_name)
    party, browser = RelyingParty.register(world), Browser(world)
    browser.start_session(world.make_human_user())
    return browser, party, party.sign_in_silently(browser, prompt="none").id_token


_texts = st.text(st.characters(codec="utf-8"), max_size=40)


_addresses = st.sampled_from([BYE, "https://evil.example", f"{BYE}#", f"{BYE}/..", "\\\\evil", "//evil"]) | _texts


def test_unregistered_uri_is_never_redirected_to(target: tuple[Browser, RelyingParty, str]) -> None:
    browser, party, id_token = target
    # Only the first example has a session; the URI check does not depend on it.

    @settings(max_examples=50, derandomize=True)
    @given(
        st.none() | st.just(id_token) | _texts,
        st.none() | st.just(party.client_id) | _texts,
        _addresses,
        st.none() | _texts,
        st.booleans(),
    )
    @example(id_token, None, "https://evil.example", None, False)
    def check(hint: str | None, client_id: str | None, uri: str, state: str | None, posted: bool) -> None:
        parameters = {
            "id_token_hint": hint,
            "client_id": client_id,
            "post_logout_redirect_uri": uri,
            "state": state,
        }
        form = {name: value for name, value in parameters.items() if value is not None}
        if posted:
            answer = browser.post_form(ENDPOINT, form, initiator=party.origin)
        else:
            answer = browser.open(f"{ENDPOINT}?{urlencode(form)}")
        if browser.external_redirect is None:
            check_page(answer, answer.status_int)
            assert answer.status_int in (200, 400)
        else:
            assert answer.status_int == 303
            assert browser.external_redirect.partition("?")[0] == BYE == uri

    check()
