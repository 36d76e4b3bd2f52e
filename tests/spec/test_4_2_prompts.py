"""Service description §4.2: prompt, max_age, ui_locales, and several sessions."""

from urllib.parse import urlencode

import pytest

from identity.domain.users import HumanUser
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World

#: The response is immediate, without a page.
ANSWER = None
NAME, REGISTER, ACCOUNTS, CONSENT, AGAIN = "", "register", "accounts", "consent", "password"

# --- first page -------------------------------------------------------------------------------------------------------


#: Signed-in users → prompt → first page.
FIRST_PAGES: dict[str, dict[str | None, str | None]] = {
    "nobody": {
        None: NAME, "login": NAME, "consent": NAME, "select_account": NAME, "create": REGISTER, "login consent": NAME,
        "create login": REGISTER,
    },
    "one person": {
        None: ANSWER, "login": AGAIN, "consent": CONSENT, "select_account": ACCOUNTS, "create": REGISTER,
        "consent login": AGAIN, "select_account login": ACCOUNTS, "select_account consent": ACCOUNTS,
        "create consent": REGISTER,
    },
    "several people": {
        None: ACCOUNTS, "login": ACCOUNTS, "consent": ACCOUNTS, "select_account": ACCOUNTS, "create": REGISTER,
    },
}  # fmt: skip


@pytest.mark.shows("1.2", "4.2.16")
@pytest.mark.parametrize("signed_in", FIRST_PAGES)
def test_first_page_follows_prompt_and_sessions(
    world: World, party: RelyingParty, person: HumanUser, other_person: HumanUser, signed_in: str
) -> None:
    """prompt=create shows the registration form even with a session; several sessions show the chooser."""
    people = {"nobody": (), "one person": (person,), "several people": (person, other_person)}[signed_in]
    for prompt, step in FIRST_PAGES[signed_in].items():
        browser = Browser(world)
        for user in people:
            browser.start_session(user)
        authorization = party.open_request(browser, prompt=prompt)
        assert browser.sign_in_step == step, prompt
        if step is ANSWER:
            assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id
        else:
            check_page(browser.page)


# --- prompt=none ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.2.12")
@pytest.mark.parametrize(("response_type", "mode"), [("code", None), ("id_token", None), ("code", "form_post")])
def test_prompt_none_shows_no_page(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, response_type: str, mode: str | None
) -> None:
    """With a session the response is immediate, otherwise an error. Nothing is stored."""
    parameters = {"prompt": "none", "response_mode": mode}
    assert party.sign_in_silently(browser, response_type, **parameters).claims["sub"] == person.id
    assert len(browser.answers) == 1
    nobody = Browser(world)
    party.expect_error_at_once(nobody, "login_required", response_type, **parameters)
    assert (len(nobody.answers), len(nobody.cookies)) == (1, 0)


def test_prompt_none_with_several_sessions_is_refused(
    browser: Browser, party: RelyingParty, person: HumanUser, other_person: HumanUser
) -> None:
    """The user would have to choose a session, unless a hint selects one."""
    browser.start_session(other_person)
    party.expect_error_at_once(browser, "account_selection_required", prompt="none")
    for user in (person, other_person):
        assert party.sign_in_silently(browser, prompt="none", login_hint=user.user_name).claims["sub"] == user.id


def test_prompt_none_with_old_password_is_refused(world: World, browser: Browser, party: RelyingParty) -> None:
    world.clock.advance(61)
    party.expect_error_at_once(browser, "login_required", prompt="none", max_age=60)
    party.sign_in_silently(browser, prompt="none", max_age=62)


def test_prompt_none_in_a_post_is_answered_after_the_redirect(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    authorization = party.new_request(prompt="none")
    browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin)
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id
    nobody = Browser(world)
    party.check_error_response(
        nobody.post_form(authorization.endpoint, dict(authorization.parameters), initiator=party.origin),
        authorization,
        "login_required",
    )
    assert len(nobody.cookies) == 0


# --- prompt=login, max_age, auth_time ---------------------------------------------------------------------------------


