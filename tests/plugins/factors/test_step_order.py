"""Security 19.11: empty, repeated or reordered posts do not skip factor pages, whatever they contain."""

from typing import Any
from urllib.parse import urlencode

import pyotp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import PASSWORD, Browser, BrowserRequest, origin
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser, opened

FORM_PATHS = (
    "",
    "/password",
    "/accounts",
    "/register",
    "/password/change",
    "/factors",
    "/factors/new",
    "/consent",
    *(f"/{factor}{page}" for factor in ("totp", "email_code", "recovery_codes", "passkeys") for page in ("", "/new")),
    "/nothing",
)
#: Values for form fields, correct passwords included.
VALUES = {
    "login_name": ("", "nobody"),
    "password": ("", PASSWORD, "wrong"),
    "code": ("", "000000", " ", "0" * 300, "７７７７７７", "AAAA-AAAA-AAAA"),
    "factor": ("totp", "recovery_codes", "email_code", "passkeys", "none", "password", ""),
    "remember": ("yes",),
    "again": ("yes",),
    "name": ("", "phone"),
    "decision": ("allow", "refuse"),
    "session": ("", "another"),
    "new_password": ("", "an entirely new one"),
    "new_password_again": ("", "an entirely new one"),
    "credential": ("", "{}"),
    "ui_locales": ("de",),
    "once": ("x",),
    "version": ("1",),
}

PASSKEY = {
    **dict.fromkeys(("id", "public_key", "user_handle"), "AAAA"),
    **dict.fromkeys(("backup_eligible", "backed_up", "user_verified"), False),
    "sign_count": 0,
    "transports": [],
    "aaguid": "",
}

fields = st.lists(
    st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name]))),
    max_size=5,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("GET"), st.sampled_from(FORM_PATHS), st.just([])),
        st.tuples(st.just("POST"), st.sampled_from(FORM_PATHS), fields),
        st.tuples(st.just("GET"), st.just("continue"), st.just([])),
    ),
    max_size=12,
)


def post_pairs(browser: Browser, path: str, pairs: list[tuple[str, str]], token: str) -> Any:
    """Post a same-origin form with arbitrary, possibly repeated fields."""
    login_origin = origin(browser.login_url)
    body = urlencode([*pairs, ("csrf_token", token)]).encode()
    return browser._go(
        BrowserRequest("POST", f"{browser.login_url}{path}", body, login_origin, f"{login_origin}/", login_origin)
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=steps, enrolled=st.booleans())
def test_factor_cannot_be_skipped(
    world: World, party: RelyingParty, steps: list[tuple[str, str, list[tuple[str, str]]]], enrolled: bool
) -> None:
    person = LoginUser(world)
    world.operator_services.policies.change(
        person.organization.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED)
    )
    if enrolled:
        subject = world.operator_services.storage.users.find_subject(person.user.id)
        world.operator_services.factors.enrol(subject, "totp", {"secret": pyotp.random_base32(), "step": 0})
        world.operator_services.factors.enrol(subject, "recovery_codes", {"codes": {}})
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    assert browser.sign_in_step == ("totp" if enrolled else "factors/new")
    token, begun = browser.find_form()["csrf_token"].value, "/".join(browser.path.split("/")[:3])
    request_id = begun.rpartition("/")[2]
    for method, path, pairs in steps:
        if path == "continue":
            browser.open(f"{browser.login_url}/oauth/v2/authorize/{request_id}")
        elif method == "GET":
            browser.open(begun + path)
        else:
            post_pairs(browser, begun + path, pairs, token)
        assert browser.page.status_int < 500, (path, pairs)
        assert not browser.session_cookies, (path, pairs)
        assert "code=" not in (browser.external_redirect or ""), (path, pairs)
        if enrolled and path.endswith("/new"):
            assert "otpauth:" not in browser.page.text, "another factor is set up without the first"
    assert len(world.operator_services.factors.list_enrolments(person.user.id)) == (2 if enrolled else 0)


def test_page_starts_with_last_used_method(world: World, browser: Browser, party: RelyingParty) -> None:
    person = LoginUser(world)
    subject = world.operator_services.storage.users.find_subject(person.user.id)
    totp = world.operator_services.factors.enrol(subject, "totp", {"secret": pyotp.random_base32(), "step": 0})
    world.clock.advance(minutes=1)
    passkey = world.operator_services.factors.enrol(subject, "passkeys", PASSKEY)
    world.operator_services.factors.enrol(subject, "recovery_codes", {"codes": {}})

    def page() -> Browser:
        browser = Browser(world)
        opened(browser, party)
        browser.sign_in(person.login_name)
        return browser

    # Nothing was used yet: the newest factor comes first, never recovery codes.
    assert page().sign_in_step == "passkeys"
    world.clock.advance(minutes=1)
    world.operator_services.factors.update_after_use(totp, totp.value)
    first_page = page()
    assert first_page.sign_in_step == "totp"
    assert "You have set up a second factor for your account." in first_page.page.text
    world.clock.advance(minutes=1)
    world.operator_services.factors.update_after_use(passkey, passkey.value)
    assert page().sign_in_step == "passkeys"
    with world.transaction_services() as services:
        command = ChangePolicy(second_factor=SecondFactorRule.REQUIRED)
        services.policies.change(person.user.organization_id, command)
    assert "requires a second factor." in page().page.text


def test_wrong_code_is_shown_once_at_its_field(world: World, party: RelyingParty) -> None:
    """Also if the page offers to remember the browser."""
    person = LoginUser(world)
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(remember_browser=30))
    subject = world.operator_services.storage.users.find_subject(person.user.id)
    world.operator_services.factors.enrol(subject, "totp", {"secret": pyotp.random_base32(), "step": 0})
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    browser.submit({"code": "000000", "remember": "yes"}, form="page-form")
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(remember_browser=0))
    assert browser.page.status_int == 422
    page = browser.page.html
    assert page.get_text().count("This code is wrong or has already been used.") == 1
    field = page.select_one("#field-code")
    assert field.has_attr("autofocus")
    assert field["aria-invalid"] == "true"
    assert field["aria-describedby"].split()[0] == "error-code"
    assert not page.select("#errors")
    assert page.select_one("#field-remember, [name=remember]").has_attr("checked")
