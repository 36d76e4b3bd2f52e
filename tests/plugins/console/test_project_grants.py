"""Project grants in the console, for the granting organization and the grantee (pages.md §5.2)."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource
from identity.domain.projects import Project, ProjectGrant
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project of the organization, with three roles."""
    return world.make_project(organization, roles=["admin", "reader", "writer"])


def _list(project: Project, below: str = "") -> str:
    return f"/console/projects/{project.id}/grants{below}"


def _page(grant: ProjectGrant, below: str = "") -> str:
    return f"/console/project-grants/{grant.id}{below}"


def _stored(world: World, grant: ProjectGrant) -> ProjectGrant | None:
    with world.read_only_services() as services:
        return services.storage.project_grants.find(grant.id)


# --- list and new ----------------------------------------------------------------------------------------------------


def test_project_grant_creation(world: World, owner: Browser, project: Project, holder: Organization) -> None:
    page = owner.open(_list(project))
    assert "No project grants yet" in page
    page = owner.click("New project grant")
    assert page.html.h1.text == "Select an organization"
    assert "Step 1 of 2" in page
    owner.open(f"{owner.path}?q={holder.primary_domain}")
    page = owner.click(holder.name)
    assert page.html.h1.text == f"Choose roles for {holder.name}"
    assert "Step 2 of 2" in page
    form = owner.find_form("page-form")
    form.set("role", True, index=1)
    page = owner.submit(form="page-form")
    assert ("Project granted. Managers of the organization can now grant the roles to their users.") in page
    assert page.html.h1.text == f"{project.name} for {holder.name}"
    with world.read_only_services() as services:
        stored = services.storage.project_grants.find_for_organization(project.id, holder.id)
    assert stored is not None
    assert stored.roles == {"reader"}
    assert holder.name in owner.open(_list(project)).html.find("tbody").text


def test_project_page_shows_grants(owner: Browser, project: Project, holder: Organization, grant: ProjectGrant) -> None:
    section = owner.open(_list(project)).html.main
    assert holder.name in section.text
    assert [link["href"] for link in section.select("tbody a")] == [_page(grant)]
    assert _list(project, "/new") in {link["href"] for link in section.select("a.button")}


def test_invisible_organization_needs_whole_domain_or_id(
    owner: Browser, project: Project, holder: Organization
) -> None:
    for query in (holder.name, holder.primary_domain[:-1], holder.id[:-1]):
        assert "There is no such organization." in owner.open(_list(project, f"/new?q={query}"))
    for query in (holder.primary_domain.upper(), holder.id):
        assert [link["href"] for link in owner.open(_list(project, f"/new?q={query}")).html.select("a.choice")] == [
            _list(project, f"/new?organization_id={holder.id}")
        ]


def test_own_organization_cannot_be_granted(owner: Browser, project: Project, organization: Organization) -> None:
    page = owner.open(_list(project, f"/new?q={organization.primary_domain}"))
    assert page.html.select("a.choice") == []
    owner.open(_list(project, f"/new?organization_id={organization.id}"))
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert "The project already belongs to this organization." in page


def test_instance_manager_searches_organizations_by_name(
    sign_in: SignIn, project: Project, holder: Organization
) -> None:
    browser = sign_in("IAM_OWNER", resource=Resource.INSTANCE)
    page = browser.open(_list(project, f"/new?q={holder.name}"))
    assert holder.name in page.html.find("a", class_="choice").text


def test_project_without_roles_can_be_granted(
    world: World, owner: Browser, organization: Organization, holder: Organization
) -> None:
    bare = world.make_project(organization)
    page = owner.open(_list(bare, f"/new?organization_id={holder.id}"))
    assert "The project has no roles yet." in page
    assert "Project granted." in owner.submit(form="page-form")


# --- detail page of the project owner --------------------------------------------------------------------------------


def test_project_owner_sees_grant_details(
    owner: Browser, project: Project, organization: Organization, holder: Organization, grant: ProjectGrant
) -> None:
    page = owner.open(_page(grant))
    facts = page.html.find(id="settings").text
    for text in (grant.id, project.name, organization.name, holder.name, "reader", "writer"):
        assert text in facts
    assert "admin" not in facts
    trail = [link["href"] for link in page.html.select(".breadcrumb a")]
    assert trail == [
        f"/console/organizations/{organization.id}/projects",
        f"/console/projects/{project.id}",
        _list(project),
    ]
    assert page.html.select_one(".rail__item[aria-current]").text.strip() == "Projects"
    for label in ("Change", "Deactivate …", "Withdraw …", "Managers"):
        assert label in page
    assert f"/console/organizations/{holder.id}" not in {link["href"] for link in page.html.select("main a")}


def test_project_grant_roles_change(world: World, owner: Browser, grant: ProjectGrant) -> None:
    owner.open(_page(grant))
    owner.click("Change")
    form = owner.find_form("page-form")
    assert [field.checked for field in form.fields["role"]] == [False, True, True]
    form.set("role", True, index=0)
    form.set("role", False, index=1)
    assert "The granted roles are changed." in owner.submit(form="page-form")
    stored = _stored(world, grant)
    assert stored is not None
    assert stored.roles == {"admin", "writer"}


def test_deleted_role_is_refused(world: World, owner: Browser, project: Project, holder: Organization) -> None:
    owner.open(_list(project, f"/new?organization_id={holder.id}"))
    owner.find_form("page-form").set("role", True, index=0)
    with world.transaction_services() as services:
        services.projects.remove_role(project.id, "admin")
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert "The project has no role admin." in page.html.find(id="error-role").text


def test_withdraw_counts_users_who_lose_access(
    world: World, owner: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    for _ in range(2):
        world.make_user_grant(world.make_human_user(holder), project, "reader", grant=grant)
    owner.open(_page(grant))
    page = owner.click("Withdraw …")
    assert f"2 users of {holder.name} lose access at once." in page
    page = owner.submit(form="page-form")
    assert "Project grant withdrawn." in page
    assert owner.path == _list(project)
    assert _stored(world, grant) is None


# --- grantee ---------------------------------------------------------------------------------------------------------


def test_grantee_sees_granted_project(
    holding: Browser, project: Project, organization: Organization, holder: Organization, grant: ProjectGrant
) -> None:
    granted = f"/console/organizations/{holder.id}/granted-projects"
    row = holding.open(granted).html.select_one("tbody tr").text
    assert organization.name in row
    page = holding.click(project.name)
    assert holding.path == _page(grant)
    assert [link["href"] for link in page.html.select(".breadcrumb a")] == [granted]
    assert page.html.select_one(".rail__item[aria-current]").text.strip() == "Granted projects"
    for absent in ("/edit", "/deactivate", "/delete"):
        assert _page(grant, absent) not in page
        assert holding.open(_page(grant, absent)).status_int == 403
    assert "Add manager" in holding.open(_page(grant, "/managers"))


def test_granted_project_list_is_empty(owner: Browser, organization: Organization) -> None:
    page = owner.open(f"/console/organizations/{organization.id}/granted-projects")
    assert "No other organization has granted you a project." in page


def test_grant_manager_reaches_grant_page(
    world: World, sign_in: SignIn, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    resource = project_grant_resource(grant, project)
    browser = sign_in("PROJECT_GRANT_OWNER", resource=resource, home=holder)
    page = browser.open("/console")
    assert browser.path == _page(grant)
    assert page.html.select(".breadcrumb a") == []
    assert "Withdraw" not in page
    assert "Add manager" in browser.click("Managers")
    assert browser.open(_list(project)).status_int == 404
    assert project.name in browser.open(f"/console/organizations/{holder.id}/granted-projects")
