"""Security 19.3, 19.4: a concurrently used code is accepted once, and attempts are counted before verification."""

import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyotp
import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.password_hashing import PasswordHasher
from identity.plugins.recovery_codes.factor import code_prefix, generate_codes, normalize_code
from identity.plugins.totp import pages as totp_pages
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser, opened

pytestmark = pytest.mark.every_storage

TOGETHER = 6


def enrol_factor(world: World, person: LoginUser, factor: str, value: dict[str, Any]) -> None:
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.factors.enrol(subject, factor, value)


def at_the_page(world: World, party: RelyingParty, person: LoginUser, factor: str) -> Browser:
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    if browser.sign_in_step != factor:
        browser.click("Use another method")
        browser.submit(button=("factor", factor))
    assert browser.sign_in_step == factor
    return browser


def at_once(browsers: list[Browser], send: Callable[[Browser], Any]) -> Counter[int]:
    """Response statuses of concurrent submissions; 0 is a completed sign-in."""
    start = Barrier(len(browsers))

    def run(browser: Browser) -> int:
        start.wait()
        send(browser)
        return 0 if browser.external_redirect is not None else int(browser.page.status_int)

    with ThreadPoolExecutor(len(browsers)) as pool:
        return Counter(pool.map(run, browsers))


def test_concurrent_totp_code_is_accepted_once(isolated_world: World) -> None:
    world, secret = isolated_world, pyotp.random_base32()
    person, party = LoginUser(world), RelyingParty.register(world)
    enrol_factor(world, person, "totp", {"secret": secret, "step": 0})
    browsers = [at_the_page(world, party, person, "totp") for _ in range(4)]
    code = pyotp.TOTP(secret).at(world.clock())
    outcomes = at_once(browsers, lambda browser: browser.submit({"code": code}))
    assert outcomes[0] == 1, outcomes
    assert not [status for status in outcomes if status >= 500]


@pytest.mark.thorough
def test_concurrent_recovery_code_is_accepted_once(isolated_world: World) -> None:
    world, codes = isolated_world, generate_codes()
    person, party = LoginUser(world), RelyingParty.register(world)
    enrol_factor(world, person, "totp", {"secret": pyotp.random_base32(), "step": 0})
    hasher: PasswordHasher = world.identity.process_state.hasher
    enrol_factor(
        world,
        person,
        "recovery_codes",
        {"codes": {code_prefix(code): hasher.hash(normalize_code(code)) for code in codes}},
    )
    browsers = [at_the_page(world, party, person, "recovery_codes") for _ in range(4)]
    outcomes = at_once(browsers, lambda browser: browser.submit({"code": codes[0]}))
    assert outcomes[0] == 1, outcomes
    (enrolment,) = world.operator_services.factors.list_enrolments(person.user.id, "recovery_codes")
    assert len(enrolment.value["codes"]) == len(codes) - 1
    assert len(world.audit_events(event="factor.used")) == 1


@pytest.mark.thorough
def test_concurrent_email_code_is_accepted_once(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"})
    person, party = LoginUser(world), RelyingParty.register(world)
    with world.transaction_services() as services:
        link = services.users.issue_email_link(person.user.id, "ada@navy.example")
        services.users.verify_email(link.rsplit("/", 1)[1], person.user.id)
    enrol_factor(world, person, "email_code", {})
    first = at_the_page(world, party, person, "email_code")
    with world.read_only_services() as services:
        mails = [
            services.outbox.unseal(message)
            for message in services.storage.outbox.list_pending("mail", world.clock(), 10)
        ]
    (code,) = [
        found[1] for mail in mails if (found := re.search(r"^(\d{6})$", json.loads(mail).get("text", ""), re.MULTILINE))
    ]
    tabs = [first, *(first.tab() for _ in range(3))]
    for tab in tabs[1:]:
        tab.open(first.url)
    outcomes = at_once(tabs, lambda browser: browser.submit({"code": code}))
    # The others see that the code is used or the sign-in is done, or are redirected.
    assert outcomes[0] >= 1, outcomes
    assert not [status for status in outcomes if status >= 500]
    assert len(world.audit_events(event="session.started")) == 1


@pytest.mark.thorough
def test_concurrent_guesses_are_rate_limited(make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three accounts with a hundred codes each: five per account are verified before the rate limit applies."""
    world = make_world(**{"identity.attempts_per_address": "0"})
    party, looked_at = RelyingParty.register(world), Counter[str]()
    browsers: list[Browser] = []
    for _ in range(3):
        person, secret = LoginUser(world), pyotp.random_base32()
        enrol_factor(world, person, "totp", {"secret": secret, "step": 0})
        browsers += [at_the_page(world, party, person, "totp") for _ in range(TOGETHER // 3)]
    real = totp_pages.verify_code

    def counted(secret: str, *rest: Any, **more: Any) -> int | None:
        looked_at[secret] += 1
        real(secret, *rest, **more)
        return None

    monkeypatch.setattr(totp_pages, "verify_code", counted)

    def guess(browser: Browser) -> None:
        page = browser.page
        for number in range(100 // (TOGETHER // 3)):
            browser.answers = [page]
            browser.submit({"code": f"{number:06}"})
            assert browser.page.status_int in (422, 429)

    at_once(browsers, guess)
    assert len(looked_at) == 3
    assert set(looked_at.values()) == {FREE_ATTEMPTS}, looked_at
