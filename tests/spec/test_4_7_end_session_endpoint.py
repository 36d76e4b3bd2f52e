"""Service description §4.7 and decisions, end session: OpenID Connect RP-Initiated Logout."""

from urllib.parse import parse_qsl

import pytest

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser, TokenFormat
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.response_checks import check_inactive_token, check_page
from identity.testing.service_test_client import FORM_CONTENT_TYPE
from identity.testing.world import World
from tests.spec.logout_requests import (
    BYE,
    CONFIRMATION,
    ENDPOINT,
    SIGNED_OUT,
    UNREADABLE,
    UNTRUSTED,
    check_sent_back,
    is_signed_in,
)

# --- with a hint of this session --------------------------------------------------------------------------------------


@pytest.mark.shows("4.7.1")
def test_endpoint_exists_on_login_host_only(three_host_world: World) -> None:
    assert three_host_world.client.discovery["end_session_endpoint"] == "https://login.example.com/oauth/v2/endsession"
    for host in ("https://id.example.com", "https://api.example.com"):
        assert three_host_world.client.get(f"{host}/oauth/v2/endsession").status_int == 404


@pytest.mark.shows("4.7.2")
def test_hint_of_session_signs_out_and_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    answer = browser.open(party.logout_url(tokens.id_token), initiator=party.origin)
    check_sent_back(answer)
    assert len(browser.answers) == 1
    (header,) = answer.headers.getall("Set-Cookie")
    assert header == f"__Host-session-{tokens.claims['sid']}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


@pytest.mark.shows("4.7.2")
def test_post_signs_out_and_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    """A cross-site POST has no cookies; the GET after the redirect has them."""
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE, "state": "a b"}
    answer = browser.post_form(ENDPOINT, form, initiator=party.origin)
    assert "Cookie" not in browser.answers[0].request.headers
    check_sent_back(answer, f"{BYE}?state=a+b")
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


def test_same_site_post_signs_out_and_redirects(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE}
    check_sent_back(browser.post_form(ENDPOINT, form, initiator=browser.login_url))
    assert not is_signed_in(browser, party)