def test_silent_sign_in_keeps_auth_time(world: World, browser: Browser, party: RelyingParty) -> None:
    """Decisions, authorization endpoint."""
    at = world.clock.seconds
    for parameters in ({}, {"max_age": 10_000}, {"prompt": "none"}):
        world.clock.advance(minutes=5)
        assert party.sign_in_silently(browser, **parameters).claims["auth_time"] == at


@pytest.mark.parametrize("parameters", [{"prompt": "login"}, {"max_age": 0}, {"max_age": 60}])
def test_password_entry_updates_auth_time_and_keeps_session(
    world: World, browser: Browser, party: RelyingParty, login_name: str, parameters: dict[str, object]
) -> None:
    """Security 10.5: re-authentication replaces the session's secret; the old one is invalid."""
    first = party.obtain_tokens(browser.open((authorization := party.new_request()).url), authorization)
    before = {cookie.name: cookie.value for cookie in browser.cookies if cookie.name in browser.session_cookies}
    world.clock.advance(minutes=5)
    authorization = party.open_request(browser, **parameters)
    assert browser.sign_in_step == AGAIN
    tokens = party.obtain_tokens(browser.submit({"password": PASSWORD}), authorization)
    assert tokens.claims["auth_time"] == world.clock.seconds == first.claims["auth_time"] + 300
    assert tokens.claims["sid"] == first.claims["sid"]
    after = {cookie.name: cookie.value for cookie in browser.cookies if cookie.name in browser.session_cookies}
    assert after.keys() == before.keys()
    assert after != before
    thief = Browser(world)
    for name, value in before.items():
        thief.cookies.store(world.issuer, f"{name}={value}; Path=/; Secure", world.clock())
    party.expect_error_at_once(thief, "login_required", prompt="none")


@pytest.mark.shows("4.2.10")
def test_recent_password_is_not_requested_again(world: World, browser: Browser, party: RelyingParty) -> None:
    world.clock.advance(59)
    party.sign_in_silently(browser, max_age=60)
    world.clock.advance(2)
    party.open_request(browser, max_age=60)
    assert browser.sign_in_step == AGAIN


@pytest.mark.shows("4.2.13")
def test_prompt_login_cannot_be_removed(browser: Browser, party: RelyingParty, login_name: str) -> None:
    """Security 4.7: the requested prompt is stored with the request, not in the URL."""
    authorization = party.open_request(browser, prompt="login")
    page = browser.path
    request_id = page.split("/")[2]
    resumed = f"/oauth/v2/authorize/{request_id}"
    for path in (resumed, f"{resumed}?prompt=none", f"{page}?prompt="):
        browser.open(path)
        assert browser.sign_in_step == AGAIN
    # The existing session could answer another request, but not this one.
    other = browser.tab()
    party.obtain_tokens(other.open((second := party.new_request()).url), second)
    browser.open(resumed)
    assert browser.sign_in_step == AGAIN
    party.obtain_tokens(browser.submit({"password": PASSWORD}), authorization)


def test_prompt_login_ignores_sign_in_of_other_tab(browser: Browser, party: RelyingParty, login_name: str) -> None:
    """This request requires a password entry of its own."""
    first = party.open_request(browser, prompt="login")
    tab = browser.tab()
    second = party.open_request(tab, prompt="login")
    party.obtain_tokens(tab.submit({"password": PASSWORD}), second)
    browser.reload()
    assert browser.sign_in_step == AGAIN
    party.obtain_tokens(browser.submit({"password": PASSWORD}), first)


# --- prompt=select_account --------------------------------------------------------------------------------------------


@pytest.mark.shows("4.2.14")
def test_chosen_session_is_used(
    browser: Browser, party: RelyingParty, person: HumanUser, other_person: HumanUser
) -> None:
    """The user chooses an existing session or starts a new one."""
    browser.start_session(other_person)
    for user in (person, other_person, person):
        authorization = party.open_request(browser, prompt="select_account")
        browser.select_account(user.user_name)
        assert party.obtain_tokens(browser.page, authorization).claims["sub"] == user.id


@pytest.mark.shows("4.2.14")
def test_other_account_adds_session(
    world: World, browser: Browser, party: RelyingParty, other_person: HumanUser
) -> None:
    other = set_password(world, other_person)
    authorization = party.open_request(browser, prompt="select_account")
    browser.select_account("Use another account")
    assert browser.sign_in_step == NAME
    browser.sign_in(other)
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == other_person.id
    assert len(browser.session_cookies) == 2


