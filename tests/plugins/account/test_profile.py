"""Account pages: access and the profile."""

from dataclasses import fields, replace

import pytest

from identity.domain.users import Address, HumanUser, Profile
from identity.services.commands.users import ChangeAddress, ChangeProfile
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import ACCOUNT_ORIGIN, NEW, OLD, form_of, stored

#: Claims that users edit, without those that this page does not offer.
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


# --- access -----------------------------------------------------------------------------------------------------------

_SECTIONS = ("profile", "security", "password", "sessions", "applications", "activity", "data")
ACCOUNT_PATHS = ["/account", *(f"/account/{page}" for page in _SECTIONS)]


def test_anonymous_request_signs_in_and_returns(world: World, ada: HumanUser) -> None:
    deeper = ["/account/profile/email", "/account/applications/x/disconnect?a=b"]
    for path in (*ACCOUNT_PATHS, *deeper):
        browser = Browser(world)
        browser.open(path)
        assert browser.answers[0].status_int == 303
        assert browser.sign_in_step == ""
        browser.sign_in(ada.user_name, OLD)
        assert browser.path.startswith(path.partition("/profile/email")[0].partition("?")[0])


def test_post_after_logout_redirects_to_sign_in(world: World, browser: Browser) -> None:
    browser.open("/account/profile")
    form = form_of(browser)
    browser.cookies.clear()
    browser.post_form("/account/profile", dict(form.submit_fields()), initiator=ACCOUNT_ORIGIN)
    assert browser.path.startswith("/login/")


def test_account_pages_have_unique_titles(browser: Browser) -> None:
    titles = {
        "/account/profile": "Profile",
        "/account/security": "Security",
        "/account/sessions": "Sessions",
        "/account/applications": "Applications",
        "/account/activity": "Activity",
        "/account/data": "Data",
    }
    page_titles = set()
    for path, title in titles.items():
        tree = check_page(browser.open(path), 200, title)
        page_titles.add(tree.findtext(".//title"))
        current = [item for item in tree.iter("a") if item.attrib.get("aria-current") == "page"]
        assert {item.attrib["href"] for item in current} == {path}
    assert page_titles == {f"{title} – Your account – Identity" for title in titles.values()}
    assert browser.open("/account").request.path == "/account/profile"


