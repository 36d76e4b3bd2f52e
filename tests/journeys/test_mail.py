"""Mails, through a real mail server: what is sent, to whom, when, and what nobody can tell from it."""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.domain.users import HumanUser
from identity.mailer import MailDelivery, Mailer
from identity.services.commands.users import ChangeProfile
from identity.services.mails import Mail
from identity.services.outbox import Undeliverable
from identity.settings import SmtpSecurity, SmtpSettings
from identity.testing.browser import Browser, give_password
from identity.testing.clock import RunningClock
from identity.testing.fixtures import MakeWorld, Worlds
from identity.testing.post import PASSWORD as POST_PASSWORD
from identity.testing.post import USER as POST_USER
from identity.testing.post import Post, a_certificate, link_in, text_of
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from identity.worker import Job, Worker

pytestmark = pytest.mark.every_storage

OLD, NEW = "the old password of Ada", "a new and longer password"


@pytest.fixture
def world(worlds: Worlds, storage_name: str, post: Post) -> Iterator[World]:
    """Its clock only goes forward: who may send mails, and since when, is noted with the time."""
    world = worlds.shared(storage_name, post.settings)
    yield world
    world.clock.advance(hours=2)
    while world.identity.senders["mail"].run() is not None:
        world.clock.advance(hours=2)


def a_person(
    world: World, *, email: str = "ada@acme.example", locale: str = "", **members: Any
) -> tuple[HumanUser, str]:
    """Somebody with a password and an address, and the login name."""
    person = world.a_person(world.an_organization(**members))
    login_name = give_password(world, person, OLD)
    with world.transaction() as services:
        return services.users.change_profile(person.id, ChangeProfile(email=email, locale=locale)), login_name


def ask_for_reset(world: World, login_name: str, **browser: Any) -> Browser:
    asking = Browser(world, **browser)
    asking.open("/password/reset")
    asking.submit({"login_name": login_name}, form="page-form")
    return asking


def shape(browser: Browser) -> list[Any]:
    """All that a stranger sees of the answers, but for what is random in every one."""
    seen = []
    for answer in browser.answers:
        headers = {name: value for name, value in answer.headers.items() if name != "Set-Cookie"}
        cookies = [one.partition("=")[0] for one in answer.headers.getall("Set-Cookie")]
        if "Location" in headers:
            headers["Location"] = mask(headers["Location"])
        seen.append((answer.status_int, headers, cookies, mask(answer.text)))
    return seen


def mask(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|value=\"[A-Za-z0-9_-]{43}\"", "…", text)


# --- a forgotten password ---------------------------------------------------------------------------------------------


def test_a_forgotten_password_from_end_to_end(world: World, post: Post) -> None:
    person, login_name = a_person(world)
    elsewhere = Browser(world)
    elsewhere.start_session(person)
    browser = ask_for_reset(world, login_name)
    assert browser.path == "/password/reset/sent"
    assert "If this account exists and has an email address, we have sent a link. It works once, for 1 hour." in (
        browser.page.text
    )
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.only()
    assert post.recipients == ["ada@acme.example"]
    assert (letter["To"], letter["Subject"]) == ("ada@acme.example", "Choose a new password")
    assert letter["From"] == "Identity <no-reply@id.example.com>"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert login_name in text_of(letter)
    link = link_in(letter)
    assert link.startswith("https://id.example.com/password/reset/")

    # Whoever opens it uses nothing up, in any browser.
    for _ in range(3):
        assert Browser(world).open(link).status_int == 200
    reader = Browser(world)
    reader.open(link)
    assert login_name in reader.page.text
    reader.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert reader.path == "/password/changed"
    assert "All your sessions are ended." in reader.page.text

    # All sessions are over, the old password too; the new one holds.
    assert elsewhere.open("/account").request.path.startswith("/login/")
    reader.click("Sign in")
    reader.sign_in(login_name, OLD)
    assert "The login name or the password is wrong." in reader.page.text
    reader.submit({"password": NEW}, form="page-form")
    assert reader.path == "/account/profile"

    # And the person is told of it.
    assert world.identity.senders["mail"].send_due() == 1
    assert post.only()["Subject"] == "Your password was changed"

    # It worked once.
    again = Browser(world)
    assert again.open(link).status_int == 410
    assert "This link was used or is too old. Ask for a new one." in again.page.text
    again.click("Ask for a new link")
    assert again.path == "/password/reset"