@pytest.mark.shows("4.2.9")
def test_login_hint_preselects_account(
    browser: Browser, party: RelyingParty, other_person: HumanUser, person: HumanUser
) -> None:
    """On the account chooser."""
    browser.start_session(other_person)
    for user in (person, other_person):
        party.open_request(browser, prompt="select_account", login_hint=user.user_name)
        rows = browser.page.html.find_all("button", attrs={"name": "session"})
        assert user.user_name in rows[0].get_text()


def test_prompt_select_account_and_login_combine(
    browser: Browser, party: RelyingParty, person: HumanUser, login_name: str, other_person: HumanUser
) -> None:
    browser.start_session(other_person)
    authorization = party.open_request(browser, prompt="login select_account")
    browser.select_account(person.user_name)
    assert browser.sign_in_step == AGAIN
    browser.submit({"password": PASSWORD})
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id


def test_expired_session_is_offered_with_password(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    """Pages §4.2: "Signed out – needs the password"."""
    world.clock.advance(hours=12)
    authorization = party.open_request(browser, prompt="select_account")
    assert browser.sign_in_step == ACCOUNTS
    browser.select_account(person.user_name)
    assert browser.sign_in_step == AGAIN
    browser.submit({"password": PASSWORD})
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id
    assert len(browser.session_cookies) == 1


# --- prompt=consent ---------------------------------------------------------------------------------------------------


def test_consent_names_the_application_and_its_scopes(world: World, browser: Browser, person: HumanUser) -> None:
    party = RelyingParty.register(world, name="Invoices & more")
    authorization = party.open_request(browser, scope="openid email", prompt="consent")
    text = browser.page.html.main.get_text()
    assert "Invoices & more" in text
    assert "email" in text
    browser.submit(button=("decision", "allow"))
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id


def test_prompt_consent_always_shows_consent(browser: Browser, party: RelyingParty) -> None:
    for _ in range(2):
        authorization = party.open_request(browser, prompt="consent")
        assert browser.sign_in_step == CONSENT
        browser.submit(button=("decision", "allow"))
        party.obtain_tokens(browser.page, authorization)
        party.sign_in_silently(browser)


def test_refused_consent_is_access_denied(browser: Browser, party: RelyingParty) -> None:
    authorization = party.open_request(browser, prompt="consent")
    (refusing,) = (
        item["value"]
        for item in browser.page.html.find_all("button", attrs={"name": "decision"})
        if item["value"] != "allow"
    )
    browser.submit(button=("decision", refusing))
    party.check_error_response(browser.page, authorization, "access_denied")


def test_prompt_login_and_consent_combine(browser: Browser, party: RelyingParty, login_name: str) -> None:
    authorization = party.open_request(browser, prompt="login consent")
    request_id = browser.path.split("/")[2]
    browser.open(f"/login/{request_id}/consent")
    browser.open(f"/oauth/v2/authorize/{request_id}")
    assert browser.sign_in_step == AGAIN
    browser.submit({"password": PASSWORD})
    assert browser.sign_in_step == CONSENT
    browser.open(f"/oauth/v2/authorize/{request_id}")
    assert browser.sign_in_step == CONSENT
    browser.submit(button=("decision", "allow"))
    party.obtain_tokens(browser.page, authorization)


def test_consent_belongs_to_consenting_user(browser: Browser, party: RelyingParty, other_person: HumanUser) -> None:
    party.open_request(browser, prompt="consent")
    form = urlencode([*browser.find_form().submit_fields(), ("decision", "allow")])
    # The response is lost, and another user takes over the browser.
    answer = browser._send(browser._from_page("POST", browser.url, form.encode()), "same-origin")
    for name in browser.session_cookies:
        browser.cookies.delete(name)
    browser.start_session(other_person)
    browser.open(answer.location)
    assert browser.sign_in_step == NAME
    browser.sign_in(set_password(browser.world, other_person))
    assert browser.sign_in_step == CONSENT


# --- prompt=create ----------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.2.15")
def test_prompt_create_registers_and_answers(world: World, party: RelyingParty) -> None:
    """Without permissions and roles, in the application's organization, with an unverified address."""
    browser = Browser(world)
    authorization = party.open_request(browser, prompt="create", scope="openid profile email")
    fields = {
        "user_name": f"new-{authorization.parameters['state'].lower()}",
        "given_name": "Neu",
        "family_name": "Mann",
    }
    browser.submit({**fields, "email": "new@people.example", "password": PASSWORD, "password_again": PASSWORD})
    assert fields["user_name"] + "@" in browser.page.html.find(class_="login__who").get_text()
    tokens = party.obtain_tokens(browser.submit(), authorization)
    userinfo = party.fetch_userinfo(tokens)
    assert (userinfo["preferred_username"], userinfo["email_verified"]) == (fields["user_name"], False)
    assert party.sign_in_silently(browser, prompt="none").claims["sub"] == userinfo["sub"]


def test_prompt_create_is_denied_where_registration_is_closed(world: World, browser: Browser) -> None:
    """Decisions: a setting per organization; if off, access_denied."""
    organization = world.make_organization(registration=False)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    for item in (browser, Browser(world)):
        party.expect_error_at_once(item, "access_denied", prompt="create")


# --- ui_locales -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.2.18")
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
def test_ui_locales_select_language(
    world: World, party: RelyingParty, ui_locales: str | None, accepted: str, spoken: str
) -> None:
    """If the parameter is missing or no language matches, the Accept-Language header is used."""
    browser = Browser(world, languages=accepted)
    party.open_request(browser, ui_locales=ui_locales)
    assert browser.page.html.html["lang"] == spoken
    browser.submit({"login_name": "ada"})
    assert browser.page.html.html["lang"] == spoken


@pytest.mark.every_storage
def test_oversized_ui_locales_are_ignored(world: World) -> None:
    for ui_locales in ("%00", "de%00", "%01%0a%7f", "%C2%85%E2%80%AE"):
        browser = Browser(world)
        browser.open(f"/login?ui_locales={ui_locales}")
        assert browser.page.html.html["lang"] == "en"
        assert browser.sign_in_step == ""


# --- scopes that name an organization ---------------------------------------------------------------------------------


def test_organization_scope_requires_member(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser, other_person: HumanUser
) -> None:
    browser.start_session(other_person)
    scope = f"openid urn:service:iam:org:id:{person.organization_id}"
    assert party.sign_in_silently(browser, scope=scope, prompt="none").claims["sub"] == person.id
    stranger = Browser(world)
    stranger.start_session(other_person)
    party.expect_error_at_once(stranger, "login_required", scope=scope, prompt="none")


def test_unknown_organization_is_invalid_scope(browser: Browser, party: RelyingParty) -> None:
    for scope in ("urn:service:iam:org:id:no-such", "urn:service:iam:org:domain:primary:no.such"):
        party.expect_error_at_once(browser, "invalid_scope", scope=f"openid {scope}")


def test_users_of_one_browser_keep_their_tokens(world: World, party: RelyingParty) -> None:
    """Security 18.8: users of one browser neither receive nor end each other's tokens."""
    browser = Browser(world)
    tokens_of = {}
    for person in (world.make_human_user(), world.make_human_user()):
        authorization = party.new_request(scope="openid offline_access", prompt="select_account" if tokens_of else None)
        browser.open(authorization.url, initiator=party.origin)
        if tokens_of:
            browser.select_account("Use another account")
        browser.sign_in(set_password(world, person))
        tokens_of[person.id] = party.obtain_tokens(browser.page, authorization).members
    assert len(tokens_of) == 2
    for _ in range(2):
        for person_id, members in list(tokens_of.items()):
            tokens_of[person_id] = party.refresh(members["refresh_token"]).json
            assert decode_jwt_unverified(tokens_of[person_id]["id_token"])[1]["sub"] == person_id
            assert world.client.fetch_userinfo(tokens_of[person_id]["access_token"]).json["sub"] == person_id
    for person_id, members in tokens_of.items():
        assert (
            party.sign_in_silently(browser, prompt="none", id_token_hint=members["id_token"]).claims["sub"] == person_id
        )
