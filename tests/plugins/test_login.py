"""The plugin login: every page of a sign-in, its words and statuses (pages §4), and what no page may tell."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import html5lib
import pytest

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser
from identity.hashing import Busy, Hasher
from identity.plugins.login.pages.entrance import safe_target
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import Worlds
from identity.testing.plugin_contract import PluginContract
from identity.testing.relying_party import RelyingParty
from identity.testing.service import PLUGINS
from identity.testing.world import World

PASSWORD = "correct horse battery staple"
WRONG = "The login name or the password is wrong. Check both and try again."


class TestPlugin(PluginContract):
    name = "login"


def with_login(storage: str) -> dict[str, str]:
    """Settings of a service with pages."""
    plugin = "memory" if storage == "memory" else "sql"
    return {} if "login" in PLUGINS.split() else {"identity.plugins": f"{plugin} {PLUGINS} login"}


@pytest.fixture
def world(worlds: Worlds, storage_name: str) -> Any:
    world = worlds.shared(storage_name, with_login(storage_name))
    yield world
    world.clock.reset()


@pytest.fixture
def own_world(make_world: Callable[..., World], storage_name: str) -> Callable[..., World]:
    """A service of the test's own, with further settings."""
    return lambda **settings: make_world(**(with_login(storage_name) | settings))


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.of(world, name="Invoices")


class Person:
    """Somebody with a password."""

    def __init__(self, world: World, organization: Any = None, *, password: str = PASSWORD, must_change: bool = False):
        self.organization = organization or world.an_organization()
        self.user: HumanUser = world.a_person(self.organization)
        self.login_name = give_password(world, self.user, password, must_change=must_change)


@pytest.fixture
def ada(world: World) -> Person:
    return Person(world)


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Any:
    """The page that an authorization request leads to, and the request."""
    asked = party.ask(**parameters)
    browser.open(asked.url, by=party.origin)
    return asked


def below(browser: Browser) -> str:
    """The path below the sign-in's own address."""
    found = re.fullmatch(r"/login/[0-9a-f-]{36}(/.*)?", browser.path)
    assert found, f"{browser.path}\n{browser.page}"
    return found[1] or ""


def check_page(answer: Any, status: int, title: str) -> Any:
    """The page, strictly parsed: status and h1 as given, and what holds of every page."""
    assert answer.status_int == status, answer
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    headings = ["".join(one.itertext()).strip() for one in tree.iter("h1")]
    assert headings == [title]
    known = [one.attrib["id"] for one in tree.iter() if "id" in one.attrib]
    assert len(known) == len(set(known))
    for one in tree.iter():
        for name in ("for", "aria-describedby", "aria-labelledby", "form"):
            assert set(one.attrib.get(name, "").split()) <= set(known), (one.tag, one.attrib)
        assert "style" not in one.attrib
    assert sum("autofocus" in one.attrib for one in tree.iter()) <= 1
    assert sum("button--primary" in one.attrib.get("class", "") for one in tree.iter()) <= 1
    assert len(answer.body) <= 8 * 1024
    assert answer.headers["Cache-Control"] == "no-store"
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    return tree


# --- the way through --------------------------------------------------------------------------------------------------


def test_a_person_signs_in(browser: Browser, party: RelyingParty, ada: Person) -> None:
    asked = opened(browser, party, scope="openid profile email offline_access")
    tree = check_page(browser.page, 200, "Sign in")
    assert tree.findtext(".//title") == "Sign in – Invoices – Identity"
    assert "to continue to <strong>Invoices</strong>" in browser.page.text
    assert "After signing in you return to app.example." in browser.page.text
    field = tree.find(".//input[@id='field-login_name']").attrib
    assert (field["autocomplete"], field["autocapitalize"], field["spellcheck"]) == ("username", "none", "false")
    browser.submit({"login_name": ada.login_name}, form="page-form")
    assert below(browser) == "/password"
    tree = check_page(browser.page, 200, "Enter your password")
    assert ada.login_name in browser.page.text
    assert "Invoices receives your name and profile, your email address." in browser.page.text
    assert "Invoices stays connected until you disconnect it on your account page." in browser.page.text
    hidden = tree.find(".//input[@name='login_name']").attrib
    assert (hidden["autocomplete"], hidden["value"], hidden["tabindex"]) == ("username", ada.login_name, "-1")
    assert tree.find(".//input[@id='field-password']").attrib["autocomplete"] == "current-password"
    answer = browser.submit({"password": PASSWORD}, form="page-form")
    tokens = party.tokens(answer, asked)
    assert tokens.claims["sub"] == ada.user.id
    assert len(browser.session_cookies) == 1


