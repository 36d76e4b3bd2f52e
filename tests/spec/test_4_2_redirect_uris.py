"""Service description §4.2: redirect_uri must exactly match a registered URI; no other URI gets a response."""

import re
import string
from dataclasses import replace
from itertools import cycle
from urllib.parse import urlencode

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldCache
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World

UNTRUSTED = "We cannot send you back to this application"

REGISTERED = "https://app.example/cb"

#: Near misses of REGISTERED: another suffix, prefix or host, or an empty value.
NEAR = (
    *(f"{REGISTERED}{end}" for end in ("/", "?", "?x=1", "#", "#fragment", " ", "\n", "\t", "%20", "%00", "/..", ";x")),
    *(f"{REGISTERED}{end}" for end in ("x", ".evil", "\u200b", "\r\nLocation: https://evil.example")),
    *(f"{start}{REGISTERED}" for start in (" ", "https://evil.example/", "https://evil.example/cb?")),
    *(f"https://app.example/{path}" for path in ("\ncb", "CB", "c%62", "%63b", "/cb", "./cb", "x/../cb", "c", "", "*")),
    *(f"https://{host}/cb" for host in ("APP.example", "app.example.", "app.example:443", "app.example:8443")),
    *(f"https://{host}/cb" for host in ("user@app.example", "app.example@evil.example", "app.example\\@evil.example")),
    *(f"https://{host}/cb" for host in ("app.example.evil.example", "xapp.example", "sub.app.example")),
    *(f"https://{host}/cb" for host in ("\u0430pp.example", "app\u2024example")),
    *(f"{scheme}app.example/cb" for scheme in ("HTTPS://", "http://", "https:/", "https:", "https:///", "//", "")),
    "https://app.example", "https:\\\\app.example\\cb", "https://app.example\\cb", "https://app.example\uff0fcb",
    "/cb", "cb", "*", "javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "urn:ietf:wg:oauth:2.0:oob",
    "null", "https://id.example.com/oauth/v2/authorize", "x" * 4000,
)  # fmt: skip


@pytest.mark.shows("4.2.4")
def test_redirect_uri_must_match_exactly(browser: Browser, party: RelyingParty) -> None:
    """Security 4.1: string equality, no decoding, no normalisation. The error page does not contain the refused URI."""
    variants = cycle(({}, {"prompt": "none"}, {"scope": "profile"}, {"response_mode": "form_post"}))
    for uri, parameters in zip(NEAR, variants, strict=False):
        page = check_page(browser.open(party.new_request(redirect_uri=uri, **parameters).url), 400, UNTRUSTED)
        assert "redirect_uri is not registered for this application" in page.main.get_text()
        assert "evil" not in page.encode().decode()


@pytest.mark.shows("4.2.22", "7.8")
def test_redirect_uri_error_is_shown_first(browser: Browser, party: RelyingParty) -> None:
    """Client and redirect URI are checked before everything else."""
    for response_type in ("code", "id_token"):
        authorization = party.new_request(
            response_type, None, redirect_uri="https://evil.example/cb", request="x", prompt="none login"
        )
        check_page(browser.open(authorization.url), 400, UNTRUSTED)


def test_redirect_uri_of_other_application_is_refused(world: World, browser: Browser, party: RelyingParty) -> None:
    relying_party = RelyingParty.register(world, redirect_uri="https://other.example/cb")
    check_page(browser.open(party.new_request(redirect_uri=relying_party.redirect_uri).url), 400, UNTRUSTED)


def test_post_logout_uri_is_no_redirect_uri(browser: Browser, party: RelyingParty) -> None:
    check_page(browser.open(party.new_request(redirect_uri=party.post_logout_redirect_uri).url), 400, UNTRUSTED)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
def test_redirect_uri_is_stored_unmodified(world: World, browser: Browser, mode: str) -> None:
    """RFC 6749 §3.1.2: the query component is retained; ``read`` compares every character."""
    for uri in (
        "https://app.example/cb?tenant=a",
        "https://app.example/cb?tenant=a&x=%41%2f+%20&y=",
        "https://app.example/cb?",
        "https://app.example/cb?a?b=/c//d",
        "https://app.example/%7euser/c%2Fb",
        "https://app.example/cb;v=1",
        "https://app.example:8443/cb",
        "https://app.example",
        "https://xn--bcher-kva.example/cb",
        "https://[2001:db8::1]/cb",
        "http://localhost:3000/cb",
        "https://app.example/cb?code=old&state=old",
    ):
        party = RelyingParty.register(world, redirect_uri=uri)
        authorization = party.new_request(response_mode=mode)
        assert (
            party.redeem(party.extract_code(browser.open(authorization.url), authorization), authorization).status_int
            == 200
        )
        party.expect_error_at_once(browser, "invalid_scope", scope="profile", response_mode=mode)


