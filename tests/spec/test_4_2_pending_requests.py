"""Service description §4.2 and security 4.8: a pending request belongs to one browser and has one response."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.concurrency import run_in_executor
from identity.domain.users import HumanUser
from identity.services.commands.applications import ChangeApplication
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.service_test_client import FORM_CONTENT_TYPE
from identity.testing.world import World
from tests.spec.pending_requests import FOREIGN, attributes, begun

UNKNOWN = "This sign-in is no longer known"
DONE = "This sign-in is complete"
EXPIRED = "This sign-in took too long"


# --- POST -------------------------------------------------------------------------------------------------------------


def test_cross_site_post_is_answered_by_following_get(browser: Browser, party: RelyingParty, person: HumanUser) -> None:
    """Decisions: SameSite=Lax withholds cookies from a cross-site POST; the GET after the redirect has them."""
    authorization = party.new_request()
    answer = browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    stored, answered = browser.answers
    assert "Cookie" not in stored.request.headers
    assert stored.status_int == 303
    assert stored.location.startswith(f"{browser.login_url}/oauth/v2/authorize/")
    assert stored.headers["Cache-Control"] == "no-store"
    assert answered.request.method == "GET"
    assert answered.request.headers["Sec-Fetch-Site"] == "cross-site"
    assert party.obtain_tokens(answer, authorization).claims["sub"] == person.id


@pytest.mark.parametrize(("response_type", "mode"), [("code", "form_post"), ("id_token token", None), ("code", None)])
def test_post_is_answered_in_every_mode(
    browser: Browser, party: RelyingParty, response_type: str, mode: str | None
) -> None:
    authorization = party.new_request(response_type, response_mode=mode)
    party.obtain_tokens(
        browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin), authorization
    )


def test_post_leads_to_login_pages(
    anonymous_browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    authorization = party.new_request(prompt="login", state="a b&c=d")
    anonymous_browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    assert anonymous_browser.sign_in_step == ""
    assert party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization).claims["sub"] == person.id


def test_post_leaves_no_cookie(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    before = browser.cookies.names
    browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    assert browser.cookies.names == before


def test_post_response_is_bound_to_browser(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    """Login CSRF: another user's browser cannot complete a request that an attacker started."""
    authorization = party.new_request()
    attacker = Browser(world)
    stored = attacker.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    resumed = attacker.answers[0].location
    assert stored is not None
    check_page(browser.open(resumed, initiator="https://evil.example"), 400, FOREIGN)


def test_urls_come_from_settings(world: World, browser: Browser, party: RelyingParty) -> None:
    """Security 12.1: behind a TLS-terminating proxy the request does not contain the scheme or port."""
    cookies = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
    proxied = {"wsgi.url_scheme": "http", "HTTP_HOST": "id.example.com:443", "HTTP_X_FORWARDED_HOST": "evil.example"}
    authorization = party.new_request(prompt="login")
    body = urlencode(authorization.parameters).encode()
    for answer in (
        world.client.request("GET", authorization.url, headers=cookies, environ=proxied),
        world.client.request(
            "POST", authorization.endpoint, headers={"Content-Type": FORM_CONTENT_TYPE}, body=body, environ=proxied
        ),
        world.client.request("GET", party.logout_url(client_id=party.client_id), headers=cookies, environ=proxied),
        world.client.request("GET", party.logout_url(post_logout_redirect_uri=None), environ=proxied),
        world.client.request("POST", party.logout_url(), headers={"Content-Type": FORM_CONTENT_TYPE}, environ=proxied),
    ):
        assert answer.status_int == 303
        assert answer.headers["Location"].startswith(f"{world.issuer}/")


# --- one browser, one response ----------------------------------------------------------------------------------------