@pytest.mark.storages("memory")
def test_the_link_holds_for_an_hour(world: World, post: Post) -> None:
    _, login_name = a_person(world)
    ask_for_reset(world, login_name)
    world.identity.senders["mail"].send_due()
    link = link_in(post.only())
    world.clock.advance(3599)
    browser = Browser(world)
    assert browser.open(link).status_int == 200
    world.clock.advance(1)
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.page.status_int == 410


@pytest.mark.storages("memory")
def test_of_two_readers_of_one_link_one_succeeds(world: World, post: Post) -> None:
    _, login_name = a_person(world)
    ask_for_reset(world, login_name)
    world.identity.senders["mail"].send_due()
    link = link_in(post.only())
    first, second = Browser(world), Browser(world)
    for browser in (first, second):
        browser.open(link)
    first.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    second.submit({"new_password": NEW + "!", "new_password_again": NEW + "!"}, form="page-form")
    assert (first.path, second.page.status_int) == ("/password/changed", 410)


@pytest.mark.storages("memory")
def test_nobody_learns_whether_an_account_exists(world: World, post: Post) -> None:
    _, known = a_person(world)
    _, without_address = a_person(world, email="")
    gone, deactivated = a_person(world)
    robot = world.a_robot()
    with world.transaction() as services:
        services.storage.users.update(replace(gone, active=False, version=gone.version + 1))
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
    assert all(one == shapes[0] for one in shapes)
    # Each left the same behind: a code and a letter, of which one goes out.
    with world.reading() as services:
        assert len(services.outbox.due("mail")) == len(names)
    assert world.identity.senders["mail"].send_due() == len(names)
    assert post.recipients == ["ada@acme.example"]


@pytest.mark.storages("memory")
def test_one_person_is_written_to_five_times_an_hour(world: World, post: Post) -> None:
    _, login_name = a_person(world)
    shapes = [shape(ask_for_reset(world, login_name)) for _ in range(7)]
    assert all(one == shapes[0] for one in shapes)
    world.identity.senders["mail"].send_due()
    links = [link_in(one) for one in post.letters]
    assert len(links) == 5
    # Strangers may ask as well: what was sent before stays good.
    assert all(Browser(world).open(link).status_int == 200 for link in links)
    world.clock.advance(hours=1)
    ask_for_reset(world, login_name)
    world.identity.senders["mail"].send_due()
    assert len(post.letters) == 6


@pytest.mark.storages("memory")
def test_one_address_cannot_ask_for_ever(world: World, post: Post) -> None:
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
    with world.transaction() as services:
        for message in services.outbox.due("mail"):
            services.storage.outbox.remove(message.id)


# --- registration -----------------------------------------------------------------------------------------------------

TYPED = {
    "given_name": "Grace",
    "family_name": "Hopper",
    "password": NEW,
    "password_again": NEW,
}


def register(world: World, party: RelyingParty, **fields: str) -> tuple[Browser, Any]:
    browser = Browser(world)
    asked = party.ask(prompt="create")
    browser.open(asked.url, by=party.origin)
    browser.submit(TYPED | fields, form="page-form")
    return browser, asked


def test_registration_from_end_to_end(world: World, post: Post) -> None:
    party = RelyingParty.of(world)
    browser, asked = register(world, party, user_name="grace", email="grace@navy.example")
    assert "We have sent you a link to finish." in browser.page.text
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.only()
    assert (letter["To"], letter["Subject"]) == ("grace@navy.example", "Finish your account")
    # Nothing that a stranger typed: it could be anybody's address.
    assert "Grace" not in text_of(letter)
    link = link_in(letter)
    with world.reading() as services:
        assert services.storage.users.find_by_bare_name("grace", first_in="") is None

    # In the same browser the sign-in goes on, to the application that it was begun for.
    page = browser.tab()
    page.open(link)
    assert "grace@navy.example" in page.page.text
    answer = page.submit(form="page-form")
    tokens = party.tokens(answer, asked)
    with world.reading() as services:
        user = services.users.get(tokens.claims["sub"])
    assert (user.user_name, user.profile.email, user.profile.email_verified) == ("grace", "grace@navy.example", True)
    assert Browser(world).open(link).status_int == 410


