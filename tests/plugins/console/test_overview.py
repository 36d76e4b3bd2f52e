"""The overview of an organization: warnings and getting started."""

from datetime import timedelta
from typing import Any

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupMember
from identity.services.commands.managers import AddManager
from identity.services.commands.user_grants import AddUserGrant
from identity.storage.contract import factories as make
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

_ENDING_KINDS = (
    "Group membership",
    "User grant",
    "Manager role",
    "Project roles of a group",
    "Manager roles of a group",
)


def overview(browser: Browser, organization: Organization) -> Any:
    return browser.open(f"/console/organizations/{organization.id}/overview")


def test_new_organization_shows_getting_started(owner: Browser, organization: Organization) -> None:
    page = overview(owner, organization)
    assert page.status_int == 200
    assert [item.get_text() for item in page.html.select("#steps h3")] == [
        "Create a project",
        "Register an application",
        "Create a service user",
        "Add a key to the service user",
        "Add a manager",
    ]
    # The owner counts as a manager.
    assert [item.get_text() for item in page.html.select("#steps .badge")] == ["Done"]
    assert len(page.html.select(".button--primary")) == 1
    assert "Nothing expires in the next 30 days." in page
    assert "Nothing was refused in the last 24 hours." in page


def test_completed_steps_are_hidden(world: World, owner: Browser, organization: Organization) -> None:
    world.make_service_user_program(organization)
    world.make_web_application(world.make_project(organization).id)
    assert overview(owner, organization).html.find(id="steps") is None


def test_steps_are_hidden_and_shown_again_for_one_manager(
    owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    overview(owner, organization)
    owner.click("Hide")
    page = owner.submit()
    assert owner.path == f"/console/organizations/{organization.id}/overview"
    assert page.html.find(id="steps") is None
    assert overview(sign_in("ORG_OWNER_VIEWER"), organization).html.find(id="steps") is not None
    owner.click("Show the first steps")
    assert owner.submit().html.find(id="steps") is not None


def test_step_without_permission_has_no_button(sign_in: SignIn, organization: Organization) -> None:
    page = overview(sign_in("ORG_OWNER_VIEWER"), organization)
    assert page.html.find(id="steps") is not None
    assert page.html.select("#steps .panel__row a") == []


def test_expiring_key_links_to_new_key(world: World, owner: Browser, organization: Organization) -> None:
    soon = world.make_service_user_program(
        organization, display_name="CI runner", expires_at=world.clock() + timedelta(days=7)
    )
    world.make_service_user_program(organization, expires_at=world.clock() + timedelta(days=70))
    world.make_service_user_program(expires_at=world.clock() + timedelta(days=7))
    page = overview(owner, organization)
    [row] = page.html.select("#expiring tbody tr")
    assert "CI runner" in row.get_text()
    assert "Expires in 7 days" in row.get_text()
    assert soon.key_id in row.get_text()
    page = owner.click("New key")
    assert owner.path == f"/console/service-users/{soon.id}/keys/new"


def test_refusals_are_counted_and_link_to_events(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization, display_name="CI runner")
    for _ in range(2):
        assert robot.request_token(iat=world.clock.seconds - 7200).status_int == 400
        world.clock.advance(minutes=2)
    page = overview(owner, organization)
    [row] = page.html.select("#refused tbody tr")
    assert "CI runner" in row.get_text()
    assert "The assertion is too old." in row.get_text()
    assert row.find_all("td")[-1].get_text() == "2"
    page = owner.click("Sign-in refused")
    assert len(page.html.select("tbody tr")) == 2
    assert "result=refused" in owner.url


def test_ends_of_roles_are_listed_with_what_and_whose(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    soon = world.clock() + timedelta(days=3)
    project, person = world.make_project(organization), world.make_human_user(organization)
    resource = Resource.of_organization(organization.id)
    with world.identity.transaction() as services:
        group = services.groups.add(organization.id, AddGroup(name="Night shift"), principal=Principal.OPERATOR)
        member = AddGroupMember(user_id=person.id, until=soon)
        services.group_members.add(group.id, member, principal=Principal.OPERATOR)
        grant = AddUserGrant(user_id=person.id, project_id=project.id, until=soon + timedelta(days=1))
        services.user_grants.add(grant, principal=Principal.OPERATOR)
        manager = AddManager(user_id=person.id, roles=frozenset({"ORG_OWNER_VIEWER"}), until=soon + timedelta(days=2))
        services.managers.add(resource, manager, principal=Principal.OPERATOR)
        values: dict[str, Any] = {"roles": frozenset({"reader"}), "until": soon + timedelta(days=3)}
        services.storage.group_grants.add(make.group_grant(group, project, **values))
        services.storage.group_managers.add(make.group_manager(group, until=soon + timedelta(days=4)))
    rows = [row.get_text(" ", strip=True) for row in overview(owner, organization).html.select("#expiring tbody tr")]
    assert [row.startswith(kind) for row, kind in zip(rows, _ENDING_KINDS, strict=True)] == [True] * len(rows)
    assert "Night shift" in rows[0]
    assert "Ends in 3 days" in rows[0]
    assert all("Night shift" in row for row in rows[3:])
    # Who manages the organization is not for managers of users; what a group has is on its page.
    readable = overview(sign_in("ORG_USER_MANAGER"), organization).html.select("#expiring tbody tr")
    assert len(readable) == 4


def test_expiring_keys_need_service_user_read(world: World, sign_in: SignIn, organization: Organization) -> None:
    world.make_service_user_program(organization, expires_at=world.clock() + timedelta(days=7))
    page = overview(sign_in("ORG_SETTINGS_MANAGER"), organization)
    assert page.status_int == 200
    assert page.html.find(id="expiring") is None