def test_who_is_signed_in_is_not_asked_again(browser: Browser, party: RelyingParty, ada: Person) -> None:
    browser.start_session(ada.user)
    asked = opened(browser, party)
    assert party.tokens(browser.page, asked).claims["sub"] == ada.user.id


def test_the_login_name_is_taken_from_the_hint(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party, login_hint=ada.login_name)
    assert browser.form("page-form")["login_name"].value == ada.login_name


def test_not_you_leads_back_with_the_value_kept(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    browser.submit({"login_name": ada.login_name}, form="page-form")
    browser.click("Not you?")
    assert browser.form("page-form")["login_name"].value == ada.login_name


@pytest.mark.parametrize("parameters", [{"prompt": "login"}, {"max_age": 0}])
def test_the_password_is_asked_again(
    world: World, browser: Browser, party: RelyingParty, ada: Person, parameters: dict[str, Any]
) -> None:
    browser.start_session(ada.user)
    world.clock.advance(minutes=5)
    asked = opened(browser, party, **parameters)
    assert below(browser) == "/password"
    assert "<strong>Invoices</strong> asks you to enter your password again." in browser.page.text
    tokens = party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)
    assert tokens.claims["auth_time"] == world.clock.seconds


def test_two_tabs_do_not_disturb_each_other(browser: Browser, party: RelyingParty, ada: Person) -> None:
    one, other = browser, browser.tab()
    first, second = opened(one, party), opened(other, party)
    one.submit({"login_name": ada.login_name}, form="page-form")
    party.tokens(other.sign_in(ada.login_name, PASSWORD), second)
    party.tokens(one.submit({"password": PASSWORD}, form="page-form"), first)


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_empty_fields(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    browser.submit({"login_name": "  "}, form="page-form")
    check_page(browser.page, 422, "Sign in")
    assert "Enter your login name." in browser.page.text
    browser.submit({"login_name": ada.login_name}, form="page-form")
    browser.submit({"password": ""}, form="page-form")
    check_page(browser.page, 422, "Enter your password")
    assert "Enter your password." in browser.page.text


def normal(answer: Any, *names: str) -> str:
    """Status, headers and page without what differs from request to request anyway."""
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Length"}
    text = f"{answer.status} {sorted(headers.items())} {answer.text}"
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r'name="csrf_token" value="[^"]*"', "TOKEN", text)
    for name in names:
        text = text.replace(name, "NAME")
    return text


def test_nobody_learns_who_has_an_account(world: World, party: RelyingParty, ada: Person) -> None:
    """Security 10.4: unknown, wrong, deactivated, service user: the same page, status, headers and cookies."""
    grace = Person(world)
    with world.transaction() as services:
        services.storage.users.update(replace(grace.user, active=False, version=grace.user.version + 1))
    robot = world.a_robot()
    names = [ada.login_name, "nobody@nowhere.example", grace.login_name]
    names.append(f"{robot.user.user_name}@{robot.organization.primary_domain}")
    answers = set()
    for name in names:
        browser = Browser(world)
        opened(browser, party, login_hint="")
        browser.submit({"login_name": name}, form="page-form")
        password = PASSWORD if name == grace.login_name else "wrong"
        answer = browser.submit({"password": password}, form="page-form")
        check_page(answer, 422, "Enter your password")
        assert WRONG in answer.text
        answers.add(normal(answer, name))
    assert len(answers) == 1


def test_attempts_are_delayed_for_unknown_names_alike(world: World, party: RelyingParty, ada: Person) -> None:
    answers = set()
    for name in (ada.login_name, "nobody-at-all@nowhere.example"):
        browser = Browser(world)
        opened(browser, party)
        browser.submit({"login_name": name}, form="page-form")
        for _ in range(5):
            assert browser.submit({"password": "wrong"}, form="page-form").status_int == 422
        answer = browser.submit({"password": PASSWORD}, form="page-form")
        check_page(answer, 429, "Enter your password")
        assert answer.headers["Retry-After"] == "1"
        assert "Too many attempts. Wait 1 second, then try again." in answer.text
        assert '<a href="/password/reset">You can also choose a new password.</a>' in answer.text
        answers.add(normal(answer, name))
    assert len(answers) == 1
    world.clock.advance(2)