def test_account_pages_use_profile_language(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        services.users.change_profile(ada.id, ChangeProfile(locale="de-CH"))
    assert '<html lang="de">' in browser.open("/account/password").text
    assert '<html lang="fr">' in browser.open("/account/password?ui_locales=fr").text


def test_unsupported_profile_language_is_kept(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        services.users.change_profile(ada.id, ChangeProfile(locale="nl-BE"))
    browser.open("/account/profile")
    browser.submit({"nickname": "A."}, form="page-form")
    assert (stored(world, ada).profile.locale, stored(world, ada).profile.nickname) == ("nl-BE", "A.")


# --- profile ----------------------------------------------------------------------------------------------------------


def test_profile_form_saves_every_claim(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/profile")
    browser.submit(PROFILE | ADDRESS | {"current_password": OLD}, form="page-form")
    assert "Your profile is saved." in browser.page.text
    profile = stored(world, ada).profile
    assert {name: getattr(profile, name) for name in PROFILE} == PROFILE
    assert {name: getattr(profile.address, name) for name in ADDRESS} == ADDRESS
    assert not profile.email_verified
    # The form shows the saved values; saving it unchanged changes nothing.
    check_page(browser.open("/account/profile"), 200, "Profile")
    assert {name: form_of(browser)[name].value for name in PROFILE} == PROFILE
    # A textarea drops a leading line feed and submits CRLF.
    assert form_of(browser)["formatted"].value.strip() == ADDRESS["formatted"]
    version = stored(world, ada).version
    browser.submit(form="page-form")
    assert stored(world, ada).version == version


def test_profile_page_contains_every_command_field() -> None:
    """Every standard claim is editable, except those verified by other means."""
    assert PROFILE.keys() == ChangeProfile.model_fields.keys() - {"address", "attributes"}
    assert ADDRESS.keys() == ChangeAddress.model_fields.keys() == {field.name for field in fields(Address)}
    assert {field.name for field in fields(Profile)} - PROFILE.keys() == {"email_verified", "phone_verified", "address"}


def test_profile_form_ignores_managed_fields(world: World, browser: Browser, ada: HumanUser) -> None:
    """Security 10.8: every field of user and profile that is not on the page, and names that programs might try."""
    organization = world.make_organization()
    before = stored(world, ada)
    moments = ("created_at", "changed_at", "last_sign_in_at", "named_at", "deletion_at")
    flags = ("email_verified", "phone_verified", "phone_number_verified", "profile.email_verified", "must_change")
    tried = {
        **dict.fromkeys(("id", "user_id", "sub", "hash"), "another"),
        **dict.fromkeys(("user_name", "login_name"), "root"),
        **dict.fromkeys(("organization", "organization_id"), organization.id),
        **dict.fromkeys(("roles", "role"), "IAM_OWNER"),
        "email_verified_by": "own_link",
        **dict.fromkeys(moments, "2000-01-01T00:00:00Z"),
        **dict.fromkeys((*flags, "registered"), "true"),
    } | {"active": "false", "state": "deactivated", "password": NEW, "address": "{}"}
    assert {field.name for field in fields(HumanUser)} - {"version", "profile"} <= tried.keys()
    browser.open("/account/profile")
    sent = dict(form_of(browser).submit_fields()) | tried
    sent |= {"email": "ada@acme.example", "phone": "+44 20 1", "current_password": OLD}
    answer = browser.post_form("/account/profile", sent, initiator=ACCOUNT_ORIGIN)
    assert answer.status_int == 200
    after = stored(world, ada)
    assert after.profile == type(after.profile)(
        given_name="Ada", family_name="Lovelace", email="ada@acme.example", phone="+44 20 1"
    )
    for name in ("id", "organization_id", "user_name", "active", "created_at", "named_at", "registered"):
        assert getattr(after, name) == getattr(before, name)
    with world.read_only_services() as services:
        assert services.storage.managers.list_for_user(ada.id) == ()
    other_browser = Browser(world)
    other_browser.open("/account")
    other_browser.sign_in(ada.user_name, OLD)
    assert other_browser.path == "/account/profile"


def test_changed_email_becomes_unverified(world: World, browser: Browser, ada: HumanUser) -> None:
    verified = replace(ada.profile, email="ada@acme.example", email_verified=True, phone="+44 1", phone_verified=True)
    with world.transaction_services() as services:
        services.storage.users.update(replace(ada, profile=verified, version=ada.version + 1))
    browser.open("/account/profile")
    browser.submit({"nickname": "A"}, form="page-form")
    assert stored(world, ada).profile.email_verified
    browser.open("/account/profile")
    browser.submit({"email": "eve@acme.example", "phone": "+44 2", "current_password": OLD}, form="page-form")
    profile = stored(world, ada).profile
    assert (profile.email, profile.email_verified, profile.phone_verified) == ("eve@acme.example", False, False)


@pytest.mark.parametrize("address", ["eve@acme.example", ""])
def test_email_change_requires_recent_sign_in(world: World, browser: Browser, ada: HumanUser, address: str) -> None:
    """Access to the mailbox is enough to reset the password."""
    with world.transaction_services() as services:
        services.users.change_profile(ada.id, ChangeProfile(email="ada@acme.example"))
    browser.open("/account/profile")
    for current, sentence in (
        ("", "Enter your current password."),
        ("not the password", "This is not your current password."),
    ):
        browser.submit({"email": address, "nickname": "Eve", "current_password": current}, form="page-form")
        assert browser.page.status_int == 422
        assert sentence in browser.page.text
        form = form_of(browser)
        assert (form["email"].value, form["nickname"].value, form["current_password"].value) == (address, "Eve", "")
        assert (stored(world, ada).profile.email, stored(world, ada).profile.nickname) == ("ada@acme.example", "")


def test_profile_page_without_mail_server(browser: Browser) -> None:
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
def test_invalid_profile_keeps_input(world: World, browser: Browser, ada: HumanUser) -> None:
    for bad in (["email"], ["website"], BAD):
        browser.open("/account/profile")
        typed = PROFILE | ADDRESS | {name: BAD[name][0] for name in bad}
        tree = check_page(browser.submit(typed, form="page-form"), 422, "Profile")
        assert tree.findtext(".//title").startswith("Error: ")
        for name in bad:
            error_text = "".join(tree.find(f".//*[@id='error-{name}']").itertext())
            assert error_text.split("Error:")[1].strip() == BAD[name][1]
        links = [item.attrib["href"] for item in tree.find(".//*[@id='errors']").iter("a")]
        assert sorted(links) == sorted(f"#field-{name}" for name in bad)
        values = {name: form_of(browser)[name].value.replace("\r\n", "\n").strip() for name in typed}
        assert values == {name: text.strip() for name, text in typed.items()}
        assert stored(world, ada).version == ada.version
        # A collapsed section with an error is open.
        hidden = tree.find(".//form/details")
        is_hidden = [hidden.find(f".//*[@id='field-{name}']") is not None for name in bad]
        assert ("open" in hidden.attrib) == any(is_hidden)


def test_profile_conflict_is_shown(world: World, browser: Browser, ada: HumanUser) -> None:
    slow = browser.tab()
    slow.open("/account/profile")
    browser.open("/account/profile")
    browser.submit({"nickname": "Countess"}, form="page-form")
    check_page(slow.submit({"nickname": "A.", "phone": "+44 1234"}, form="page-form"), 409, "Profile")
    assert "This was changed in the meantime." in slow.page.text
    assert "Currently saved: Countess" in slow.page.text
    assert (form_of(slow)["nickname"].value, form_of(slow)["phone"].value) == ("A.", "+44 1234")
    slow.submit(form="page-form")
    assert (stored(world, ada).profile.nickname, stored(world, ada).profile.phone) == ("A.", "+44 1234")


@pytest.mark.storages("memory")
def test_profile_form_requires_version(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/profile")
    fields = dict(form_of(browser).submit_fields())
    for version in ("", "x", "-1", "9" * 30, "²"):
        sent = fields | {"version": version, "nickname": "A."}
        assert browser.post_form("/account/profile", sent, initiator=ACCOUNT_ORIGIN).status_int == 409
        assert stored(world, ada).profile.nickname == ""
