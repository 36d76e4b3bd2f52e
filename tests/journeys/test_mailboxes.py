"""Which links prove control of a mailbox, and what typing an address allows."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.audit import ActorKind
from identity.domain.organizations import Organization
from identity.domain.users import EmailVerifier, HumanUser
from identity.pages import transactional_mails
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.journeys.conftest import shape
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_text

pytestmark = pytest.mark.every_storage

NEW = "a new and longer password"
_NUMBERS = count()


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


@pytest.fixture(autouse=True)
def nothing_waits(world: World, post: ReceivingMailServer) -> None:
    """Shared worlds keep queued mails of earlier tests."""
    world.identity.senders["mail"].send_due()
    post.received_messages.clear()
    post.recipients.clear()


def make_email_address() -> str:
    return f"ada{next(_NUMBERS)}@mailbox.example"


def make_user_with_password(
    world: World,
    email: str,
    *,
    email_verifier: EmailVerifier | None = EmailVerifier.OWN_LINK,
    organization: Organization | None = None,
    **changes: Any,
) -> tuple[HumanUser, str]:
    """A user with a password, and the login name; ``email_verifier`` is how the address was verified."""
    person = world.make_human_user(organization)
    login_name = set_password(world, person)
    with world.transaction_services() as services:
        stored = services.users.get(person.id)
        profile = replace(stored.profile, email=email, email_verified=email_verifier is not None)
        changed = {"profile": profile, "email_verified_by": email_verifier, "version": stored.version + 1} | changes
        services.storage.users.update(replace(stored, **changed))
        return services.users.get(person.id), login_name


def verifier_of(world: World, person: HumanUser) -> EmailVerifier | None:
    with world.read_only_services() as services:
        stored = services.users.get(person.id)
    assert stored.profile.email_verified is (stored.email_verified_by is not None)
    return stored.email_verified_by


def sent(world: World, post: ReceivingMailServer) -> list[Any]:
    """The messages received, in order."""
    world.identity.senders["mail"].send_due()
    letters = list(post.received_messages)
    post.received_messages.clear()
    return letters


def use(world: World, link: str) -> None:
    reader = Browser(world)
    reader.open(link)
    reader.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert reader.path == "/password/changed", reader.page


def owner(world: World, organization: Organization) -> Browser:
    manager = world.make_human_user(organization)
    world.assign_manager_role(manager, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(manager)
    return browser


def invited(world: World, browser: Browser, organization: Organization, email: str) -> HumanUser:
    browser.open(f"/console/organizations/{organization.id}/users/new")
    typed = {"user_name": f"new{next(_NUMBERS)}", "given_name": "Ada", "family_name": "L", "email": email}
    browser.submit(typed, form="page-form")
    with world.read_only_services() as services:
        subjects = services.storage.users.find_by_email(organization.id, email)
    user = subjects[-1].user
    assert isinstance(user, HumanUser)
    return user


# --- links ------------------------------------------------------------------------------------------------------------


def test_used_invitation_verifies_the_address(world: World, post: ReceivingMailServer) -> None:
    organization, address = world.make_organization(), make_email_address()
    browser = owner(world, organization)
    person = invited(world, browser, organization, address)
    [letter] = sent(world, post)
    link = extract_one_time_link(letter)
    assert link.rpartition("/")[2] not in browser.page.text
    Browser(world).open(link)
    assert verifier_of(world, person) is None, "looking proves nothing"
    use(world, link)
    assert verifier_of(world, person) is EmailVerifier.OWN_LINK
    browser.open(f"/console/users/{person.id}")
    assert "Confirmed" in browser.page.text
    assert "Not confirmed" not in browser.page.text
    assert [event.event for event in world.audit_events(object_id=person.id)].count("email.verified") == 1


def test_mailed_password_link_of_a_manager_verifies_the_address(world: World, post: ReceivingMailServer) -> None:
    organization = world.make_organization()
    person, _ = make_user_with_password(
        world, make_email_address(), email_verifier=EmailVerifier.PROVIDER, organization=organization
    )
    browser = owner(world, organization)
    browser.open(f"/console/users/{person.id}/password-link")
    browser.submit(form="page-form")
    assert f"We have sent the link to {person.profile.email}." in browser.page.text
    [letter] = sent(world, post)
    assert extract_one_time_link(letter).rpartition("/")[2] not in browser.page.text
    use(world, extract_one_time_link(letter))
    assert verifier_of(world, person) is EmailVerifier.OWN_LINK


def _handed_out_by_console(world: World, organization: Organization, person: HumanUser) -> str:
    browser = owner(world, organization)
    browser.open(f"/console/users/{person.id}/link-to-hand-over")
    browser.submit(form="page-form")
    [link] = set(re.findall(r"https://[^\s\"<]+/password/reset/[\w-]{43}", browser.page.text))
    return link


def _handed_out_by_api(world: World, organization: Organization, person: HumanUser) -> str:
    robot = world.make_service_user_program(organization)
    world.assign_manager_role(robot, "ORG_OWNER")
    answer = world.client.call_management_api(f"/users/{person.id}/password-link", robot.management_token(), "POST")
    return str(answer.json["password_link"])


def _handed_out_by_command(world: World, _: Organization, person: HumanUser) -> str:
    with world.transaction_services() as services:
        return services.passwords.issue_reset_link(person.id)


@pytest.mark.storages("memory")
@pytest.mark.parametrize("make", [_handed_out_by_console, _handed_out_by_api, _handed_out_by_command])
@pytest.mark.parametrize("verifier", [None, EmailVerifier.EARLIER])
def test_link_shown_to_a_manager_does_not_verify_the_address(
    world: World, post: ReceivingMailServer, make: Callable[..., str], verifier: EmailVerifier | None
) -> None:
    organization = world.make_organization()
    person, _ = make_user_with_password(world, make_email_address(), email_verifier=verifier, organization=organization)
    link = make(world, organization, person)
    assert sent(world, post) == []
    use(world, link)
    assert verifier_of(world, person) is verifier


@pytest.mark.storages("memory")
def test_mailed_link_does_not_verify_another_address(world: World, post: ReceivingMailServer) -> None:
    organization, first = world.make_organization(), make_email_address()
    person = invited(world, owner(world, organization), organization, first)
    [letter] = sent(world, post)
    with world.transaction_services() as services:
        services.users.change(person.id, ChangeHumanUser(email=make_email_address()), principal=Principal.OPERATOR)
        services.users.change(person.id, ChangeHumanUser(email=first), principal=Principal.OPERATOR)
    assert Browser(world).open(extract_one_time_link(letter)).status_int == 410
    assert verifier_of(world, person) is None


@pytest.mark.storages("memory")
def test_undeliverable_link_is_not_shown(world: World, post: ReceivingMailServer) -> None:
    organization, address = world.make_organization(), make_email_address()
    browser = owner(world, organization)
    for _ in range(5):
        invited(world, browser, organization, address)
    assert len(sent(world, post)) == 5
    browser.open(f"/console/organizations/{organization.id}/users/new")
    typed = {"user_name": "last", "given_name": "Ada", "family_name": "L", "email": address}
    browser.submit(typed, form="page-form")
    assert f"The link was not sent: {address} received too many mails in the last hour." in browser.page.text
    assert "/password/reset/" not in browser.page.text
    browser.click("Create another link to hand over yourself")
    browser.submit(form="page-form")
    assert "Hand over this link now" in browser.page.text
    assert sent(world, post) == []


@pytest.mark.storages("memory")
def test_invitation_names_the_inviter_without_an_address(world: World, post: ReceivingMailServer) -> None:
    organization = world.make_organization()
    browser = owner(world, organization)
    with world.transaction_services() as services:
        [manager] = [item for item in services.storage.users.page(organization.id, None) if isinstance(item, HumanUser)]
        name = "Dr. Eve https://evil.example/now evil.example"
        services.users.change(manager.id, ChangeHumanUser(display_name=name), principal=Principal.OPERATOR)
    person = invited(world, browser, organization, make_email_address())
    [letter] = sent(world, post)
    text = " ".join(message_text(letter).split())
    assert f"Dr. Eve https evil example now evil example invites you to {organization.name}." in text
    assert f"Your login name is {person.user_name}@{organization.primary_domain}." in text
    assert "evil.example" not in text


# --- a forgotten password, by address ---------------------------------------------------------------------------------


def ask(world: World, typed: str, organization: Organization | None = None) -> Browser:
    asking = Browser(world)
    asking.open(
        "/password/reset" if organization is None else f"/password/reset?organization={organization.primary_domain}"
    )
    asking.submit({"login_name": typed}, form="page-form")
    assert asking.path == "/password/reset/sent"
    return asking


def test_forgotten_password_by_address_from_end_to_end(world: World, post: ReceivingMailServer) -> None:
    address = make_email_address()
    person, login_name = make_user_with_password(world, address)
    user, other_login_name = make_user_with_password(world, address, email_verifier=EmailVerifier.OPERATOR)
    make_user_with_password(world, address, email_verifier=None)
    make_user_with_password(world, address, email_verifier=EmailVerifier.PROVIDER)
    make_user_with_password(world, address, active=False)
    ask(world, f" {address.upper()} ")
    [letter] = sent(world, post)
    assert letter["To"] == address
    text = message_text(letter)
    names = re.findall(r"Login name: (\S+)", text)
    assert names == [login_name, other_login_name]
    links = re.findall(r"https://\S+/password/reset/\S{43}", text)
    use(world, links[1])
    assert verifier_of(world, user) is EmailVerifier.OPERATOR
    assert Browser(world).open(links[0]).status_int == 200, "the others stay good"
    [event] = [event for event in world.audit_events(object_id=person.id) if event.event == "password.link_asked"]
    assert event.actor.kind is ActorKind.ANONYMOUS
    assert event.actor.request_id


@pytest.mark.storages("memory")
def test_reset_at_an_organization_finds_addresses_verified_by_it(world: World, post: ReceivingMailServer) -> None:
    organization, address = world.make_organization(), make_email_address()
    _, own_user = make_user_with_password(world, address)
    _, other_user = make_user_with_password(
        world, address, email_verifier=EmailVerifier.EARLIER, organization=organization
    )
    make_user_with_password(world, address, email_verifier=EmailVerifier.EARLIER)
    ask(world, address, organization)
    [letter] = sent(world, post)
    assert set(re.findall(r"Login name: (\S+)", message_text(letter))) == {own_user, other_user}
    ask(world, address)
    [letter] = sent(world, post)
    assert re.findall(r"Login name: (\S+)", message_text(letter)) == [own_user]


@pytest.mark.storages("memory")
def test_reset_prefers_login_name_to_address(world: World, post: ReceivingMailServer) -> None:
    """Active or not, with an address or without."""
    for active, email in ((True, ""), (False, make_email_address())):
        named, login_name = make_user_with_password(world, email, email_verifier=None, active=active)
        _, anothers = make_user_with_password(world, login_name)
        ask(world, login_name)
        assert sent(world, post) == []
        with world.transaction_services() as services:
            services.users.remove(named.id, principal=Principal.OPERATOR)
        ask(world, login_name)
        [letter] = sent(world, post)
        assert anothers in message_text(letter)


@pytest.mark.storages("memory")
def test_reset_response_is_the_same_for_all_inputs(world: World, post: ReceivingMailServer) -> None:
    first, shared, deleted = make_email_address(), make_email_address(), make_email_address()
    _, login_name = make_user_with_password(world, first)
    for _ in range(12):
        make_user_with_password(world, shared)
    make_user_with_password(world, deleted, active=False)
    typed = (
        login_name,
        first,
        shared,
        deleted,
        make_email_address(),
        "nobody",
        "a@b",
        "\ud7ff@x.example",
        "x" * 4000 + "@x.example",
    )
    shapes = [shape(ask(world, item)) for item in typed]
    assert all(shape == shapes[0] for shape in shapes)
    with world.read_only_services() as services:
        assert len(services.outbox.list_due("mail")) == len(typed)
    letters = sent(world, post)
    assert sorted(letter["To"] for letter in letters) == sorted([first, first, shared])
    [long] = [letter for letter in letters if letter["To"] == shared]
    assert len(re.findall("Login name:", message_text(long))) == 10


@pytest.mark.storages("memory")
def test_account_list_mails_are_limited_to_three_an_hour(world: World, post: ReceivingMailServer) -> None:
    address = make_email_address()
    _, login_name = make_user_with_password(world, address)
    for spelling in (address, address.upper(), f" {address}", address, address):
        ask(world, spelling)
    assert len(sent(world, post)) == 3
    ask(world, login_name)
    assert len(sent(world, post)) == 1, "by login name it is counted apart"
    world.clock.advance(hours=1)
    ask(world, address)
    assert len(sent(world, post)) == 1


@pytest.mark.storages("memory")
def test_address_spelling_gets_only_links_of_its_accounts(world: World, post: ReceivingMailServer) -> None:
    """A mail server may distinguish the spellings."""
    small = make_email_address()
    large = small.replace("ada", "Ada")
    (_, first), (_, other) = make_user_with_password(world, small), make_user_with_password(world, large)
    ask(world, small)
    letters = {letter["To"]: message_text(letter) for letter in sent(world, post)}
    assert letters.keys() == {small, large}
    assert first in letters[small]
    assert other in letters[large]
    assert first not in letters[large]
    ask(world, small.replace("ada", "ａda"))
    assert sent(world, post) == []


@pytest.mark.storages("memory")
@pytest.mark.parametrize("of_directory", [True, False])
def test_accounts_without_password_are_listed_without_a_link(
    world: World, post: ReceivingMailServer, monkeypatch: pytest.MonkeyPatch, of_directory: bool
) -> None:
    address = make_email_address()
    person, login_name = make_user_with_password(world, address)
    if of_directory:
        monkeypatch.setattr(transactional_mails, "is_directory_account", lambda directories, subject, services: True)
    else:
        provided = world.make_human_user()
        with world.transaction_services() as services:
            stored = services.users.get(provided.id)
            profile = replace(stored.profile, email=address, email_verified=True)
            changed = replace(stored, profile=profile, email_verified_by=EmailVerifier.OWN_LINK, version=2)
            services.storage.users.update(changed)
            services.storage.users.update_last_sign_in(stored.id, services.now)
            services.users.deactivate(person.id, principal=Principal.OPERATOR)
            subject = services.storage.users.find_subject(stored.id)
            assert subject is not None
            login_name = subject.login_name
    ask(world, address)
    [letter] = sent(world, post)
    assert login_name in message_text(letter)
    assert "/password/reset/" not in message_text(letter)
    assert "This account has no password here." in message_text(letter)


@pytest.mark.storages("memory")
def test_password_page_links_to_reset_of_its_organization(world: World, post: ReceivingMailServer) -> None:
    party, address = RelyingParty.register(world), make_email_address()
    browser = Browser(world)
    browser.open(party.new_request().url, initiator=party.origin)
    browser.submit({"login_name": address}, form="page-form")
    browser.click("Forgot your password?")
    domain = parse_qs(urlsplit(browser.url).query)["organization"][0]
    with world.read_only_services() as services:
        organization = services.storage.organizations.find_by_domain(domain)
    assert organization is not None
    make_user_with_password(world, address, email_verifier=EmailVerifier.EARLIER, organization=organization)
    browser.submit(form="page-form")
    [letter] = sent(world, post)
    assert letter["To"] == address
