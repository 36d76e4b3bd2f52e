"""Service description §4.2 and §7: every parameter of an authorization request, and every error in one."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.domain.users import HumanUser
from identity.testing.assertions import encoded, s256
from identity.testing.browser import Browser
from identity.testing.relying_party import Asked, RelyingParty
from identity.testing.responses import check_page
from identity.testing.service_client import FORM
from identity.testing.world import World

UNREADABLE = "This request cannot be read"
UNKNOWN = "We do not know this application"
UNTRUSTED = "We cannot send you back to this application"

VERIFIER = "v" * 43


@pytest.fixture
def public(world: World) -> RelyingParty:
    """An application without a secret, such as one in a browser."""
    return RelyingParty.of(world, authentication_method="none")


@pytest.mark.parametrize("name", ["response_type", "scope"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_required_parameter_is_an_invalid_request(
    browser: Browser, party: RelyingParty, name: str, value: str | None
) -> None:
    """An empty value counts as absent (RFC 6749 §3.1)."""
    asked = party.ask(**{name: value})
    description = party.refused(browser.open(asked.url), asked, "invalid_request")
    assert description == f"parameter {name} is missing"


@pytest.mark.parametrize(
    ("name", "title"), [("client_id", UNKNOWN), ("redirect_uri", UNTRUSTED)], ids=["client_id", "redirect_uri"]
)
@pytest.mark.parametrize("value", [None, ""])
def test_without_client_or_redirect_uri_the_error_is_shown(
    browser: Browser, party: RelyingParty, name: str, title: str, value: str | None
) -> None:
    """Service description §4.2: when redirect_uri is missing, the error is displayed at the service."""
    page = check_page(browser.open(party.ask(**{name: value}).url), 400, title)
    assert f"{name} is missing" in page.main.get_text()
    assert page.find("code", string="invalid_request" if name == "redirect_uri" else "unauthorized_client")


@pytest.mark.parametrize(
    "client_id", ["0" * 32, "x", " ", "'; DROP TABLE applications; --", "ü" * 100, "9" * 4000, "../..", "<script>"]
)
def test_an_unknown_client_is_shown_nothing_of_others(browser: Browser, party: RelyingParty, client_id: str) -> None:
    page = check_page(browser.open(party.ask(client_id=client_id).url), 400, UNKNOWN)
    assert "app.example" not in page.main.get_text()


def test_a_client_id_in_other_letters_is_unknown(browser: Browser, party: RelyingParty) -> None:
    check_page(browser.open(party.ask(client_id=party.client_id.upper()).url), 400, UNKNOWN)
    check_page(browser.open(party.ask(client_id=f"{party.client_id} ").url), 400, UNKNOWN)


@pytest.mark.parametrize(
    "name",
    [
        "response_type",
        "scope",
        "state",
        "nonce",
        "prompt",
        "max_age",
        "response_mode",
        "ui_locales",
        "login_hint",
        "id_token_hint",
        "code_challenge",
        "code_challenge_method",
        "display",
        "acr_values",
        "claims",
        "unheard_of",
    ],
)
@pytest.mark.parametrize("second", ["same", "other", ""])
def test_a_parameter_given_twice_is_an_invalid_request(
    browser: Browser, party: RelyingParty, name: str, second: str
) -> None:
    """Security 4.3: any parameter. What stands twice says nothing: neither how to answer nor which state is meant."""
    asked = party.ask()
    value = asked.parameters.get(name, "1")
    again = {"same": value, "other": "other", "": ""}[second]
    url = f"{asked.endpoint}?{urlencode([*({**asked.parameters, name: value}).items(), (name, again)])}"
    clear = {key: known for key, known in asked.parameters.items() if key != name}
    description = party.refused(browser.open(url), Asked(asked.endpoint, clear), "invalid_request")
    assert description == f"parameter {name} was given twice"


@pytest.mark.parametrize(("name", "title"), [("client_id", UNTRUSTED), ("redirect_uri", UNTRUSTED)])
@pytest.mark.parametrize("second", ["same", "https://evil.example/cb"])
def test_a_client_or_redirect_uri_given_twice_is_shown(
    browser: Browser, party: RelyingParty, name: str, title: str, second: str
) -> None:
    asked = party.ask()
    again = asked.parameters[name] if second == "same" else second
    for pairs in ([*asked.parameters.items(), (name, again)], [(name, again), *asked.parameters.items()]):
        page = check_page(browser.open(f"{asked.endpoint}?{urlencode(pairs)}"), 400)
        assert f"{name} was given twice" in page.main.get_text()
        assert "evil" not in page.main.get_text()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("request", "request_not_supported"),
        ("request_uri", "request_uri_not_supported"),
        ("registration", "registration_not_supported"),
    ],
)
@pytest.mark.parametrize(
    "value", ["eyJhbGciOiJub25lIn0.e30.", "https://127.0.0.1:1/request.jwt", "{}", "https://app.example/r#1"]
)
def test_request_objects_are_refused_and_never_fetched(
    browser: Browser, party: RelyingParty, name: str, error: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions, authorization endpoint; discovery says the same."""

    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr("socket.create_connection", fail)
    monkeypatch.setattr("urllib3.connection.HTTPConnection.connect", fail)
    asked = party.ask(**{name: value})
    party.refused(browser.open(asked.url), asked, error)
    if name != "registration":
        assert party.client.discovery[f"{name}_parameter_supported"] is False


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
def test_a_refused_request_object_says_where_its_refusal_goes_and_nothing_else(
    browser: Browser,
    party: RelyingParty,
    response_type: str,
    inside: dict[str, Any],
    outside: dict[str, str],
    state: str | None,
    mode: str | None,
) -> None:
    """Decisions, authorization endpoint: the client has to be able to read it, at its registered address."""
    request = f"{encoded({'alg': 'none'})}.{encoded(inside)}."
    sent = party.ask(response_type, **{"state": None, **outside, "request": request})
    told = replace(sent, parameters={**sent.parameters, **({} if state is None else {"state": state})})
    party.refused(browser.open(sent.url), told, "request_not_supported", mode=mode)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("display", "page"),
        ("display", "popup"),
        ("display", "touch"),
        ("display", "wap"),
        ("display", "hologram"),
        ("acr_values", "1 2"),
        ("acr_values", "urn:mace:incommon:iap:silver"),
        ("claims_locales", "de fr-CA"),
        ("ui_locales", "de-CH fr"),
        ("ui_locales", "xx zz-ZZ"),
        ("ui_locales", "-- 1 \u2603"),
        ("resource", "https://api.example"),
        ("unheard_of", "1"),
        ("ünheard", "☃"),
        ("amr", "pwd"),
        ("audience", "x"),
        ("code", "x"),
        ("iss", "https://evil.example"),
        ("error", "access_denied"),
        ("__proto__", "x"),
        ("client_secret", "x"),
        ("scope[]", "x"),
        ("prompt.x", "login"),
    ],
)
def test_what_we_do_not_know_causes_no_error(browser: Browser, party: RelyingParty, name: str, value: str) -> None:
    """Decisions: display, acr_values, claims_locales and unknown parameters."""
    asked = party.ask(**{name: value})
    party.tokens(browser.open(asked.url), asked)


