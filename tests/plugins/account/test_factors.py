"""Factors in the account: listed, renamed and removed after a recent sign-in."""

import re
from datetime import timedelta

import pytest

from identity.domain.audit import Actor, ActorKind
from identity.domain.enrolments import Enrolment
from identity.domain.users import HumanUser
from identity.provider.factor import Factor
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import ACCOUNT_ORIGIN, OLD, form_of, make_user_with_password, stored, token_of


def make_factor(world: World, person: HumanUser, name: str = "My phone") -> Enrolment:
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        return services.factors.enrol(subject, "pager", {"secret": "of the factor"}, name=name)


def factors_of(world: World, person: HumanUser) -> list[str]:
    with world.read_only_services() as services:
        return [enrolment.name for enrolment in services.factors.list_enrolments(person.id)]


def test_factor_list_shows_no_secrets(world: World, browser: Browser, ada: HumanUser) -> None:
    make_factor(world, ada, "My <phone>")
    make_factor(world, make_user_with_password(world), "Eve's phone")
    check_page(browser.open("/account/security"), 200, "Security")
    assert "pager: My &lt;phone&gt;" in browser.page.text
    assert "never used" in browser.page.text
    assert "of the factor" not in browser.page.text
    assert "Eve" not in browser.page.text


def test_added_factor_suggests_recovery_codes(world: World, browser: Browser, ada: HumanUser) -> None:
    """Shown after an enrolment until there are recovery codes."""
    assert "Create recovery codes" not in browser.open("/account/security").text
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(ada.id)
        assert subject is not None
        services.factors.enrol(subject, "totp", {"secret": "A" * 32, "step": 0}, name="My phone")
    page = browser.open("/account/security")
    assert "My phone is added. You can use it to sign in from now on." in page.text
    link = page.html.find("a", string="Create recovery codes …")
    assert "enrol=recovery_codes" in link["href"]
    world.clock.advance(minutes=2)
    page = browser.open("/account/security")
    assert "is added." not in page.text
    assert "Create recovery codes" in page.text
    with world.transaction_services() as services:
        services.factors.enrol(subject, "recovery_codes", {"codes": {}})
    assert "Create recovery codes" not in browser.open("/account/security").text


def test_factor_events_name_factor_and_user(world: World, browser: Browser, ada: HumanUser) -> None:
    """Also for factors that are enrolled during a sign-in, before there is a session."""
    with world.identity.transaction(Actor(kind=ActorKind.ANONYMOUS)) as services:
        subject = services.storage.users.find_subject(ada.id)
        assert subject is not None
        for factor, name in (("totp", "My phone"), ("passkeys", "Laptop"), ("recovery_codes", ""), ("email_code", "")):
            added = services.factors.enrol(subject, factor, {}, name=name)
            services.factors.remove(subject, added.id)
    events = [event for event in world.audit_events(object_id=ada.id) if event.event.startswith("factor.")]
    assert {(event.event, event.detail["factor"], event.detail["name"]) for event in events} == {
        (event, factor, name)
        for event in ("factor.added", "factor.removed")
        for factor, name in (("totp", "My phone"), ("passkeys", "Laptop"), ("recovery_codes", ""), ("email_code", ""))
    }
    assert {(event.actor.kind, event.actor.id) for event in events} == {(ActorKind.USER, ada.id)}
    text = browser.open("/account/activity").html.get_text(" ", strip=True)
    for called in ("Authenticator app: My phone", "Passkey: Laptop", "Recovery codes", "Email codes"):
        assert called in text


def test_factor_is_renamed(world: World, browser: Browser, ada: HumanUser) -> None:
    make_factor(world, ada)
    browser.open("/account/security")
    browser.click("Rename … pager: My phone")
    browser.submit({"name": ""}, form="page-form")
    assert browser.page.status_int == 422
    browser.submit({"name": " Old phone "}, form="page-form")
    assert browser.path == "/account/security"
    assert "The name is changed." in browser.page.text
    assert factors_of(world, ada) == ["Old phone"]


def test_factor_is_removed(world: World, browser: Browser, ada: HumanUser) -> None:
    make_factor(world, ada)
    browser.open("/account/security")
    browser.click("Remove … pager: My phone")
    assert factors_of(world, ada) == ["My phone"]
    browser.submit(form="page-form")
    assert browser.path == "/account/security"
    assert "The sign-in method is removed." in browser.page.text
    assert factors_of(world, ada) == []


