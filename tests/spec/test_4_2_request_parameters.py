"""Service description §4.2 and §7: every parameter of an authorization request, and every error in one."""

from dataclasses import replace
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.domain.users import HumanUser
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import encode_jwt_segment, pkce_challenge
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.response_checks import check_page
from identity.testing.service_test_client import FORM_CONTENT_TYPE
from identity.testing.world import World

UNREADABLE = "This request cannot be read"
UNKNOWN = "This application is unknown"
UNTRUSTED = "We cannot send you back to this application"

VERIFIER = "v" * 43


@pytest.fixture
def public(world: World) -> RelyingParty:
    """A public client, such as a browser application."""
    return RelyingParty.register(world, authentication_method="none")


@pytest.mark.shows("4.2.5", "4.2.6", "7.1")
def test_missing_required_parameter_is_an_invalid_request(browser: Browser, party: RelyingParty) -> None:
    """An empty value counts as absent (RFC 6749 §3.1)."""
    for name in ("response_type", "scope"):
        for value in (None, ""):
            description = party.expect_error_at_once(browser, "invalid_request", **{name: value})
            assert description == f"parameter {name} is missing"


@pytest.mark.shows("4.2.3", "4.2.22")
@pytest.mark.parametrize(
    ("name", "title"), [("client_id", UNKNOWN), ("redirect_uri", UNTRUSTED)], ids=["client_id", "redirect_uri"]
)
@pytest.mark.parametrize("value", [None, ""])
def test_without_client_or_redirect_uri_the_error_is_shown(
    browser: Browser, party: RelyingParty, name: str, title: str, value: str | None
) -> None:
    """Service description §4.2: when redirect_uri is missing, the error is displayed at the service."""
    page = check_page(browser.open(party.new_request(**{name: value}).url), 400, title)
    assert f"{name} is missing" in page.main.get_text()
    assert page.find("code", string="invalid_request" if name == "redirect_uri" else "unauthorized_client")


@pytest.mark.shows("4.2.3")
def test_unknown_client_error_reveals_no_client(browser: Browser, party: RelyingParty) -> None:
    unknown = ("0" * 32, "x", " ", "'; DROP TABLE applications; --", "ü" * 100, "9" * 4000, "../..", "<script>")
    for client_id in (*unknown, party.client_id.upper(), f"{party.client_id} "):
        page = check_page(browser.open(party.new_request(client_id=client_id).url), 400, UNKNOWN)
        assert "app.example" not in page.main.get_text()


#: Parameters of every kind, including an unknown one.
ANY_PARAMETER = (
    "response_type", "scope", "state", "nonce", "prompt", "max_age", "response_mode", "ui_locales", "login_hint",
    "id_token_hint", "code_challenge", "code_challenge_method", "display", "acr_values", "claims", "unheard_of",
)  # fmt: skip


@pytest.mark.shows("7.1")
def test_duplicate_parameter_is_invalid_request(browser: Browser, party: RelyingParty) -> None:
    """Security 4.3: any parameter. A duplicate response_mode or state is ignored."""
    for name in ANY_PARAMETER:
        authorization = party.new_request()
        value = authorization.parameters.get(name, "1")
        clear = {key: known for key, known in authorization.parameters.items() if key != name}
        for again in (value, "other", ""):
            query = urlencode([*({**authorization.parameters, name: value}).items(), (name, again)])
            answer = browser.open(f"{authorization.endpoint}?{query}")
            description = party.check_error_response(
                answer, SentAuthorizationRequest(authorization.endpoint, clear), "invalid_request"
            )
            assert description == f"parameter {name} was given twice"


