"""Service description §4.2 and security 10.5, 10.6: the cookies of sign-ins and sessions."""

import pytest

from identity.domain.users import HumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World
from tests.spec.pending_requests import FOREIGN, attributes, begun


def test_sign_in_sets_cookies(
    world: World, anonymous_browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    """Security 10.6: ``__Host-``, Secure, HttpOnly, SameSite=Lax, Path=/, no Domain; the values are random.

    The cookie of a known browser is an exception: see test_known_browsers.

    The sign-in cookie outlives its sign-in while the sign-in is stored, so that it can be restarted.
    """
    authorization, request_id = begun(anonymous_browser, party)
    (header,) = anonymous_browser.answers[0].headers.getall("Set-Cookie")
    name, secret, cookie_attributes = attributes(header)
    assert name == f"__Host-sign-in-{request_id}"
    assert secret.isalnum()
    assert len(secret) >= 43
    assert cookie_attributes == {"Path=/", f"Max-Age={1800 + 86400}", "HttpOnly", "SameSite=Lax", "Secure"}
    answer = anonymous_browser.sign_in(login_name)
    session_id = party.obtain_tokens(answer, authorization).claims["sid"]
    set_here = {attributes(item)[0]: attributes(item)[1:] for item in answer.headers.getall("Set-Cookie")}
    [known] = [name for name in set_here if name.startswith("__Host-known-")]
    assert set(set_here) == {f"__Host-sign-in-{request_id}", f"__Host-session-{session_id}", known}
    assert set_here[f"__Host-sign-in-{request_id}"] == (
        "",
        {"Path=/", "Max-Age=0", "HttpOnly", "SameSite=Lax", "Secure"},
    )
    value, cookie_attributes = set_here[f"__Host-session-{session_id}"]
    assert len(value) >= 43
    assert cookie_attributes == {"Path=/", f"Max-Age={7 * 86400}", "HttpOnly", "SameSite=Lax", "Secure"}
    assert person.id not in str(anonymous_browser.cookies.names)


def test_over_plain_http_the_cookies_have_no_prefix(make_world: WorldFactory) -> None:
    """Security 10.6: only with the development setting, on loopback; browsers refuse Secure cookies there."""
    world = make_world(**{"identity.issuer_url": "http://127.0.0.1:8080", "identity.development": "true"})
    party, browser, person = RelyingParty.register(world), Browser(world), world.make_human_user()
    authorization, request_id = begun(browser, party)
    assert browser.cookies.names == {f"sign-in-{request_id}"}
    answer = browser.sign_in(set_password(world, person))
    session_id = party.obtain_tokens(answer, authorization).claims["sid"]
    assert browser.cookies.names >= {f"session-{session_id}"}
    assert f"sign-in-{request_id}" not in browser.cookies.names
    assert all("Secure" not in item for item in answer.headers.getall("Set-Cookie"))


@pytest.mark.shows("4.2.1")
def test_cookies_are_bound_to_login_host(three_host_world: World) -> None:
    party, browser, person = (
        RelyingParty.register(three_host_world),
        Browser(three_host_world),
        three_host_world.make_human_user(),
    )
    authorization, _ = begun(browser, party)
    party.obtain_tokens(browser.sign_in(set_password(three_host_world, person)), authorization)
    assert {cookie.host for cookie in browser.cookies} == {"login.example.com"}
    assert {cookie.domain for cookie in browser.cookies} == {""}


def test_planted_session_cookie_is_not_adopted(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str
) -> None:
    """Security 10.5: sessions start with a secret of the service; cookies set before are ignored."""
    planted = "a" * 43
    forged = "01a1fd25-1c8c-754f-b83a-b6dca1f4762c"
    anonymous_browser.cookies.store(
        anonymous_browser.login_url, f"__Host-session-{forged}={planted}; Path=/; Secure", world.clock()
    )
    authorization, _ = begun(anonymous_browser, party)
    session_id = party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization).claims["sid"]
    assert session_id != forged
    assert planted not in {cookie.value for cookie in anonymous_browser.cookies if cookie.name.endswith(session_id)}


@pytest.mark.parametrize(
    "header",
    [
        "=",
        ";;;",
        "__Host-session-",
        "__Host-session-=x",
        "__Host-session-x=",
        "__Host-session-x=\xff\xfe",
        "__Host-session-x=" + "a" * 10_000,
        "__Host-sign-in-x=../..",
        '__Host-session-x="quoted"',
        "; ".join(f"__Host-session-{number:036}={'a' * 43}" for number in range(200)),
        "session-x=" + "a" * 43,
    ],
)
def test_malformed_cookies_are_ignored(world: World, party: RelyingParty, header: str) -> None:
    authorization = party.new_request(prompt="none")
    answer = world.client.get(authorization.url, {"Cookie": header})
    party.check_error_response(answer, authorization, "login_required")


def test_browser_keeps_newest_sign_ins(anonymous_browser: Browser, party: RelyingParty, login_name: str) -> None:
    """The Cookie header must stay below the limits of servers; the current tab continues."""
    tabs = [anonymous_browser.tab() for _ in range(15)]
    authorizations = [begun(tab, party)[0] for tab in tabs]
    assert len([name for name in anonymous_browser.cookies.names if "sign-in" in name]) == 10
    party.obtain_tokens(tabs[-1].sign_in(login_name), authorizations[-1])
    check_page(tabs[0].reload(), 400, FOREIGN)


def test_browser_keeps_newest_sessions(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str
) -> None:
    """The oldest is deleted; otherwise it would reappear when the others sign out."""
    oldest = anonymous_browser.start_session(world.make_human_user())
    for _ in range(9):
        anonymous_browser.start_session(world.make_human_user())
    authorization, _ = begun(anonymous_browser, party, prompt="select_account")
    anonymous_browser.select_account("Use another account")
    party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization)
    assert len(anonymous_browser.session_cookies) == 10
    assert f"__Host-session-{oldest.id}" not in anonymous_browser.session_cookies
    # Entering the password again does not add a session.
    authorization, _ = begun(anonymous_browser, party, prompt="login", login_hint=login_name)
    party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization)
    assert len(anonymous_browser.session_cookies) == 10