def test_pending_request_is_bound_to_browser(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str, browser: Browser
) -> None:
    """Security 4.8: another browser cannot open any URL of the sign-in, with or without a session."""
    authorization, request_id = begun(anonymous_browser, party)
    anonymous_browser.submit({"login_name": login_name})
    steps = ("", "/password", "/accounts", "/register", "/consent", "/password/change")
    for other in (Browser(world), browser):
        for path in (f"/oauth/v2/authorize/{request_id}", *(f"/login/{request_id}{step}" for step in steps)):
            check_page(other.open(path), 400, FOREIGN)
            assert not any(request_id in name for name in other.cookies.names)
    party.obtain_tokens(anonymous_browser.submit({"password": PASSWORD}), authorization)


def test_pending_request_forms_are_bound_to_browser(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str
) -> None:
    authorization, _ = begun(anonymous_browser, party)
    anonymous_browser.submit({"login_name": login_name})
    fields = dict(anonymous_browser.find_form().submit_fields()) | {"password": PASSWORD}
    browser = Browser(world)
    check_page(browser.post_form(anonymous_browser.url, fields, initiator=browser.login_url), 400, FOREIGN)
    party.obtain_tokens(anonymous_browser.submit({"password": PASSWORD}), authorization)


def test_cookie_of_other_sign_in_is_refused(anonymous_browser: Browser, party: RelyingParty, world: World) -> None:
    """The cookie's secret belongs to one request."""
    _, first = begun(anonymous_browser, party)
    _, second = begun(anonymous_browser.tab(), party)
    (secret,) = (cookie.value for cookie in anonymous_browser.cookies if cookie.name.endswith(first))
    anonymous_browser.cookies.store(
        anonymous_browser.login_url, f"__Host-sign-in-{second}={secret}; Path=/; Secure", world.clock()
    )
    check_page(anonymous_browser.open(f"/oauth/v2/authorize/{second}"), 400, FOREIGN)


@pytest.mark.parametrize("request_id", ["01a1fd25-1c8c-754f-b83a-b6dca1f4762c", "x", "%00", "%2e%2e", "%ff", "a" * 300])
def test_unknown_sign_in_is_refused(anonymous_browser: Browser, request_id: str) -> None:
    for path in (f"/oauth/v2/authorize/{request_id}", f"/login/{request_id}"):
        assert anonymous_browser.open(path).status_int in (400, 404)
        check_page(anonymous_browser.page, anonymous_browser.page.status_int)


def test_finished_request_answers_once(anonymous_browser: Browser, party: RelyingParty, login_name: str) -> None:
    """Pages §4.2: back, reload or another tab shows a page, never a second code."""
    authorization, request_id = begun(anonymous_browser, party)
    secret = next(cookie for cookie in anonymous_browser.cookies if cookie.name.endswith(request_id))
    code = party.extract_code(anonymous_browser.sign_in(login_name), authorization)
    # Without the cookie, which ended with the request, and with it, as a restored tab could send it.
    for header in (f"{secret.name}=; Max-Age=0", f"{secret.name}={secret.value}"):
        anonymous_browser.cookies.store(
            anonymous_browser.login_url, f"{header}; Path=/; Secure", anonymous_browser.world.clock()
        )
        for path in (f"/oauth/v2/authorize/{request_id}", f"/login/{request_id}", f"/login/{request_id}/password"):
            page = check_page(anonymous_browser.open(path), 200, DONE)
            assert code not in page.get_text()
    assert party.redeem(code, authorization).status_int == 200


