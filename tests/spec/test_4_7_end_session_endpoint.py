"""Service description §4.7 and decisions, end session: OpenID Connect RP-Initiated Logout."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser, TokenFormat
from identity.services.access import THE_OPERATOR
from identity.testing.assertions import decoded
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.fixtures import Worlds
from identity.testing.relying_party import RelyingParty, Tokens
from identity.testing.responses import check_inactive, check_page
from identity.testing.service import KeyPool
from identity.testing.service_client import FORM
from identity.testing.world import World

ASKED = "Sign out?"
SIGNED_OUT = "You are signed out"
UNTRUSTED = "We cannot send you back to this application"
UNKNOWN = "We do not know this application"
UNREADABLE = "This request cannot be read"

BYE = "https://app.example/bye"


def signed_in(browser: Browser, party: RelyingParty, *, scope: str = "openid", **parameters: Any) -> Tokens:
    """Tokens for the application, from the browser's session."""
    asked = party.ask(scope=scope, prompt="none", **parameters)
    return party.tokens(browser.open(asked.url), asked)


def is_signed_in(browser: Browser, party: RelyingParty, **parameters: Any) -> bool:
    """Whether the browser's session answers for its person."""
    asked = party.ask(prompt="none", **parameters)
    return party.read(browser.open(asked.url), asked).get("error") != "login_required"


def check_sent_back(answer: Any, address: str = BYE) -> None:
    """The browser goes where the application asked, and nowhere else."""
    assert (answer.status_int, answer.headers.get("Location")) == (303, address), answer
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body == b""


@pytest.fixture
def tokens(browser: Browser, party: RelyingParty) -> Tokens:
    """What the application got from the browser's session."""
    return signed_in(browser, party, scope="openid offline_access")


# --- with a hint of this session --------------------------------------------------------------------------------------


def test_it_is_on_the_login_host_alone(three_hosts: World) -> None:
    assert three_hosts.client.discovery["end_session_endpoint"] == "https://login.example.com/oauth/v2/endsession"
    for host in ("https://id.example.com", "https://api.example.com"):
        assert three_hosts.client.get(f"{host}/oauth/v2/endsession").status_int == 404


