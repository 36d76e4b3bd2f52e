"""A bare user name means one of the organization in question; nobody changes whom somebody else's means."""

from collections.abc import Callable

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE
from identity.domain.users import HumanUser
from identity.services.access import THE_OPERATOR
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser, RegisterUser
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.management.estate import Api

OTHER_PASSWORD = "the password of somebody else"


@pytest.fixture
def world(own_world: World) -> World:
    """Of its own: bare names are those of all organizations."""
    return own_world


def a_person(world: World, organization_id: str, user_name: str = "ada", *, password: str = PASSWORD) -> HumanUser:
    world.clock.advance(1)
    command = CreateHumanUser(user_name=user_name, given_name="Ada", family_name="Lovelace", email="a@b.example")
    person = world.operator.users.create(organization_id, command)
    give_password(world, person, password)
    return person


def registered(world: World, organization_id: str, user_name: str = "ada") -> HumanUser:
    world.clock.advance(1)
    with world.transaction() as services:
        organization = services.organizations.get(organization_id)
        command = RegisterUser(user_name=user_name, given_name="A", family_name="B", email="stranger@b.example")
        person = services.registration.register(organization, command, services.passwords.hash(OTHER_PASSWORD)).user
    assert isinstance(person, HumanUser)
    return person


def proved(world: World, person: HumanUser) -> HumanUser:
    link = world.operator.users.issue_email_link(person.id, "stranger@b.example")
    return world.operator.users.verify_email(link.rpartition("/")[2], person.id)


def signed_in(world: World, login_name: str, password: str = PASSWORD) -> str | None:
    """Who is signed in at the service's own pages then; None for nobody."""
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(login_name, password)
    return _who(world, browser)


def _who(world: World, browser: Browser) -> str | None:
    ids = [name.partition("session-")[2] for name in browser.session_cookies]
    with world.reading() as services:
        found = [services.storage.sessions.find(one) for one in ids]
    return next((one.user_id for one in found if one is not None), None)


# --- what strangers can do --------------------------------------------------------------------------------------------


def a_stranger_registers(world: World, own: str, tenant: str) -> None:
    registered(world, tenant)


def a_stranger_registers_and_proves_an_address(world: World, own: str, tenant: str) -> None:
    proved(world, registered(world, tenant))


def a_manager_elsewhere_makes_one(world: World, own: str, tenant: str) -> None:
    robot = world.a_robot(organization_of(world, tenant))
    world.make_manager(robot, "ORG_OWNER")
    named = {"user_name": "ada", "given_name": "A", "family_name": "B"}
    world.clock.advance(1)
    Api.of(robot).post(f"/organizations/{tenant}/users", named)


def a_manager_elsewhere_renames_an_old_one(world: World, own: str, tenant: str) -> None:
    world.clock.advance(1)
    with world.transaction() as services:
        [old] = services.storage.users.page(tenant, None).items
        services.users.change(old.id, ChangeHumanUser(user_name="ada"), by=THE_OPERATOR)


def a_manager_elsewhere_makes_a_program(world: World, own: str, tenant: str) -> None:
    robot = world.a_robot(organization_of(world, tenant))
    world.make_manager(robot, "ORG_OWNER")
    Api.of(robot).post(f"/organizations/{tenant}/service-users", {"user_name": "ada", "display_name": "Ada"})


STRANGERS = [
    a_stranger_registers,
    a_stranger_registers_and_proves_an_address,
    a_manager_elsewhere_makes_one,
    a_manager_elsewhere_renames_an_old_one,
    a_manager_elsewhere_makes_a_program,
]


def organization_of(world: World, organization_id: str) -> Organization:
    return world.operator.organizations.get(organization_id)


