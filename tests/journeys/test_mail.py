"""Mails, through a real mail server: what is sent, to whom, when, and that responses reveal no accounts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.journeys.conftest import next_link, shape
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_text

pytestmark = pytest.mark.every_storage

OLD, NEW = "the old password of Ada", "a new and longer password"


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


def make_user_with_password(
    world: World, *, email: str = "ada@acme.example", locale: str = "", **members: Any
) -> tuple[HumanUser, str]:
    """A user with a password and an address, and the login name."""
    person = world.make_human_user(world.make_organization(**members))
    login_name = set_password(world, person, OLD)
    with world.transaction_services() as services:
        return services.users.change_profile(person.id, ChangeProfile(email=email, locale=locale)), login_name


def ask_for_reset(world: World, login_name: str, **browser: Any) -> Browser:
    asking = Browser(world, **browser)
    asking.open("/password/reset")
    asking.submit({"login_name": login_name}, form="page-form")
    return asking


# --- a forgotten password ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_forgotten_password_from_end_to_end(world: World, post: ReceivingMailServer) -> None:
    person, login_name = make_user_with_password(world)
    other_browser = Browser(world)
    other_browser.start_session(person)
    browser = ask_for_reset(world, login_name)
    assert browser.path == "/password/reset/sent"
    notice = "If an account fits what you typed and has an email address, we have sent a mail with a link there."
    assert f"{notice} It works once, for 1 hour." in browser.page.text
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.pop_only_message()
    assert post.recipients == ["ada@acme.example"]
    assert (letter["To"], letter["Subject"]) == ("ada@acme.example", "Choose a new password")
    assert letter["From"] == "Identity <no-reply@id.example.com>"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert login_name in message_text(letter)
    link = extract_one_time_link(letter)
    assert link.startswith("https://id.example.com/password/reset/")

    # Opening it does not use it up, in any browser.
    for _ in range(3):
        assert Browser(world).open(link).status_int == 200
    reader = Browser(world)
    reader.open(link)
    assert login_name in reader.page.text
    reader.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert reader.path == "/password/changed"
    assert "All your sessions are ended." in reader.page.text

    # All sessions are over, the old password too; the new one holds.
    assert other_browser.open("/account").request.path.startswith("/login/")
    reader.click("Sign in")
    reader.sign_in(login_name, OLD)
    assert "The login name or the password is wrong." in reader.page.text
    reader.submit({"password": NEW}, form="page-form")
    assert reader.path == "/account/profile"

    # The person is notified, and about the new browser, too.
    assert world.identity.senders["mail"].send_due() == 2
    assert {received_message["Subject"] for received_message in post.received_messages} == {
        "Your password was changed",
        "New sign-in to your account",
    }

    # The link is used up.
    again = Browser(world)
    assert again.open(link).status_int == 410
    assert "This link has been used or is too old. Ask for a new one." in again.page.text
    again.click("Ask for a new link")
    assert again.path == "/password/reset"


@pytest.mark.storages("memory")
def test_password_reset_does_not_reveal_accounts(world: World, post: ReceivingMailServer) -> None:
    _, known = make_user_with_password(world)
    _, without_address = make_user_with_password(world, email="")
    user, deactivated = make_user_with_password(world)
    robot = world.make_service_user_program()
    with world.transaction_services() as services:
        services.storage.users.update(replace(user, active=False, version=user.version + 1))
    names = [
        known,
        without_address,
        deactivated,
        f"{robot.user.user_name}@{robot.organization.primary_domain}",
        "nobody@acme.example",
        "Zoë & <b>",
        "x" * 5000,
    ]
    shapes = [shape(ask_for_reset(world, name)) for name in names]
    assert all(shape == shapes[0] for shape in shapes)
    # Both leave the same rows: a code and a mail, of which only one is sent.
    with world.read_only_services() as services:
        assert len(services.outbox.list_due("mail")) == len(names)
    assert world.identity.senders["mail"].send_due() == len(names)
    assert post.recipients == ["ada@acme.example"]


@pytest.mark.storages("memory")
def test_mail_limit_is_not_revealed_and_sent_links_stay_valid(world: World, post: ReceivingMailServer) -> None:
    """Others may have requested mails for the address."""
    _, login_name = make_user_with_password(world)
    shapes = [shape(ask_for_reset(world, login_name)) for _ in range(7)]
    assert all(shape == shapes[0] for shape in shapes)
    world.identity.senders["mail"].send_due()
    assert [
        Browser(world).open(extract_one_time_link(received_message)).status_int
        for received_message in post.received_messages
    ] == [200] * 5


@pytest.mark.storages("memory")
def test_reset_requests_per_network_are_limited(world: World, post: ReceivingMailServer) -> None:
    browser = Browser(world)
    for _ in range(100):
        browser.open("/password/reset")
        browser.submit({"login_name": "nobody"}, form="page-form")
        assert browser.path == "/password/reset/sent"
    browser.open("/password/reset")
    browser.submit({"login_name": "nobody"}, form="page-form")
    assert browser.page.status_int == 429
    assert int(browser.page.headers["Retry-After"]) > 0
    assert 'value="nobody"' in browser.page.text
    with world.transaction_services() as services:
        for message in services.outbox.list_due("mail"):
            services.storage.outbox.delete(message.id)


# --- another address --------------------------------------------------------------------------------------------------


def test_another_address_from_end_to_end(world: World, post: ReceivingMailServer) -> None:
    person, login_name = make_user_with_password(world)
    ask_for_reset(world, login_name)
    reset_link = next_link(world, post)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    browser.submit({"email": "ada@byron.example", "nickname": "Ada", "current_password": OLD}, form="page-form")
    assert "We have sent a link to the new address. It takes effect once you open it." in browser.page.text
    with world.read_only_services() as services:
        profile = services.users.get(person.id).profile
    # The other fields are saved; the address is not changed yet.
    assert (profile.nickname, profile.email) == ("Ada", "ada@acme.example")
    world.identity.senders["mail"].send_due()
    letter = post.pop_only_message()
    assert (letter["To"], letter["Subject"]) == ("ada@byron.example", "Confirm your email address")
    link = extract_one_time_link(letter)

    reader = browser.tab()
    assert reader.open(link).status_int == 200
    with world.read_only_services() as services:
        assert services.users.get(person.id).profile.email == "ada@acme.example"
    reader.submit(form="page-form")
    assert reader.path == "/email/confirmed"
    with world.read_only_services() as services:
        profile = services.users.get(person.id).profile
    assert (profile.email, profile.email_verified) == ("ada@byron.example", True)

    # The previous address is notified, and links that were sent there stop working.
    world.identity.senders["mail"].send_due()
    message = post.pop_only_message()
    assert (message["To"], message["Subject"]) == ("ada@acme.example", "Your email address was changed")
    assert Browser(world).open(reset_link).status_int == 410
    assert Browser(world).open(link).status_int == 410


def ask_for_address(browser: Browser, email: str) -> None:
    browser.open("/account/profile")
    browser.submit({"email": email, "current_password": OLD}, form="page-form")


@pytest.mark.storages("memory")
@pytest.mark.parametrize("signed_in", [False, True])
def test_only_the_account_verifies_its_address(world: World, post: ReceivingMailServer, signed_in: bool) -> None:
    """An attacker has a link sent to the victim, whose click would verify the address for the attacker's account."""
    stranger, login_name = make_user_with_password(world, email="mallory@evil.example")
    asking = Browser(world)
    asking.start_session(stranger)
    ask_for_address(asking, "victim@acme.example")
    link = next_link(world, post)
    victim = Browser(world)
    if signed_in:
        victim.start_session(world.make_human_user())
    victim.open(link)
    assert login_name not in victim.page.text
    victim.submit(form="page-form")
    assert victim.sign_in_step == "", "asked to sign in, and to what"
    with world.read_only_services() as services:
        profile = services.users.get(stranger.id).profile
    assert (profile.email, profile.email_verified) == ("mallory@evil.example", False)

    # A user with a session can open it again.
    victim.sign_in(login_name, OLD)
    victim.open(link)
    victim.submit(form="page-form")
    assert victim.path == "/email/confirmed"


