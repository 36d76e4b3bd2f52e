"""Managers in the console (service description §2.6, §5.2 step 1)."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.testing.browser import Browser
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def robot(world: World, organization: Organization) -> ServiceUserProgram:
    """A service user of the organization."""
    return world.make_service_user_program(organization)


def _managers(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/managers"


def _choose(browser: Browser, *roles: str) -> None:
    for box in browser.find_form("page-form").fields["role"]:
        box.checked = box._value in roles


@pytest.mark.shows("2.6.5", "5.2.1")
def test_service_user_becomes_org_owner(
    world: World, owner: Browser, organization: Organization, robot: ServiceUserProgram
) -> None:
    """In the organization detail, add a manager, select the user and choose the role ORG_OWNER."""
    owner.open(_managers(organization))
    owner.click("Add manager")
    assert "Step 1 of 2" in owner.page
    owner.open(f"{owner.url}?q={robot.user.user_name[:10]}")
    owner.click(robot.user.display_name)
    assert "Step 2 of 2" in owner.page
    _choose(owner, "ORG_OWNER")
    page = owner.submit(form="page-form")
    assert f"{robot.user.display_name} is now ORG_OWNER of {organization.name}." in page.html.find(class_="notice").text
    answer = world.client.call_management_api("/me", robot.management_token())
    assert answer.json["roles"][0]["roles"] == ["ORG_OWNER"]


def test_manager_needs_at_least_one_role(owner: Browser, organization: Organization, robot: ServiceUserProgram) -> None:
    owner.open(f"{_managers(organization)}/new?user_id={robot.id}")
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert page.html.find(id="error-role")


def test_form_offers_only_grantable_roles(world: World, sign_in: SignIn, organization: Organization) -> None:
    project = world.make_project(organization)
    robot = world.make_service_user_program(organization)
    owner = sign_in("PROJECT_OWNER", resource=project_resource(project))
    page = owner.open(f"/console/projects/{project.id}/managers/new?user_id={robot.id}")
    assert "PROJECT_OWNER" in page
    assert "ORG_OWNER" not in page.html.form.text


def test_manager_change_and_removal(
    world: World, owner: Browser, organization: Organization, robot: ServiceUserProgram
) -> None:
    manager = world.assign_manager_role(robot, "ORG_OWNER")
    owner.open(f"/console/managers/{manager.id}/edit")
    _choose(owner, "ORG_OWNER_VIEWER")
    assert "The manager roles are changed." in owner.submit(form="page-form")
    page = owner.open(f"/console/managers/{manager.id}/delete")
    assert f"loses ORG_OWNER_VIEWER of {organization.name} at once." in page
    assert "The manager roles are removed." in owner.submit(form="page-form")
    assert owner.open(f"/console/managers/{manager.id}/edit").status_int == 404


def test_invisible_user_cannot_be_selected(world: World, owner: Browser, organization: Organization) -> None:
    stranger = world.make_service_user_program()
    assert owner.open(f"{_managers(organization)}/new?user_id={stranger.id}").status_int == 404
    assert "zzz" in owner.open(f"{_managers(organization)}/new?q=zzz")


def test_search_without_user_read_matches_whole_login_name(
    world: World, sign_in: SignIn, organization: Organization, robot: ServiceUserProgram
) -> None:
    """A PROJECT_GRANT_OWNER can add known users without listing those of the organization."""
    holder = world.make_organization()
    colleague = world.make_service_user_program(holder)
    project = world.make_project(organization)
    grant = world.make_project_grant(project, holder)
    browser = sign_in("PROJECT_GRANT_OWNER", resource=project_grant_resource(grant, project), home=holder)
    path = f"/console/project-grants/{grant.id}/managers/new"

    def found(query: str) -> list[str]:
        return [item["href"] for item in browser.open(f"{path}?q={query}").html.select("a.choice")]

    for program, is_visible in ((robot, False), (colleague, True)):
        assert found(program.user.user_name[:-1]) == []
        for query in (f"{program.user.user_name}@{program.organization.primary_domain}", program.id):
            assert found(query) == ([f"{path}?user_id={program.id}"] if is_visible else [])
        assert (browser.open(f"{path}?user_id={program.id}").status_int == 404) != is_visible
    assert found("") == []
    assert found(world.make_service_user_program().id) == []


def test_grant_manager_search_covers_grantee_users(world: World, sign_in: SignIn, organization: Organization) -> None:
    holder = world.make_organization()
    colleague = world.make_service_user_program(holder)
    grant = world.make_project_grant(world.make_project(organization), holder)
    browser = sign_in(resource=Resource.of_organization(holder.id), home=holder)
    browser.open(f"/console/project-grants/{grant.id}/managers/new?q={colleague.user.user_name[:-1]}")
    assert browser.click(colleague.user.display_name).status_int == 200
