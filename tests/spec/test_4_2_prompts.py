"""Service description §4.2: prompt, max_age, id_token_hint, login_hint, ui_locales, and several sessions."""

from dataclasses import replace
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from identity.crypto.jwt import sign
from identity.domain.users import HumanUser, TokenFormat
from identity.testing.assertions import decoded, hs256, ps256, signed, unsigned
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.relying_party import Asked, RelyingParty
from identity.testing.responses import check_page
from identity.testing.world import World

#: Stands for: no page, the answer comes at once.
ANSWER = None
NAME, REGISTER, ACCOUNTS, CONSENT, AGAIN = "", "register", "accounts", "consent", "password"

PROMPTS = [None, "login", "consent", "select_account", "create"]


@pytest.fixture
def login_name(world: World, person: HumanUser) -> str:
    """The person's login name; the password is PASSWORD."""
    return give_password(world, person)


@pytest.fixture
def somebody_else(world: World) -> HumanUser:
    """Another person of another organization."""
    return world.a_person()


def opened(browser: Browser, party: RelyingParty, *, scope: str = "openid", **parameters: object) -> Asked:
    """The request with which the application has sent the person to us."""
    asked = party.ask(scope=scope, **parameters)
    browser.open(asked.url, by=party.origin)
    return asked


def subject_of(browser: Browser, party: RelyingParty, asked: Asked) -> str:
    """Whom the answer is about."""
    subject: str = party.tokens(browser.page, asked).claims["sub"]
    return subject


# --- which page comes first -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "step"),
    [
        (None, NAME),
        ("login", NAME),
        ("consent", NAME),
        ("select_account", NAME),
        ("create", REGISTER),
        ("login consent", NAME),
        ("create login", REGISTER),
    ],
)
def test_where_nobody_is_signed_in(world: World, party: RelyingParty, prompt: str | None, step: str) -> None:
    browser = Browser(world)
    opened(browser, party, prompt=prompt)
    assert browser.step == step
    check_page(browser.page)


@pytest.mark.parametrize(
    ("prompt", "step"),
    [
        (None, ANSWER),
        ("login", AGAIN),
        ("consent", CONSENT),
        ("select_account", ACCOUNTS),
        ("create", REGISTER),
        ("consent login", AGAIN),
        ("select_account login", ACCOUNTS),
        ("select_account consent", ACCOUNTS),
        ("create consent", REGISTER),
    ],
)
def test_where_one_person_is_signed_in(
    browser: Browser, party: RelyingParty, person: HumanUser, prompt: str | None, step: str | None
) -> None:
    """prompt=create shows the registration form even in a live session."""
    asked = opened(browser, party, prompt=prompt)
    assert browser.step == step
    if step is ANSWER:
        assert subject_of(browser, party, asked) == person.id


@pytest.mark.parametrize(
    ("prompt", "step"),
    [
        (None, ACCOUNTS),
        ("login", ACCOUNTS),
        ("consent", ACCOUNTS),
        ("select_account", ACCOUNTS),
        ("create", REGISTER),
    ],
)
def test_where_several_people_are_signed_in(
    browser: Browser, party: RelyingParty, somebody_else: HumanUser, prompt: str | None, step: str
) -> None:
    """When prompt is omitted and more than one session exists, the user chooses a session."""
    browser.start_session(somebody_else)
    opened(browser, party, prompt=prompt)
    assert browser.step == step


# --- prompt=none ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("response_type", "mode"), [("code", None), ("id_token", None), ("code", "form_post")])
def test_prompt_none_answers_for_who_is_signed_in(
    browser: Browser, party: RelyingParty, person: HumanUser, response_type: str, mode: str | None
) -> None:
    asked = party.ask(response_type, prompt="none", response_mode=mode)
    assert party.tokens(browser.open(asked.url), asked).claims["sub"] == person.id
    assert len(browser.answers) == 1