@pytest.mark.parametrize("action", ["rename", "remove"])
def test_factors_of_other_users_are_404(world: World, browser: Browser, ada: HumanUser, action: str) -> None:
    eve = make_user_with_password(world)
    enrolment, token, pages = make_factor(world, eve), token_of(browser), set()
    for factor_id in (enrolment.id, "0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", "x", "%00"):
        path = f"/account/factors/{factor_id}/{action}"
        for answer in (
            browser.open(path),
            browser.post_form(path, {"csrf_token": token, "name": "Mine"}, initiator=ACCOUNT_ORIGIN),
        ):
            assert answer.status_int == 404
            pages.add(re.sub(r"<code>[0-9a-f-]{36}</code>|\?[^\"]*ui_locales", "", answer.text))
    assert len(pages) == 1
    assert factors_of(world, eve) == ["My phone"]


@pytest.mark.parametrize("action", ["rename", "remove"])
def test_sensitive_action_requires_recent_sign_in(world: World, browser: Browser, ada: HumanUser, action: str) -> None:
    enrolment = make_factor(world, ada)
    path, token = f"/account/factors/{enrolment.id}/{action}", token_of(browser)
    world.clock.advance(minutes=10)
    for begin in (
        lambda: browser.open(path),
        lambda: browser.post_form(path, {"csrf_token": token, "name": "Mine"}, initiator=ACCOUNT_ORIGIN),
    ):
        begin()
        assert browser.sign_in_step == "password"
        assert factors_of(world, ada) == ["My phone"]
    browser.submit({"password": OLD}, form="page-form")
    assert browser.path == path


def test_data_export_requires_recent_sign_in(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/data")
    world.clock.advance(minutes=10)
    browser.open("/account/data")
    assert browser.page.status_int == 200
    browser.submit(form="page-form")
    assert browser.sign_in_step == "password"
    assert [event for event in world.audit_events(event="user.exported") if event.object_id == ada.id] == []
    browser.submit({"password": OLD}, form="page-form")
    assert browser.path == "/account/data"
    assert browser.submit(form="page-form").content_type == "application/json"


def test_remembered_browsers_are_listed_and_forgotten(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(ada.id)
        assert subject is not None
        id_, _ = services.remembered_browsers.remember(subject, "Firefox/1 Linux", timedelta(days=30))
    browser.open("/account/security")
    browser.click("Show Remembered browsers")
    check_page(browser.page, 200, "Remembered browsers")
    assert "Firefox on Linux" in browser.page.text
    token = token_of(browser)
    other = Browser(world)
    other.start_session(make_user_with_password(world))
    answer = other.post_form(
        "/account/browsers", {"csrf_token": token_of(other), "browser": id_}, initiator=ACCOUNT_ORIGIN
    )
    assert answer.status_int == 404
    browser.post_form("/account/browsers", {"csrf_token": token, "browser": id_}, initiator=ACCOUNT_ORIGIN)
    assert "The browser is asked again." in browser.page.text
    assert "No remembered browsers" in browser.page.text


# --- email change -----------------------------------------------------------------------------------------------------


class Pager(Factor):
    """A factor that these tests never prove."""

    name, label, hint, methods = "pager", "Pager", "A pager.", ("otp",)


@pytest.mark.storages("memory")
def test_email_change_requires_strongest_factor(
    world: World, browser: Browser, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password alone is not sufficient if the user has a factor."""
    monkeypatch.setitem(world.identity.protocol_registry.factors, "pager", Pager())  # type: ignore[arg-type]
    browser.open("/account/profile")
    assert "Required only to change the email address." in browser.page.text
    make_factor(world, ada)
    browser.open("/account/profile")
    assert "Required only to change the email address." not in browser.page.text
    typed = {**dict(form_of(browser).submit_fields()), "email": "eve@acme.example", "current_password": OLD}
    browser.post_form("/account/profile", typed, initiator=ACCOUNT_ORIGIN)
    assert browser.page.status_int == 422
    assert "This requires a sign-in within the last ten minutes." in browser.page.text
    assert stored(world, ada).profile.email == ada.profile.email
    # Other fields can be changed.
    browser.submit({"email": ada.profile.email, "nickname": "Ada"}, form="page-form")
    assert stored(world, ada).profile.nickname == "Ada"
