"""A bare user name belongs to one organization; no other user can take it over."""

from collections.abc import Callable

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser, RegisterUser
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient

OTHER_PASSWORD = "the password of somebody else"


@pytest.fixture
def world(isolated_world: World) -> World:
    """An isolated world, because all organizations share bare names."""
    return isolated_world


def make_user_with_password(
    world: World, organization_id: str, user_name: str = "ada", *, password: str = PASSWORD
) -> HumanUser:
    world.clock.advance(1)
    command = CreateHumanUser(user_name=user_name, given_name="Ada", family_name="Lovelace", email="a@b.example")
    person = world.operator_services.users.create(organization_id, command)
    set_password(world, person, password)
    return person


def registered(world: World, organization_id: str, user_name: str = "ada") -> HumanUser:
    world.clock.advance(1)
    with world.transaction_services() as services:
        organization = services.organizations.get(organization_id)
        command = RegisterUser(user_name=user_name, given_name="A", family_name="B", email="stranger@b.example")
        person = services.registration.register(organization, command, services.passwords.hash(OTHER_PASSWORD)).user
    assert isinstance(person, HumanUser)
    return person


def proved(world: World, person: HumanUser) -> HumanUser:
    link = world.operator_services.users.issue_email_link(person.id, "stranger@b.example")
    return world.operator_services.users.verify_email(link.rpartition("/")[2], person.id)


def signed_in(world: World, login_name: str, password: str = PASSWORD) -> str | None:
    """The id of the user with a session on the service's pages; None without a session."""
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(login_name, password)
    return _signed_in_user(world, browser)


def _signed_in_user(world: World, browser: Browser) -> str | None:
    ids = [name.partition("session-")[2] for name in browser.session_cookies]
    with world.read_only_services() as services:
        sessions = [services.storage.sessions.find(item) for item in ids]
    return next((session.user_id for session in sessions if session is not None), None)


# --- attempts of other users ------------------------------------------------------------------------------------------


def register_stranger(world: World, own_domain: str, tenant: str) -> None:
    registered(world, tenant)


def register_stranger_with_verified_email(world: World, own_domain: str, tenant: str) -> None:
    proved(world, registered(world, tenant))


def create_user_in_other_organization(world: World, own_domain: str, tenant: str) -> None:
    robot = world.make_service_user_program(organization_of(world, tenant))
    world.assign_manager_role(robot, "ORG_OWNER")
    named = {"user_name": "ada", "given_name": "A", "family_name": "B"}
    world.clock.advance(1)
    ApiClient.for_user(robot).post(f"/organizations/{tenant}/users", named)


def rename_user_in_other_organization(world: World, own_domain: str, tenant: str) -> None:
    world.clock.advance(1)
    with world.transaction_services() as services:
        [old] = services.storage.users.page(tenant, None).items
        services.users.change(old.id, ChangeHumanUser(user_name="ada"), principal=Principal.OPERATOR)


def create_service_user_in_other_organization(world: World, own_domain: str, tenant: str) -> None:
    robot = world.make_service_user_program(organization_of(world, tenant))
    world.assign_manager_role(robot, "ORG_OWNER")
    ApiClient.for_user(robot).post(
        f"/organizations/{tenant}/service-users", {"user_name": "ada", "display_name": "Ada"}
    )


STRANGERS = [
    register_stranger,
    register_stranger_with_verified_email,
    create_user_in_other_organization,
    rename_user_in_other_organization,
    create_service_user_in_other_organization,
]


def organization_of(world: World, organization_id: str) -> Organization:
    return world.operator_services.organizations.get(organization_id)


@pytest.mark.thorough
@pytest.mark.parametrize("home", ["own", "tenant"])
@pytest.mark.parametrize("does", STRANGERS)
def test_bare_user_name_cannot_be_taken_over(world: World, does: Callable[[World, str, str], None], home: str) -> None:
    """On the service's own pages, for users of the instance's organization and of any other."""
    organization_id, organization = world.instance.organization_id, world.make_organization()
    make_user_with_password(world, organization.id, "old", password=OTHER_PASSWORD)
    ada = make_user_with_password(world, organization_id if home == "own" else world.make_organization().id)
    assert signed_in(world, "ada") == ada.id
    does(world, organization_id, organization.id)
    assert signed_in(world, "Ada") == ada.id
    assert signed_in(world, "ada", OTHER_PASSWORD) is None