#: What somebody types who opens the link in another browser than the one in which it was asked for.
OWN = {
    "user_name": "hopper",
    "given_name": "Murray",
    "family_name": "Hopper",
    "password": "and my own password",
    "password_again": "and my own password",
}


def test_what_a_stranger_typed_is_gone_with_the_link_of_whoever_reads_the_mail(world: World, post: Post) -> None:
    """Registered with another person's address, by somebody who knows the password: the owner opens the link."""
    party = RelyingParty.of(world)
    stranger, _ = register(world, party, user_name="mallory", email="grace@navy.example")
    world.identity.senders["mail"].send_due()
    link = link_in(post.only())
    owner = Browser(world)
    owner.open(link)
    assert "grace@navy.example" in owner.page.text
    assert not [word for word in ("Grace", "Hopper", "mallory") if word in owner.page.text]
    for missing in OWN:
        owner.submit({**OWN, missing: ""}, form="page-form")
        assert owner.page.status_int == 422, missing
    owner.submit(OWN, form="page-form")
    # The account is made: its password is asked, so that it is known to be remembered.
    assert owner.path.endswith("/password")
    owner.submit({"password": OWN["password"]}, form="page-form")
    assert owner.path == "/account/profile"
    with world.reading() as services:
        assert services.storage.users.find_by_bare_name("mallory", first_in="") is None
        subject = services.storage.users.find_by_bare_name("hopper", first_in="")
    assert subject is not None
    assert isinstance(subject.user, HumanUser)
    profile = subject.user.profile
    assert (profile.given_name, profile.family_name) == ("Murray", "Hopper")
    assert (profile.email, profile.email_verified) == ("grace@navy.example", True)

    # Neither the password nor the sign-in of the stranger opens the account.
    stranger.open("/login")
    stranger.sign_in(subject.login_name, NEW)
    assert stranger.path.endswith("/password")
    stranger.open("/account")
    assert not stranger.session_cookies
    assert stranger.open(link).status_int == 410


@pytest.mark.storages("memory")
def test_the_browser_of_a_registration_that_is_over_is_another_one(world: World, post: Post) -> None:
    party = RelyingParty.of(world)
    browser, _ = register(world, party, user_name="grace", email="grace@navy.example")
    world.identity.senders["mail"].send_due()
    link = link_in(post.only())
    world.clock.advance(minutes=31)
    browser.open(link)
    assert "password" in browser.form("page-form").fields
    browser.submit(OWN, form="page-form")
    assert browser.path.endswith("/password")


@pytest.mark.storages("memory")
def test_registration_tells_nobody_who_is_known(world: World, post: Post) -> None:
    party = RelyingParty.of(world)
    with world.reading() as services:
        client = services.applications.find_client(party.client_id)
    assert client is not None
    person = world.a_person(client.organization)
    with world.transaction() as services:
        services.users.change_profile(person.id, ChangeProfile(email="Ada@acme.example"))
    known, _ = register(world, party, user_name="ada2", email="ada@ACME.example")
    unknown, _ = register(world, party, user_name="eve", email="eve@acme.example")
    taken, _ = register(world, party, user_name=person.user_name, email="eve2@acme.example")
    assert shape(known) == shape(unknown) == shape(taken)
    assert len({len(one.cookies) for one in (known, unknown, taken)}) == 1
    world.identity.senders["mail"].send_due()
    letters = {str(one["To"]): one for one in post.letters}
    assert letters.keys() == {"ada@ACME.example", "eve@acme.example", "eve2@acme.example"}
    told = text_of(letters["ada@ACME.example"])
    assert letters["ada@ACME.example"]["Subject"] == "You have an account already"
    assert f"{person.user_name}@{client.organization.primary_domain}" in told
    assert "https://id.example.com/password/reset\n" in told

    # A user name that is taken is asked again behind the link, and the link stays good meanwhile.
    browser = taken.tab()
    browser.open(link_in(letters["eve2@acme.example"]))
    assert browser.form("page-form")["user_name"].value == person.user_name
    browser.submit(form="page-form")
    assert browser.page.status_int == 422
    assert "Choose another user name; this one cannot be used." in browser.page.text
    browser.submit({"user_name": "e v e"}, form="page-form")
    assert browser.page.status_int == 422
    assert browser.form("page-form")["user_name"].value == "e v e"
    browser.submit({"user_name": "eve2"}, form="page-form")
    assert browser.left_for is not None


