"""Recovery codes: require another factor, are shown once, are single use and are replaced by new ones."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.plugins.recovery_codes.factor import (
    CODE_COUNT,
    RecoveryCodesFactor,
    code_prefix,
    generate_codes,
    normalize_code,
)
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.factors.authenticator_app import enrol
from tests.plugins.login.conftest import LoginUser, opened

ENROL = "/login?target=/account/security&enrol=recovery_codes"
WRONG = "This is not one of your recovery codes, or it has already been used."


def shown_codes(browser: Browser) -> list[str]:
    return str(browser.page.html.find(id="codes").get_text()).split()


def enrol_recovery_codes(world: World, browser: Browser, person: LoginUser) -> list[str]:
    """Enrol an app and recovery codes; returns the codes."""
    enrol(browser, person)
    browser.open(ENROL)
    assert browser.sign_in_step == "recovery_codes/new"
    browser.submit()
    return shown_codes(browser)


def at_the_page(world: World, party: RelyingParty, person: LoginUser) -> Browser:
    """A new browser at the recovery code page."""
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    # Recovery codes are never the first choice, whatever was used last.
    assert browser.sign_in_step == "totp"
    browser.click("Use another method")
    assert browser.sign_in_step == "factors"
    browser.submit(button=("factor", "recovery_codes"))
    return browser


def test_recovery_codes_are_shown_once(world: World, browser: Browser, ada: LoginUser) -> None:
    codes = enrol_recovery_codes(world, browser, ada)
    check_page(browser.page, 200, "Your recovery codes")
    assert len(set(codes)) == CODE_COUNT
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}", code) for code in codes)
    link = browser.page.html.find(id="codes-file")
    assert link["download"] == "recovery-codes.txt"
    downloaded = base64.b64decode(link["href"].partition("base64,")[2]).decode()
    assert ada.login_name in downloaded
    assert all(code in downloaded for code in codes)
    (stored,) = world.operator_services.factors.list_enrolments(ada.user.id, "recovery_codes")
    assert len(stored.value["codes"]) == CODE_COUNT
    assert all(item.startswith("$argon2id$") for item in stored.value["codes"].values())
    begun = browser.path
    browser.click("I have saved the codes")
    assert browser.path == "/account/security"
    assert not any(code in browser.open(begun).text for code in codes)


def test_recovery_code_replaces_totp(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    codes = enrol_recovery_codes(world, browser, ada)
    other = at_the_page(world, party, ada)
    check_page(other.page, 200, "Enter a recovery code")
    other.submit({"code": codes[0].lower().replace("-", " ")})
    assert other.external_redirect is not None
    (event,) = [event for event in world.audit_events(involved_id=ada.user.id) if event.event == "factor.used"]
    assert dict(event.detail) == {"factor": "recovery_codes", "left": 9}
    (stored,) = world.operator_services.factors.list_enrolments(ada.user.id, "recovery_codes")
    assert RecoveryCodesFactor().status_text(stored) == "9 codes left"
    assert "9 codes left" in browser.open("/account/security").text
    again = at_the_page(world, party, ada)
    again.submit({"code": codes[0]})
    assert (again.page.status_int, again.sign_in_step) == (422, "recovery_codes")
    assert WRONG in again.page.text
    again.submit({"code": codes[1]})
    assert again.external_redirect is not None


@pytest.mark.thorough
@pytest.mark.parametrize("typed", ["", "  - ", "0000", "x" * 3000, "💥"])
def test_invalid_code_is_refused(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, typed: str
) -> None:
    enrol_recovery_codes(world, browser, ada)
    other = at_the_page(world, party, ada)
    other.submit({"code": typed})
    assert (other.page.status_int, other.sign_in_step) == (422, "recovery_codes")
    assert not other.session_cookies


def test_new_recovery_codes_revoke_old_ones(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    old = enrol_recovery_codes(world, browser, ada)
    browser.click("I have saved the codes")
    browser.open(ENROL)
    assert "The codes that you have now stop working." in browser.page.text
    browser.submit()
    new = shown_codes(browser)
    assert not set(old) & set(new)
    (stored,) = world.operator_services.factors.list_enrolments(ada.user.id, "recovery_codes")
    assert set(stored.value["codes"]) == {code_prefix(item) for item in new}
    other = at_the_page(world, party, ada)
    other.submit({"code": old[0]})
    assert other.page.status_int == 422
    other.submit({"code": new[0]})
    assert other.external_redirect is not None


def test_recovery_codes_require_proved_factor(world: World, browser: Browser, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    other = Browser(world)
    other.open(ENROL)
    other.sign_in(ada.login_name)
    assert other.sign_in_step == "totp"
    begun = other.path.removesuffix("/totp")
    other.open(f"{begun}/recovery_codes/new")
    assert other.sign_in_step == "totp"
    other.submit({"code": app.code()})
    assert other.sign_in_step == "recovery_codes/new"


def test_recovery_codes_require_another_factor(world: World, browser: Browser, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.open(ENROL)
    assert browser.path == "/account/security"
    assert world.operator_services.factors.list_enrolments(ada.user.id) == ()


def test_creating_recovery_codes_does_not_authenticate(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    """The session's methods contain only what was proved."""
    enrol_recovery_codes(world, browser, ada)
    with world.read_only_services() as services:
        sessions = services.storage.sessions.list_for_user(ada.user.id, world.clock())
    assert {proof.factor for session in sessions for proof in session.proofs if "otp" in proof.methods} == {"totp"}


CODES = generate_codes()


@pytest.mark.thorough
@given(st.data())
def test_recovery_code_ignores_case_and_separators(data: st.DataObject) -> None:
    code = data.draw(st.sampled_from(CODES))
    read = {"0": "Oo", "1": "iIlL"}
    typed = "".join(
        data.draw(st.sampled_from((item, item.lower(), *read.get(item, ""))))
        + data.draw(st.sampled_from(("", "-", " ")))
        for item in code
    )
    assert normalize_code(typed) == normalize_code(code) == code.replace("-", "")


def test_recovery_codes_have_fifty_bits() -> None:
    codes = [normalize_code(generate_code) for _ in range(50) for generate_code in generate_codes()]
    assert {len(code) for code in codes} == {12}
    assert len({letter for code in codes for letter in code}) == 32
    assert all(len({code_prefix(generate_code) for generate_code in generate_codes()}) == CODE_COUNT for _ in range(50))


@pytest.mark.parametrize(
    ("left", "warning"),
    [
        (4, "4 codes left"),
        (3, "Only 3 codes left. Create new ones."),
        (1, "Only 1 code left. Create new ones."),
        (0, "No codes are left. Create new ones."),
    ],
)
def test_few_recovery_codes_show_warning(
    world: World, browser: Browser, ada: LoginUser, left: int, warning: str
) -> None:
    enrol(browser, ada)
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(ada.user.id)
        assert subject is not None
        services.factors.enrol(subject, "recovery_codes", {"codes": {str(item): "" for item in range(left)}})
    assert warning in browser.open("/account/security").text