def test_busy(browser: Browser, party: RelyingParty, ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*args: object) -> None:
        raise Busy

    monkeypatch.setattr(Hasher, "verify", busy)
    asked = opened(browser, party)
    browser.submit({"login_name": ada.login_name}, form="page-form")
    answer = browser.submit({"password": PASSWORD}, form="page-form")
    check_page(answer, 503, "Enter your password")
    assert "We are busy just now. Wait 5 seconds, then send the page again." in answer.text
    assert answer.headers["Retry-After"] == "5"
    monkeypatch.undo()
    party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)


def test_a_stale_form_keeps_what_was_typed(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    browser.submit({"login_name": ada.login_name, "csrf_token": "old"}, form="page-form")
    assert browser.page.status_int == 422
    assert "This page had been open for too long." in browser.page.text
    assert browser.form("page-form")["login_name"].value == ada.login_name
    browser.submit(form="page-form")
    assert below(browser) == "/password"


def test_an_account_of_the_required_organization(world: World, browser: Browser, party: RelyingParty) -> None:
    acme = world.an_organization()
    ada, grace = Person(world, acme), Person(world)
    asked = opened(browser, party, scope=f"openid urn:service:iam:org:id:{acme.id}")
    assert f"You need an account of {acme.name}." in browser.page.text
    answer = browser.sign_in(grace.login_name, PASSWORD)
    check_page(answer, 422, "Enter your password")
    assert f"Invoices needs an account of {acme.name}." in answer.text
    assert not browser.session_cookies
    browser.click("Use another account.")
    browser.submit({"login_name": ada.login_name}, form="page-form")
    party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)