@pytest.mark.storages("memory")
def test_registration_that_was_closed_meanwhile(world: World, post: Post) -> None:
    party = RelyingParty.of(world)
    browser, _ = register(world, party, user_name="grace", email="grace@navy.example")
    world.identity.senders["mail"].send_due()
    browser.open(link_in(post.only()))
    with world.transaction() as services:
        client = services.applications.find_client(party.client_id)
        assert client is not None
        organization = services.storage.organizations.find(client.organization.id)
        assert organization is not None
        services.storage.organizations.update(
            replace(organization, registration=False, version=organization.version + 1)
        )
    browser.submit(form="page-form")
    assert browser.page.status_int == 403
    assert "Registration is closed" in browser.page.text


@pytest.mark.storages("memory")
def test_an_address_is_written_to_five_times_an_hour(world: World, post: Post) -> None:
    party = RelyingParty.of(world)
    for number in range(7):
        register(world, party, user_name=f"mallory{number}", email="victim@acme.example")
    world.identity.senders["mail"].send_due()
    assert len(post.letters) == 5


# --- another address --------------------------------------------------------------------------------------------------


def test_another_address_from_end_to_end(world: World, post: Post) -> None:
    person, login_name = a_person(world)
    ask_for_reset(world, login_name)
    world.identity.senders["mail"].send_due()
    reset_link = link_in(post.only())
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    browser.submit({"email": "ada@byron.example", "nickname": "Ada", "current_password": OLD}, form="page-form")
    assert "We have sent a link to the new address. It becomes yours once you open it." in browser.page.text
    with world.reading() as services:
        profile = services.users.get(person.id).profile
    # The rest is saved, the address is not theirs yet.
    assert (profile.nickname, profile.email) == ("Ada", "ada@acme.example")
    world.identity.senders["mail"].send_due()
    letter = post.only()
    assert (letter["To"], letter["Subject"]) == ("ada@byron.example", "Confirm your email address")
    link = link_in(letter)

    reader = browser.tab()
    assert reader.open(link).status_int == 200
    with world.reading() as services:
        assert services.users.get(person.id).profile.email == "ada@acme.example"
    reader.submit(form="page-form")
    assert reader.path == "/email/confirmed"
    with world.reading() as services:
        profile = services.users.get(person.id).profile
    assert (profile.email, profile.email_verified) == ("ada@byron.example", True)

    # Whoever had the address until now is told, and what was sent there opens nothing any more.
    world.identity.senders["mail"].send_due()
    told = post.only()
    assert (told["To"], told["Subject"]) == ("ada@acme.example", "Your email address was changed")
    assert Browser(world).open(reset_link).status_int == 410
    assert Browser(world).open(link).status_int == 410


@pytest.mark.storages("memory")
@pytest.mark.parametrize("signed_in", [False, True])
def test_an_address_is_confirmed_by_the_account_alone(world: World, post: Post, signed_in: bool) -> None:
    """A stranger has a link sent to the victim, whose click is to make the address look like the stranger's."""
    stranger, login_name = a_person(world, email="mallory@evil.example")
    asking = Browser(world)
    asking.start_session(stranger)
    asking.open("/account/profile")
    asking.submit({"email": "victim@acme.example", "current_password": OLD}, form="page-form")
    world.identity.senders["mail"].send_due()
    link = link_in(post.only())
    victim = Browser(world)
    if signed_in:
        victim.start_session(world.a_person())
    victim.open(link)
    assert login_name not in victim.page.text
    victim.submit(form="page-form")
    assert victim.step == "", "asked to sign in, and to what"
    with world.reading() as services:
        profile = services.users.get(stranger.id).profile
    assert (profile.email, profile.email_verified) == ("mallory@evil.example", False)

    # Whoever has signed in there opens it again.
    victim.sign_in(login_name, OLD)
    victim.open(link)
    victim.submit(form="page-form")
    assert victim.path == "/email/confirmed"