def test_a_parameter_without_a_value_counts_as_absent(browser: Browser, party: RelyingParty) -> None:
    """RFC 6749 §3.1."""
    names = (
        "prompt", "max_age", "response_mode", "id_token_hint", "login_hint", "ui_locales", "request", "request_uri",
        "registration", "display", "code_challenge", "code_challenge_method",
    )  # fmt: skip
    asked = party.ask(pkce=False, **dict.fromkeys(names, ""))
    party.code(browser.open(asked.url), Asked(asked.endpoint, {**asked.parameters, "response_mode": "query"}))


@pytest.mark.parametrize("scope", ["profile", "OPENID", "openid_", "offline_access", "urn:service:iam:openid"])
def test_a_scope_without_openid_is_invalid(browser: Browser, party: RelyingParty, scope: str) -> None:
    """Service description §7: invalid_scope, typically openid missing."""
    asked = party.ask(scope=scope)
    assert party.refused(browser.open(asked.url), asked, "invalid_scope") == "scope must include openid"


@pytest.mark.parametrize(
    "scope", ['openid "quoted"', "openid back\\slash", "openid ümlaut", "openid\tprofile", "openid \x7f", "openid\nx"]
)
def test_a_scope_of_forbidden_characters_is_invalid(browser: Browser, party: RelyingParty, scope: str) -> None:
    """RFC 6749 §3.3: told before anybody is asked to sign in."""
    asked = party.ask(scope=scope)
    party.refused(browser.open(asked.url), asked, "invalid_scope")
    party.refused(Browser(browser.world).open(asked.url), asked, "invalid_scope")