def test_passwords_are_never_sent_back(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    answer = browser.sign_in(ada.login_name, "wrong and unique")
    assert "wrong and unique" not in answer.text


# --- the chooser ------------------------------------------------------------------------------------------------------


@pytest.fixture
def grace(world: World) -> Person:
    return Person(world)


def test_several_accounts_and_no_prompt(browser: Browser, party: RelyingParty, ada: Person, grace: Person) -> None:
    browser.start_session(ada.user)
    browser.start_session(grace.user)
    asked = opened(browser, party)
    assert below(browser) == "/accounts"
    check_page(browser.page, 200, "Choose an account")
    assert party.tokens(browser.choose(ada.login_name), asked).claims["sub"] == ada.user.id


def test_another_account(browser: Browser, party: RelyingParty, ada: Person, grace: Person) -> None:
    browser.start_session(ada.user)
    asked = opened(browser, party, prompt="select_account")
    browser.choose("Use another account")
    assert below(browser) == ""
    assert browser.form("page-form")["login_name"].value == ""
    answer = browser.sign_in(grace.login_name, PASSWORD)
    assert party.tokens(answer, asked).claims["sub"] == grace.user.id
    assert len(browser.session_cookies) == 2


def test_a_signed_out_account_needs_the_password(
    world: World, browser: Browser, party: RelyingParty, ada: Person
) -> None:
    browser.start_session(ada.user)
    world.clock.advance(hours=13)
    asked = opened(browser, party, prompt="select_account")
    assert "Signed out – needs the password" in browser.page.text
    browser.choose(ada.login_name)
    assert below(browser) == "/password"
    party.tokens(browser.submit({"password": PASSWORD}, form="page-form"), asked)


def test_accounts_of_other_organizations_cannot_be_chosen(
    world: World, browser: Browser, party: RelyingParty, ada: Person, grace: Person
) -> None:
    browser.start_session(ada.user)
    session = browser.start_session(grace.user)
    opened(browser, party, scope=f"openid urn:service:iam:org:id:{ada.organization.id}", prompt="select_account")
    assert "Belongs to another organization" in browser.page.text
    button = browser.page.html.find("button", attrs={"value": session.id})
    assert button.has_attr("disabled")
    token = browser.form("page-form")["csrf_token"].value
    answer = browser.send(browser.path, {"csrf_token": token, "session": session.id}, by=browser.login_url)
    check_page(answer, 422, "Choose an account")


def test_the_hinted_account_comes_first(browser: Browser, party: RelyingParty, ada: Person, grace: Person) -> None:
    browser.start_session(ada.user)
    browser.start_session(grace.user)
    for one in (ada, grace):
        opened(browser, party, prompt="select_account", login_hint=one.login_name)
        first = browser.page.html.find("button", attrs={"name": "session"})
        assert one.login_name in first.get_text()


@pytest.mark.parametrize("reference", ["", "unknown", "x' or 1=1"])
def test_what_was_not_offered_cannot_be_chosen(
    browser: Browser, party: RelyingParty, ada: Person, reference: str
) -> None:
    browser.start_session(ada.user)
    opened(browser, party, prompt="select_account")
    token = browser.form("page-form")["csrf_token"].value
    answer = browser.send(browser.path, {"csrf_token": token, "session": reference}, by=browser.login_url)
    check_page(answer, 422, "Choose an account")
    assert "Choose an account." in answer.text


# --- registration -----------------------------------------------------------------------------------------------------

NEW = {
    "user_name": "ada.new",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "email": "ada.new@example.com",
    "password": PASSWORD,
    "password_again": PASSWORD,
}


def test_a_new_account(world: World, browser: Browser, party: RelyingParty) -> None:
    asked = opened(browser, party, prompt="create")
    tree = check_page(browser.page, 200, "Create your account")
    kinds = {
        one.attrib["name"]: (one.attrib["type"], one.attrib["autocomplete"])
        for one in tree.iter("input")
        if one.attrib["type"] != "hidden"
    }
    assert kinds == {
        "user_name": ("text", "username"),
        "given_name": ("text", "given-name"),
        "family_name": ("text", "family-name"),
        "email": ("email", "email"),
        "password": ("password", "new-password"),
        "password_again": ("password", "new-password"),
    }
    tokens = party.tokens(browser.submit(NEW, form="page-form"), asked)
    with world.reading() as services:
        user = services.users.get(tokens.claims["sub"])
    assert (user.user_name, user.profile.email, user.profile.email_verified) == ("ada.new", NEW["email"], False)
    assert len(browser.session_cookies) == 1


def test_from_step_1_to_registration(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    browser.click("Create an account")
    assert below(browser) == "/register"


def test_create_in_a_live_session(browser: Browser, party: RelyingParty, ada: Person) -> None:
    browser.start_session(ada.user)
    asked = opened(browser, party, prompt="create")
    tokens = party.tokens(browser.submit(NEW, form="page-form"), asked)
    assert tokens.claims["sub"] != ada.user.id


def test_everything_wrong_at_once_and_nothing_is_lost(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, prompt="create")
    typed = {
        "user_name": "a b",
        "given_name": "",
        "family_name": "<Lovelace>",
        "email": "nonsense",
        "password": "short",
        "password_again": "other",
    }
    answer = browser.submit(typed, form="page-form")
    tree = check_page(answer, 422, "Create your account")
    links = [one.attrib["href"] for one in tree.find(".//*[@id='errors']").iter("a")]
    assert links == ["#field-user_name", "#field-given_name", "#field-email", "#field-password"]
    assert "Use at least 15 characters; several words work well." in answer.text
    form = browser.form("page-form")
    assert [form[name].value for name in typed] == ["a b", "", "<Lovelace>", "nonsense", "", ""]


@pytest.mark.parametrize(
    ("changed", "field", "sentence"),
    [
        ({"password_again": "another one entirely"}, "password_again", "Type the same password twice."),
        ({"password_again": ""}, "password_again", "Type the same password twice."),
        (
            {"user_name": "correct.horse.battery", "password": "correct.horse.battery"},
            "password",
            "Do not use your user name.",
        ),
    ],
)
def test_bad_passwords(
    browser: Browser, party: RelyingParty, changed: dict[str, str], field: str, sentence: str
) -> None:
    opened(browser, party, prompt="create")
    answer = browser.submit(NEW | changed, form="page-form")
    tree = check_page(answer, 422, "Create your account")
    assert sentence in "".join(tree.find(f".//*[@id='error-{field}']").itertext())


def test_programs_need_not_type_a_password_twice(world: World, browser: Browser, party: RelyingParty) -> None:
    asked = opened(browser, party, prompt="create")
    fields = {name: value for name, value in NEW.items() if name != "password_again"}
    fields["csrf_token"] = browser.form("page-form")["csrf_token"].value
    party.tokens(browser.send(browser.path, fields, by=browser.login_url), asked)


def test_a_taken_user_name(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, prompt="create")
    browser.submit(NEW, form="page-form")
    other = Browser(world)
    opened(other, party, prompt="create")
    answer = other.submit(NEW | {"email": "other@example.com"}, form="page-form")
    check_page(answer, 422, "Create your account")
    assert "Choose another user name; this one cannot be used." in answer.text


def test_registration_is_closed(world: World, browser: Browser) -> None:
    organization = world.an_organization()
    party = RelyingParty.of(world, project_id=world.a_project(organization).id)
    with world.transaction() as services:
        closed = replace(organization, registration=False, version=organization.version + 1)
        services.storage.organizations.update(closed)
    opened(browser, party)
    assert "Create an account" not in browser.page.text
    browser.open(f"{browser.path}/register")
    assert browser.page.status_int == 403
    asked = opened(browser, party, prompt="create")
    party.refused(browser.page, asked, "access_denied")


def test_with_mail_nobody_learns_who_is_known(own_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_world(**{"identity.smtp.host": "localhost", "identity.smtp.sender": "no-reply@example.com"})
    party = RelyingParty.of(world, name="Invoices")
    organization_id = _organization_of(world, party)
    with world.transaction() as services:
        known = CreateHumanUser(user_name="grace", given_name="G", family_name="H", email="grace@example.com")
        services.users.create(organization_id, known)
    pages = set()
    for address in ("grace@example.com", "new@example.com"):
        browser = Browser(world)
        opened(browser, party, prompt="create")
        answer = browser.submit(NEW | {"email": address}, form="page-form")
        assert below(browser) == "/register/sent"
        check_page(answer, 200, "Check your mail")
        assert "We have sent you a link to finish." in answer.text
        pages.add(normal(answer))
    assert len(pages) == 1
    mails: list[Any] = []
    monkeypatch.setattr(world.identity.mailer, "send", mails.append)
    assert world.identity.senders["mail"].send_due() == 2
    texts = {mail.to: mail.text for mail in mails}
    assert "/register/" in texts["new@example.com"]
    assert "/register/" not in texts["grace@example.com"]
    assert "grace@" in texts["grace@example.com"]
    assert "&" not in texts["new@example.com"]


def _organization_of(world: World, party: RelyingParty) -> str:
    with world.reading() as services:
        client = services.applications.find_client(party.client_id)
    assert client is not None
    return client.organization.id


# --- a password of one's own ------------------------------------------------------------------------------------------


def test_a_one_time_password_is_changed_first(world: World, browser: Browser, party: RelyingParty) -> None:
    given = "good for one time only"
    ada = Person(world, password=given, must_change=True)
    asked = opened(browser, party)
    browser.sign_in(ada.login_name, given)
    assert below(browser) == "/password/change"
    check_page(browser.page, 200, "Choose a new password")
    assert "Your password was set by somebody else or only for one use." in browser.page.text
    assert not browser.session_cookies
    answer = browser.submit({"new_password": "short", "new_password_again": "short"}, form="page-form")
    check_page(answer, 422, "Choose a new password")
    # Whoever set it knows it still.
    answer = browser.submit({"new_password": given, "new_password_again": given}, form="page-form")
    page = check_page(answer, 422, "Choose a new password")
    assert "Choose another password than the one that you were given." in "".join(page.itertext())
    answer = browser.submit({"new_password": PASSWORD, "new_password_again": PASSWORD}, form="page-form")
    party.tokens(answer, asked)


def test_nobody_changes_a_password_without_having_given_it(browser: Browser, party: RelyingParty, ada: Person) -> None:
    """Security 11.5."""
    opened(browser, party)
    token = browser.form("page-form")["csrf_token"].value
    browser.submit({"login_name": ada.login_name}, form="page-form")
    root = browser.path.removesuffix("/password")
    fields = {"csrf_token": token, "new_password": PASSWORD * 2}
    browser.send(f"{root}/password/change", fields, by=browser.login_url)
    assert below(browser) == ""
    browser.open(f"{root}/password/change")
    assert below(browser) == ""


# --- consent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["allow", "refuse"])
def test_consent(browser: Browser, party: RelyingParty, ada: Person, decision: str) -> None:
    browser.start_session(ada.user)
    asked = opened(browser, party, prompt="consent", scope="openid email offline_access")
    assert below(browser) == "/consent"
    check_page(browser.page, 200, "Allow access?")
    assert "Invoices receives your email address." in browser.page.text
    answer = browser.submit(press=("decision", decision), form="page-form")
    if decision == "allow":
        party.tokens(answer, asked)
    else:
        party.refused(answer, asked, "access_denied")


def test_consent_cannot_be_given_before_anybody_is_there(browser: Browser, party: RelyingParty, ada: Person) -> None:
    asked = opened(browser, party, prompt="consent")
    token = browser.form("page-form")["csrf_token"].value
    browser.send(f"{browser.path}/consent", {"csrf_token": token, "decision": "allow"}, by=browser.login_url)
    browser.sign_in(ada.login_name, PASSWORD)
    assert below(browser) == "/consent"
    party.tokens(browser.submit(press=("decision", "allow"), form="page-form"), asked)


class Door(Interaction):
    """A second step of another plugin, asked of whoever has given a password."""

    name = "door"

    def required(self, sign_in: SignIn, context: Context) -> bool:
        return sign_in.proved is not None and not sign_in.done(self.name)

    def path(self, sign_in: SignIn) -> str:
        return self.name


def test_nobody_gets_past_a_second_step_to_the_new_password(own_world: Callable[..., World]) -> None:
    """Whoever has read a one-time password, and nothing else, must not make the account theirs."""
    world = own_world()
    interactions = {"door": Door(), **world.identity.protocol.interactions}
    world.identity.protocol = replace(world.identity.protocol, interactions=interactions)
    ada = Person(world, password="one time only", must_change=True)
    browser = Browser(world)
    opened(browser, RelyingParty.of(world))
    browser.submit({"login_name": ada.login_name}, form="page-form")
    token = browser.form("page-form")["csrf_token"].value
    browser.submit({"password": "one time only"}, form="page-form")
    assert below(browser) == "/door"
    root = browser.path.removesuffix("/door")
    browser.open(f"{root}/password/change")
    assert below(browser) == "/door"
    fields = {
        "csrf_token": token,
        "new_password": "a password of the thief",
        "new_password_again": "a password of the thief",
    }
    browser.send(f"{root}/password/change", fields, by=browser.login_url)
    assert below(browser) == "/door"
    with world.reading() as services:
        stored = services.storage.users.find_password(ada.user.id)
    assert stored is not None
    assert stored.must_change


@pytest.mark.parametrize("path", ["/password", "/accounts", "/consent", "/password/change"])
def test_steps_out_of_order_do_not_advance(browser: Browser, party: RelyingParty, path: str) -> None:
    """Security 11.5: empty and reordered posts."""
    opened(browser, party)
    token = browser.form("page-form")["csrf_token"].value
    root = browser.path
    browser.send(f"{root}{path}", {"csrf_token": token}, by=browser.login_url)
    assert not browser.session_cookies
    browser.open(root)
    check_page(browser.page, 200, "Sign in")


# --- own pages --------------------------------------------------------------------------------------------------------


def test_signing_in_for_our_own_pages(browser: Browser, ada: Person) -> None:
    browser.open("/login?target=/account/sessions%3Fa%3D1")
    check_page(browser.page, 200, "Sign in")
    assert "to continue to your account" in browser.page.text
    browser.sign_in(ada.login_name, PASSWORD)
    assert urlsplit(browser.url)[2:4] == ("/account/sessions", "a=1")
    browser.open("/login?target=/console")
    assert browser.path == "/console"


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ("/account/sessions?a=1", "/account/sessions?a=1"),
        ("/", "/"),
        *(
            (bad, "/account")
            for bad in ("", "account", "//evil.example", "/\\evil.example", "https://evil.example", "/a\nb", "/a b")
        ),
        *((bad, "/account") for bad in ("/\\/evil", "javascript:alert(1)", "/" + "x" * 3000, "/a\\b", "/é")),
    ],
)
def test_targets_stay_on_this_host(asked: str, target: str) -> None:
    assert safe_target(asked) == target


# --- languages --------------------------------------------------------------------------------------------------------


def test_a_language_is_kept_for_all_pages_of_the_sign_in(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    answer = browser.submit({"login_name": ada.login_name}, press=("ui_locales", "de"), form="page-form")
    assert answer.status_int == 200
    assert '<html lang="de">' in answer.text
    assert browser.form("page-form")["login_name"].value == ada.login_name
    browser.submit(form="page-form")
    assert below(browser) == "/password"
    assert '<html lang="de">' in browser.page.text


def test_the_client_asks_for_a_language(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, ui_locales="xx fr-CA de")
    assert '<html lang="fr">' in browser.page.text


# --- where it cannot go on --------------------------------------------------------------------------------------------


def test_an_unknown_sign_in(browser: Browser) -> None:
    browser.open("/login/01a1fd23-3a1d-751f-997e-bb4e70921b37")
    check_page(browser.page, 404, "We do not know this sign-in any more")
    assert "Go back to the application and open it again." in browser.page.text


def test_another_browser(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    other = Browser(world)
    for path in ("", "/password", "/accounts", "/register", "/password/change", "/consent"):
        other.open(browser.path + path)
        check_page(other.page, 400, "This sign-in was started in another browser")


def test_one_that_took_too_long_is_started_again(
    world: World, browser: Browser, party: RelyingParty, ada: Person
) -> None:
    asked = opened(browser, party, login_hint=ada.login_name)
    world.clock.advance(minutes=31)
    browser.reload()
    check_page(browser.page, 410, "This sign-in took too long")
    browser.submit(form="page-form")
    check_page(browser.page, 200, "Sign in")
    party.tokens(browser.sign_in(ada.login_name, PASSWORD), asked)


def test_one_that_took_too_long_where_the_cookie_is_gone(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    browser.cookies.clear()
    world.clock.advance(minutes=31)
    browser.reload()
    check_page(browser.page, 410, "This sign-in took too long")
    assert "Go back to the application and open it again." in browser.page.text


def test_one_that_is_done(browser: Browser, party: RelyingParty, ada: Person) -> None:
    opened(browser, party)
    path = browser.path
    browser.sign_in(ada.login_name, PASSWORD)
    for below_it in ("", "/password", "/register"):
        browser.open(path + below_it)
        check_page(browser.page, 200, "This sign-in is done")
        assert f"You are signed in as {ada.login_name}." in browser.page.text
        assert "Go to your account" in browser.page.text


def test_an_application_that_is_gone_meanwhile(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    with world.transaction() as services:
        application = services.applications.get(party.client_id)
        services.storage.applications.update(replace(application, active=False, version=application.version + 1))
    browser.reload()
    check_page(browser.page, 400, "We do not know this application")


def test_an_address_that_is_not_registered(browser: Browser, party: RelyingParty) -> None:
    asked = party.ask()
    browser.open(asked.url.replace("app.example", "evil.example"), by=party.origin)
    tree = check_page(browser.page, 400, "We cannot send you back to this application")
    assert "evil.example" not in browser.page.text
    assert "Invoices asked us to return you to an address that is not registered for it." in browser.page.text
    terms = ["".join(one.itertext()) for one in tree.iter("dt")]
    assert terms == ["Error", "Detail", "Request id", "Time"]


def test_the_page_that_posts_an_answer(browser: Browser, party: RelyingParty, ada: Person) -> None:
    browser.start_session(ada.user)
    opened(browser, party, response_mode="form_post")
    tree = check_page(browser.page, 200, "Signing you in")
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    assert "Continue to Invoices" in browser.page.text
    assert [one.attrib["src"].partition("-")[0] for one in tree.iter("script")] == [
        "/static/identity",
        "/static/form_post",
    ]


def test_pages_of_a_sign_in_name_no_form_action(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]


# --- signing out ------------------------------------------------------------------------------------------------------


def test_signing_out_is_asked(browser: Browser, party: RelyingParty, ada: Person) -> None:
    browser.start_session(ada.user)
    browser.open(party.logout_url(client_id=party.client_id, post_logout_redirect_uri=None), by=party.origin)
    check_page(browser.page, 200, "Sign out?")
    assert "<strong>Invoices</strong> asks to sign you out." in browser.page.text
    assert f"You are signed in as {ada.login_name} on this browser." in browser.page.text
    browser.submit(form="page-form")
    check_page(browser.page, 200, "You are signed out")
    assert not browser.session_cookies


def test_signing_out_leads_back_to_the_application(browser: Browser, party: RelyingParty, ada: Person) -> None:
    browser.start_session(ada.user)
    browser.open(
        party.logout_url(client_id=party.client_id, post_logout_redirect_uri="https://app.example/bye", state="s"),
        by=party.origin,
    )
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    browser.submit(form="page-form")
    assert browser.left_for is not None
    assert browser.left_for.startswith("https://app.example/bye")
    assert parse_qs(urlsplit(browser.left_for).query) == {"state": ["s"]}


def test_nobody_is_signed_in(browser: Browser) -> None:
    browser.open("/sign-out")
    check_page(browser.page, 200, "You are signed out")


def test_another_site_cannot_sign_anybody_out(browser: Browser, ada: Person) -> None:
    browser.start_session(ada.user)
    browser.send("/sign-out", {}, by="https://evil.example")
    assert browser.page.status_int == 403
    assert len(browser.session_cookies) == 1


def test_the_way_back_survives_another_language(browser: Browser, party: RelyingParty, ada: Person) -> None:
    """Whatever draws the question again: browsers hold the redirect to what the page says of form targets."""
    browser.start_session(ada.user)
    browser.open(party.logout_url(client_id=party.client_id, state="s"), by=party.origin)
    browser.submit(press=("ui_locales", "de"), form="page-form")
    assert '<html lang="de">' in browser.page.text
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    browser.submit(form="page-form")
    assert browser.left_for == "https://app.example/bye?state=s"


def test_an_app_of_this_machine_is_opened_by_a_click(world: World, browser: Browser, ada: Person) -> None:
    app = RelyingParty.of(
        world,
        name="Notes",
        type=ApplicationType.NATIVE,
        redirect_uri="com.example.notes:/cb",
        post_logout_redirect_uri="com.example.notes:/bye",
    )
    browser.start_session(ada.user)
    browser.open(app.logout_url(client_id=app.client_id, state="s"), by="https://app.example")
    browser.submit(form="page-form")
    check_page(browser.page, 200, "You are signed out")
    assert browser.left_for is None
    [back] = [one for one in browser.page.html.find_all("a") if one.get_text() == "Back to Notes"]
    assert back["href"] == "com.example.notes:/bye?state=s"
    assert not browser.session_cookies


@pytest.mark.parametrize("path", ["/sign-out", "/signed-out"])
def test_what_stands_in_the_address_of_these_pages_leads_nowhere(
    world: World, browser: Browser, party: RelyingParty, ada: Person, path: str
) -> None:
    """They believe a request that waits for this very browser, and nothing else."""
    elsewhere = Browser(world)
    elsewhere.start_session(ada.user)
    elsewhere.open(party.logout_url(client_id=party.client_id), by=party.origin)
    foreign = elsewhere.url.partition("?")[2]
    assert foreign.startswith("request=")
    browser.start_session(ada.user)
    address = {"client_id": party.client_id, "post_logout_redirect_uri": "https://app.example/bye"}
    for query in (urlencode(address), foreign, "request=unknown", "request=%00", "request=a&request=b"):
        browser.open(f"{path}?{query}")
        assert not [one for one in browser.page.html.find_all("a") if one["href"].startswith("https://app.example")]
        assert "Invoices" not in browser.page.text
        assert len(browser.session_cookies) == 1


def test_expired_sessions_end_too(world: World, browser: Browser, ada: Person) -> None:
    grace = Person(world)
    old = browser.start_session(grace.user)
    world.clock.advance(hours=13)
    browser.start_session(ada.user)
    browser.open("/sign-out")
    assert grace.login_name not in browser.page.text
    browser.submit(form="page-form")
    assert not browser.session_cookies
    with world.reading() as services:
        ended = services.storage.sessions.find(old.id)
    assert ended is not None
    assert ended.ended_at is not None
