"""The tab Access: what a user can do, through what, and what a token would say."""

from datetime import timedelta
from urllib.parse import urlencode

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource
from identity.domain.projects import Project, ProjectGrant
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupGrant, AddGroupMember
from identity.services.commands.user_grants import ChangeUserGrant
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    return world.make_project(organization, roles=["reader", "writer"])


def test_table_names_roles_source_and_end(
    world: World,
    organization: Organization,
    holding: Browser,
    project: Project,
    grant: ProjectGrant,
    holder: Organization,
) -> None:
    person = world.make_human_user(holder)
    derived = world.make_user_grant(person, project, "reader", grant=grant)
    world.assign_manager_role(person, "PROJECT_GRANT_OWNER", resource=project_grant_resource(grant, project))
    with world.transaction_services() as services:
        until = services.now + timedelta(days=6, hours=1)
        services.user_grants.change(derived.id, ChangeUserGrant(until=until), principal=Principal.OPERATOR)
    table = holding.open(f"/console/users/{person.id}/access").html.find(id="access")
    managed, row = table.select("tbody tr")
    assert "PROJECT_GRANT_OWNER" in managed.text
    assert "Given directly" in managed.text
    assert "No end" in managed.text
    assert f"Project grant of {organization.name}" in row.text
    assert "Ends in 6 days" in row.text
    assert f"/console/user-grants/{derived.id}/edit?of=user" in {link["href"] for link in row.select("a")}


def test_roles_without_effect_say_why(
    world: World, owner: Browser, organization: Organization, project: Project
) -> None:
    person = world.make_human_user(organization)
    world.make_user_grant(person, project, "reader")
    with world.transaction_services() as services:
        services.projects.deactivate(project.id, principal=Principal.OPERATOR)
    table = owner.open(f"/console/users/{person.id}/access").html.find(id="access")
    assert "No effect" in table.text
    assert "The project is deactivated." in table.text


def test_token_preview_within_the_tab(
    world: World, owner: Browser, organization: Organization, project: Project
) -> None:
    person, application = world.make_human_user(organization), world.make_web_application(project.id)
    path = f"/console/users/{person.id}/access"
    page = owner.open(path)
    assert application.client_id in {
        option["value"] for option in page.html.select("select[name=application_id] option")
    }
    page = owner.open(f"{path}?{urlencode({'application_id': application.client_id, 'scope': 'openid'})}")
    assert person.id in page.html.find(id="way-1").text
    page = owner.open(f"{path}?{urlencode({'application_id': 'another', 'scope': 'openid'})}")
    assert page.status_int == 422
    assert "There is no such application." in page


def test_service_user_previews_its_own_token(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization)
    page = owner.open(f"/console/service-users/{robot.id}/access?scope=openid")
    assert robot.id in page.html.find(id="way-0").text


def test_api_lists_the_same(world: World, organization: Organization, project: Project) -> None:
    person = world.make_human_user(organization)
    user_grant = world.make_user_grant(person, project, "reader")
    api = ApiClient.for_user(world.make_manager_program(resource=Resource.of_organization(organization.id)))
    [entry] = api.get(f"/users/{person.id}/access")["items"]
    assert entry["id"] == user_grant.id
    assert (entry["kind"], entry["resource_id"], entry["problem"]) == ("user_grant", project.id, None)
    assert [role["key"] for role in entry["roles"]] == ["reader"]


def test_roles_through_a_group_lead_to_the_group(
    world: World, owner: Browser, organization: Organization, project: Project
) -> None:
    person, operator = world.make_human_user(organization), Principal.OPERATOR
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=operator)
        services.group_members.add(group.id, AddGroupMember(user_id=person.id), principal=operator)
        roles = AddGroupGrant(project_id=project.id, roles=frozenset({"reader"}))
        services.group_grants.add(group.id, roles, principal=operator)
    [row] = owner.open(f"/console/users/{person.id}/access").html.find(id="access").select("tbody tr")
    assert "Group Sales" in row.text
    assert f"/console/groups/{group.id}" in {link["href"] for link in row.select("a")}