@pytest.mark.storages("memory")
def test_the_last_address_that_was_asked_for_counts(world: World, post: Post) -> None:
    person, _ = a_person(world)
    browser = Browser(world)
    browser.start_session(person)
    links = []
    for address in ("one@byron.example", "two@byron.example"):
        browser.open("/account/profile")
        browser.submit({"email": address, "current_password": OLD}, form="page-form")
        world.identity.senders["mail"].send_due()
        links.append(link_in(post.only()))
    assert [Browser(world).open(link).status_int for link in links] == [410, 200]


@pytest.mark.storages("memory")
def test_an_address_that_was_never_proved_is_proved_by_a_link(world: World, post: Post) -> None:
    person, _ = a_person(world)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    browser.click("Confirm ada@acme.example")
    browser.submit(form="page-form")
    assert browser.path == "/account/profile"
    world.identity.senders["mail"].send_due()
    reader = browser.tab()
    reader.open(link_in(post.only()))
    reader.submit(form="page-form")
    world.identity.senders["mail"].send_due()
    assert post.letters == []
    assert "ada@acme.example is confirmed." in browser.open("/account/profile").text
    assert browser.open("/account/profile/email").request.path == "/account/profile"


# --- languages --------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
@pytest.mark.parametrize(
    ("locale", "words", "subject"),
    [
        ("de-CH", "Öffnen Sie diesen Link für ein neues Passwort:", "Neues Passwort wählen"),
        ("zh_CN", "打开此链接:", "设置新密码"),
    ],
)
def test_texts_arrive_in_any_script(
    make_world: MakeWorld, post: Post, locale: str, words: str, subject: str, tmp_path: Path
) -> None:
    """In the reader's language, whatever the one who asks speaks."""
    catalog = tmp_path / locale[:2] / "LC_MESSAGES"
    catalog.mkdir(parents=True)
    (catalog / "identity.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        f'msgid "Choose a new password"\nmsgstr "{subject}"\n\n'
        f'msgid "Open this link to choose one:"\nmsgstr "{words}"\n',
        "utf-8",
    )
    world = make_world(**post.settings)
    world.app.registry.pages.catalogs.folders.insert(0, tmp_path)
    _, login_name = a_person(world, locale=locale)
    ask_for_reset(world, login_name, languages="fr")
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.only()
    assert letter["Subject"] == subject
    assert words in text_of(letter)
    assert Browser(world).open(link_in(letter)).status_int == 200
    # On the way it is 7-bit, in lines that every server takes (RFC 5321 §4.5.3.1.6).
    assert letter.as_bytes().isascii()
    assert max(map(len, letter.as_bytes().splitlines())) <= 998


# --- the mail server --------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_a_server_that_is_down_gets_it_later_and_once(make_world: MakeWorld, caplog: pytest.LogCaptureFixture) -> None:
    post = Post()
    world = make_world(**post.settings)
    _, login_name = a_person(world)
    caplog.set_level(logging.DEBUG)
    browser = ask_for_reset(world, login_name)
    assert browser.path == "/password/reset/sent"
    assert world.identity.senders["mail"].send_due() == 0
    assert world.identity.mailer.check() is not None
    post.open()
    assert world.identity.mailer.check() is None
    assert world.identity.senders["mail"].send_due() == 0, "it waits for its next try"
    world.clock.advance(10)
    assert world.identity.senders["mail"].send_due() == 1
    world.clock.advance(hours=1)
    assert world.identity.senders["mail"].send_due() == 0
    link = link_in(post.only())
    ours = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("identity"))
    assert "could not be sent: ConnectionRefusedError" in ours
    assert link.rpartition("/")[2] not in ours
    assert "ada@acme.example" not in ours
    post.close()