@pytest.mark.parametrize(
    "scope", ["profile openid", "address phone openid email profile", " openid  openid ", "openid unheard_of:scope"]
)
def test_scopes_stand_in_any_order_and_unknown_ones_are_dropped(
    browser: Browser, party: RelyingParty, scope: str
) -> None:
    asked = party.ask(scope=scope)
    granted = party.tokens(browser.open(asked.url), asked).scope
    assert granted == list(dict.fromkeys(word for word in scope.split() if word != "unheard_of:scope"))


def test_a_project_that_the_person_s_organization_may_not_use_is_an_invalid_scope(
    world: World, browser: Browser, person: HumanUser
) -> None:
    """Decisions, namespaces: the scope is named; a foreign project cannot be told from none. Decided after sign-in."""
    foreign = world.a_project()
    party = RelyingParty.of(world, project_id=foreign.id)
    for project_id in (foreign.id, "nothing"):
        scope = world.audience_scope(project_id)
        asked = party.ask(scope=f"openid {scope}", prompt="none")
        description = party.refused(browser.open(asked.url), asked, "invalid_scope")
        assert description == f"{scope} names no project that the organization owns or was granted"
        party.refused(Browser(world).open(asked.url), asked, "login_required")
    with world.transaction() as services:
        organization = services.organizations.get(person.organization_id)
    world.a_grant(foreign, organization)
    asked = party.ask(scope=f"openid {world.audience_scope(foreign.id)}")
    tokens = party.tokens(browser.open(asked.url), asked)
    assert world.audience_scope(foreign.id) in tokens.scope


@pytest.mark.parametrize("response_type", ["id_token", "id_token token"])
@pytest.mark.parametrize("nonce", [None, ""])
def test_the_implicit_flow_needs_a_nonce(
    browser: Browser, party: RelyingParty, response_type: str, nonce: str | None
) -> None:
    asked = party.ask(response_type, nonce=nonce)
    assert "nonce" in party.refused(browser.open(asked.url), asked, "invalid_request")


def test_the_code_flow_needs_none(browser: Browser, party: RelyingParty) -> None:
    asked = party.ask(nonce=None)
    assert "nonce" not in party.tokens(browser.open(asked.url), asked).claims


@pytest.mark.parametrize("nonce", ["0", "a b&c=d#e%41", '"<script>\\', "ü☃\U0001f511", "n" * 2048])
@pytest.mark.parametrize("response_type", ["code", "id_token"])
def test_the_nonce_comes_back_unmodified(browser: Browser, party: RelyingParty, response_type: str, nonce: str) -> None:
    asked = party.ask(response_type, nonce=nonce)
    assert party.tokens(browser.open(asked.url), asked).claims["nonce"] == nonce


@pytest.mark.parametrize("name", ["state", "nonce", "login_hint"])
def test_long_values_are_refused(browser: Browser, party: RelyingParty, name: str) -> None:
    """Security 4.4: 2 KiB."""
    asked = party.ask(**{name: "x" * 2049})
    description = party.refused(browser.open(asked.url), asked, "invalid_request")
    assert description == f"parameter {name} is longer than 2048 characters"