def test_sign_out_without_redirect_uri_shows_page(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    answer = browser.open(party.logout_url(tokens.id_token, post_logout_redirect_uri=None, state="s3cret"))
    check_page(answer, 200, SIGNED_OUT)
    assert all("s3cret" not in (answer.headers.get("Location") or "") for answer in browser.answers)
    assert not is_signed_in(browser, party)


def test_expired_hint_is_accepted(world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    """RP-Initiated Logout §2: the OP accepts ID tokens whose exp has passed. Repeating the request changes nothing."""
    world.clock.advance(hours=11)
    for _ in range(2):
        check_sent_back(browser.open(party.logout_url(tokens.id_token)))
        assert not browser.session_cookies


def test_client_id_must_match_hint(world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    """RP-Initiated Logout §2: the OP must verify that they match."""
    relying_party = RelyingParty.register(world)
    for client_id in (relying_party.client_id, "unknown", party.client_id.upper()):
        answer = browser.open(party.logout_url(tokens.id_token, client_id=client_id))
        check_page(answer, 400, UNREADABLE)
    assert is_signed_in(browser, party)
    check_sent_back(browser.open(party.logout_url(tokens.id_token, client_id=party.client_id)))


@pytest.mark.parametrize(
    "state", ["0", "a b+c&d=e#f", "%41%2f", "ü☃\U0001f511", '"<script>\\', "x" * 2000, "a\r\nSet-Cookie: x=y"]
)
def test_state_is_returned_unmodified(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, state: str
) -> None:
    answer = browser.open(party.logout_url(tokens.id_token, state=state))
    address, _, query = answer.headers["Location"].partition("?")
    assert address == BYE
    assert parse_qsl(query, strict_parsing=True) == [("state", state)]


def test_post_logout_uri_keeps_query(world: World, browser: Browser) -> None:
    uri = "https://app.example/bye?tenant=%41&x="
    party = RelyingParty.register(world, post_logout_redirect_uri=uri)
    check_sent_back(
        browser.open(party.logout_url(party.sign_in_silently(browser, prompt="none").id_token, state="s")),
        f"{uri}&state=s",
    )


def test_native_application_is_opened_by_its_scheme(world: World, browser: Browser) -> None:
    """RFC 8252 §7.1."""
    party = RelyingParty.register(
        world,
        type=ApplicationType.NATIVE,
        authentication_method="none",
        redirect_uri="com.example.app:/cb",
        post_logout_redirect_uri="com.example.app:/bye",
    )
    check_sent_back(
        browser.open(party.logout_url(party.sign_in_silently(browser, prompt="none").id_token)), "com.example.app:/bye"
    )


def test_sign_out_ends_only_hinted_session(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    """Other users of the browser and the user's other browsers stay signed in."""
    other_person = world.make_human_user()
    browser.start_session(other_person)
    person_id = tokens.claims["sub"]
    person = world.operator_services.users.get(person_id)
    other_browser = Browser(world)
    other_browser.start_session(person)
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))
    assert party.sign_in_silently(browser, prompt="none").claims["sub"] == other_person.id
    assert party.sign_in_silently(other_browser, prompt="none").claims["sub"] == person_id


def test_hint_of_any_application_names_session(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    """A session serves many applications; each may end it and redirect to its own URIs."""
    relying_party = RelyingParty.register(world, post_logout_redirect_uri="https://other.example/bye")
    received_tokens = relying_party.sign_in_silently(browser, prompt="none")
    check_page(
        browser.open(relying_party.logout_url(received_tokens.id_token, post_logout_redirect_uri=BYE)), 400, UNTRUSTED
    )
    check_sent_back(browser.open(relying_party.logout_url(received_tokens.id_token)), "https://other.example/bye")
    assert not is_signed_in(browser, party)


# --- effects of ending a session --------------------------------------------------------------------------------------


@pytest.mark.shows("4.4.4")
def test_sign_out_ends_access_tokens(world: World, browser: Browser, person: HumanUser) -> None:
    """Service description §4.4: introspection also checks that the token is not revoked, by client or by logout."""
    first = RelyingParty.register(world)
    second = RelyingParty.register(world, access_token_type=TokenFormat.JWT)
    outstanding = [
        (first, first.sign_in_silently(browser, prompt="none")),
        (second, second.sign_in_silently(browser, prompt="none")),
        (first, first.sign_in_silently(browser, "id_token token", prompt="none")),
    ]
    other_browser = Browser(world)
    other_browser.start_session(person)
    received_tokens = first.sign_in_silently(other_browser, prompt="none")
    for party, tokens in outstanding:
        assert party.client.introspect(tokens.access_token, party.credentials).json["active"] is True
    browser.open(first.logout_url(outstanding[0][1].id_token))
    for party, tokens in outstanding:
        check_inactive_token(party.client.introspect(tokens.access_token, party.credentials))
        assert party.client.fetch_userinfo(tokens.access_token).status_int == 401
    assert first.fetch_userinfo(received_tokens)["sub"] == person.id


def test_sign_out_keeps_offline_refresh_tokens(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, person: HumanUser
) -> None:
    """Security 7.8; refreshed tokens are not bound to a session."""
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))
    assert party.client.fetch_userinfo(tokens.access_token).status_int == 401
    answer = party.refresh(tokens.refresh_token)
    assert answer.status_int == 200
    claims = party.check_id_token(answer.json["id_token"], access_token=answer.json["access_token"])
    assert claims["sub"] == person.id
    assert party.client.fetch_userinfo(answer.json["access_token"]).status_int == 200
    again = party.refresh(answer.json["refresh_token"])
    assert again.status_int == 200


def test_sign_out_ends_codes(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    authorization = party.new_request()
    code = party.extract_code(browser.open(authorization.url), authorization)
    browser.open(party.logout_url(tokens.id_token))
    answer = party.redeem(code, authorization)
    assert (answer.status_int, answer.json["error"]) == (400, "invalid_grant")


@pytest.mark.thorough
@pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process
def test_sign_out_applies_to_every_node(isolated_world: World, key_pool: RsaKeyPool) -> None:
    """Security 7.4 and 7.8: at the next request."""
    party, browser = RelyingParty.register(isolated_world), Browser(isolated_world)
    browser.start_session(isolated_world.make_human_user())
    tokens = party.sign_in_silently(browser, prompt="none")
    node = World(isolated_world.settings, clock=isolated_world.clock, key_pool=key_pool)
    try:
        other_side = Browser(node)
        other_side.cookies = browser.cookies
        assert is_signed_in(other_side, party)
        assert node.client.introspect(tokens.access_token, party.credentials).json["active"] is True
        cookies = list(browser.cookies)
        check_sent_back(browser.open(party.logout_url(tokens.id_token)))
        for cookie in cookies:
            other_side.cookies.store(node.issuer, f"{cookie.name}={cookie.value}; Path=/; Secure", node.clock())
        check_inactive_token(node.client.introspect(tokens.access_token, party.credentials))
        assert not is_signed_in(other_side, party)
    finally:
        node.close()


def test_sign_out_is_audited(world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    browser.open(party.logout_url(tokens.id_token))
    (event,) = world.audit_events(event="session.ended", object_id=tokens.claims["sub"])
    actor = event.actor
    assert (actor.id, actor.client_id, actor.session_id) == (
        tokens.claims["sub"],
        party.client_id,
        tokens.claims["sid"],
    )


# --- without a hint: the user confirms --------------------------------------------------------------------------------


@pytest.mark.shows("4.7.2")
def test_sign_out_without_hint_needs_confirmation(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, world: World
) -> None:
    """Security 7.8: a cross-site GET request cannot log out."""
    answer = browser.open(party.logout_url(None, client_id=party.client_id), initiator=party.origin)
    page = check_page(answer, 200, CONFIRMATION)
    with world.read_only_services() as services:
        assert services.applications.get(party.client_id).name in page.main.get_text()
    assert is_signed_in(browser.tab(), party)
    check_sent_back(browser.submit())
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)
    assert party.client.fetch_userinfo(tokens.access_token).status_int == 401


def test_sign_out_without_parameters_needs_confirmation(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    check_page(browser.open(ENDPOINT), 200, CONFIRMATION)
    check_page(browser.submit(), 200, SIGNED_OUT)
    assert not is_signed_in(browser, party)


def test_unconfirmed_sign_out_keeps_session(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    browser.open(party.logout_url(None, client_id=party.client_id))
    browser.click("Stay signed in")
    assert browser.external_redirect is None
    assert is_signed_in(browser, party)


def test_post_without_hint_needs_confirmation(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE, "state": "s"}
    check_page(browser.post_form(ENDPOINT, form, initiator="https://evil.example"), 200, CONFIRMATION)
    assert is_signed_in(browser.tab(), party)
    check_sent_back(browser.submit(), f"{BYE}?state=s")


def test_confirmation_needs_same_origin(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    """Security 11.1: applies to sign-in and logout forms, too."""
    browser.open(party.logout_url(None, client_id=party.client_id))
    fields = dict(browser.find_form().submit_fields())
    assert browser.tab().post_form(browser.url, fields, initiator="https://evil.example").status_int == 403
    assert browser.tab().post_form(browser.url, {}, initiator=browser.login_url).status_int == 422
    assert is_signed_in(browser.tab(), party)


def test_hint_of_other_session_needs_confirmation(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens, person: HumanUser
) -> None:
    """Decisions: the hint of another user, or of the same user in another browser, needs confirmation."""
    for user in (world.make_human_user(), person):
        other_browser = Browser(world)
        other_browser.start_session(user)
        answer = other_browser.open(party.logout_url(tokens.id_token))
        check_page(answer, 200, CONFIRMATION)
        assert is_signed_in(other_browser.tab(), party)
        check_sent_back(other_browser.submit())
        assert not is_signed_in(other_browser, party)
    assert is_signed_in(browser, party)


def test_sign_out_without_session_needs_no_confirmation(
    world: World, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    nobody = Browser(world)
    check_sent_back(nobody.open(party.logout_url(tokens.id_token, state="s")), f"{BYE}?state=s")
    check_sent_back(nobody.open(party.logout_url(None, client_id=party.client_id)))
    check_page(nobody.open(ENDPOINT), 200, SIGNED_OUT)
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE}
    check_sent_back(nobody.post_form(ENDPOINT, form, initiator=party.origin))


def test_sign_out_of_expired_session_needs_no_confirmation(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    world.clock.advance(hours=12)
    check_sent_back(browser.open(party.logout_url(None, client_id=party.client_id)))
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))


def test_confirmed_sign_out_ends_all_sessions(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    browser.start_session(world.make_human_user())
    browser.open(party.logout_url(None, client_id=party.client_id))
    check_sent_back(browser.submit())
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


def test_ui_locales_and_logout_hint_are_accepted(browser: Browser, party: RelyingParty, tokens: ReceivedTokens) -> None:
    answer = browser.open(
        party.logout_url(None, client_id=party.client_id, ui_locales="xx de-CH", logout_hint="ada", unheard_of="1")
    )
    check_page(answer)
    assert answer.html.html["lang"] == "de"
    check_sent_back(
        browser.open(party.logout_url(tokens.id_token, ui_locales="xx", logout_hint="nobody", unheard_of="1"))
    )


@pytest.mark.parametrize("with_hint", [True, False])
def test_long_post_is_not_put_in_url(
    browser: Browser, party: RelyingParty, tokens: ReceivedTokens, with_hint: bool
) -> None:
    """Proxies refuse long headers, so the request is stored in a row until the cookies or the confirmation arrive."""
    state = "s" * 2000
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE, "state": state, "unheard": "u" * 9000}
    form |= {"id_token_hint": tokens.id_token} if with_hint else {"logout_hint": "h" * 2000}
    answer = browser.post_form(ENDPOINT, form, initiator=party.origin)
    responses = browser.answers
    if not with_hint:
        check_page(answer, 200, CONFIRMATION)
        answer = browser.submit()
    check_sent_back(answer, f"{BYE}?state={state}")
    ours = [item.headers["Location"] for item in responses if "Location" in item.headers and item is not answer]
    assert ours
    assert all(len(location) < 200 for location in ours)
    assert not is_signed_in(browser, party)


def test_pending_post_is_bound_to_browser(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    """In another browser, or after half an hour, the user must confirm and is not redirected."""
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE}
    sent = party.client.app.post(ENDPOINT, form, expect_errors=True)
    assert sent.status_int == 303
    check_page(browser.open(sent.headers["Location"]), 200, CONFIRMATION)
    assert is_signed_in(browser, party)


def test_empty_post_needs_confirmation(
    world: World, browser: Browser, party: RelyingParty, tokens: ReceivedTokens
) -> None:
    check_page(browser.post_form(ENDPOINT, b"", initiator=party.origin), 200, CONFIRMATION)
    bare = world.client.request("POST", ENDPOINT, headers={"Content-Type": FORM_CONTENT_TYPE})
    assert bare.status_int == 303


def test_sign_in_after_sign_out_starts_new_session(world: World, party: RelyingParty, person: HumanUser) -> None:
    """Each sign-in on the pages starts another session."""
    login_name = set_password(world, person)
    browser = Browser(world)
    session_ids = set()
    for _ in range(2):
        authorization = party.new_request()
        browser.open(authorization.url, initiator=party.origin)
        tokens = party.obtain_tokens(browser.sign_in(login_name, PASSWORD), authorization)
        session_ids.add(tokens.claims["sid"])
        check_sent_back(browser.open(party.logout_url(tokens.id_token), initiator=party.origin))
        browser.open(party.new_request().url)
        assert browser.sign_in_step == ""
    assert len(session_ids) == 2