@pytest.mark.parametrize("home", ["own", "tenant"])
@pytest.mark.parametrize("does", STRANGERS)
def test_nobody_changes_whom_a_bare_name_means(
    world: World, does: Callable[[World, str, str], None], home: str
) -> None:
    """On the service's own pages, for people of the instance's own organization and of any other."""
    own, other = world.instance.organization_id, world.an_organization()
    a_person(world, other.id, "old", password=OTHER_PASSWORD)
    ada = a_person(world, own if home == "own" else world.an_organization().id)
    assert signed_in(world, "ada") == ada.id
    does(world, own, other.id)
    assert signed_in(world, "Ada") == ada.id
    assert signed_in(world, "ada", OTHER_PASSWORD) is None


def test_those_of_the_own_organization_come_first_there_even_if_they_come_later(world: World) -> None:
    squatter = a_person(world, world.an_organization().id, password=OTHER_PASSWORD)
    assert signed_in(world, "ada", OTHER_PASSWORD) == squatter.id
    ada = a_person(world, world.instance.organization_id)
    assert signed_in(world, "ada") == ada.id


def test_who_registers_with_the_own_organization_does_not(world: World) -> None:
    own = world.operator.organizations.get(world.instance.organization_id)
    world.operator.organizations.change(own.id, ChangeOrganization(registration=True))
    ada = a_person(world, world.an_organization().id)
    proved(world, registered(world, own.id))
    assert signed_in(world, "ada") == ada.id


def test_who_registered_has_a_bare_name_once_the_address_is_proved(world: World) -> None:
    stranger = registered(world, world.an_organization().id)
    assert signed_in(world, "ada", OTHER_PASSWORD) is None
    subject = world.operator.storage.users.find_subject(stranger.id)
    assert signed_in(world, subject.login_name, OTHER_PASSWORD) == stranger.id
    proved(world, stranger)
    assert signed_in(world, "ada", OTHER_PASSWORD) == stranger.id


# --- applications -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["application", "scope"])
def test_at_an_application_it_is_one_of_the_organization_in_question(world: World, by: str) -> None:
    """The organization of the scope, else the application's; also where others have had the name for longer."""
    a_person(world, world.instance.organization_id, password=OTHER_PASSWORD)
    here, elsewhere = world.an_organization(), world.an_organization()
    party = RelyingParty.of(world, project_id=world.a_project(elsewhere if by == "scope" else here).id)
    scope = f"openid urn:service:iam:org:id:{here.id}" if by == "scope" else "openid"
    ada = registered(world, here.id)
    if by == "scope":
        a_person(world, elsewhere.id, password=PASSWORD)
    browser, asked = Browser(world), party.ask(scope=scope)
    browser.open(asked.url, by=party.origin)
    browser.sign_in("ada", OTHER_PASSWORD)
    assert _who(world, browser) == ada.id


@pytest.mark.parametrize("user_name", ["ada", "nobody"])
def test_the_page_for_the_password_says_which_organization_whether_or_not_there_is_such_a_user(
    world: World, user_name: str
) -> None:
    """Security 10.4. The link to a new password takes the whole name along."""
    here = world.an_organization()
    a_person(world, here.id)
    party = RelyingParty.of(world, project_id=world.a_project(here).id)
    browser = Browser(world)
    browser.open(party.ask().url, by=party.origin)
    browser.submit({"login_name": user_name})
    whole = f"{user_name}@{here.primary_domain}"
    assert whole in browser.page.html.get_text()
    way = f"/password/reset?login_name={whole}&organization={here.primary_domain}"
    assert browser.page.html.find("a", href=way)


# --- managers ---------------------------------------------------------------------------------------------------------


def test_an_owner_of_the_instance_is_found_by_the_name_of_its_own_organization_on_the_machine(world: World) -> None:
    """A stranger called deploy does not get what the operator gives to deploy."""
    from identity.cli.add_manager import find_user
    from identity.cli.program import Failed

    a_person(world, world.an_organization().id, "deploy")
    with world.transaction() as services, pytest.raises(Failed, match="There is no user deploy"):
        find_user(services, "deploy", INSTANCE.organization_id)
    ours = a_person(world, world.instance.organization_id, "deploy")
    with world.reading() as services:
        assert find_user(services, "deploy", INSTANCE.organization_id).user.id == ours.id