def test_duplicate_client_or_redirect_uri_error_is_shown(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    for name in ("client_id", "redirect_uri"):
        for again in (authorization.parameters[name], "https://evil.example/cb"):
            for pairs in (
                [*authorization.parameters.items(), (name, again)],
                [(name, again), *authorization.parameters.items()],
            ):
                page = check_page(browser.open(f"{authorization.endpoint}?{urlencode(pairs)}"), 400, UNTRUSTED)
                assert f"{name} was given twice" in page.main.get_text()
                assert "evil" not in page.main.get_text()


def test_request_objects_are_refused_and_never_fetched(
    browser: Browser, party: RelyingParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions, authorization endpoint: for an application without keys."""

    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr("socket.create_connection", fail)
    monkeypatch.setattr("urllib3.connection.HTTPConnection.connect", fail)
    values = ("eyJhbGciOiJub25lIn0.e30.", "https://127.0.0.1:1/request.jwt", "{}", "https://app.example/r#1")
    for name, value in product(("request", "request_uri", "registration"), values):
        party.expect_error_at_once(browser, f"{name}_not_supported", **{name: value})
    assert party.client.discovery["request_uri_parameter_supported"] is False


@pytest.mark.parametrize("response_type", ["code", "id_token", "id_token token"])
@pytest.mark.parametrize(
    ("inside", "outside", "state", "mode"),
    [
        ({"state": "in", "response_mode": "form_post"}, {}, "in", "form_post"),
        ({"state": "in", "response_mode": "form_post"}, {"state": "out"}, "out", "form_post"),
        ({"state": "in", "response_mode": "form_post"}, {"response_mode": "fragment"}, "in", "fragment"),
        ({"state": "s" * 2049, "response_mode": ["form_post"]}, {}, None, None),
        ({"state": 5, "response_mode": "https://evil.example"}, {}, None, None),
        ({"redirect_uri": "https://evil.example/cb", "prompt": "none", "client_id": "x"}, {}, None, None),
    ],
)
def test_request_object_refusal_uses_outer_redirect_uri(
    browser: Browser,
    party: RelyingParty,
    response_type: str,
    inside: dict[str, Any],
    outside: dict[str, str],
    state: str | None,
    mode: str | None,
) -> None:
    """Decisions, authorization endpoint: the error goes to the client's registered URI."""
    request = f"{encode_jwt_segment({'alg': 'none'})}.{encode_jwt_segment(inside)}."
    sent = party.new_request(response_type, **{"state": None, **outside, "request": request})
    authorization = replace(sent, parameters={**sent.parameters, **({} if state is None else {"state": state})})
    party.check_error_response(browser.open(sent.url), authorization, "request_not_supported", mode=mode)


#: Ignored parameters and their values.
HARMLESS: dict[str, tuple[str, ...]] = {
    "display": ("page", "popup", "touch", "wap", "hologram"),
    "acr_values": ("1 2", "urn:mace:incommon:iap:silver"),
    "claims_locales": ("de fr-CA",),
    "ui_locales": ("de-CH fr", "xx zz-ZZ", "-- 1 \u2603"),
    "resources": ("https://api.example",),
    "iss": ("https://evil.example",),
    "error": ("access_denied",),
    "prompt.x": ("login",),
    **dict.fromkeys(("unheard_of", "ünheard", "__proto__", "scope[]"), ("1", "☃")),
    **dict.fromkeys(("amr", "audience", "code", "client_secret"), ("x",)),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_unknown_parameters_are_ignored(browser: Browser, party: RelyingParty, name: str) -> None:
    """Decisions: display, acr_values, claims_locales and unknown parameters."""
    for value in HARMLESS[name]:
        party.sign_in_silently(browser, **{name: value})


def test_empty_parameter_counts_as_absent(browser: Browser, party: RelyingParty) -> None:
    """RFC 6749 §3.1."""
    names = (
        "prompt", "max_age", "response_mode", "id_token_hint", "login_hint", "ui_locales", "request", "request_uri",
        "registration", "display", "code_challenge", "code_challenge_method",
    )  # fmt: skip
    authorization = party.new_request(pkce=False, **dict.fromkeys(names, ""))
    party.extract_code(
        browser.open(authorization.url),
        SentAuthorizationRequest(authorization.endpoint, {**authorization.parameters, "response_mode": "query"}),
    )


@pytest.mark.shows("4.2.6", "7.2")
def test_scope_without_openid_is_invalid(browser: Browser, party: RelyingParty) -> None:
    """Service description §7: invalid_scope, typically openid missing."""
    for scope in ("profile", "OPENID", "openid_", "offline_access", "urn:service:iam:openid"):
        assert party.expect_error_at_once(browser, "invalid_scope", scope=scope) == "scope must include openid"


def test_scope_with_forbidden_characters_is_invalid(browser: Browser, party: RelyingParty) -> None:
    """RFC 6749 §3.3: refused before any sign-in."""
    for scope in (
        'openid "quoted"',
        "openid back\\slash",
        "openid ümlaut",
        "openid\tprofile",
        "openid \x7f",
        "openid\nx",
    ):
        authorization = party.new_request(scope=scope)
        party.check_error_response(browser.open(authorization.url), authorization, "invalid_scope")
        party.check_error_response(Browser(browser.world).open(authorization.url), authorization, "invalid_scope")


def test_scope_order_is_free_and_unknown_scopes_are_dropped(browser: Browser, party: RelyingParty) -> None:
    for scope in (
        "profile openid",
        "address phone openid email profile",
        " openid  openid ",
        "openid unheard_of:scope",
    ):
        granted = party.sign_in_silently(browser, scope=scope).scope
        assert granted == list(dict.fromkeys(item for item in scope.split() if item != "unheard_of:scope"))


def test_inaccessible_project_is_invalid_scope(world: World, browser: Browser, person: HumanUser) -> None:
    """Decisions, namespaces: the error names the scope, and a foreign project looks unknown. Checked after sign-in."""
    foreign = world.make_project()
    party = RelyingParty.register(world, project_id=foreign.id)
    for project_id in (foreign.id, "nothing"):
        scope = world.audience_scope(project_id)
        authorization = party.new_request(scope=f"openid {scope}", prompt="none")
        description = party.check_error_response(browser.open(authorization.url), authorization, "invalid_scope")
        assert description == f"{scope} names no project that the organization owns or was granted"
        party.check_error_response(Browser(world).open(authorization.url), authorization, "login_required")
    organization = world.operator_services.organizations.get(person.organization_id)
    world.make_project_grant(foreign, organization)
    tokens = party.sign_in_silently(browser, scope=f"openid {world.audience_scope(foreign.id)}")
    assert world.audience_scope(foreign.id) in tokens.scope


@pytest.mark.shows("4.2.11")
def test_implicit_flow_needs_a_nonce(browser: Browser, party: RelyingParty) -> None:
    for response_type in ("id_token", "id_token token"):
        for nonce in (None, ""):
            assert "nonce" in party.expect_error_at_once(browser, "invalid_request", response_type, nonce=nonce)


def test_code_flow_needs_no_nonce(browser: Browser, party: RelyingParty) -> None:
    assert "nonce" not in party.sign_in_silently(browser, nonce=None).claims


@pytest.mark.shows("4.2.11")
def test_nonce_is_returned_unmodified(browser: Browser, party: RelyingParty) -> None:
    for nonce in ("0", "a b&c=d#e%41", '"<script>\\', "ü☃\U0001f511", "n" * 2048):
        for response_type in ("code", "id_token"):
            assert party.sign_in_silently(browser, response_type, nonce=nonce).claims["nonce"] == nonce


def test_long_values_are_refused(browser: Browser, party: RelyingParty) -> None:
    """Security 4.4: 2 KiB."""
    for name in ("state", "nonce", "login_hint"):
        description = party.expect_error_at_once(browser, "invalid_request", **{name: "x" * 2049})
        assert description == f"parameter {name} is longer than 2048 characters"


def test_request_over_16_kib_is_refused(world: World, browser: Browser, party: RelyingParty) -> None:
    """Security 4.4 and pages §4.3: a 413 page."""
    authorization = party.new_request(unheard_of="x")
    room = 16 * 1024 - len(authorization.url.partition("?")[2])
    fits, large = (
        party.new_request(**{**authorization.parameters, "unheard_of": "x" * size}) for size in (room + 1, room + 2)
    )
    party.extract_code(browser.open(fits.url), fits)
    check_page(browser.open(large.url), 413, UNREADABLE)
    check_page(browser.post_form(large.endpoint, dict(large.parameters), initiator=party.origin), 413, UNREADABLE)
    page = check_page(browser.post_form(large.endpoint, {"x": "y" * 70_000}, initiator=party.origin), 413)
    assert "Request id" in page.get_text()


@pytest.mark.shows("7.1", "7.8")
def test_malformed_encoding_error_is_shown(browser: Browser, party: RelyingParty) -> None:
    """The origin of such a request is unknown."""
    for broken in ("state=%", "state=%4", "state=%zz", "state=%ff", "state=%c3%28", "state=%00", "%ff=1", "st%ate=1"):
        authorization = party.new_request(state=None)
        check_page(browser.open(f"{authorization.url}&{broken}"), 400, UNREADABLE)
        sent = f"{urlencode(authorization.parameters)}&{broken}".encode()
        check_page(browser.post_form(authorization.endpoint, sent, initiator=party.origin), 400, UNREADABLE)


def test_more_than_hundred_parameters_are_refused(browser: Browser, party: RelyingParty) -> None:
    """Security 12.2."""
    authorization = party.new_request(**{f"x{number}": "1" for number in range(100)})
    check_page(browser.open(authorization.url), 400, UNREADABLE)


def test_body_without_form_is_refused(world: World, party: RelyingParty) -> None:
    for content_type in (
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
        "application/x-www-form",
    ):
        authorization = party.new_request()
        headers = {"Content-Type": content_type, "Accept": "text/html"}
        body = urlencode(authorization.parameters).encode()
        answer = world.client.request("POST", authorization.endpoint, headers=headers, body=body)
        check_page(answer, 400, UNREADABLE)


def test_post_query_string_is_ignored(world: World, party: RelyingParty) -> None:
    """All parameters of a request are in one place."""
    authorization = party.new_request()
    answer = world.client.post(authorization.url, {"unheard_of": "1"})
    check_page(answer, 400, UNKNOWN)
    answer = world.client.request("POST", authorization.url, headers={"Content-Type": FORM_CONTENT_TYPE})
    check_page(answer, 400, UNKNOWN)


@pytest.mark.shows("7.1")
def test_unknown_prompt_is_an_invalid_request(browser: Browser, party: RelyingParty) -> None:
    for prompt in ("unheard_of", "none2", "NONE", "login unheard_of", "login,consent", "-", "none\tlogin"):
        party.expect_error_at_once(browser, "invalid_request", prompt=prompt)


def test_prompt_none_excludes_other_prompts(browser: Browser, party: RelyingParty) -> None:
    """OpenID Connect Core §3.1.2.1; security 4.7."""
    for other in ("login", "consent", "select_account", "create", "login consent"):
        for prompt in (f"none {other}", f"{other} none"):
            party.expect_error_at_once(browser, "invalid_request", prompt=prompt)


def test_max_age_is_a_whole_number_of_seconds(browser: Browser, party: RelyingParty) -> None:
    for max_age in ("-1", "1.5", "x", "1 ", "+1", "1e3", "0x10", "99999999999", "١", "1\n", "null"):
        authorization = party.new_request(max_age=max_age)
        party.check_error_response(
            browser.open(authorization.url),
            SentAuthorizationRequest(authorization.endpoint, authorization.parameters),
            "invalid_request",
        )


@pytest.mark.shows("4.2.10")
def test_max_age_adds_auth_time(world: World, browser: Browser, party: RelyingParty) -> None:
    for max_age in ("1", "3600", "0003600", "9999999999"):
        assert party.sign_in_silently(browser, max_age=max_age).claims["auth_time"] == world.clock.seconds


def test_only_s256_challenges_are_accepted(browser: Browser, party: RelyingParty) -> None:
    """Security 4.5: plain is refused, even as the default without a method (RFC 7636 §4.3)."""
    right = pkce_challenge(VERIFIER)
    misshapen = ("x" * 42, "x" * 44, *("x" * 42 + last for last in "=+/\n"), "x" * 43 + "\n", "é" * 43)
    for challenge, method in (
        *((right, method) for method in (None, "plain", "s256", "S512")),
        (VERIFIER, "plain"),
        (None, "plain"),
        *((item, "S256") for item in (None, "", *misshapen)),
    ):
        parameters = {"code_challenge": challenge, "code_challenge_method": method}
        party.expect_error_at_once(browser, "invalid_request", pkce=False, **parameters)


def test_public_client_must_use_pkce(browser: Browser, public: RelyingParty) -> None:
    """Decisions: required for public clients."""
    description = public.expect_error_at_once(browser, "invalid_request", pkce=False)
    assert "code_challenge" in description
    assert public.sign_in_silently(browser).claims["azp"] == public.client_id


def test_public_client_needs_no_pkce_without_code(browser: Browser, public: RelyingParty) -> None:
    public.sign_in_silently(browser, "id_token token")


@pytest.mark.shows("4.2.21", "7.8")
def test_errors_are_returned_with_or_without_session(world: World, browser: Browser, party: RelyingParty) -> None:
    for parameters in ({"response_type": "nonsense"}, {"scope": "x"}, {"prompt": "x"}):
        authorization = party.new_request(**parameters)
        for item in (browser, Browser(world)):
            answer = item.open(authorization.url)
            assert party.check_response(answer, authorization)["error"]
            assert len(item.answers) == 1


def test_post_returns_errors_at_once(world: World, browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request(scope="profile")
    answer = browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    party.check_error_response(answer, authorization, "invalid_scope")
    authorization = party.new_request(redirect_uri="https://evil.example/cb")
    check_page(
        browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin),
        400,
        UNTRUSTED,
    )