@pytest.mark.thorough
def test_instance_organization_users_take_precedence(world: World) -> None:
    squatter = make_user_with_password(world, world.make_organization().id, password=OTHER_PASSWORD)
    assert signed_in(world, "ada", OTHER_PASSWORD) == squatter.id
    ada = make_user_with_password(world, world.instance.organization_id)
    assert signed_in(world, "ada") == ada.id


def test_registered_user_takes_no_precedence(world: World) -> None:
    instance_organization = world.operator_services.organizations.get(world.instance.organization_id)
    world.operator_services.organizations.change(instance_organization.id, ChangeOrganization(registration=True))
    ada = make_user_with_password(world, world.make_organization().id)
    proved(world, registered(world, instance_organization.id))
    assert signed_in(world, "ada") == ada.id


def test_registered_user_gets_bare_name_after_verification(world: World) -> None:
    stranger = registered(world, world.make_organization().id)
    assert signed_in(world, "ada", OTHER_PASSWORD) is None
    subject = world.operator_services.storage.users.find_subject(stranger.id)
    assert signed_in(world, subject.login_name, OTHER_PASSWORD) == stranger.id
    proved(world, stranger)
    assert signed_in(world, "ada", OTHER_PASSWORD) == stranger.id


# --- applications -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("scope_kind", ["application", "scope"])
def test_bare_user_name_belongs_to_application_organization(world: World, scope_kind: str) -> None:
    """The organization of the scope, else of the application; even if others have had the name for longer."""
    make_user_with_password(world, world.instance.organization_id, password=OTHER_PASSWORD)
    organization, other_organization = world.make_organization(), world.make_organization()
    party = RelyingParty.register(
        world, project_id=world.make_project(other_organization if scope_kind == "scope" else organization).id
    )
    scope = f"openid urn:service:iam:org:id:{organization.id}" if scope_kind == "scope" else "openid"
    ada = registered(world, organization.id)
    if scope_kind == "scope":
        make_user_with_password(world, other_organization.id, password=PASSWORD)
    browser, authorization = Browser(world), party.new_request(scope=scope)
    browser.open(authorization.url, initiator=party.origin)
    browser.sign_in("ada", OTHER_PASSWORD)
    assert _signed_in_user(world, browser) == ada.id


@pytest.mark.thorough
@pytest.mark.parametrize("user_name", ["ada", "nobody"])
def test_password_page_names_organization_for_any_name(world: World, user_name: str) -> None:
    """Security 10.4. The link to reset the password keeps the full name."""
    organization = world.make_organization()
    make_user_with_password(world, organization.id)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    browser = Browser(world)
    browser.open(party.new_request().url, initiator=party.origin)
    browser.submit({"login_name": user_name})
    whole = f"{user_name}@{organization.primary_domain}"
    assert whole in browser.page.html.get_text()
    path = f"/password/reset?login_name={whole}&organization={organization.primary_domain}"
    assert browser.page.html.find("a", href=path)


# --- managers ---------------------------------------------------------------------------------------------------------


def test_cli_finds_owner_by_instance_organization_name(world: World) -> None:
    """A foreign user called deploy does not receive the role meant for the operator's deploy."""
    from identity.cli.add_manager import find_user
    from identity.cli.command_context import CommandError

    make_user_with_password(world, world.make_organization().id, "deploy")
    with world.transaction_services() as services, pytest.raises(CommandError, match="There is no user deploy"):
        find_user(services, "deploy", Resource.INSTANCE.organization_id)
    ours = make_user_with_password(world, world.instance.organization_id, "deploy")
    with world.read_only_services() as services:
        assert find_user(services, "deploy", Resource.INSTANCE.organization_id).user.id == ours.id