def test_failed_request_answers_once(anonymous_browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request(prompt="none")
    anonymous_browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    stored, answered = anonymous_browser.answers
    party.check_error_response(answered, authorization, "login_required")
    check_page(anonymous_browser.open(stored.location), 200, DONE)
    name, secret, _ = attributes(stored.headers["Set-Cookie"])
    anonymous_browser.cookies.store(
        anonymous_browser.login_url, f"{name}={secret}; Path=/; Secure", anonymous_browser.world.clock()
    )
    check_page(anonymous_browser.open(stored.location), 200, DONE)


def test_concurrent_resumptions_answer_once(
    world: World, browser: Browser, party: RelyingParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one has read the request before the first one finishes it."""
    from identity.services.sign_ins import SignInService

    authorization = party.new_request()
    stored = world.client.post(authorization.endpoint, dict(authorization.parameters))
    name, secret, _ = attributes(stored.headers["Set-Cookie"])
    browser.cookies.store(browser.login_url, f"{name}={secret}; Path=/; Secure", world.clock())
    cookies = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
    find = SignInService.find
    raced: list[Any] = []

    def found_before_the_other_finished(*arguments: Any) -> Any:
        pending = find(*arguments)
        if not raced:
            raced.append(None)
            with ThreadPoolExecutor(1) as thread:
                raced[0] = run_in_executor(thread, lambda: browser.open(stored.location))
        return pending

    with monkeypatch.context() as patch:
        patch.setattr(SignInService, "find", found_before_the_other_finished)
        answer = world.client.get(stored.location, cookies)
    party.obtain_tokens(raced[0], authorization)
    check_page(answer, 200, DONE)


def test_tabs_are_independent(
    anonymous_browser: Browser, party: RelyingParty, login_name: str, person: HumanUser
) -> None:
    """Decisions: the URL contains the id of the request."""
    browser = anonymous_browser.tab()
    (first, _), (second, _) = begun(anonymous_browser, party), begun(browser, party, scope="openid email")
    anonymous_browser.submit({"login_name": login_name})
    assert party.obtain_tokens(browser.sign_in(login_name), second).scope == ["openid", "email"]
    tokens = party.obtain_tokens(anonymous_browser.submit({"password": PASSWORD}), first)
    assert (tokens.claims["sub"], tokens.scope) == (person.id, ["openid"])
    assert len(anonymous_browser.session_cookies) == 1


def test_concurrent_sign_in_in_other_tab_is_offered(
    anonymous_browser: Browser, party: RelyingParty, login_name: str, person: HumanUser
) -> None:
    browser = anonymous_browser.tab()
    (first, request_id), (second, _) = begun(anonymous_browser, party), begun(browser, party)
    party.obtain_tokens(browser.sign_in(login_name), second)
    anonymous_browser.open(f"/oauth/v2/authorize/{request_id}")
    assert party.obtain_tokens(anonymous_browser.page, first).claims["sub"] == person.id


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT"])
def test_request_is_resumed_by_get_only(world: World, browser: Browser, party: RelyingParty, method: str) -> None:
    """A HEAD request must not use it up (RFC 9110 §9.3.2)."""
    authorization = party.new_request()
    stored = world.client.post(authorization.endpoint, dict(authorization.parameters))
    name, secret, _ = attributes(stored.headers["Set-Cookie"])
    browser.cookies.store(browser.login_url, f"{name}={secret}; Path=/; Secure", world.clock())
    cookies = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
    answer = world.client.request(method, stored.location, headers=cookies)
    assert answer.status_int == 405
    assert "Location" not in answer.headers
    party.obtain_tokens(browser.open(stored.location), authorization)


# --- time -------------------------------------------------------------------------------------------------------------


def test_pending_request_expires_after_half_an_hour(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str
) -> None:
    """Security 4.8: the half hour is a setting."""
    authorization, _ = begun(anonymous_browser, party)
    world.clock.advance(minutes=29, seconds=59)
    party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization)


def test_expired_request_can_be_started_again(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str, person: HumanUser
) -> None:
    """Pages §4.2: 410; a new request with the same parameters, in the browser that started it."""
    authorization, request_id = begun(anonymous_browser, party, scope="openid email", prompt="login")
    world.clock.advance(minutes=30)
    for path in (f"/login/{request_id}", f"/oauth/v2/authorize/{request_id}"):
        check_page(anonymous_browser.open(path), 410, EXPIRED)
    anonymous_browser.submit()
    assert anonymous_browser.sign_in_step == ""
    assert anonymous_browser.path.split("/")[2] != request_id
    tokens = party.obtain_tokens(anonymous_browser.sign_in(login_name), authorization)
    assert (tokens.claims["sub"], tokens.scope) == (person.id, ["openid", "email"])


@pytest.mark.thorough
def test_pending_request_ttl_is_a_setting(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.sign_in_lifetime": "2m"})
    party, browser = RelyingParty.register(world), Browser(world)
    begun(browser, party)
    world.clock.advance(minutes=1, seconds=59)
    check_page(browser.reload(), 200, "Sign in")
    world.clock.advance(seconds=1)
    check_page(browser.reload(), 410, EXPIRED)


def test_expired_and_finished_requests_are_purged(isolated_world: World) -> None:
    party, browser = RelyingParty.register(isolated_world), Browser(isolated_world)
    _, request_id = begun(browser, party)
    isolated_world.clock.advance(days=2)
    isolated_world.identity.background_jobs.purge()
    check_page(browser.open(f"/oauth/v2/authorize/{request_id}"), 404, UNKNOWN)


# --- concurrent changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["deactivated", "removed", "sent elsewhere"])
def test_application_is_rechecked_on_resumption(
    world: World, anonymous_browser: Browser, party: RelyingParty, change: str
) -> None:
    """Security 7.4: a URI that is no longer registered gets no response."""
    _, request_id = begun(anonymous_browser, party)
    title = "This application is unknown"
    if change == "deactivated":
        world.operator_services.applications.deactivate(party.client_id)
    elif change == "removed":
        world.operator_services.applications.remove(party.client_id)
    else:
        moved = ChangeApplication(redirect_uris=("https://app.example/new",))
        world.operator_services.applications.change(party.client_id, moved)
        title = "We cannot send you back to this application"
    check_page(anonymous_browser.open(f"/oauth/v2/authorize/{request_id}"), 400, title)
    check_page(anonymous_browser.open(f"/login/{request_id}"), 400, title)
    assert not anonymous_browser.session_cookies


def test_response_type_is_rechecked_on_resumption(
    world: World, anonymous_browser: Browser, party: RelyingParty, login_name: str
) -> None:
    authorization = party.new_request("id_token token")
    anonymous_browser.open(authorization.url)
    world.operator_services.applications.change(party.client_id, ChangeApplication(response_types=frozenset({"code"})))
    party.check_error_response(anonymous_browser.reload(), authorization, "unauthorized_client")
    assert "access_token" not in (anonymous_browser.external_redirect or "")


def test_user_deactivation_is_rechecked_on_resumption(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    authorization, _ = begun(browser, party, prompt="consent")
    world.operator_services.storage.users.update(replace(person, active=False, version=person.version + 1))
    browser.submit(button=("decision", "allow"))
    assert browser.external_redirect is None
    assert browser.sign_in_step == ""
    assert authorization.parameters["prompt"] == "consent"


def test_session_end_is_rechecked_on_resumption(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    authorization, _ = begun(browser, party, prompt="consent")
    with world.transaction_services() as services:
        services.storage.sessions.end_for_user(person.id, services.now)
    browser.submit(button=("decision", "allow"))
    assert browser.external_redirect is None
    assert authorization.parameters["prompt"] == "consent"


# --- sign-in for the service's pages ----------------------------------------------------------------------------------


def test_service_pages_sign_in_without_application(
    anonymous_browser: Browser, login_name: str, person: HumanUser
) -> None:
    """Pages §4.1: /login alone creates its own request."""
    anonymous_browser.open("/login")
    assert anonymous_browser.sign_in_step == ""
    anonymous_browser.sign_in(login_name)
    by_location = {answer.headers.get("Location"): answer for answer in anonymous_browser.answers}
    assert by_location[f"{anonymous_browser.login_url}/account"].headers["Cache-Control"] == "no-store"
    assert len(anonymous_browser.session_cookies) == 1


def test_service_pages_do_not_redirect_elsewhere(browser: Browser) -> None:
    """Users with a session are redirected at once, but only on this host."""
    for target in (
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/%0d%0aLocation:%20x",
        "javascript:x",
    ):
        browser.open(f"/login?target={target}")
        assert all("evil" not in (answer.headers.get("Location") or "") for answer in browser.answers)
        assert browser.external_redirect is None
