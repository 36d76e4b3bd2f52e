"""Registration with addresses verified by mail: unverified input has no effect on other accounts."""

from dataclasses import replace
from typing import Any

import pytest

from identity.domain.users import EmailVerifier, HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.journeys.conftest import next_link, shape
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_text

pytestmark = pytest.mark.every_storage

NEW = "a new and longer password"


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


TYPED = {"given_name": "Grace", "family_name": "Hopper", "password": NEW, "password_again": NEW}


def register(world: World, party: RelyingParty, **fields: str) -> tuple[Browser, Any]:
    browser = Browser(world)
    authorization = party.new_request(prompt="create")
    browser.open(authorization.url, initiator=party.origin)
    browser.submit(TYPED | fields, form="page-form")
    return browser, authorization


def test_registration_from_end_to_end(world: World, post: ReceivingMailServer) -> None:
    party = RelyingParty.register(world)
    browser, message = register(world, party, user_name="grace", email="grace@navy.example")
    assert "We have sent you a link to finish." in browser.page.text
    assert world.identity.senders["mail"].send_due() == 1
    letter = post.pop_only_message()
    assert (letter["To"], letter["Subject"]) == ("grace@navy.example", "Finish your account")
    # Nothing that the requester typed, because the address may be anyone's.
    assert "Grace" not in message_text(letter)
    link = extract_one_time_link(letter)
    with world.read_only_services() as services:
        assert services.storage.users.find_by_user_name_alone("grace", preferred_organization_id="") is None

    # In the same browser the sign-in continues to the application that requested it.
    page = browser.tab()
    page.open(link)
    assert "grace@navy.example" in page.page.text
    page.submit(form="page-form")
    assert page.sign_in_step == "registered"
    login_name = page.page.html.find(class_="login__who").get_text(strip=True)
    assert login_name.startswith("grace@")
    tokens = party.obtain_tokens(page.submit(form="page-form"), message)
    with world.read_only_services() as services:
        user = services.users.get(tokens.claims["sub"])
    assert (user.user_name, user.profile.email, user.profile.email_verified) == ("grace", "grace@navy.example", True)
    assert user.email_verified_by is EmailVerifier.OWN_LINK
    assert Browser(world).open(link).status_int == 410

    # The page and a mail show the full login name, of which only the first part was typed.
    world.identity.senders["mail"].send_due()
    letter = next(
        received_message
        for received_message in post.received_messages
        if received_message["Subject"] == "Your account is ready"
    )
    assert letter["To"] == "grace@navy.example"
    assert login_name in message_text(letter)


def test_registration_keeps_attributes_until_the_link_is_opened(world: World, post: ReceivingMailServer) -> None:
    """In the same browser; an attribute that is gone by then is left out."""
    organization = world.make_organization()
    editable = {"visible_to": "person", "editable_by": "person", "required": True}
    world.make_attribute(organization, "floor", type="number", **editable)
    doomed = world.make_attribute(organization, "doomed", **editable)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    typed = {"attributes.floor": "3", "attributes.doomed": "x", "email": "grace@navy.example"}
    browser, message = register(world, party, user_name="grace", **typed)
    assert world.identity.senders["mail"].send_due() == 1
    with world.transaction_services() as services:
        services.attributes.remove(doomed.id, principal=Principal.OPERATOR)
    page = browser.tab()
    page.open(extract_one_time_link(post.pop_only_message()))
    page.submit(form="page-form")
    tokens = party.obtain_tokens(page.submit(form="page-form"), message)
    with world.read_only_services() as services:
        user = services.users.get(tokens.claims["sub"])
        assert services.attributes.user_values([user])[user.id] == {"floor": 3}


#: Input of a user who opens the link in another browser than the one of the registration.
OWN_FIELDS = {
    "user_name": "hopper",
    "given_name": "Murray",
    "family_name": "Hopper",
    "password": "and my own password",
    "password_again": "and my own password",
}