def test_redirect_uri_query_must_match(world: World, browser: Browser) -> None:
    for asked_for in (
        "https://app.example/cb?a=1",
        "https://app.example/cb?b=2&a=1",
        "https://app.example/cb?a=1&b=2&c=3",
        "https://app.example/cb?a=1&b=%32",
        "https://app.example/cb?a=1&amp;b=2",
        "https://app.example/cb?a=1;b=2",
        "https://app.example/cb",
    ):
        party = RelyingParty.register(world, redirect_uri="https://app.example/cb?a=1&b=2")
        check_page(browser.open(party.new_request(redirect_uri=asked_for).url), 400, UNTRUSTED)


def test_request_selects_one_of_several_redirect_uris(world: World, browser: Browser) -> None:
    """The code can be redeemed only with that one."""
    uris = ("https://app.example/cb", "https://app.example/other")
    party = RelyingParty.register(world, redirect_uris=uris)
    for uri in uris:
        authorization = party.new_request(redirect_uri=uri)
        code = party.extract_code(browser.open(authorization.url), authorization)
        other = next(item for item in uris if item != uri)
        assert party.redeem(code, authorization, redirect_uri=other).json["error"] == "invalid_grant"
        code = party.extract_code(browser.open(authorization.url), authorization)
        assert party.redeem(code, authorization).status_int == 200


def test_application_without_redirect_uris_is_refused(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, redirect_uris=(), response_types=())
    for uri in (REGISTERED, None, ""):
        check_page(browser.open(party.new_request(redirect_uri=uri).url), 400, UNTRUSTED)


@pytest.fixture
def native(world: World) -> RelyingParty:
    """A native application with loopback addresses and a private-use scheme."""
    return RelyingParty.register(
        world,
        type=ApplicationType.NATIVE,
        authentication_method="none",
        redirect_uris=(
            "http://127.0.0.1/cb",
            "http://127.0.0.1:4000/port",
            "http://[::1]:4000/cb?x=1",
            "http://localhost:4000/cb",
            "com.example.app:/cb",
            "https://app.example/cb",
        ),
    )


def test_native_application_can_vary_loopback_port(browser: Browser, native: RelyingParty) -> None:
    """RFC 8252 §7.3; the code is bound to the port of the request."""
    for uri in (
        "http://127.0.0.1/cb",
        "http://127.0.0.1:1/cb",
        "http://127.0.0.1:51004/cb",
        "http://127.0.0.1:65535/cb",
        "http://127.0.0.1/port",
        "http://127.0.0.1:51004/port",
        "http://[::1]/cb?x=1",
        "http://[::1]:51004/cb?x=1",
        "http://localhost:51004/cb",
        "com.example.app:/cb",
        "https://app.example/cb",
    ):
        authorization = native.new_request(redirect_uri=uri)
        code = native.extract_code(browser.open(authorization.url), authorization)
        assert native.redeem(code, authorization).status_int == 200


def test_loopback_redirect_uri_varies_in_port_only(browser: Browser, native: RelyingParty) -> None:
    for uri in (
        "http://127.0.0.1:51004/other",
        "http://127.0.0.1:51004/cb?x=1",
        "http://127.0.0.1:51004/cb/",
        "http://127.0.0.1:51004/cb#",
        "http://127.0.0.1:/cb",
        "http://127.0.0.1:x/cb",
        "http://127.0.0.1:-1/cb",
        "http://127.0.0.1:123456/cb",
        "http://127.0.0.1:51004:1/cb",
        "http://127.0.0.1:51004@evil.example/cb",
        "http://127.0.0.1:51004\\@evil.example/cb",
        "http://127.0.0.1.evil.example:51004/cb",
        "http://127.0.0.2:51004/cb",
        "http://127.1:51004/cb",
        "http://0.0.0.0:51004/cb",
        "http://user@127.0.0.1:51004/cb",
        "https://127.0.0.1:51004/cb",
        "HTTP://127.0.0.1:51004/cb",
        "http://LOCALHOST:51004/cb",
        "http://localhost:51004/port",
        "http://[::1]:51004/cb",
        "http://[::1]:51004/cb?x=2",
        "http://[0:0:0:0:0:0:0:1]:51004/cb?x=1",
        "http://::1:51004/cb?x=1",
        "http://127.0.0.1:\u0665\u0661/cb",
        "http://127.0.0.1:51004\n/cb",
        "com.example.app:/cb/",
        "com.example.app://cb",
        "com.example.app:cb",
        "COM.example.app:/cb",
        "com.example.other:/cb",
        "https://app.example:51004/cb",
    ):
        check_page(browser.open(native.new_request(redirect_uri=uri).url), 400, UNTRUSTED)