def test_with_a_hint_of_this_session_one_is_signed_out_and_sent_back(
    browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    answer = browser.open(party.logout_url(tokens.id_token), by=party.origin)
    check_sent_back(answer)
    assert len(browser.answers) == 1
    (header,) = answer.headers.getall("Set-Cookie")
    assert header == f"__Host-session-{tokens.claims['sid']}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


def test_a_post_does_the_same(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    """From another site it comes without cookies, which the GET after it brings."""
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE, "state": "a b"}
    endpoint = party.client.discovery["end_session_endpoint"]
    answer = browser.send(endpoint, form, by=party.origin)
    assert "Cookie" not in browser.answers[0].request.headers
    check_sent_back(answer, f"{BYE}?state=a+b")
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


def test_a_post_of_our_own_site_does_the_same(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    endpoint = party.client.discovery["end_session_endpoint"]
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE}
    check_sent_back(browser.send(endpoint, form, by=browser.login_url))
    assert not is_signed_in(browser, party)


def test_without_an_address_one_stays_here(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    answer = browser.open(party.logout_url(tokens.id_token, post_logout_redirect_uri=None))
    check_page(answer, 200, SIGNED_OUT)
    assert not is_signed_in(browser, party)


def test_an_expired_hint_is_as_good(world: World, browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    """RP-Initiated Logout §2: the OP accepts ID tokens whose exp has passed."""
    world.clock.advance(hours=11)
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))
    assert not browser.session_cookies


def test_the_client_id_beside_the_hint_has_to_be_the_hint_s(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    """RP-Initiated Logout §2: the OP must verify that they match."""
    other = RelyingParty.of(world)
    for client_id in (other.client_id, "unknown", party.client_id.upper()):
        answer = browser.open(party.logout_url(tokens.id_token, client_id=client_id))
        check_page(answer, 400, UNREADABLE)
    assert is_signed_in(browser, party)
    check_sent_back(browser.open(party.logout_url(tokens.id_token, client_id=party.client_id)))


@pytest.mark.parametrize(
    "state", ["0", "a b+c&d=e#f", "%41%2f", "ü☃\U0001f511", '"<script>\\', "x" * 2000, "a\r\nSet-Cookie: x=y"]
)
def test_the_state_comes_back_unmodified(browser: Browser, party: RelyingParty, tokens: Tokens, state: str) -> None:
    answer = browser.open(party.logout_url(tokens.id_token, state=state))
    address, _, query = answer.headers["Location"].partition("?")
    assert address == BYE
    assert parse_qsl(query, strict_parsing=True) == [("state", state)]


def test_an_address_with_a_query_part_keeps_it(world: World, browser: Browser) -> None:
    uri = "https://app.example/bye?tenant=%41&x="
    party = RelyingParty.of(world, post_logout_redirect_uri=uri)
    check_sent_back(browser.open(party.logout_url(signed_in(browser, party).id_token, state="s")), f"{uri}&state=s")


def test_a_native_application_is_opened_by_its_own_scheme(world: World, browser: Browser) -> None:
    """RFC 8252 §7.1."""
    party = RelyingParty.of(
        world,
        type=ApplicationType.NATIVE,
        authentication_method="none",
        redirect_uri="com.example.app:/cb",
        post_logout_redirect_uri="com.example.app:/bye",
    )
    check_sent_back(browser.open(party.logout_url(signed_in(browser, party).id_token)), "com.example.app:/bye")


def test_without_an_address_the_state_goes_nowhere(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    browser.open(party.logout_url(tokens.id_token, post_logout_redirect_uri=None, state="s3cret"))
    assert all("s3cret" not in (one.headers.get("Location") or "") for one in browser.answers)


def test_only_the_named_session_ends(world: World, browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    """Somebody else at the same browser stays signed in, and so does the person elsewhere."""
    somebody_else = world.a_person()
    browser.start_session(somebody_else)
    person_id = tokens.claims["sub"]
    with world.reading() as services:
        person = services.users.get(person_id)
    elsewhere = Browser(world)
    elsewhere.start_session(person)
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))
    assert signed_in(browser, party).claims["sub"] == somebody_else.id
    assert signed_in(elsewhere, party).claims["sub"] == person_id


def test_every_application_s_hint_names_the_session(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    """One session, many applications: any of them may ask, each for its own addresses."""
    other = RelyingParty.of(world, post_logout_redirect_uri="https://other.example/bye")
    others = signed_in(browser, other)
    check_page(browser.open(other.logout_url(others.id_token, post_logout_redirect_uri=BYE)), 400, UNTRUSTED)
    check_sent_back(browser.open(other.logout_url(others.id_token)), "https://other.example/bye")
    assert not is_signed_in(browser, party)


# --- what ends with the session ---------------------------------------------------------------------------------------


def test_its_access_tokens_are_dead_at_once(world: World, browser: Browser, person: HumanUser) -> None:
    """Service description §4.4: introspection also checks that the token is not revoked, by client or by logout."""
    first = RelyingParty.of(world)
    second = RelyingParty.of(world, access_token_type=TokenFormat.JWT)
    held = [
        (first, signed_in(browser, first)),
        (second, signed_in(browser, second)),
        (first, signed_in(browser, first, response_type="id_token token")),
    ]
    elsewhere = Browser(world)
    elsewhere.start_session(person)
    kept = signed_in(elsewhere, first)
    for party, one in held:
        assert party.client.introspect(one.access_token, party.credentials).json["active"] is True
    browser.open(first.logout_url(held[0][1].id_token))
    for party, one in held:
        check_inactive(party.client.introspect(one.access_token, party.credentials))
        assert party.client.userinfo(one.access_token).status_int == 401
    assert first.userinfo(kept)["sub"] == person.id


def test_refresh_tokens_with_offline_access_live_on(
    browser: Browser, party: RelyingParty, tokens: Tokens, person: HumanUser
) -> None:
    """Security 7.8; what they bring belongs to no session any more."""
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))
    assert party.client.userinfo(tokens.access_token).status_int == 401
    answer = party.refresh(tokens.refresh_token)
    assert answer.status_int == 200
    claims = party.check_id_token(answer.json["id_token"], access_token=answer.json["access_token"])
    assert claims["sub"] == person.id
    assert party.client.userinfo(answer.json["access_token"]).status_int == 200
    again = party.refresh(answer.json["refresh_token"])
    assert again.status_int == 200


def test_a_code_of_the_session_is_worth_nothing_any_more(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    asked = party.ask()
    code = party.code(browser.open(asked.url), asked)
    browser.open(party.logout_url(tokens.id_token))
    answer = party.redeem(code, asked)
    assert (answer.status_int, answer.json["error"]) == (400, "invalid_grant")


@pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process
def test_the_session_is_over_on_every_node(own_world: World, key_pool: KeyPool) -> None:
    """Security 7.4 and 7.8: at the next request."""
    party, browser = RelyingParty.of(own_world), Browser(own_world)
    browser.start_session(own_world.a_person())
    tokens = signed_in(browser, party)
    node = World(own_world.settings, clock=own_world.clock, key_pool=key_pool)
    try:
        other_side = Browser(node)
        other_side.cookies = browser.cookies
        assert is_signed_in(other_side, party)
        assert node.client.introspect(tokens.access_token, party.credentials).json["active"] is True
        cookies = list(browser.cookies)
        check_sent_back(browser.open(party.logout_url(tokens.id_token)))
        for one in cookies:
            other_side.cookies.store(node.issuer, f"{one.name}={one.value}; Path=/; Secure", node.clock())
        check_inactive(node.client.introspect(tokens.access_token, party.credentials))
        assert not is_signed_in(other_side, party)
    finally:
        node.close()


def test_the_end_is_audited(world: World, browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    browser.open(party.logout_url(tokens.id_token))
    (event,) = world.audit_events(event="session.ended", object_id=tokens.claims["sub"])
    actor = event.actor
    assert (actor.id, actor.client_id, actor.session_id) == (
        tokens.claims["sub"],
        party.client_id,
        tokens.claims["sid"],
    )


def test_after_that_there_is_nobody_to_sign_out(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    """Twice is as good as once: the browser is sent back again."""
    for _ in range(2):
        check_sent_back(browser.open(party.logout_url(tokens.id_token)))


# --- without one: the person is asked ---------------------------------------------------------------------------------


def test_without_a_hint_the_person_is_asked(
    browser: Browser, party: RelyingParty, tokens: Tokens, world: World
) -> None:
    """Security 7.8: no logout by a cross-site GET."""
    answer = browser.open(party.logout_url(None, client_id=party.client_id), by=party.origin)
    page = check_page(answer, 200, ASKED)
    with world.reading() as services:
        assert services.applications.get(party.client_id).name in page.main.get_text()
    assert is_signed_in(browser.tab(), party)
    check_sent_back(browser.submit(form="page-form"))
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)
    assert party.client.userinfo(tokens.access_token).status_int == 401


def test_asked_for_by_nobody_in_particular(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    check_page(browser.open(party.client.discovery["end_session_endpoint"]), 200, ASKED)
    check_page(browser.submit(form="page-form"), 200, SIGNED_OUT)
    assert not is_signed_in(browser, party)


def test_whoever_stays_is_still_signed_in(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    browser.open(party.logout_url(None, client_id=party.client_id))
    browser.click("Stay signed in")
    assert browser.left_for is None
    assert is_signed_in(browser, party)


def test_who_is_asked_by_a_post_is_asked(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    endpoint = party.client.discovery["end_session_endpoint"]
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE, "state": "s"}
    check_page(browser.send(endpoint, form, by="https://evil.example"), 200, ASKED)
    assert is_signed_in(browser.tab(), party)
    check_sent_back(browser.submit(form="page-form"), f"{BYE}?state=s")


def test_the_answer_is_taken_from_our_own_page_alone(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    """Security 11.1: login and logout forms included."""
    browser.open(party.logout_url(None, client_id=party.client_id))
    fields = dict(browser.form("page-form").submit_fields())
    assert browser.tab().send(browser.url, fields, by="https://evil.example").status_int == 403
    assert browser.tab().send(browser.url, {}, by=browser.login_url).status_int == 422
    assert is_signed_in(browser.tab(), party)


def test_a_hint_of_another_session_is_no_hint_of_this_one(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens, person: HumanUser
) -> None:
    """Decisions: otherwise the user is asked. Of somebody else, or of the same person at another browser."""
    for somebody in (world.a_person(), person):
        elsewhere = Browser(world)
        elsewhere.start_session(somebody)
        answer = elsewhere.open(party.logout_url(tokens.id_token))
        check_page(answer, 200, ASKED)
        assert is_signed_in(elsewhere.tab(), party)
        check_sent_back(elsewhere.submit(form="page-form"))
        assert not is_signed_in(elsewhere, party)
    assert is_signed_in(browser, party)


def test_where_nobody_is_signed_in_nobody_is_asked(world: World, party: RelyingParty, tokens: Tokens) -> None:
    nobody = Browser(world)
    check_sent_back(nobody.open(party.logout_url(tokens.id_token, state="s")), f"{BYE}?state=s")
    check_sent_back(nobody.open(party.logout_url(None, client_id=party.client_id)))
    check_page(nobody.open(party.client.discovery["end_session_endpoint"]), 200, SIGNED_OUT)
    endpoint = party.client.discovery["end_session_endpoint"]
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE}
    check_sent_back(nobody.send(endpoint, form, by=party.origin))


def test_nor_where_the_session_has_expired(world: World, browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    world.clock.advance(hours=12)
    check_sent_back(browser.open(party.logout_url(None, client_id=party.client_id)))
    check_sent_back(browser.open(party.logout_url(tokens.id_token)))


def test_several_people_are_signed_out_together_if_they_say_so(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    browser.start_session(world.a_person())
    browser.open(party.logout_url(None, client_id=party.client_id))
    check_sent_back(browser.submit(form="page-form"))
    assert not browser.session_cookies
    assert not is_signed_in(browser, party)


def test_ui_locales_and_logout_hint_cause_no_error(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    answer = browser.open(
        party.logout_url(None, client_id=party.client_id, ui_locales="xx de-CH", logout_hint="ada", unheard_of="1")
    )
    check_page(answer)
    assert answer.html.html["lang"] == "de"
    check_sent_back(
        browser.open(party.logout_url(tokens.id_token, ui_locales="xx", logout_hint="nobody", unheard_of="1"))
    )


# --- what is refused --------------------------------------------------------------------------------------------------


def bad_hints(tokens: Tokens) -> list[str]:
    """What looks like the ID token and is none."""
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
        str(decoded(tokens.id_token)[1]["sid"]),
        "x" * 8000,
    ]


def test_a_bad_hint_never_redirects(browser: Browser, party: RelyingParty, tokens: Tokens, world: World) -> None:
    """Decisions: neither where somebody is signed in, who is asked, nor where nobody is; whatever stands beside it."""
    for hint in bad_hints(tokens):
        for parameters in ({}, {"client_id": party.client_id}):
            check_page(browser.open(party.logout_url(hint, state="s", **parameters)), 200, ASKED)
            nobody = Browser(world)
            check_page(nobody.open(party.logout_url(hint, state="s", **parameters)), 200, SIGNED_OUT)
    assert is_signed_in(browser.tab(), party)
    check_page(browser.open(party.logout_url("x", client_id=party.client_id)), 200, ASKED)
    check_page(browser.submit(form="page-form"), 200, SIGNED_OUT)


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/bye",
        "https://app.example/bye/",
        "https://app.example/bye?x=1",
        "https://app.example/bye#x",
        "https://app.example/BYE",
        "https://APP.example/bye",
        "https://app.example/b%79e",
        "https://app.example/bye\n",
        " https://app.example/bye",
        "https://app.example:443/bye",
        "https://app.example@evil.example/bye",
        "http://app.example/bye",
        "//app.example/bye",
        "/bye",
        "javascript:alert(1)",
        "https://app.example/cb",
    ],
)
def test_an_address_that_is_not_registered_never_redirects(
    browser: Browser, party: RelyingParty, tokens: Tokens, uri: str
) -> None:
    """Security 7.8: string equality; the address for codes is none for signing out. And nothing is ended."""
    for hint, parameters in ((tokens.id_token, {}), (None, {"client_id": party.client_id})):
        answer = browser.open(party.logout_url(hint, post_logout_redirect_uri=uri, **parameters))
        page = check_page(answer, 400, UNTRUSTED)
        assert "evil" not in page.get_text()
    assert is_signed_in(browser, party)


@pytest.mark.parametrize("uri", [BYE, "https://evil.example/bye"])
def test_an_address_that_belongs_to_nobody_is_not_followed(
    browser: Browser, party: RelyingParty, tokens: Tokens, uri: str
) -> None:
    """RP-Initiated Logout §2: without hint and client_id the person is asked, and stays here."""
    page = check_page(browser.open(party.logout_url(None, post_logout_redirect_uri=uri, state="s3cret")), 200, ASKED)
    assert "evil" not in page.get_text()
    page = check_page(browser.submit(form="page-form"), 200, SIGNED_OUT)
    assert uri not in [link["href"] for link in page.find_all("a")]
    assert all("s3cret" not in one.headers.get("Location", "") for one in browser.answers)
    assert not is_signed_in(browser, party)


@pytest.mark.parametrize("client_id", ["unknown", "0" * 32, "' OR 1=1 --"])
def test_an_unknown_client_never_redirects(
    browser: Browser, party: RelyingParty, tokens: Tokens, client_id: str
) -> None:
    for uri in (BYE, None):
        answer = browser.open(party.logout_url(None, post_logout_redirect_uri=uri, client_id=client_id))
        assert answer.status_int == 400
        check_page(answer, 400)
    assert is_signed_in(browser, party)


def test_a_deactivated_application_s_addresses_are_not_good(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    with world.transaction() as services:
        services.applications.deactivate(party.client_id, by=THE_OPERATOR)
    check_page(browser.open(party.logout_url(None, client_id=party.client_id)), 400, UNKNOWN)
    # The session itself can be ended: the hint says whose it is.
    check_page(browser.open(party.logout_url(tokens.id_token)), 200, SIGNED_OUT)
    assert not browser.session_cookies


@pytest.mark.parametrize("with_hint", [True, False])
def test_a_long_post_stands_in_no_address(
    browser: Browser, party: RelyingParty, tokens: Tokens, with_hint: bool
) -> None:
    """It waits as a row, whether for the browser's cookies or for the person: proxies refuse long headers."""
    state = "s" * 2000
    form = {"client_id": party.client_id, "post_logout_redirect_uri": BYE, "state": state, "unheard": "u" * 9000}
    form |= {"id_token_hint": tokens.id_token} if with_hint else {"logout_hint": "h" * 2000}
    answer = browser.send(party.client.discovery["end_session_endpoint"], form, by=party.origin)
    way = browser.answers
    if not with_hint:
        check_page(answer, 200, ASKED)
        answer = browser.submit(form="page-form")
    check_sent_back(answer, f"{BYE}?state={state}")
    ours = [one.headers["Location"] for one in way if "Location" in one.headers and one is not answer]
    assert ours
    assert all(len(location) < 200 for location in ours)
    assert not is_signed_in(browser, party)


def test_a_post_that_waits_belongs_to_its_browser(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens
) -> None:
    """Elsewhere, and after half an hour, it is nobody's: the person is asked, and stays here."""
    form = {"id_token_hint": tokens.id_token, "post_logout_redirect_uri": BYE}
    sent = party.client.app.post(party.client.discovery["end_session_endpoint"], form, expect_errors=True)
    assert sent.status_int == 303
    check_page(browser.open(sent.headers["Location"]), 200, ASKED)
    assert is_signed_in(browser, party)


def test_a_state_that_is_too_long_is_told(browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    check_page(browser.open(party.logout_url(tokens.id_token, state="s" * 2049)), 400, UNREADABLE)
    assert is_signed_in(browser, party)


@pytest.mark.parametrize(
    "name", ["id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales", "logout_hint", "unheard"]
)
def test_a_parameter_given_twice_is_refused(browser: Browser, party: RelyingParty, tokens: Tokens, name: str) -> None:
    right = {"id_token_hint": tokens.id_token, "client_id": party.client_id, "post_logout_redirect_uri": BYE}
    pairs = [*({name: "x"} | right).items(), (name, right.get(name, "x"))]
    endpoint = party.client.discovery["end_session_endpoint"]
    for answer in (
        browser.open(f"{endpoint}?{urlencode(pairs)}"),
        browser.send(endpoint, pairs, by=party.origin),
    ):
        page = check_page(answer, 400, UNREADABLE)
        assert f"{name} was given twice" in page.main.get_text()
    assert is_signed_in(browser, party)


@pytest.mark.parametrize("encoded", ["state=%", "state=%ff", "state=%00", "x" * (16 * 1024 + 1)])
def test_what_cannot_be_read_is_refused(browser: Browser, party: RelyingParty, tokens: Tokens, encoded: str) -> None:
    endpoint = party.client.discovery["end_session_endpoint"]
    status = 413 if len(encoded) > 16 * 1024 else 400
    check_page(browser.open(f"{endpoint}?{encoded}"), status, UNREADABLE)
    check_page(browser.send(endpoint, encoded.encode(), by=party.origin), status, UNREADABLE)
    assert is_signed_in(browser, party)


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_a_body_that_is_no_form_is_refused(world: World, content_type: str) -> None:
    endpoint = world.client.discovery["end_session_endpoint"]
    answer = world.client.request("POST", endpoint, headers={"Content-Type": content_type}, body=b"{}")
    check_page(answer, 400, UNREADABLE)


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_sign_nobody_out(
    world: World, browser: Browser, party: RelyingParty, tokens: Tokens, method: str
) -> None:
    """A link checker's HEAD is not a click."""
    headers = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
    answer = world.client.request(method, party.logout_url(tokens.id_token), headers=headers)
    assert answer.status_int == 405
    assert "Set-Cookie" not in answer.headers
    assert is_signed_in(browser, party)


def test_an_empty_post_asks(world: World, browser: Browser, party: RelyingParty, tokens: Tokens) -> None:
    endpoint = party.client.discovery["end_session_endpoint"]
    check_page(browser.send(endpoint, b"", by=party.origin), 200, ASKED)
    bare = world.client.request("POST", endpoint, headers={"Content-Type": FORM})
    assert bare.status_int == 303


# --- and what nobody thought of ---------------------------------------------------------------------------------------


@pytest.fixture
def target(worlds: Worlds, storage_name: str) -> tuple[Browser, RelyingParty, str]:
    """A signed-in browser, an application, an ID token; without ``world``, whose scope is no example's."""
    world = worlds.shared(storage_name)
    party, browser = RelyingParty.of(world), Browser(world)
    browser.start_session(world.a_person())
    return browser, party, signed_in(browser, party).id_token


_texts = st.text(st.characters(codec="utf-8"), max_size=40)
_addresses = st.sampled_from([BYE, "https://evil.example", f"{BYE}#", f"{BYE}/..", "\\\\evil", "//evil"]) | _texts


def test_nothing_ever_leaves_for_an_address_that_is_not_registered(target: tuple[Browser, RelyingParty, str]) -> None:
    browser, party, id_token = target
    # The session is only the first example's; whoever is signed in or not, addresses are the same.

    @settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
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
        given = {name: value for name, value in parameters.items() if value is not None}
        endpoint = party.client.discovery["end_session_endpoint"]
        if posted:
            answer = browser.send(endpoint, given, by=party.origin)
        else:
            answer = browser.open(f"{endpoint}?{urlencode(given)}")
        if browser.left_for is None:
            check_page(answer, answer.status_int)
            assert answer.status_int in (200, 400)
        else:
            assert answer.status_int == 303
            assert browser.left_for.partition("?")[0] == BYE == uri

    check()


def test_signing_in_and_out_and_in_again(world: World, party: RelyingParty, person: HumanUser) -> None:
    """Through the pages: each time another session."""
    login_name = give_password(world, person)
    browser = Browser(world)
    seen = set()
    for _ in range(2):
        asked = party.ask()
        browser.open(asked.url, by=party.origin)
        tokens = party.tokens(browser.sign_in(login_name, PASSWORD), asked)
        seen.add(tokens.claims["sid"])
        check_sent_back(browser.open(party.logout_url(tokens.id_token), by=party.origin))
        browser.open(party.ask().url)
        assert browser.step == ""
    assert len(seen) == 2