@pytest.mark.storages("memory")
def test_the_worker_sends_it_although_nobody_asks_anything_more(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request, then silence: the mail goes out, also if the server first is down."""
    monkeypatch.setattr(MailDelivery, "first_delay", timedelta(seconds=1))
    post = Post()
    world = make_world(**post.settings)
    world.identity.clock = RunningClock()
    _, login_name = a_person(world)
    tried = []

    def empty() -> timedelta | None:
        again = world.identity.senders["mail"].run()
        tried.append(again)
        if len(tried) == 1:
            post.open()
        return again

    world.identity.worker = Worker([Job("outbox: mail", timedelta(minutes=1), empty)])
    ask_for_reset(world, login_name)
    post.arrived.wait()
    world.identity.worker.stop()
    assert tried[0] is not None
    assert link_in(post.only())
    post.close()


@pytest.mark.storages("memory")
def test_what_was_aborted_is_never_sent(world: World, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    person, _ = a_person(world)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    page = browser.tab()
    page.open("/account/profile")
    page.submit({"nickname": "Countess"}, form="page-form")
    browser.submit({"email": "ada@byron.example", "current_password": OLD}, form="page-form")
    assert browser.page.status_int == 409
    assert world.identity.senders["mail"].send_due() == 0
    assert post.letters == []


@pytest.mark.storages("memory")
def test_a_refusal_for_good_is_told_from_one_for_now(world: World, post: Post) -> None:
    mail = Mail(to="nobody@acme.example", subject="Hello", text="Hello\n")
    post.answer = "550 5.1.1 no such user"
    with pytest.raises(Undeliverable):
        world.identity.mailer.send(mail)
    post.answer = "451 4.3.0 later"
    with pytest.raises(Exception, match="later"):
        world.identity.mailer.send(mail)


def settings_of(post: Post, **members: Any) -> SmtpSettings:
    known = post.settings
    return SmtpSettings(
        host="localhost",
        port=post.port,
        security=SmtpSecurity(known["identity.smtp.security"]),
        sender="no-reply@id.example.com",
        **members,
    )


HELLO = Mail(to="ada@acme.example", subject="Hello", text="Hello\n")


class TestProtected:
    """STARTTLS with a name and password, and TLS from the first byte."""

    @pytest.fixture
    def password_file(self, tmp_path: Path) -> Path:
        file = tmp_path / "password"
        file.write_text(f"{POST_PASSWORD}\n")
        return file

    @pytest.mark.parametrize("kind", ["starttls", "tls"])
    def test_the_server_proves_who_it_is(
        self, tmp_path: Path, password_file: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        certificate, context = a_certificate(tmp_path)
        post = Post(**{kind: context})
        post.open()
        given = {"user": POST_USER, "password_file": password_file} if kind == "starttls" else {}
        mailer = Mailer(settings_of(post, **given))
        problem = mailer.check()
        assert problem is not None
        assert "SSLCertVerificationError" in problem
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert mailer.check() is None
        mailer.send(HELLO)
        assert post.only()["To"] == "ada@acme.example"
        post.close()

    def test_a_wrong_password_is_told(
        self, tmp_path: Path, password_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate, context = a_certificate(tmp_path)
        post = Post(starttls=context)
        post.open()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        password_file.write_text("another password")
        mailer = Mailer(settings_of(post, user=POST_USER, password_file=password_file))
        problem = mailer.check()
        assert problem is not None
        assert "SMTPAuthenticationError" in problem
        assert "another password" not in problem
        missing = Mailer(settings_of(post, user=POST_USER, password_file=tmp_path / "none"))
        assert "identity.smtp.password_file" in str(missing.check())
        post.close()

    def test_nothing_is_sent_in_the_clear_where_it_is_not_to_be(self, post: Post) -> None:
        """A server that offers no STARTTLS gets nothing."""
        mailer = Mailer(replace(settings_of(post), security=SmtpSecurity.STARTTLS))
        assert "SMTPNotSupportedError" in str(mailer.check())
        with pytest.raises(Exception, match="STARTTLS"):
            mailer.send(HELLO)
        assert post.letters == []