def test_code_is_bound_to_loopback_port(browser: Browser, native: RelyingParty) -> None:
    authorization = native.new_request(redirect_uri="http://127.0.0.1:51004/cb")
    code = native.extract_code(browser.open(authorization.url), authorization)
    answer = native.redeem(code, authorization, redirect_uri="http://127.0.0.1:51005/cb")
    assert answer.json["error"] == "invalid_grant"


@pytest.mark.parametrize("type_", [ApplicationType.WEB, ApplicationType.BROWSER])
def test_web_application_cannot_vary_port(world: World, browser: Browser, type_: ApplicationType) -> None:
    party = RelyingParty.register(world, type=type_, redirect_uri="http://127.0.0.1:4000/cb")
    authorization = party.new_request()
    party.extract_code(browser.open(authorization.url), authorization)
    check_page(browser.open(party.new_request(redirect_uri="http://127.0.0.1:4001/cb").url), 400, UNTRUSTED)


def test_removed_redirect_uri_is_refused(world: World, browser: Browser, party: RelyingParty) -> None:
    """Security 7.4: at the next request."""
    authorization = party.new_request()
    party.extract_code(browser.open(authorization.url), authorization)
    before = world.operator_services.applications.get(party.client_id)
    after = replace(before, redirect_uris=("https://app.example/new",), version=before.version + 1)
    world.operator_services.storage.applications.update(after)
    check_page(browser.open(authorization.url), 400, UNTRUSTED)


# Hostile variants: the response goes to a registered URI or stays on this host.

hostile = settings(max_examples=100, derandomize=True)

BASES = ("https://app.example/cb", "https://app.example/q?a=1&b=%20", "http://127.0.0.1:4000/cb", "com.example.app:/cb")
_LOOPBACK = re.compile(r"http://127\.0\.0\.1(:[0-9]{1,5})?/cb", re.ASCII)

_pieces = st.sampled_from(
    [
        "%0d%0a", "\r\n", "\t", " ", "\0", "/", "//", "\\", "/..", "/.", "?", "#", "&", "=", ";", ":", "@", "%", "%2f",
        "%00", "evil.example", "https://evil.example", "\u3002", "\uff0f", "\u202e", "\U0001f511", "\ufeff", ":443",
        "*", "..", "javascript:", "<script>", "'", '"', "&redirect_uri=https://evil.example", "[", "]", "\x7f", "+",
    ]
)  # fmt: skip


@st.composite
def _variants(draw: st.DrawFn) -> str:
    """A registered URI with characters removed, doubled, case-swapped or inserted."""
    text = draw(st.sampled_from(BASES))
    for _ in range(draw(st.integers(0, 3))):
        at, to = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        change = draw(st.sampled_from(["insert", "cut", "double", "swap", "upper"]))
        middle = {
            "insert": draw(_pieces | st.characters(codec="utf-8")) + text[at:to],
            "cut": "",
            "double": text[at:to] * 2,
            "swap": text[at:to].swapcase(),
            "upper": text[at:to].upper(),
        }[change]
        text = text[:at] + middle + text[to:]
    return text


@pytest.fixture
def target(world_cache: WorldCache, storage_name: str) -> tuple[Browser, RelyingParty]:
    """A browser with a session, and a native application. hypothesis forbids the function-scoped ``world``."""
    world = world_cache.shared_world(storage_name)
    party = RelyingParty.register(world, type=ApplicationType.NATIVE, authentication_method="none", redirect_uris=BASES)
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    return browser, party


