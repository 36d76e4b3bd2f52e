"""The plugin account: the person's own pages, and those behind links where no mail can be sent.

What goes through a mail server is tested in tests/journeys/test_mail.py.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import html5lib
import pytest

from identity.crypto.passwords import hash_password
from identity.domain.sessions import Session
from identity.domain.users import Address, HumanUser, Profile
from identity.hashing import Busy, Hasher
from identity.pages.devices import device
from identity.pages.translation import Catalog, Words
from identity.services.commands.users import ChangeAddress, ChangeProfile
from identity.testing.browser import Browser, give_password
from identity.testing.plugin_contract import PluginContract
from identity.testing.world import World

OLD, NEW = "the old password of Ada", "a new and longer password"

#: What people say of themselves, and what cannot be said here.
PROFILE = {
    "given_name": "Ada",
    "family_name": "Lovelace",
    "display_name": "Countess <Ada> & co",
    "nickname": "Ada",
    "email": "ada@acme.example",
    "phone": "+44 20 1234567",
    "locale": "en",
    "zoneinfo": "Europe/London",
    "middle_name": "King",
    "gender": "female",
    "birthdate": "1815-12-10",
    "profile": "https://ada.example/about",
    "website": "https://ada.example/",
    "picture": "https://ada.example/ada.png",
}
ADDRESS = {
    "street_address": "12 St James's Square\nFirst floor",
    "postal_code": "SW1Y 4JH",
    "locality": "London",
    "region": "Greater London",
    "country": "United Kingdom",
    "formatted": "Ada Lovelace\n12 St James's Square\nLondon",
}


class TestPlugin(PluginContract):
    name = "account"


@pytest.fixture
def ada(world: World) -> HumanUser:
    return a_person(world)


def a_person(world: World) -> HumanUser:
    """Somebody with a password."""
    person = world.a_person()
    give_password(world, person, OLD)
    return person


@pytest.fixture
def browser(world: World, ada: HumanUser) -> Browser:
    """A browser at which Ada is signed in."""
    browser = Browser(world)
    browser.start_session(ada)
    return browser


def stored(world: World, person: HumanUser) -> HumanUser:
    with world.reading() as services:
        return services.users.get(person.id)


def sessions_of(world: World, person: HumanUser) -> tuple[Session, ...]:
    with world.reading() as services:
        return services.sessions.of_user(person.id)


def check_page(answer: Any, status: int, title: str) -> Any:
    """The page, strictly parsed: status and h1 as given, and what holds of every page."""
    assert answer.status_int == status, answer
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    assert ["".join(one.itertext()).strip() for one in tree.iter("h1")] == [title]
    known = [one.attrib["id"] for one in tree.iter() if "id" in one.attrib]
    assert len(known) == len(set(known))
    for one in tree.iter():
        for name in ("for", "aria-describedby", "aria-labelledby", "form", "list"):
            assert set(one.attrib.get(name, "").split()) <= set(known), (one.tag, one.attrib)
        assert "style" not in one.attrib
    assert sum("autofocus" in one.attrib for one in tree.iter()) <= 1
    classes = [one.attrib.get("class", "").split() for one in tree.iter()]
    assert sum("button--primary" in one or "button--danger" in one for one in classes) <= 1
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Content-Security-Policy"].endswith("form-action 'self'")
    return tree


def page_form(browser: Browser) -> Any:
    return browser.form("page-form")


# --- who may see them -------------------------------------------------------------------------------------------------

OWN = ["/account", "/account/profile", "/account/password", "/account/sessions", "/account/applications"]


@pytest.mark.parametrize("path", [*OWN, "/account/profile/email", "/account/applications/x/disconnect?a=b"])
def test_somebody_who_is_not_signed_in_signs_in_and_comes_back(world: World, ada: HumanUser, path: str) -> None:
    browser = Browser(world)
    browser.open(path)
    assert browser.answers[0].status_int == 303
    assert re.fullmatch(r"/login/[0-9a-f-]{36}", browser.path)
    browser.sign_in(ada.user_name, OLD)
    assert browser.path.startswith(path.partition("/profile/email")[0].partition("?")[0])


def test_a_post_of_somebody_who_is_signed_out_meanwhile_leads_to_the_sign_in(world: World, browser: Browser) -> None:
    browser.open("/account/profile")
    form = page_form(browser)
    browser.cookies.clear()
    browser.send("/account/profile", dict(form.submit_fields()), by="https://id.example.com")
    assert browser.path.startswith("/login/")


def test_pages_are_whole_and_their_titles_unique(browser: Browser) -> None:
    titles = {
        "/account/profile": "Profile",
        "/account/password": "Password",
        "/account/sessions": "Sessions",
        "/account/applications": "Applications",
    }
    seen = set()
    for path, title in titles.items():
        tree = check_page(browser.open(path), 200, title)
        seen.add(tree.findtext(".//title"))
        current = [one for one in tree.iter("a") if one.attrib.get("aria-current") == "page"]
        assert {one.attrib["href"] for one in current} == {path}
    assert seen == {f"{title} – Your account – Identity" for title in titles.values()}
    assert browser.open("/account").request.path == "/account/profile"


def test_pages_speak_the_person_s_language(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction() as services:
        services.users.change_profile(ada.id, ChangeProfile(locale="de-CH"))
    assert '<html lang="de">' in browser.open("/account/password").text
    assert '<html lang="fr">' in browser.open("/account/password?ui_locales=fr").text


def test_a_language_that_pages_do_not_speak_stays(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction() as services:
        services.users.change_profile(ada.id, ChangeProfile(locale="nl-BE"))
    browser.open("/account/profile")
    browser.submit({"nickname": "A."}, form="page-form")
    assert (stored(world, ada).profile.locale, stored(world, ada).profile.nickname) == ("nl-BE", "A.")


# --- profile ----------------------------------------------------------------------------------------------------------


def test_every_claim_of_a_profile_can_be_said(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/profile")
    browser.submit(PROFILE | ADDRESS | {"current_password": OLD}, form="page-form")
    assert "Your profile is saved." in browser.page.text
    profile = stored(world, ada).profile
    assert {name: getattr(profile, name) for name in PROFILE} == PROFILE
    assert {name: getattr(profile.address, name) for name in ADDRESS} == ADDRESS
    assert not profile.email_verified
    # They stand in the form again, and saving it as it is changes nothing.
    check_page(browser.open("/account/profile"), 200, "Profile")
    assert {name: page_form(browser)[name].value for name in PROFILE} == PROFILE
    # A textarea loses the line feed that begins it, and says CRLF when it is sent.
    assert page_form(browser)["formatted"].value.strip() == ADDRESS["formatted"]
    version = stored(world, ada).version
    browser.submit(form="page-form")
    assert stored(world, ada).version == version


def test_all_fields_of_the_commands_are_on_the_page() -> None:
    """A profile holds every standard claim; only what is verified elsewhere is missing here."""
    assert PROFILE.keys() == ChangeProfile.model_fields.keys() - {"address"}
    assert ADDRESS.keys() == ChangeAddress.model_fields.keys() == {one.name for one in fields(Address)}
    assert {one.name for one in fields(Profile)} - PROFILE.keys() == {"email_verified", "phone_verified", "address"}


def test_nothing_that_somebody_else_decides_can_be_said(world: World, browser: Browser, ada: HumanUser) -> None:
    """Security 10.8: every field of user and profile that is not on the page, and names that programs might try."""
    other = world.an_organization()
    before = stored(world, ada)
    tried = {
        "email_verified": "true",
        "phone_verified": "true",
        "phone_number_verified": "true",
        "roles": "IAM_OWNER",
        "role": "ORG_OWNER",
        "organization": other.id,
        "organization_id": other.id,
        "user_name": "root",
        "login_name": "root",
        "active": "false",
        "state": "deactivated",
        "id": "another",
        "user_id": "another",
        "created_at": "2000-01-01T00:00:00Z",
        "changed_at": "2000-01-01T00:00:00Z",
        "last_sign_in_at": "2000-01-01T00:00:00Z",
        "named_at": "2000-01-01T00:00:00Z",
        "registered": "true",
        "must_change": "true",
        "password": NEW,
        "hash": "x",
        "profile.email_verified": "true",
        "address": "{}",
        "sub": "another",
    }
    assert {one.name for one in fields(HumanUser)} - {"version", "profile"} <= tried.keys()
    browser.open("/account/profile")
    sent = dict(page_form(browser).submit_fields()) | tried
    sent |= {"email": "ada@acme.example", "phone": "+44 20 1", "current_password": OLD}
    answer = browser.send("/account/profile", sent, by="https://id.example.com")
    assert answer.status_int == 200
    after = stored(world, ada)
    assert after.profile == type(after.profile)(
        given_name="Ada", family_name="Lovelace", email="ada@acme.example", phone="+44 20 1"
    )
    for name in ("id", "organization_id", "user_name", "active", "created_at", "named_at", "registered"):
        assert getattr(after, name) == getattr(before, name)
    with world.reading() as services:
        assert services.storage.managers.of_user(ada.id) == ()
    other_browser = Browser(world)
    other_browser.open("/account")
    other_browser.sign_in(ada.user_name, OLD)
    assert other_browser.path == "/account/profile"


def test_an_address_that_changes_is_not_verified_any_more(world: World, browser: Browser, ada: HumanUser) -> None:
    verified = replace(ada.profile, email="ada@acme.example", email_verified=True, phone="+44 1", phone_verified=True)
    with world.transaction() as services:
        services.storage.users.update(replace(ada, profile=verified, version=ada.version + 1))
    browser.open("/account/profile")
    browser.submit({"nickname": "A"}, form="page-form")
    assert stored(world, ada).profile.email_verified
    browser.open("/account/profile")
    browser.submit({"email": "eve@acme.example", "phone": "+44 2", "current_password": OLD}, form="page-form")
    profile = stored(world, ada).profile
    assert (profile.email, profile.email_verified, profile.phone_verified) == ("eve@acme.example", False, False)


@pytest.mark.parametrize(
    ("current", "sentence"),
    [("", "Enter your present password."), ("not the password", "This is not your present password.")],
)
@pytest.mark.parametrize("address", ["eve@acme.example", ""])
def test_a_session_left_open_is_not_enough_for_another_address(
    world: World, browser: Browser, ada: HumanUser, address: str, current: str, sentence: str
) -> None:
    """Whoever reads the mail of the address can choose a new password."""
    with world.transaction() as services:
        services.users.change_profile(ada.id, ChangeProfile(email="ada@acme.example"))
    browser.open("/account/profile")
    browser.submit({"email": address, "nickname": "Eve", "current_password": current}, form="page-form")
    assert browser.page.status_int == 422
    assert sentence in browser.page.text
    form = page_form(browser)
    assert (form["email"].value, form["nickname"].value, form["current_password"].value) == (address, "Eve", "")
    assert (stored(world, ada).profile.email, stored(world, ada).profile.nickname) == ("ada@acme.example", "")


def test_without_a_mail_server_the_page_promises_nothing(browser: Browser) -> None:
    assert "It stays unconfirmed: this service cannot send mail." in browser.open("/account/profile").text
    assert browser.open("/account/profile/email").request.path == "/account/profile"


BAD = {
    "given_name": ("", "Enter your given name."),
    "family_name": ("x" * 201, "Use at most 200 characters."),
    "display_name": ("a\u202eb", "Use printable characters only."),
    "nickname": ("x" * 201, "Use at most 200 characters."),
    "email": ("ada", "Enter an email address such as anna@example.com."),
    "phone": ("call me", "Enter a phone number such as +49 30 1234567."),
    "zoneinfo": ("Mars/Olympus", "Enter a time zone such as Europe/Berlin."),
    "birthdate": ("yesterday", "Enter a date such as 1990-12-31."),
    "website": ("javascript:alert(1)", "Enter an address that starts with https://."),
    "picture": ("data:image/png,", "Enter an address that starts with https://."),
    "profile": ("ada.example", "Enter an address that starts with https://."),
    "middle_name": ("x" * 201, "Use at most 200 characters."),
    "gender": ("x" * 201, "Use at most 200 characters."),
    "street_address": ("x" * 201, "Use at most 200 characters."),
    "country": ("a\tb", "Use printable characters only."),
}


@pytest.mark.storages("memory")
@pytest.mark.parametrize("name", BAD)
def test_one_bad_field_and_nothing_typed_is_lost(world: World, browser: Browser, ada: HumanUser, name: str) -> None:
    value, sentence = BAD[name]
    browser.open("/account/profile")
    typed = PROFILE | ADDRESS | {name: value}
    tree = check_page(browser.submit(typed, form="page-form"), 422, "Profile")
    assert tree.findtext(".//title").startswith("Error: ")
    assert "".join(tree.find(f".//*[@id='error-{name}']").itertext()).split("Error:")[1].strip() == sentence
    assert [one.attrib["href"] for one in tree.find(".//*[@id='errors']").iter("a")] == [f"#field-{name}"]
    form = page_form(browser)
    kept = {one: form[one].value.replace("\r\n", "\n") for one in typed}
    assert {one: text.strip() for one, text in kept.items()} == {one: text.strip() for one, text in typed.items()}
    assert stored(world, ada).version == ada.version
    # The error is to be seen: what is closed by itself is open then.
    hidden = tree.find(".//form/details")
    assert ("open" in hidden.attrib) == (hidden.find(f".//*[@id='field-{name}']") is not None)


@pytest.mark.storages("memory")
def test_all_bad_fields_at_once(browser: Browser) -> None:
    browser.open("/account/profile")
    tree = check_page(
        browser.submit({name: value for name, (value, _) in BAD.items()}, form="page-form"), 422, "Profile"
    )
    links = [one.attrib["href"] for one in tree.find(".//*[@id='errors']").iter("a")]
    order = [one.attrib["id"] for one in tree.iter() if one.attrib.get("id", "").startswith("field-")]
    assert sorted(links) == sorted(f"#field-{name}" for name in BAD)
    shown = [one for one in order if f"#{one}" in links]
    assert len(shown) == len(BAD)


def test_somebody_else_was_faster(world: World, browser: Browser, ada: HumanUser) -> None:
    slow = browser.tab()
    slow.open("/account/profile")
    browser.open("/account/profile")
    browser.submit({"nickname": "Countess"}, form="page-form")
    check_page(slow.submit({"nickname": "A.", "phone": "+44 1234"}, form="page-form"), 409, "Profile")
    assert "Somebody changed this meanwhile." in slow.page.text
    assert "Saved now: Countess" in slow.page.text
    assert (page_form(slow)["nickname"].value, page_form(slow)["phone"].value) == ("A.", "+44 1234")
    slow.submit(form="page-form")
    assert (stored(world, ada).profile.nickname, stored(world, ada).profile.phone) == ("A.", "+44 1234")


@pytest.mark.storages("memory")
@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 30, "²"])
def test_a_form_without_a_version_changes_nothing(world: World, browser: Browser, ada: HumanUser, version: str) -> None:
    browser.open("/account/profile")
    sent = dict(page_form(browser).submit_fields()) | {"version": version, "nickname": "A."}
    assert browser.send("/account/profile", sent, by="https://id.example.com").status_int == 409
    assert stored(world, ada).profile.nickname == ""


# --- password ---------------------------------------------------------------------------------------------------------


def test_a_new_password(world: World, browser: Browser, ada: HumanUser) -> None:
    elsewhere = Browser(world)
    elsewhere.start_session(ada)
    tree = check_page(browser.open("/account/password"), 200, "Password")
    kinds = {
        one.attrib["name"]: one.attrib["autocomplete"]
        for one in tree.iter("input")
        if one.attrib.get("type") == "password"
    }
    assert kinds == {
        "current_password": "current-password",
        "new_password": "new-password",
        "new_password_again": "new-password",
    }
    assert tree.find(".//input[@name='login_name']").attrib["autocomplete"] == "username"
    assert "all your other sessions end" in browser.page.text
    browser.submit({"current_password": OLD, "new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.path == "/account/password"
    assert "Your password is changed. All your other sessions are ended." in browser.page.text
    assert len(sessions_of(world, ada)) == 1
    assert elsewhere.open("/account").request.path.startswith("/login/")
    elsewhere.sign_in(ada.user_name, NEW)
    assert elsewhere.path == "/account/profile"
    # What is said goes away, and nobody else sees it.
    address, eve = browser.url, Browser(world)
    eve.start_session(world.a_person())
    assert "Your password is changed." not in eve.open(address).text
    world.clock.advance(60)
    assert "Your password is changed." not in browser.reload().text


@pytest.mark.parametrize(
    ("current", "new", "again", "errors"),
    [
        ("", "", "", {"current_password": "Enter your present password.", "new_password": "Enter a password."}),
        ("wrong", NEW, NEW, {"current_password": "This is not your present password."}),
        (OLD, "short", "short", {"new_password": "Use at least 15 characters; several words work well."}),
        (OLD, NEW, NEW + "!", {"new_password_again": "Type the same password twice."}),
        (OLD, "x" * 257, "x" * 257, {"new_password": "Use at most 256 characters."}),
    ],
)
def test_what_is_wrong_with_a_password(
    world: World, browser: Browser, ada: HumanUser, current: str, new: str, again: str, errors: dict[str, str]
) -> None:
    browser.open("/account/password")
    typed = {"current_password": current, "new_password": new, "new_password_again": again}
    tree = check_page(browser.submit(typed, form="page-form"), 422, "Password")
    for name, sentence in errors.items():
        assert sentence in "".join(tree.find(f".//*[@id='error-{name}']").itertext())
    assert [one.attrib["href"] for one in tree.find(".//*[@id='errors']").iter("a")] == [
        f"#field-{one}" for one in errors
    ]
    # Never sent back.
    assert all(not one or one not in browser.page.text for one in (new, again))
    fresh = Browser(world)
    fresh.open("/account")
    fresh.sign_in(ada.user_name, OLD)
    assert fresh.path == "/account/profile"


def test_the_name_is_no_password(browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/password")
    name = ada.user_name.upper()
    browser.submit({"current_password": OLD, "new_password": name, "new_password_again": name}, form="page-form")
    assert "Do not use your user name." in browser.page.text


def test_who_knows_the_former_password_does_not_undo_a_reset_of_the_same_moment(
    world: World, browser: Browser, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = world.identity.process.hasher.cost
    by_reset = hash_password("of the owner, by the link", cost=cost)

    def reset() -> None:
        with world.transaction() as services:
            services.passwords.reset(services.passwords.issue_link(ada.id).rpartition("/")[2], by_reset)

    def hashed_slowly(_hasher: Hasher, password: str) -> str:
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(reset).result(timeout=30)
        return hash_password(password, cost=cost)

    browser.open("/account/password")
    monkeypatch.setattr(Hasher, "hash", hashed_slowly)
    new = {"new_password": "of somebody else", "new_password_again": "of somebody else"}
    browser.submit({"current_password": OLD, **new}, form="page-form")
    assert browser.page.status_int == 404
    with world.reading() as services:
        kept = services.storage.users.find_password(ada.id)
    assert kept is not None
    assert kept.hash == by_reset


def test_wrong_passwords_are_counted_as_on_the_sign_in_pages(world: World, browser: Browser, ada: HumanUser) -> None:
    for _ in range(5):
        browser.open("/account/password")
        browser.submit({"current_password": "wrong", "new_password": NEW, "new_password_again": NEW}, form="page-form")
        assert browser.page.status_int == 422
    browser.open("/account/password")
    browser.submit({"current_password": OLD, "new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.page.status_int == 429
    assert browser.page.headers["Retry-After"] == "1"
    assert "Too many attempts. Wait 1 second, then try again." in browser.page.text
    assert '<a href="/password/reset">You can also choose a new password.</a>' in browser.page.text
    world.clock.advance(1)
    browser.open("/account/password")
    browser.submit({"current_password": OLD, "new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.path == "/account/password"
    assert "Your password is changed." in browser.page.text
    refused = [one.reason for one in world.audit_events(event="authentication.refused") if one.object_id == ada.id]
    assert set(refused) == {"wrong password", "too many attempts at one account"}


@pytest.mark.storages("memory")
def test_busy(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise Busy

    monkeypatch.setattr(Hasher, "hash", busy)
    browser.open("/account/password")
    browser.submit({"current_password": OLD, "new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.page.status_int == 503
    assert browser.page.headers["Retry-After"] == "5"
    assert "We are busy just now." in browser.page.text


# --- sessions ---------------------------------------------------------------------------------------------------------

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0"
    " Mobile/15E148 Safari/604.1"
)


def test_sessions_are_listed_and_ended(world: World, browser: Browser, ada: HumanUser) -> None:
    phone = Browser(world, user_agent=IPHONE)
    there = phone.start_session(ada)
    tree = check_page(browser.open("/account/sessions"), 200, "Sessions")
    rows = ["".join(one.itertext()) for one in tree.find(".//tbody").iter("tr")]
    assert len(rows) == 2
    assert "Firefox on Linux" in rows[0]
    assert "This one" in rows[0]
    assert "Safari on iPhone" in rows[1]
    assert "This one" not in rows[1]
    form = next(one for one in browser.page.forms.values() if _value(one, "session") == there.id)
    browser.send("/account/sessions", dict(form.submit_fields()), by="https://id.example.com")
    assert "Signed out." in browser.page.text
    assert phone.open("/account").request.path.startswith("/login/")
    assert len(sessions_of(world, ada)) == 1
    assert "Sign out everywhere else" not in browser.page.text


def _value(form: Any, name: str) -> str:
    return str(form[name].value) if name in form.fields else ""


def test_everywhere_else(world: World, browser: Browser, ada: HumanUser) -> None:
    for _ in range(3):
        Browser(world).start_session(ada)
    browser.open("/account/sessions")
    form = next(one for one in browser.page.forms.values() if "others" in one.fields)
    browser.send("/account/sessions", dict(form.submit_fields()), by="https://id.example.com")
    assert browser.path == "/account/sessions"
    assert len(sessions_of(world, ada)) == 1


def test_this_one(world: World, browser: Browser, ada: HumanUser) -> None:
    [here] = sessions_of(world, ada)
    browser.open("/account/sessions")
    token = next(iter(browser.page.forms.values()))["csrf_token"].value
    browser.send("/account/sessions", {"csrf_token": token, "session": here.id}, by="https://id.example.com")
    assert browser.path == "/signed-out"
    assert not browser.session_cookies
    assert sessions_of(world, ada) == ()


def test_sessions_of_others_are_not_there(world: World, browser: Browser, ada: HumanUser) -> None:
    eve = Browser(world)
    theirs = eve.start_session(world.a_person())
    token = _token(browser)
    answers = [
        browser.send("/account/sessions", {"csrf_token": token, "session": one}, by="https://id.example.com")
        for one in (theirs.id, "0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", "")
    ]
    assert {one.status_int for one in answers} == {404}
    assert len({re.sub(r"<code>[0-9a-f-]{36}</code>", "", one.text) for one in answers}) == 1
    assert eve.open("/account").request.path == "/account/profile"


def _token(browser: Browser) -> str:
    browser.open("/account/sessions")
    return str(next(iter(browser.page.forms.values()))["csrf_token"].value)


# --- applications -----------------------------------------------------------------------------------------------------


def test_applications_are_listed_and_disconnected(world: World, browser: Browser, ada: HumanUser) -> None:
    assert "No applications yet" in browser.open("/account/applications").text
    client, other = world.a_web_application(), world.a_web_application()
    held = world.an_authorization(ada, client, scope=("openid", "profile", "email", "offline_access"))
    world.an_authorization(ada, other, scope=("openid", "urn:service:iam:org:projects:roles"))
    tree = check_page(browser.open("/account/applications"), 200, "Applications")
    rows = {one.find(".//a").attrib["href"]: "".join(one.itertext()) for one in tree.find(".//tbody").iter("tr")}
    told = rows[f"/account/applications/{client.client_id}/disconnect"]
    assert "Your name and profile, your email address" in told
    assert "Stays connected until you disconnect it." in told
    with world.reading() as services:
        found = services.applications.find_client(other.client_id)
    assert found is not None
    assert f"Your roles in {found.project.name}" in rows[f"/account/applications/{other.client_id}/disconnect"]
    assert found.organization.name in rows[f"/account/applications/{other.client_id}/disconnect"]

    browser.open(f"/account/applications/{client.client_id}/disconnect")
    assert browser.page.status_int == 200
    assert "It loses access to your account at once." in browser.page.text
    assert world.client.userinfo(held.access_token).status_int == 200
    browser.submit(form="page-form")
    assert browser.path == "/account/applications"
    assert "The application is disconnected." in browser.page.text
    assert client.client_id not in browser.page.text
    assert world.client.userinfo(held.access_token).status_int == 401


def test_what_is_not_connected_is_not_there(world: World, browser: Browser) -> None:
    client = world.a_web_application()
    person = world.a_person()
    world.an_authorization(person, client)
    shown = set()
    for client_id in (client.client_id, "0" * 32, "x", "%00"):
        answer = browser.open(f"/account/applications/{client_id}/disconnect")
        assert answer.status_int == 404
        shown.add(re.sub(r"<code>[0-9a-f-]{36}</code>|\?ui_locales", "", answer.text))
        sent = {"csrf_token": _token(browser)}
        answer = browser.send(f"/account/applications/{client_id}/disconnect", sent, by="https://id.example.com")
        assert answer.status_int == 404
    assert len(shown) == 1
    with world.reading() as services:
        assert len(services.users.connections(person.id)) == 1


# --- several accounts -------------------------------------------------------------------------------------------------


def test_another_account_of_this_browser(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = world.a_person()
    world.clock.advance(1)
    browser.start_session(grace)
    [at_ada] = sessions_of(world, ada)
    assert f"Switch to {ada.user_name}@" in browser.open("/account/sessions").text
    world.clock.advance(1)
    form = next(one for one in browser.page.forms.values() if _value(one, "session") == at_ada.id)
    assert form.action == "/account/switch"
    browser.send(form.action, dict(form.submit_fields()), by="https://id.example.com")
    assert browser.path == "/account/profile"
    assert f"Switch to {grace.user_name}@" in browser.page.text
    # Both stay signed in.
    assert len(browser.session_cookies) == 2


def test_one_more_account(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = a_person(world)
    sent = {"csrf_token": _token(browser), "session": "new"}
    browser.send("/account/switch", sent, by="https://id.example.com")
    assert browser.path.startswith("/login/")
    world.clock.advance(1)
    browser.sign_in(grace.user_name, OLD)
    assert browser.path == "/account/profile"
    assert f"Switch to {ada.user_name}@" in browser.page.text


def test_accounts_of_other_browsers_cannot_be_switched_to(world: World, browser: Browser) -> None:
    theirs = Browser(world).start_session(world.a_person())
    sent = {"csrf_token": _token(browser), "session": theirs.id}
    assert browser.send("/account/switch", sent, by="https://id.example.com").status_int == 404
    assert browser.open("/account/switch").request.path == "/account/profile"


# --- forms of others --------------------------------------------------------------------------------------------------

FORMS: dict[str, dict[str, str]] = {
    "/account/profile": {"given_name": "Eve", "family_name": "Eve", "version": "1"},
    "/account/password": {"current_password": OLD, "new_password": NEW, "new_password_again": NEW},
    "/account/sessions": {"others": "yes"},
    "/account/switch": {"session": "new"},
}


@pytest.mark.storages("memory")
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("kind", ["none", "wrong", "of another person", "of another session"])
def test_a_form_needs_its_token(world: World, browser: Browser, ada: HumanUser, path: str, kind: str) -> None:
    token = {"none": "", "wrong": "x" * 43}.get(kind)
    if token is None:
        other = Browser(world)
        other.start_session(ada if kind == "of another session" else world.a_person())
        token = _token(other)
    before = stored(world, ada), len(sessions_of(world, ada))
    answer = browser.send(path, FORMS[path] | {"csrf_token": token}, by="https://id.example.com")
    if path == "/account/switch":
        assert answer.request.path == "/account/profile"
    else:
        assert answer.status_int == 422
        assert "This page had been open for too long. Check what you typed and send it again." in answer.text
    assert (stored(world, ada), len(sessions_of(world, ada))) == before


@pytest.mark.storages("memory")
@pytest.mark.parametrize("path", FORMS)
def test_another_site_s_form_is_refused(world: World, browser: Browser, ada: HumanUser, path: str) -> None:
    token = _token(browser)
    before = stored(world, ada), len(sessions_of(world, ada))
    browser.cookies.header = lambda *_, **__: "; ".join(f"{one.name}={one.value}" for one in browser.cookies)  # type: ignore[method-assign]
    answer = browser.send(path, FORMS[path] | {"csrf_token": token}, by="https://evil.example")
    assert answer.status_int == 403
    assert (stored(world, ada), len(sessions_of(world, ada))) == before


# --- links without mail -----------------------------------------------------------------------------------------------


def test_without_a_mail_server_somebody_else_gives_the_link(world: World) -> None:
    browser = Browser(world)
    check_page(browser.open("/password/reset"), 200, "Choose a new password")
    assert "Ask a manager of your organization for a link." in browser.page.text
    assert not browser.page.forms
    answer = browser.send("/password/reset", {"login_name": "ada"}, by="https://id.example.com")
    assert (answer.status_int, answer.text) == (200, browser.open("/password/reset").text)
    assert browser.open("/password/reset/sent").request.path == "/password/reset"


def a_link(world: World, person: HumanUser) -> str:
    with world.transaction() as services:
        return services.passwords.issue_link(person.id)


def test_the_link_of_a_manager(world: World, ada: HumanUser) -> None:
    link = a_link(world, ada)
    browser = Browser(world)
    tree = check_page(browser.open(link), 200, "Choose a new password")
    assert f"{ada.user_name}@" in browser.page.text
    assert tree.find(".//input[@name='login_name']").attrib["autocomplete"] == "username"
    check_page(
        browser.submit({"new_password": NEW, "new_password_again": "x"}, form="page-form"), 422, "Choose a new password"
    )
    assert NEW not in browser.page.text
    # The link is good still.
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    check_page(browser.page, 200, "Your password is changed")
    check_page(Browser(world).open(link), 410, "This link does not work any more")


def test_a_link_frees_whoever_was_locked_out(world: World, ada: HumanUser) -> None:
    """Security 10.3: after a hundred failures only a reset helps."""
    for _ in range(100):
        with world.transaction() as services:
            services.attempts.reserve(ada.user_name, services.storage.users.find_subject(ada.id), None)
        world.clock.advance(901)
    browser = Browser(world)
    browser.open(a_link(world, ada))
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    browser.click("Sign in")
    browser.sign_in(ada.user_name, NEW)
    assert browser.path == "/account/profile"


def test_a_newer_link_takes_the_place_of_an_older_one(world: World, ada: HumanUser) -> None:
    older, newer = a_link(world, ada), a_link(world, ada)
    assert [Browser(world).open(one).status_int for one in (older, newer)] == [410, 200]


def test_a_link_of_somebody_who_is_deactivated_opens_nothing(world: World, ada: HumanUser) -> None:
    link = a_link(world, ada)
    with world.transaction() as services:
        services.storage.users.update(replace(ada, active=False, version=ada.version + 1))
    assert Browser(world).open(link).status_int == 410


def test_a_link_is_good_for_one_thing_alone(world: World, ada: HumanUser) -> None:
    code = a_link(world, ada).rpartition("/")[2]
    for path in (f"/email/{code}", f"/register/{code}", f"/password/reset/{code}x"):
        browser = Browser(world)
        tree = check_page(browser.open(path), 410, "This link does not work any more")
        assert code not in "".join(tree.itertext())
    assert Browser(world).open(f"/password/reset/{code}").status_int == 200


def test_whoever_is_signed_in_as_somebody_else_may_use_a_link(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = a_person(world)
    browser.open(a_link(world, grace))
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.path == "/password/changed"
    assert len(sessions_of(world, ada)) == 1


def test_a_link_s_page_in_another_language_keeps_it_to_the_end(world: World, ada: HumanUser) -> None:
    browser = Browser(world)
    browser.open(a_link(world, ada))
    browser.submit(press=("ui_locales", "de"), form="page-form")
    assert '<html lang="de">' in browser.page.text
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.url.endswith("/password/changed?ui_locales=de")
    assert '<html lang="de">' in browser.page.text


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
        (IPHONE, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (X11; CrOS x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "Chrome on ChromeOS"),
        ("Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/19.0 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (iPad; CPU OS 19_0) CriOS/140.0 Mobile Safari/604.1", "Chrome on iPad"),
        ("curl/8.9", "Unknown device"),
        ("<b>Windows</b>", "Windows"),
        ("", "Unknown device"),
    ],
)
def test_devices_in_words(user_agent: str, words: str) -> None:
    assert device(user_agent, Words("en", Catalog())) == words


def test_what_a_browser_says_of_itself_is_escaped(world: World, browser: Browser, ada: HumanUser) -> None:
    Browser(world, user_agent="<script>Firefox/1 Linux").start_session(ada)
    assert "<script>F" not in browser.open("/account/sessions").text