@pytest.mark.storages("memory")
def test_last_requested_address_counts(world: World, post: ReceivingMailServer) -> None:
    person, _ = make_user_with_password(world)
    browser = Browser(world)
    browser.start_session(person)
    links = []
    for address in ("one@byron.example", "two@byron.example"):
        ask_for_address(browser, address)
        links.append(next_link(world, post))
    assert [Browser(world).open(link).status_int for link in links] == [410, 200]


@pytest.mark.storages("memory")
def test_unverified_address_is_verified_by_a_link(world: World, post: ReceivingMailServer) -> None:
    person, _ = make_user_with_password(world)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    browser.click("Confirm ada@acme.example")
    browser.submit(form="page-form")
    assert browser.path == "/account/profile"
    reader = browser.tab()
    reader.open(next_link(world, post))
    reader.submit(form="page-form")
    world.identity.senders["mail"].send_due()
    assert post.received_messages == []
    assert "ada@acme.example is confirmed." in browser.open("/account/profile").text
    assert browser.open("/account/profile/email").request.path == "/account/profile"


# --- another browser --------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_new_browser_is_notified_by_mail(world: World, post: ReceivingMailServer) -> None:
    person, login_name = make_user_with_password(world)
    sender = world.identity.senders["mail"]

    def sign_in(browser: Browser) -> None:
        browser.open("/account")
        browser.sign_in(login_name, OLD)
        assert browser.path == "/account/profile"
        sender.send_due()

    laptop, phone = Browser(world), Browser(world, user_agent="<b>Firefox/1 Windows</b>")
    sign_in(laptop)
    assert post.received_messages == [], "the first one of all is no news"
    sign_in(phone)
    letter = post.pop_only_message()
    assert (letter["To"], letter["Subject"]) == ("ada@acme.example", "New sign-in to your account")
    assert "Firefox on Windows" in message_text(letter)
    assert "https://id.example.com/account/activity/not-me" in message_text(letter)
    with world.transaction_services() as services:
        services.users.end_sessions(person.id, principal=Principal.OPERATOR)
    for browser in (laptop, phone):
        sign_in(browser)
    assert post.received_messages == [], "both are known by now"