def test_a_request_of_more_than_16_kib_is_not_read(world: World, browser: Browser, party: RelyingParty) -> None:
    """Security 4.4 and pages §4.3: 413, shown."""
    asked = party.ask(unheard_of="x")
    room = 16 * 1024 - len(asked.url.partition("?")[2])
    fits, large = (party.ask(**{**asked.parameters, "unheard_of": "x" * size}) for size in (room + 1, room + 2))
    party.code(browser.open(fits.url), fits)
    check_page(browser.open(large.url), 413, UNREADABLE)
    check_page(browser.send(large.endpoint, dict(large.parameters), by=party.origin), 413, UNREADABLE)
    page = check_page(browser.send(large.endpoint, {"x": "y" * 70_000}, by=party.origin), 413)
    assert "Request id" in page.get_text()


@pytest.mark.parametrize(
    "encoded",
    ["state=%", "state=%4", "state=%zz", "state=%ff", "state=%c3%28", "state=%00", "%ff=1", "st%ate=1"],
)
def test_a_broken_encoding_is_shown(browser: Browser, party: RelyingParty, encoded: str) -> None:
    """Nobody can tell where such a request came from."""
    asked = party.ask(state=None)
    check_page(browser.open(f"{asked.url}&{encoded}"), 400, UNREADABLE)
    sent = f"{urlencode(asked.parameters)}&{encoded}".encode()
    check_page(browser.send(asked.endpoint, sent, by=party.origin), 400, UNREADABLE)


def test_more_than_a_hundred_parameters_are_not_read(browser: Browser, party: RelyingParty) -> None:
    """Security 12.2."""
    asked = party.ask(**{f"x{number}": "1" for number in range(100)})
    check_page(browser.open(asked.url), 400, UNREADABLE)


@pytest.mark.parametrize(
    "content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain", "", "application/x-www-form"]
)
def test_a_body_that_is_no_form_is_not_read(world: World, party: RelyingParty, content_type: str) -> None:
    asked = party.ask()
    headers = {"Content-Type": content_type, "Accept": "text/html"}
    body = urlencode(asked.parameters).encode()
    answer = world.client.request("POST", asked.endpoint, headers=headers, body=body)
    check_page(answer, 400, UNREADABLE)


def test_what_stands_in_a_post_s_address_is_not_read(world: World, party: RelyingParty) -> None:
    """One request has one place for its parameters."""
    asked = party.ask()
    answer = world.client.post(asked.url, {"unheard_of": "1"})
    check_page(answer, 400, UNKNOWN)
    answer = world.client.request("POST", asked.url, headers={"Content-Type": FORM})
    check_page(answer, 400, UNKNOWN)


@pytest.mark.parametrize(
    "words", ["unheard_of", "none2", "NONE", "login unheard_of", "login,consent", "-", "none\tlogin"]
)
def test_an_unknown_prompt_is_an_invalid_request(browser: Browser, party: RelyingParty, words: str) -> None:
    asked = party.ask(prompt=words)
    party.refused(browser.open(asked.url), asked, "invalid_request")


@pytest.mark.parametrize("other", ["login", "consent", "select_account", "create", "login consent"])
def test_prompt_none_goes_with_no_other(browser: Browser, party: RelyingParty, other: str) -> None:
    """OpenID Connect Core §3.1.2.1; security 4.7."""
    for words in (f"none {other}", f"{other} none"):
        asked = party.ask(prompt=words)
        party.refused(browser.open(asked.url), asked, "invalid_request")


@pytest.mark.parametrize("max_age", ["-1", "1.5", "x", "1 ", "+1", "1e3", "0x10", "99999999999", "١", "1\n", "null"])
def test_max_age_is_a_whole_number_of_seconds(browser: Browser, party: RelyingParty, max_age: str) -> None:
    asked = party.ask(max_age=max_age)
    party.refused(browser.open(asked.url), Asked(asked.endpoint, asked.parameters), "invalid_request")


@pytest.mark.parametrize("max_age", ["1", "3600", "0003600", "9999999999"])
def test_max_age_brings_auth_time(world: World, browser: Browser, party: RelyingParty, max_age: str) -> None:
    asked = party.ask(max_age=max_age)
    assert party.tokens(browser.open(asked.url), asked).claims["auth_time"] == world.clock.seconds


