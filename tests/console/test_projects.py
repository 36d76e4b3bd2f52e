"""Projects in the console (service description §1, §5.2)."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, project_resource
from identity.domain.projects import Project
from identity.services.access import THE_OPERATOR
from identity.services.commands.projects import ChangeProject
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.console.conftest import SignIn


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project with two roles."""
    return world.a_project(organization, roles=("admin", "editor"))


def _list(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/projects"


def _names(browser: Browser) -> list[str]:
    return [one.text for one in browser.page.html.select("a.table__name")]


def test_from_nothing_to_a_project(owner: Browser, organization: Organization) -> None:
    page = owner.open(_list(organization))
    assert "No projects yet" in page
    assert page.text.count("button--primary") == 1
    owner.click("New project")
    page = owner.submit({"name": "Invoices", "check_roles": True}, form="page-form")
    assert "Project created. Register its first application." in page
    assert page.html.h1.text == "Invoices"
    assert "On: users without a role in the project cannot sign in" in page
    assert "Off: applications receive roles if they ask for them." in page
    assert ":aud" in page.html.find(string="Audience scope").find_parent("div").text
    assert owner.page.text.count("button--primary") == 1
    owner.open(_list(organization))
    assert _names(owner) == ["Invoices"]


def test_what_is_wrong_is_said_and_nothing_is_lost(world: World, owner: Browser, organization: Organization) -> None:
    owner.open(f"{_list(organization)}/new")
    page = owner.submit({"name": "", "assert_roles": True}, form="page-form")
    assert page.status_int == 422
    assert "Enter a name." in page.html.find(id="error-name").text
    assert owner.form("page-form")["assert_roles"].checked
    page = owner.submit({"name": "x" * 201}, form="page-form")
    assert page.status_int == 422
    assert owner.form("page-form")["name"].value == "x" * 201
    with world.reading() as services:
        assert not services.storage.projects.page(organization.id).items


def test_a_form_makes_one_project_alone(owner: Browser, organization: Organization) -> None:
    owner.open(f"{_list(organization)}/new")
    again = owner.tab()
    again.answers = list(owner.answers)
    owner.submit({"name": "Invoices"}, form="page-form")
    page = again.submit({"name": "Invoices"}, form="page-form")
    assert page.status_int == 409
    assert "This was sent already." in page
    owner.open(_list(organization))
    assert _names(owner) == ["Invoices"]


def test_list_counts_and_search(world: World, owner: Browser, organization: Organization, project: Project) -> None:
    world.an_application(project.id)
    other = world.a_project(organization)
    with world.transaction() as services:
        services.projects.deactivate(other.id, by=THE_OPERATOR)
    page = owner.open(_list(organization))
    row = next(one for one in page.html.select("tbody tr") if project.name in one.text)
    assert [one.text for one in row.select("td")][:3] == ["1", "2", "Active"]
    owner.open(f"{_list(organization)}?q={project.name}")
    assert _names(owner) == [project.name]
    owner.open(f"{_list(organization)}?state=deactivated")
    assert _names(owner) == [other.name]
    assert "Nothing here has “zebra” in it." in owner.open(f"{_list(organization)}?q=zebra")


def test_a_stale_change_keeps_what_was_typed(world: World, owner: Browser, project: Project) -> None:
    owner.open(f"/console/projects/{project.id}/edit")
    with world.transaction() as services:
        services.projects.change(project.id, ChangeProject(name="Theirs"), by=THE_OPERATOR)
    page = owner.submit({"name": "Mine"}, form="page-form")
    assert page.status_int == 409
    assert "Saved now: Theirs" in page
    assert owner.form("page-form")["name"].value == "Mine"
    page = owner.submit(form="page-form")
    assert "The changes are saved." in page
    assert page.html.h1.text == "Mine"


def test_a_setting_is_taken_back(world: World, owner: Browser, organization: Organization) -> None:
    project = world.a_project(organization, assert_roles=True, check_roles=True)
    owner.open(f"/console/projects/{project.id}/edit")
    assert owner.form("page-form")["check_roles"].checked
    owner.submit({"check_roles": False}, form="page-form")
    with world.reading() as services:
        after = services.projects.get(project.id)
    assert (after.name, after.assert_roles, after.check_roles) == (project.name, True, False)


def test_deactivate_and_reactivate(owner: Browser, project: Project) -> None:
    owner.open(f"/console/projects/{project.id}")
    owner.click("Deactivate …")
    page = owner.submit(form="page-form")
    assert "Project deactivated. Its applications no longer work." in page
    assert "Deactivated" in page.html.select_one(".console__title").text
    owner.click("Reactivate …")
    assert "Project reactivated." in owner.submit(form="page-form")


def test_delete_asks_for_the_name_and_tells_what_falls(
    world: World, owner: Browser, organization: Organization, project: Project
) -> None:
    world.an_application(project.id)
    world.a_grant(project, world.an_organization())
    page = owner.open(f"/console/projects/{project.id}/delete")
    for line in ("1 application", "2 roles", "1 project grant"):
        assert line in [one.text for one in page.html.select("ul.list li")]
    page = owner.submit({"confirm_name": "something else"}, form="page-form")
    assert page.status_int == 422
    assert owner.form("page-form")["confirm_name"].value == "something else"
    page = owner.submit({"confirm_name": project.name}, form="page-form")
    assert owner.path == _list(organization)
    assert "Project deleted." in page
    assert owner.open(f"/console/projects/{project.id}").status_int == 404


def test_the_own_project_stays(world: World, sign_in: SignIn) -> None:
    browser = sign_in("IAM_OWNER", resource=INSTANCE)
    page = browser.open(f"/console/projects/{world.instance.project_id}")
    assert "This project stands for the service itself." in page
    assert "Deactivate …" not in page
    browser.open(f"/console/projects/{world.instance.project_id}/deactivate")
    assert browser.submit(form="page-form").status_int == 409


def test_who_manages_one_project_sees_this_one(
    world: World, sign_in: SignIn, organization: Organization, project: Project
) -> None:
    other = world.a_project(organization)
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


def test_who_creates_a_project_owns_it(sign_in: SignIn, organization: Organization) -> None:
    browser = sign_in("ORG_PROJECT_CREATOR")
    browser.open(f"{_list(organization)}/new")
    page = browser.submit({"name": "Mine"}, form="page-form")
    assert "Project created." in page
    assert "PROJECT_OWNER" in page.html.find(id="managers").text
    browser.open(_list(organization))
    assert _names(browser) == ["Mine"]


def test_without_the_right_there_are_no_buttons(
    world: World, sign_in: SignIn, organization: Organization, project: Project
) -> None:
    browser = sign_in("ORG_OWNER_VIEWER")
    page = browser.open(_list(organization))
    assert not page.html.main.select("a.button")
    world.an_application(project.id)
    page = browser.open(f"/console/projects/{project.id}")
    assert page.status_int == 200
    assert not page.html.main.select("a.button")
    for path in ("edit", "deactivate", "reactivate", "delete"):
        assert browser.open(f"/console/projects/{project.id}/{path}").status_int == 403


def test_foreign_projects_are_not_there(world: World, owner: Browser) -> None:
    foreign = world.a_project()
    for path in ("", "/edit", "/deactivate", "/reactivate", "/delete", "/roles", "/applications"):
        assert owner.open(f"/console/projects/{foreign.id}{path}").status_int == 404
    assert owner.open(f"/console/organizations/{foreign.organization_id}/projects").status_int == 404