def test_attacker_registration_is_discarded_when_the_mailbox_owner_registers(
    world: World, post: ReceivingMailServer
) -> None:
    """An attacker registers the address of another person with a known password; then the owner opens the link."""
    party = RelyingParty.register(world)
    stranger, _ = register(world, party, user_name="mallory", email="grace@navy.example")
    link = next_link(world, post)
    owner = Browser(world)
    owner.open(link)
    assert "grace@navy.example" in owner.page.text
    assert not [text for text in ("Grace", "Hopper", "mallory") if text in owner.page.text]
    for missing in OWN_FIELDS:
        owner.submit({**OWN_FIELDS, missing: ""}, form="page-form")
        assert owner.page.status_int == 422, missing
    owner.submit(OWN_FIELDS, form="page-form")
    # The account exists: the sign-in asks for its password.
    assert owner.path.endswith("/password")
    owner.submit({"password": OWN_FIELDS["password"]}, form="page-form")
    assert owner.path == "/account/profile"
    with world.read_only_services() as services:
        assert services.storage.users.find_by_user_name_alone("mallory", preferred_organization_id="") is None
        subject = services.storage.users.find_by_user_name_alone("hopper", preferred_organization_id="")
    assert subject is not None
    assert isinstance(subject.user, HumanUser)
    profile = subject.user.profile
    assert (profile.given_name, profile.family_name) == ("Murray", "Hopper")
    assert (profile.email, profile.email_verified) == ("grace@navy.example", True)

    # Neither the attacker's password nor the attacker's sign-in opens the account.
    stranger.open("/login")
    stranger.sign_in(subject.login_name, NEW)
    assert stranger.path.endswith("/password")
    stranger.open("/account")
    assert not stranger.session_cookies
    assert stranger.open(link).status_int == 410


@pytest.mark.storages("memory")
def test_expired_registration_is_treated_as_another_browser(world: World, post: ReceivingMailServer) -> None:
    party = RelyingParty.register(world)
    browser, _ = register(world, party, user_name="grace", email="grace@navy.example")
    link = next_link(world, post)
    world.clock.advance(minutes=31)
    browser.open(link)
    assert "password" in browser.find_form("page-form").fields
    browser.submit(OWN_FIELDS, form="page-form")
    assert browser.path.endswith("/password")


@pytest.mark.storages("memory")
def test_registration_does_not_reveal_known_accounts(world: World, post: ReceivingMailServer) -> None:
    party = RelyingParty.register(world)
    with world.read_only_services() as services:
        client = services.applications.find_client(party.client_id)
    assert client is not None
    person = world.make_human_user(client.organization)
    with world.transaction_services() as services:
        services.users.change_profile(person.id, ChangeProfile(email="Ada@acme.example"))
    known, _ = register(world, party, user_name="ada2", email="ada@ACME.example")
    unknown, _ = register(world, party, user_name="eve", email="eve@acme.example")
    registering_browser, _ = register(world, party, user_name=person.user_name, email="eve2@acme.example")
    assert shape(known) == shape(unknown) == shape(registering_browser)
    assert len({len(browser.cookies) for browser in (known, unknown, registering_browser)}) == 1
    world.identity.senders["mail"].send_due()
    letters = {str(received_message["To"]): received_message for received_message in post.received_messages}
    assert letters.keys() == {"ada@ACME.example", "eve@acme.example", "eve2@acme.example"}
    letter = message_text(letters["ada@ACME.example"])
    assert letters["ada@ACME.example"]["Subject"] == "You have an account already"
    assert f"{person.user_name}@{client.organization.primary_domain}" in letter
    assert "https://id.example.com/password/reset\n" in letter

    # If the user name has been taken in the meantime, the page behind the link asks again, and the link stays valid.
    browser = registering_browser.tab()
    browser.open(extract_one_time_link(letters["eve2@acme.example"]))
    assert browser.find_form("page-form")["user_name"].value == person.user_name
    browser.submit(form="page-form")
    assert browser.page.status_int == 422
    assert "Choose another user name; this one cannot be used." in browser.page.text
    browser.submit({"user_name": "e v e"}, form="page-form")
    assert browser.page.status_int == 422
    assert browser.find_form("page-form")["user_name"].value == "e v e"
    browser.submit({"user_name": "eve2"}, form="page-form")
    browser.submit(form="page-form")
    assert browser.external_redirect is not None


@pytest.mark.storages("memory")
def test_registration_closed_before_the_link_is_opened(world: World, post: ReceivingMailServer) -> None:
    party = RelyingParty.register(world)
    browser, _ = register(world, party, user_name="grace", email="grace@navy.example")
    browser.open(next_link(world, post))
    with world.transaction_services() as services:
        client = services.applications.find_client(party.client_id)
        assert client is not None
        organization = services.storage.organizations.find(client.organization.id)
        assert organization is not None
        closed = replace(organization, registration=False, version=organization.version + 1)
        services.storage.organizations.update(closed)
    browser.submit(form="page-form")
    assert browser.page.status_int == 403
    assert "Registration is closed" in browser.page.text