def test_a_code_challenge_is_held_against_the_verifier(browser: Browser, party: RelyingParty) -> None:
    """RFC 7636 §4.6; security 4.5."""
    for wrong in ("w" * 43, None, "", "v" * 42, "v" * 129, VERIFIER + " ", s256(VERIFIER)):
        asked = party.ask(pkce=False, code_challenge=s256(VERIFIER), code_challenge_method="S256")
        code = party.code(browser.open(asked.url), asked)
        answer = party.redeem(code, asked, code_verifier=wrong)
        assert (answer.status_int, answer.json["error"]) == (400, "invalid_grant"), wrong
        # Whoever holds code and secret and fails gets no second try.
        assert party.redeem(code, asked, code_verifier=VERIFIER).status_int == 400
    asked = party.ask(pkce=False, code_challenge=s256(VERIFIER), code_challenge_method="S256")
    assert party.redeem(party.code(browser.open(asked.url), asked), asked, code_verifier=VERIFIER).status_int == 200


def test_a_verifier_without_a_challenge_is_refused(browser: Browser, party: RelyingParty) -> None:
    """Security 4.5: somebody has taken the challenge out of the request (RFC 9700 §4.8.2)."""
    asked = party.ask(pkce=False)
    answer = party.redeem(party.code(browser.open(asked.url), asked), asked, code_verifier=VERIFIER)
    assert (answer.status_int, answer.json["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("challenge", "method"),
    [
        (s256(VERIFIER), None),
        (s256(VERIFIER), "plain"),
        (s256(VERIFIER), "s256"),
        (s256(VERIFIER), "S512"),
        (VERIFIER, "plain"),
        (None, "S256"),
        (None, "plain"),
        ("", "S256"),
        ("x" * 42, "S256"),
        ("x" * 44, "S256"),
        ("x" * 42 + "=", "S256"),
        ("x" * 42 + "+", "S256"),
        ("x" * 42 + "/", "S256"),
        ("x" * 42 + "\n", "S256"),
        ("x" * 43 + "\n", "S256"),
        ("é" * 43, "S256"),
    ],
)
def test_only_s256_challenges_are_taken(
    browser: Browser, party: RelyingParty, challenge: str | None, method: str | None
) -> None:
    """Security 4.5: plain is refused, also where it is meant by leaving the method out (RFC 7636 §4.3)."""
    asked = party.ask(pkce=False, code_challenge=challenge, code_challenge_method=method)
    party.refused(browser.open(asked.url), asked, "invalid_request")


def test_a_public_client_must_use_pkce(browser: Browser, public: RelyingParty) -> None:
    """Decisions: required for public clients."""
    asked = public.ask(pkce=False)
    description = public.refused(browser.open(asked.url), asked, "invalid_request")
    assert "code_challenge" in description
    asked = public.ask()
    assert public.tokens(browser.open(asked.url), asked).claims["azp"] == public.client_id


def test_a_public_client_needs_none_where_no_code_is_issued(browser: Browser, public: RelyingParty) -> None:
    asked = public.ask("id_token token")
    public.tokens(browser.open(asked.url), asked)


def test_a_confidential_client_may_do_without(browser: Browser, party: RelyingParty) -> None:
    asked = party.ask(pkce=False)
    party.tokens(browser.open(asked.url), asked)


@pytest.mark.parametrize("parameters", [{"response_type": "nonsense"}, {"scope": "x"}, {"prompt": "x"}])
def test_errors_are_told_to_the_client_whether_or_not_somebody_is_signed_in(
    world: World, browser: Browser, party: RelyingParty, parameters: dict[str, str]
) -> None:
    asked = party.ask(**parameters)
    for one in (browser, Browser(world)):
        answer = one.open(asked.url)
        assert party.read(answer, asked)["error"]
        assert len(one.answers) == 1


def test_a_post_tells_its_errors_at_once(world: World, browser: Browser, party: RelyingParty) -> None:
    asked = party.ask(scope="profile")
    answer = browser.send(asked.endpoint, dict(asked.parameters), by=party.origin)
    party.refused(answer, asked, "invalid_scope")
    asked = party.ask(redirect_uri="https://evil.example/cb")
    check_page(browser.send(asked.endpoint, dict(asked.parameters), by=party.origin), 400, UNTRUSTED)
