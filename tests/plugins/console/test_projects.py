"""Projects in the console (service description §1, §5.2)."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_resource
from identity.domain.projects import Project
from identity.services.access_control import Principal
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project with two roles."""
    return world.make_project(organization, roles=("admin", "editor"))


def _list(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/projects"


def _names(browser: Browser) -> list[str]:
    return [item.text for item in browser.page.html.select("a.table__name")]


def test_project_creation(owner: Browser, organization: Organization) -> None:
    page = owner.open(_list(organization))
    assert "No projects yet" in page
    assert page.text.count("button--primary") == 1
    owner.click("New project")
    page = owner.submit({"name": "Invoices", "check_roles": True}, form="page-form")
    assert "Project created. Register its first application." in page
    assert page.html.h1.text == "Invoices"
    assert "On: users without a role in the project cannot sign in" in page
    assert "Off: applications receive roles only if they request them." in page
    assert ":aud" in page.html.find(string="Audience scope").find_parent("div").text
    assert owner.page.text.count("button--primary") == 1
    owner.open(_list(organization))
    assert _names(owner) == ["Invoices"]


def test_invalid_project_shows_errors_and_keeps_input(world: World, owner: Browser, organization: Organization) -> None:
    owner.open(f"{_list(organization)}/new")
    page = owner.submit({"name": "", "assert_roles": True}, form="page-form")
    assert page.status_int == 422
    assert "Enter a name." in page.html.find(id="error-name").text
    assert owner.find_form("page-form")["assert_roles"].checked
    page = owner.submit({"name": "x" * 201}, form="page-form")
    assert page.status_int == 422
    assert owner.find_form("page-form")["name"].value == "x" * 201
    with world.read_only_services() as services:
        assert not services.storage.projects.page(organization.id).items


def test_project_list_counts_and_search(
    world: World, owner: Browser, organization: Organization, project: Project
) -> None:
    world.make_application(project.id)
    other = world.make_project(organization)
    with world.transaction_services() as services:
        services.projects.deactivate(other.id, principal=Principal.OPERATOR)
    page = owner.open(_list(organization))
    row = next(item for item in page.html.select("tbody tr") if project.name in item.text)
    assert [item.text for item in row.select("td")][:3] == ["1", "2", "Active"]
    owner.open(f"{_list(organization)}?state=deactivated")
    assert _names(owner) == [other.name]


def test_project_setting_is_reset(world: World, owner: Browser, organization: Organization) -> None:
    project = world.make_project(organization, assert_roles=True, check_roles=True)
    owner.open(f"/console/projects/{project.id}/edit")
    assert owner.find_form("page-form")["check_roles"].checked
    owner.submit({"check_roles": False}, form="page-form")
    with world.read_only_services() as services:
        after = services.projects.get(project.id)
    assert (after.name, after.assert_roles, after.check_roles) == (project.name, True, False)


def test_service_project_cannot_be_deleted(world: World, sign_in: SignIn) -> None:
    browser = sign_in("IAM_OWNER", resource=Resource.INSTANCE)
    page = browser.open(f"/console/projects/{world.instance.project_id}")
    assert "This project represents the service itself." in page
    assert "Deactivate …" not in page
    browser.open(f"/console/projects/{world.instance.project_id}/deactivate")
    assert browser.submit(form="page-form").status_int == 409


def test_project_manager_sees_only_their_project(
    world: World, sign_in: SignIn, organization: Organization, project: Project
) -> None:
    other = world.make_project(organization)
    browser = sign_in("PROJECT_OWNER", resource=project_resource(project))
    browser.open("/console")
    assert browser.path == f"/console/projects/{project.id}"
    browser.open(_list(organization))
    assert _names(browser) == [project.name]
    assert "New project" not in browser.page
    browser.open(f"{_list(organization)}?q=zebra")
    assert _names(browser) == []
    assert browser.open(f"/console/projects/{other.id}").status_int == 403
    assert browser.open(f"{_list(organization)}/new").status_int == 403


def test_project_creator_becomes_owner(sign_in: SignIn, organization: Organization) -> None:
    browser = sign_in("ORG_PROJECT_CREATOR")
    browser.open(f"{_list(organization)}/new")
    page = browser.submit({"name": "Mine"}, form="page-form")
    assert "Project created." in page
    assert "PROJECT_OWNER" in browser.click("Managers").html.select_one("tbody").text
    browser.open(_list(organization))
    assert _names(browser) == ["Mine"]