# --- languages --------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
@pytest.mark.parametrize(
    ("locale", "text", "subject"),
    [
        ("de-CH", "Öffnen Sie diesen Link für ein neues Passwort:", "Neues Passwort wählen"),
        ("zh_CN", "打开此链接:", "设置新密码"),
    ],
)
def test_texts_arrive_in_any_script(
    make_world: WorldFactory, post: ReceivingMailServer, locale: str, text: str, subject: str, tmp_path: Path
) -> None:
    """In the recipient's language, not in that of the requester."""
    catalog = tmp_path / locale[:2] / "LC_MESSAGES"
    catalog.mkdir(parents=True)
    (catalog / "identity.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        f'msgid "Choose a new password"\nmsgstr "{subject}"\n\n'
        f'msgid "Open this link to choose one:"\nmsgstr "{text}"\n',
        "utf-8",
    )
    world = make_world(**post.settings)
    world.app.registry.pages.catalogs.folders.insert(0, tmp_path)
    _, login_name = make_user_with_password(world, locale=locale)
    ask_for_reset(world, login_name, languages="fr")
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.pop_only_message()
    assert letter["Subject"] == subject
    assert text in message_text(letter)
    assert Browser(world).open(extract_one_time_link(letter)).status_int == 200
    # On the way it is 7-bit, in lines that every server takes (RFC 5321 §4.5.3.1.6).
    assert letter.as_bytes().isascii()
    assert max(map(len, letter.as_bytes().splitlines())) <= 998
