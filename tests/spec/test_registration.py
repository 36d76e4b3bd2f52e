"""Decisions: registration is a setting per organization, off by default; only its link verifies an address."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.users import RegisterUser
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = pytest.mark.storages("memory")

ADDRESS = "ada@people.example"
#: Members that claim a verified email.
CLAIMED_MEMBERS = {"email": ADDRESS, "email_verified": True}

#: Creates an organization with these members; returns its id.
Make = Callable[[World, dict[str, Any]], str]


def make_owner_client(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


def by_api(world: World, members: dict[str, Any]) -> str:
    organization_id: str = make_owner_client(world).post("/organizations", members)["id"]
    return organization_id


def by_import(world: World, members: dict[str, Any]) -> str:
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    organization_id: str = make_owner_client(world).post("/organizations/import", {**head, "organization": members})[
        "id"
    ]
    return organization_id


def by_apply(world: World, members: dict[str, Any]) -> str:
    with world.transaction_services() as services:
        apply_desired_state(
            services, parse_desired_state({"version": 1, "organizations": [members]}), principal=Principal.OPERATOR
        )
        organization = services.storage.organizations.find_by_domain(members["primary_domain"])
    assert organization is not None
    return organization.id


def by_console(world: World, members: dict[str, Any]) -> str:
    person = world.make_human_user()
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/console/organizations/new")
    assert not browser.find_form()["registration"].checked
    browser.submit({**members, "registration": bool(members.get("registration"))})
    return browser.path.rpartition("/")[2]


@pytest.mark.parametrize("make", [by_api, by_import, by_apply, by_console])
@pytest.mark.parametrize("settings", [{}, {"registration": False}, {"registration": True}], ids=str)
def test_new_organization_is_closed_by_default(world: World, make: Make, settings: dict[str, bool]) -> None:
    domain = f"{make.__name__}-{len(settings)}-{settings.get('registration')}".replace("_", "-").lower()
    members = {"name": "New", "primary_domain": f"{domain}.id.example.com", **settings}
    organization_id = make(world, members)
    organization = world.operator_services.organizations.get(organization_id)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    browser, authorization = Browser(world), party.new_request(prompt="create")
    browser.open(authorization.url, initiator=party.origin)
    if settings.get("registration"):
        assert browser.sign_in_step == "register"
    else:
        party.check_error_response(browser.page, authorization, "access_denied")


def test_instance_organization_is_closed_by_default(world: World) -> None:
    assert make_owner_client(world).get(f"/organizations/{world.instance.organization_id}")["registration"] is False


# --- addresses --------------------------------------------------------------------------------------------------------


def created(world: World, organization_id: str, user_name: str) -> None:
    api, path = make_owner_client(world), f"/organizations/{organization_id}/users"
    named = {"user_name": user_name, "given_name": "Ada", "family_name": "Lovelace"}
    assert api.ask("POST", path, {**named, **CLAIMED_MEMBERS}).status_int == 422
    api.post(path, {**named, "email": ADDRESS})


def invited(world: World, organization_id: str, user_name: str) -> None:
    """The manager has seen the link, so its use does not prove access to the mailbox."""
    named = {"user_name": user_name, "given_name": "Ada", "family_name": "Lovelace", "email": ADDRESS}
    link = make_owner_client(world).post(f"/organizations/{organization_id}/users", named)["initial"]["secret"]
    browser = Browser(world)
    browser.open(link)
    browser.submit({"new_password": PASSWORD, "new_password_again": PASSWORD})


def changed(world: World, organization_id: str, user_name: str) -> None:
    created(world, organization_id, user_name)
    api = make_owner_client(world)
    [user] = api.list(f"/organizations/{organization_id}/users?q={user_name}")
    path = f"/users/{user['id']}"
    assert api.ask("PATCH", path, CLAIMED_MEMBERS).status_int == 422
    api.patch(path, {"email": f"other.{ADDRESS}"})
    api.patch(path, {"email": ADDRESS})


def registered(world: World, organization_id: str, user_name: str) -> None:
    """Without a mail server the account is created at once."""
    with world.transaction_services() as services:
        command = RegisterUser(user_name=user_name, given_name="Ada", family_name="Lovelace", email=ADDRESS)
        organization = services.organizations.get(organization_id)
        services.registration.register(organization, command, services.passwords.hash(PASSWORD))


def described(world: World, organization_id: str, user_name: str) -> None:
    organization = world.operator_services.organizations.get(organization_id)
    user = {"user_name": user_name, "given_name": "Ada", "family_name": "Lovelace"}

    def state(*users: object) -> dict[str, Any]:
        document = {"name": organization.name, "primary_domain": organization.primary_domain, "users": users}
        return {"version": 1, "organizations": [document]}

    with world.transaction_services() as services, pytest.raises(Exception, match="email_verified"):
        apply_desired_state(
            services, parse_desired_state(state({**user, **CLAIMED_MEMBERS})), principal=Principal.OPERATOR
        )
    with world.transaction_services() as services:
        apply_desired_state(
            services, parse_desired_state(state({**user, "email": ADDRESS})), principal=Principal.OPERATOR
        )


def claim_by_user(world: World, organization_id: str, user_name: str) -> None:
    organization = world.operator_services.organizations.get(organization_id)
    person = world.make_human_user(organization)
    set_password(world, person)
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    browser.submit({"email": ADDRESS, "current_password": PASSWORD})


@pytest.mark.parametrize("claim", [created, invited, changed, registered, described, claim_by_user])
def test_email_is_verified_by_link_only(world: World, claim: Callable[[World, str, str], None]) -> None:
    organization = world.make_organization()
    claim(world, organization.id, "ada")
    [user] = [
        item
        for item in make_owner_client(world).list(f"/organizations/{organization.id}/users")
        if item["email"] == ADDRESS
    ]
    assert user["email_verified"] is False
    link = world.operator_services.users.issue_email_link(user["id"], ADDRESS)
    person = world.operator_services.users.get(user["id"])
    browser = Browser(world)
    browser.start_session(person)
    browser.open(link)
    browser.submit()
    assert make_owner_client(world).get(f"/users/{user['id']}")["email_verified"] is True