@pytest.mark.parametrize(("response_type", "mode"), [("code", None), ("id_token", None), ("code", "form_post")])
def test_prompt_none_never_shows_a_page(
    world: World, party: RelyingParty, response_type: str, mode: str | None
) -> None:
    """Error if not authenticated, in one answer, leaving nothing behind."""
    browser = Browser(world)
    asked = party.ask(response_type, prompt="none", response_mode=mode)
    party.refused(browser.open(asked.url), asked, "login_required")
    assert len(browser.answers) == 1
    assert len(browser.cookies) == 0


def test_prompt_none_with_several_sessions(
    browser: Browser, party: RelyingParty, person: HumanUser, somebody_else: HumanUser
) -> None:
    """The user would have to choose, unless a hint says who is meant."""
    browser.start_session(somebody_else)
    asked = opened(browser, party, prompt="none")
    party.refused(browser.page, asked, "account_selection_required")
    for one in (person, somebody_else):
        asked = opened(browser, party, prompt="none", login_hint=one.user_name)
        assert subject_of(browser, party, asked) == one.id


def test_prompt_none_with_a_password_that_is_too_old(world: World, browser: Browser, party: RelyingParty) -> None:
    world.clock.advance(61)
    asked = opened(browser, party, prompt="none", max_age=60)
    party.refused(browser.page, asked, "login_required")
    asked = opened(browser, party, prompt="none", max_age=62)
    party.tokens(browser.page, asked)


def test_prompt_none_in_a_post_is_answered_after_the_redirect(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    asked = party.ask(prompt="none")
    browser.send(asked.endpoint, dict(asked.parameters), by=party.origin)
    assert subject_of(browser, party, asked) == person.id
    nobody = Browser(world)
    party.refused(nobody.send(asked.endpoint, dict(asked.parameters), by=party.origin), asked, "login_required")
    assert len(nobody.cookies) == 0


# --- prompt=login, max_age, auth_time ---------------------------------------------------------------------------------


def test_a_silent_sign_in_leaves_auth_time_as_it_was(world: World, browser: Browser, party: RelyingParty) -> None:
    """Decisions, authorization endpoint."""
    at = world.clock.seconds
    for parameters in ({}, {"max_age": 10_000}, {"prompt": "none"}):
        world.clock.advance(minutes=5)
        asked = opened(browser, party, **parameters)
        assert party.tokens(browser.page, asked).claims["auth_time"] == at


@pytest.mark.parametrize("parameters", [{"prompt": "login"}, {"max_age": 0}, {"max_age": 60}])
def test_a_new_password_moves_auth_time_and_keeps_the_session(
    world: World, browser: Browser, party: RelyingParty, login_name: str, parameters: dict[str, object]
) -> None:
    """Security 10.5: a new secret at re-authentication; the old one is worth nothing any more."""
    first = party.tokens(browser.open((asked := party.ask()).url), asked)
    before = {one.name: one.value for one in browser.cookies if one.name in browser.session_cookies}
    world.clock.advance(minutes=5)
    asked = opened(browser, party, **parameters)
    assert browser.step == AGAIN
    tokens = party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)
    assert tokens.claims["auth_time"] == world.clock.seconds == first.claims["auth_time"] + 300
    assert tokens.claims["sid"] == first.claims["sid"]
    after = {one.name: one.value for one in browser.cookies if one.name in browser.session_cookies}
    assert after.keys() == before.keys()
    assert after != before
    thief = Browser(world)
    for name, value in before.items():
        thief.cookies.store(world.issuer, f"{name}={value}; Path=/; Secure", world.clock())
    asked = party.ask(prompt="none")
    party.refused(thief.open(asked.url), asked, "login_required")


def test_a_password_that_is_young_enough_is_not_asked_again(
    world: World, browser: Browser, party: RelyingParty
) -> None:
    world.clock.advance(59)
    asked = opened(browser, party, max_age=60)
    party.tokens(browser.page, asked)
    world.clock.advance(2)
    opened(browser, party, max_age=60)
    assert browser.step == AGAIN