@pytest.mark.thorough
def test_unregistered_uri_is_never_redirected_to(target: tuple[Browser, RelyingParty]) -> None:
    browser, party = target

    @hostile
    @given(
        _variants() | st.text(st.characters(codec="utf-8"), max_size=60),
        st.sampled_from(["query", "fragment", "form_post", None]),
        st.sampled_from(["openid", "profile"]),
        st.sampled_from([None, "none"]),
        st.booleans(),
    )
    @example(BASES[0], None, "openid", None, False)
    @example("http://127.0.0.1:1/cb", "form_post", "openid", None, True)
    @example("http://127.0.0.1:\u0661/cb", None, "openid", None, False)
    def check(uri: str, mode: str | None, scope: str, prompt: str | None, posted: bool) -> None:
        authorization = party.new_request(scope=scope, redirect_uri=uri, response_mode=mode, prompt=prompt)
        if posted:
            answer = browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
        else:
            answer = browser.open(authorization.url)
        registered = uri in BASES or _LOOPBACK.fullmatch(uri) is not None
        if not registered:
            check_page(answer, 400)
        elif scope == "profile":
            party.check_error_response(answer, authorization, "invalid_scope")
        else:
            party.extract_code(answer, authorization)

    check()


_texts = st.text(st.characters(codec="utf-8"), max_size=30)
_names = st.sampled_from(
    [
        "client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "prompt", "max_age", "response_mode",
        "id_token_hint", "login_hint", "ui_locales", "code_challenge", "code_challenge_method", "request", "claims",
    ]
)  # fmt: skip
_values = (
    _texts
    | _pieces
    | st.sampled_from(["none", "login", "code", "id_token", "token", "form_post", "S256", "0", "a.b.c", "é" * 900])
)


def test_any_request_is_answered_without_error(target: tuple[Browser, RelyingParty]) -> None:
    """Security 12.6: any parameter value; redirects go only to the registered URI."""
    browser, party = target

    @hostile
    @given(st.lists(st.tuples(_names, _values), max_size=4), st.booleans(), st.text(string.printable, max_size=8))
    def check(changes: list[tuple[str, str]], posted: bool, tail: str) -> None:
        parameters = {**party.new_request(redirect_uri=BASES[0]).parameters, **dict(changes)}
        endpoint = party.client.discovery["authorization_endpoint"]
        encoded = urlencode(parameters, errors="surrogatepass") + tail
        if posted:
            answer = browser.post_form(endpoint, encoded.encode(), initiator=party.origin)
        else:
            answer = browser.open(f"{endpoint}?{encoded.partition('#')[0]}")
        assert answer.status_int in (200, 303, 400, 413)
        if browser.external_redirect is not None:
            assert browser.external_redirect.startswith(BASES)

    check()


def test_code_belongs_to_signed_in_user(world: World, party: RelyingParty, person: HumanUser) -> None:
    """The endpoint still works after hostile requests."""
    browser = Browser(world)
    browser.start_session(person)
    assert party.sign_in_silently(browser).claims["sub"] == person.id


def test_redirect_uri_is_shown_to_developers_only(world: World, browser: Browser) -> None:
    """The audit trail omits secret and long parts; the page shows the URI only in development."""
    sent = "https://ada:password@app.example/callback\x1b[31m\n?code=secret-of-a-person#state"
    for development in (False, True):
        party = RelyingParty.register(world, development=development)
        for uri, label in ((sent, "app.example/callback"), ("https://other.example/cb", "other.example/cb")):
            page = check_page(browser.open(party.new_request(redirect_uri=uri).url), 400, UNTRUSTED)
            assert (label in page.main.get_text()) is development
            assert not [text for text in ("password", "secret-of-a-person", "\x1b") if text in page.encode().decode()]
        # Once a minute for each application.
        [event] = [
            audit_event
            for audit_event in world.audit_events(object_id=party.client_id)
            if audit_event.reason is not None
        ]
        assert event.detail["redirect_uri"] == "https://app.example/callback[31m"
    party = RelyingParty.register(world)
    browser.open(party.new_request(redirect_uri="https://app.example/" + "x" * 4000).url)
    [event] = [
        audit_event for audit_event in world.audit_events(object_id=party.client_id) if audit_event.reason is not None
    ]
    assert len(str(event.detail["redirect_uri"])) <= 201


def test_post_logout_uri_is_shown_to_developers_only(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, development=True)
    query = urlencode({"client_id": party.client_id, "post_logout_redirect_uri": "https://app.example/gone?x=secret"})
    page = check_page(browser.open(f"/oauth/v2/endsession?{query}"), 400, UNTRUSTED)
    assert "https://app.example/gone" in page.main.get_text()
    [event] = [
        audit_event for audit_event in world.audit_events(object_id=party.client_id) if audit_event.reason is not None
    ]
    assert event.detail["post_logout_redirect_uri"] == "https://app.example/gone"