def test_prompt_login_cannot_be_dropped_on_the_way(browser: Browser, party: RelyingParty, login_name: str) -> None:
    """Security 4.7: what was asked stands in the row, not in the address."""
    asked = opened(browser, party, prompt="login")
    page = browser.path
    request_id = page.split("/")[2]
    resumed = f"/oauth/v2/authorize/{request_id}"
    for path in (resumed, f"{resumed}?prompt=none", f"{page}?prompt="):
        browser.open(path)
        assert browser.step == AGAIN
    # The session that stands there could answer another request; not this one.
    other = browser.tab()
    party.tokens(other.open((second := party.ask()).url), second)
    browser.open(resumed)
    assert browser.step == AGAIN
    party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)


def test_a_sign_in_elsewhere_is_not_the_one_that_was_asked_for(
    browser: Browser, party: RelyingParty, login_name: str
) -> None:
    """prompt=login: the password has to be given for this request."""
    first = opened(browser, party, prompt="login")
    tab = browser.tab()
    second = opened(tab, party, prompt="login")
    party.tokens(tab.submit({"password": PASSWORD}, form="page-form"), second)
    browser.reload()
    assert browser.step == AGAIN
    party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), first)


def test_after_re_authentication_the_first_session_is_no_other(
    world: World, browser: Browser, party: RelyingParty, login_name: str
) -> None:
    """Signing in again as the same person leaves one session, however it was asked."""
    for parameters in ({"prompt": "login"}, {"prompt": "select_account"}):
        asked = opened(browser, party, **parameters)
        if browser.step == ACCOUNTS:
            browser.choose("Use another account")
        party.tokens(browser.sign_in(login_name), asked)
    assert len(browser.session_cookies) == 1


# --- prompt=select_account --------------------------------------------------------------------------------------------


def test_the_chosen_session_answers(
    browser: Browser, party: RelyingParty, person: HumanUser, somebody_else: HumanUser
) -> None:
    """select_account: choose an existing session or create a new one."""
    browser.start_session(somebody_else)
    for one in (person, somebody_else, person):
        asked = opened(browser, party, prompt="select_account")
        browser.choose(one.user_name)
        assert subject_of(browser, party, asked) == one.id


def test_another_account_becomes_one_more_session(
    world: World, browser: Browser, party: RelyingParty, somebody_else: HumanUser
) -> None:
    other = give_password(world, somebody_else)
    asked = opened(browser, party, prompt="select_account")
    browser.choose("Use another account")
    assert browser.step == NAME
    browser.sign_in(other)
    assert subject_of(browser, party, asked) == somebody_else.id
    assert len(browser.session_cookies) == 2


def test_the_hint_preselects_on_the_chooser(
    browser: Browser, party: RelyingParty, somebody_else: HumanUser, person: HumanUser
) -> None:
    """login_hint: preselects a user on select_account."""
    browser.start_session(somebody_else)
    for one in (person, somebody_else):
        opened(browser, party, prompt="select_account", login_hint=one.user_name)
        rows = browser.page.html.find_all("button", attrs={"name": "session"})
        assert one.user_name in rows[0].get_text()


def test_select_account_and_login_ask_for_both(
    browser: Browser, party: RelyingParty, person: HumanUser, login_name: str, somebody_else: HumanUser
) -> None:
    browser.start_session(somebody_else)
    asked = opened(browser, party, prompt="login select_account")
    browser.choose(person.user_name)
    assert browser.step == AGAIN
    browser.submit({"password": PASSWORD}, form="page-form")
    assert subject_of(browser, party, asked) == person.id


def test_an_expired_session_is_offered_and_needs_the_password(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    """Pages §4.2: "Signed out – needs the password"."""
    world.clock.advance(hours=12)
    asked = opened(browser, party, prompt="select_account")
    assert browser.step == ACCOUNTS
    browser.choose(person.user_name)
    assert browser.step == AGAIN
    browser.submit({"password": PASSWORD}, form="page-form")
    assert subject_of(browser, party, asked) == person.id
    assert len(browser.session_cookies) == 1


# --- prompt=consent ---------------------------------------------------------------------------------------------------


def test_consent_names_the_application_and_its_scopes(world: World, browser: Browser, person: HumanUser) -> None:
    party = RelyingParty.of(world, name="Invoices & more")
    asked = opened(browser, party, scope="openid email", prompt="consent")
    text = browser.page.html.main.get_text()
    assert "Invoices & more" in text
    assert "email" in text
    browser.submit(press=("decision", "allow"), form="page-form")
    assert subject_of(browser, party, asked) == person.id


def test_consent_is_asked_each_time_that_it_is_asked_for_and_never_otherwise(
    browser: Browser, party: RelyingParty
) -> None:
    for _ in range(2):
        asked = opened(browser, party, prompt="consent")
        assert browser.step == CONSENT
        browser.submit(press=("decision", "allow"), form="page-form")
        party.tokens(browser.page, asked)
        asked = opened(browser, party)
        party.tokens(browser.page, asked)


def test_a_refused_consent_is_access_denied(browser: Browser, party: RelyingParty) -> None:
    asked = opened(browser, party, prompt="consent")
    (refusing,) = (
        one["value"]
        for one in browser.page.html.find_all("button", attrs={"name": "decision"})
        if one["value"] != "allow"
    )
    browser.submit(press=("decision", refusing), form="page-form")
    party.refused(browser.page, asked, "access_denied")


def test_login_and_consent_ask_for_both(browser: Browser, party: RelyingParty, login_name: str) -> None:
    asked = opened(browser, party, prompt="login consent")
    request_id = browser.path.split("/")[2]
    browser.open(f"/login/{request_id}/consent")
    browser.open(f"/oauth/v2/authorize/{request_id}")
    assert browser.step == AGAIN
    browser.submit({"password": PASSWORD}, form="page-form")
    assert browser.step == CONSENT
    browser.open(f"/oauth/v2/authorize/{request_id}")
    assert browser.step == CONSENT
    browser.submit(press=("decision", "allow"), form="page-form")
    party.tokens(browser.page, asked)


def test_consent_is_of_the_one_who_gave_it_where_nobody_else_was_there(
    browser: Browser, party: RelyingParty, somebody_else: HumanUser
) -> None:
    opened(browser, party, prompt="consent")
    form = urlencode([*browser.form("page-form").submit_fields(), ("decision", "allow")])
    # The answer gets lost, and somebody else sits down.
    answer = browser._send(browser._from_page("POST", browser.url, form.encode()), "same-origin")
    for name in browser.session_cookies:
        browser.cookies.forget(name)
    browser.start_session(somebody_else)
    browser.open(answer.location)
    assert browser.step == NAME
    browser.sign_in(give_password(browser.world, somebody_else))
    assert browser.step == CONSENT


# --- prompt=create ----------------------------------------------------------------------------------------------------


def test_a_new_account_is_made_and_answers(world: World, party: RelyingParty) -> None:
    """Without rights and roles, in the application's organization, the address unverified."""
    browser = Browser(world)
    asked = opened(browser, party, prompt="create", scope="openid profile email")
    fields = {"user_name": f"new-{asked.parameters['state'].lower()}", "given_name": "Neu", "family_name": "Mann"}
    browser.submit(
        {**fields, "email": "new@people.example", "password": PASSWORD, "password_again": PASSWORD}, form="page-form"
    )
    tokens = party.tokens(browser.page, asked)
    told = party.userinfo(tokens)
    assert (told["preferred_username"], told["email_verified"]) == (fields["user_name"], False)
    asked = party.ask(prompt="none")
    assert party.tokens(browser.open(asked.url), asked).claims["sub"] == told["sub"]


def test_where_registration_is_closed_it_is_access_denied(world: World, browser: Browser) -> None:
    """Decisions: a setting per organization; off: access_denied."""
    organization = world.an_organization()
    party = RelyingParty.of(world, project_id=world.a_project(organization).id)
    with world.transaction() as services:
        closed = replace(organization, registration=False, version=organization.version + 1)
        services.storage.organizations.update(closed)
    for one in (browser, Browser(world)):
        asked = opened(one, party, prompt="create")
        party.refused(one.page, asked, "access_denied")


# --- id_token_hint ----------------------------------------------------------------------------------------------------


@pytest.fixture
def id_token(browser: Browser, party: RelyingParty) -> str:
    """An ID token about the person, from the session of the browser."""
    asked = party.ask()
    return party.tokens(browser.open(asked.url), asked).id_token


def test_a_hint_says_which_session_is_meant(
    world: World, browser: Browser, party: RelyingParty, id_token: str, person: HumanUser, somebody_else: HumanUser
) -> None:
    """Should be given with prompt none."""
    browser.start_session(somebody_else)
    for prompt in ("none", None):
        asked = opened(browser, party, prompt=prompt, id_token_hint=id_token)
        assert subject_of(browser, party, asked) == person.id


def test_an_expired_hint_is_as_good(
    world: World, browser: Browser, party: RelyingParty, id_token: str, person: HumanUser
) -> None:
    """Decisions: verified with our own keys, expired ones accepted."""
    world.clock.advance(hours=11)
    asked = opened(browser, party, prompt="none", id_token_hint=id_token)
    assert subject_of(browser, party, asked) == person.id


def test_another_application_s_id_token_names_its_subject_too(
    world: World, browser: Browser, id_token: str, person: HumanUser
) -> None:
    other = RelyingParty.of(world)
    asked = opened(browser, other, prompt="none", id_token_hint=id_token)
    assert subject_of(browser, other, asked) == person.id


def test_a_hint_for_somebody_who_is_not_signed_in(
    world: World, party: RelyingParty, id_token: str, person: HumanUser, login_name: str, somebody_else: HumanUser
) -> None:
    """OpenID Connect Core §3.1.2.1: the one who is signed in does not answer for the other."""
    browser = Browser(world)
    browser.start_session(somebody_else)
    asked = opened(browser, party, prompt="none", id_token_hint=id_token)
    party.refused(browser.page, asked, "login_required")
    asked = opened(browser, party, id_token_hint=id_token)
    assert browser.step is not None
    browser.sign_in(login_name)
    assert subject_of(browser, party, asked) == person.id


def test_whoever_signs_in_instead_does_not_answer(
    world: World, party: RelyingParty, id_token: str, somebody_else: HumanUser
) -> None:
    other = give_password(world, somebody_else)
    browser = Browser(world)
    asked = opened(browser, party, id_token_hint=id_token)
    if browser.step == AGAIN:
        browser.click("Not you?")
    browser.sign_in(other)
    party.refused(browser.page, asked, "login_required")


def hints(world: World, party: RelyingParty, browser: Browser, id_token: str) -> dict[str, str]:
    """What looks like an ID token of ours and is none."""
    header, claims = decoded(id_token)
    kid = header["kid"]
    key = generate_private_key(public_exponent=65537, key_size=2048)
    (published,) = (one for one in world.client.keys().json["keys"] if one["kid"] == kid)
    with world.reading() as services:
        (public,) = (one for stored, one in services.signing_keys.published() if stored.id == kid)
        _, own_key = services.signing_keys.current()
    pem = public.to_pem().encode()
    jwt_party = RelyingParty.of(world, access_token_type=TokenFormat.JWT)
    asked = jwt_party.ask()
    access = jwt_party.tokens(browser.open(asked.url), asked).access_token
    opaque = party.tokens(browser.open((asked := party.ask()).url), asked).access_token
    head, body, signature = id_token.split(".")
    return {
        "foreign key": signed(claims, key, key_id=kid),
        "unknown kid": signed(claims, key, key_id="no-such-key"),
        "no kid": signed(claims, key, key_id=None),
        "alg none": signed(claims, key, key_id=kid, header={"alg": "none"}, sign=unsigned),
        "alg None": signed(claims, key, key_id=kid, header={"alg": "None"}, sign=unsigned),
        "no signature": f"{head}.{body}.",
        "hmac with the public key": signed(claims, key, key_id=kid, header={"alg": "HS256"}, sign=hs256(pem)),
        "hmac with the modulus": signed(
            claims, key, key_id=kid, header={"alg": "HS256"}, sign=hs256(published["n"].encode())
        ),
        "other algorithm": signed(claims, key, key_id=kid, header={"alg": "PS256"}, sign=ps256(key)),
        "own key in the header": signed(claims, key, key_id=kid, header={"jwk": {"kty": "RSA", "e": "AQAB"}}),
        "altered claims": signed({**claims, "sub": "other"}, key, key_id=kid).rpartition(".")[0] + f".{signature}",
        "our key, another issuer": sign({**claims, "iss": "https://other.example"}, own_key, key_id=kid),
        "our key, an access token's type": sign(claims, own_key, key_id=kid, typ="at+jwt"),
        "our key, no application": sign({**claims, "azp": None}, own_key, key_id=kid),
        "our key, no subject": sign({**claims, "sub": 7}, own_key, key_id=kid),
        "cut": id_token[:-1],
        "grown": f"{id_token}A",
        "padded": f"{id_token}=",
        "four parts": f"{id_token}.x",
        "opaque access token": opaque,
        "access token": access,
        "subject": str(claims["sub"]),
        "rubbish": "x",
        "dots": "..",
        "spaces": f" {id_token}",
        "json": '{"sub": "x"}',
    }


def test_what_is_no_id_token_of_ours_is_an_invalid_request(
    world: World, browser: Browser, party: RelyingParty, id_token: str, somebody_else: HumanUser
) -> None:
    """Security 4.7 and 7.1: never alg-flexible; an access token is no hint. Whoever is signed in."""
    for what, hint in hints(world, party, browser, id_token).items():
        for one in (browser, Browser(world)):
            for prompt in ("none", None):
                asked = opened(one, party, prompt=prompt, id_token_hint=hint)
                description = party.refused(one.page, asked, "invalid_request")
                assert description == "id_token_hint is not an ID token of this issuer", what


def test_a_hint_of_another_installation_is_refused(
    browser: Browser, party: RelyingParty, make_world: object, id_token: str
) -> None:
    other = make_world(**{"identity.issuer_url": "https://other.example"})  # type: ignore[operator]
    theirs = RelyingParty.of(other)
    elsewhere = Browser(other)
    elsewhere.start_session(other.a_person())
    asked = theirs.ask()
    hint = theirs.tokens(elsewhere.open(asked.url), asked).id_token
    asked = opened(browser, party, id_token_hint=hint)
    party.refused(browser.page, asked, "invalid_request")


def test_a_hint_is_good_as_long_as_its_key_is_published(own_world: World) -> None:
    party, browser, person = RelyingParty.of(own_world), Browser(own_world), own_world.a_person()
    browser.start_session(person)
    hint = party.tokens(browser.open((asked := party.ask()).url), asked).id_token
    with own_world.transaction() as services:
        services.signing_keys.rotate(emergency=True)
    own_world.clock.advance(hours=11)
    asked = opened(browser, party, prompt="none", id_token_hint=hint)
    assert subject_of(browser, party, asked) == person.id
    own_world.clock.advance(hours=11)
    own_world.identity.jobs.purge()
    assert decoded(hint)[0]["kid"] not in {one["kid"] for one in own_world.client.keys().json["keys"]}
    asked = opened(browser, party, prompt="none", id_token_hint=hint)
    party.refused(browser.page, asked, "invalid_request")


def test_a_service_user_s_id_token_is_nobody_s_session(world: World, browser: Browser, party: RelyingParty) -> None:
    robot = world.a_robot()
    hint = robot.token().json["id_token"]
    asked = opened(browser, party, prompt="none", id_token_hint=hint)
    party.refused(browser.page, asked, "login_required")


# --- login_hint -------------------------------------------------------------------------------------------------------


def test_a_login_hint_prefills_the_name(world: World, party: RelyingParty) -> None:
    browser = Browser(world)
    for hint in ("ada@acme.example", "Ada", '"><script>alert(1)</script>', "ü " * 100):
        opened(browser, party, login_hint=hint)
        assert browser.form("page-form")["login_name"].value == hint.strip() or hint


def test_a_login_hint_for_who_is_signed_in_answers(
    browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    for hint in (login_name, login_name.upper(), person.user_name):
        asked = opened(browser, party, login_hint=hint)
        assert subject_of(browser, party, asked) == person.id


def test_a_login_hint_for_somebody_else_asks_for_them(
    world: World, browser: Browser, party: RelyingParty, somebody_else: HumanUser
) -> None:
    other = give_password(world, somebody_else)
    asked = opened(browser, party, prompt="none", login_hint=other)
    party.refused(browser.page, asked, "login_required")
    asked = opened(browser, party, login_hint=other)
    assert browser.form("page-form")["login_name"].value == other
    browser.sign_in(other)
    assert subject_of(browser, party, asked) == somebody_else.id


# --- ui_locales -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ui_locales", "accepted", "spoken"),
    [
        ("de", "en", "de"),
        ("de-CH fr", "en", "de"),
        ("xx fr de", "en", "fr"),
        ("zh-Hans-CN", "en", "zh"),
        ("XX", "it", "it"),
        (None, "es;q=0.5, fr;q=0.9", "fr"),
        (None, "xx", "en"),
        ("", "de", "de"),
        ("de_DE", "fr", "fr"),
    ],
)
def test_pages_speak_the_language_that_was_asked_for(
    world: World, party: RelyingParty, ui_locales: str | None, accepted: str, spoken: str
) -> None:
    """If none is given or none matches, the browser's accept-language header is used."""
    browser = Browser(world, languages=accepted)
    opened(browser, party, ui_locales=ui_locales)
    assert browser.page.html.html["lang"] == spoken
    browser.submit({"login_name": "ada"}, form="page-form")
    assert browser.page.html.html["lang"] == spoken


@pytest.mark.every_storage
@pytest.mark.parametrize("ui_locales", ["%00", "de%00", "%01%0a%7f", "%C2%85%E2%80%AE"])
def test_languages_that_nothing_can_hold_are_passed_over(world: World, ui_locales: str) -> None:
    browser = Browser(world)
    browser.open(f"/login?ui_locales={ui_locales}")
    assert browser.page.html.html["lang"] == "en"
    assert browser.step == ""


# --- scopes that name an organization ---------------------------------------------------------------------------------


def test_only_members_of_the_named_organization_answer(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, somebody_else: HumanUser
) -> None:
    browser.start_session(somebody_else)
    scope = f"openid urn:service:iam:org:id:{person.organization_id}"
    asked = opened(browser, party, scope=scope, prompt="none")
    assert subject_of(browser, party, asked) == person.id
    stranger = Browser(world)
    stranger.start_session(somebody_else)
    asked = opened(stranger, party, scope=scope, prompt="none")
    party.refused(stranger.page, asked, "login_required")


@pytest.mark.parametrize("word", ["urn:service:iam:org:id:no-such", "urn:service:iam:org:domain:primary:no.such"])
def test_an_organization_that_does_not_exist_is_an_invalid_scope(
    browser: Browser, party: RelyingParty, word: str
) -> None:
    asked = opened(browser, party, scope=f"openid {word}")
    party.refused(browser.page, asked, "invalid_scope")


def test_two_people_at_one_browser_keep_their_own(world: World, party: RelyingParty) -> None:
    """Security 18.8: whoever signs in at the browser of another gets nothing of theirs, and takes nothing away."""
    browser = Browser(world)
    held = {}
    for person in (world.a_person(), world.a_person()):
        asked = party.ask(scope="openid offline_access", prompt="select_account" if held else None)
        browser.open(asked.url, by=party.origin)
        if held:
            browser.choose("Use another account")
        browser.sign_in(give_password(world, person))
        held[person.id] = party.tokens(browser.page, asked).members
    assert len(held) == 2
    for _ in range(2):
        for person_id, members in list(held.items()):
            held[person_id] = party.refresh(members["refresh_token"]).json
            assert decoded(held[person_id]["id_token"])[1]["sub"] == person_id
            assert world.client.userinfo(held[person_id]["access_token"]).json["sub"] == person_id
    for person_id, members in held.items():
        asked = party.ask(prompt="none", id_token_hint=members["id_token"])
        assert party.tokens(browser.open(asked.url), asked).claims["sub"] == person_id
