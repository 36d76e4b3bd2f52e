"""User grants in the console: on users, projects and project grants (pages.md §5.2)."""

from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlencode

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import project_grant_resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.user_grants import ChangeUserGrant
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project of the organization, with three roles."""
    return world.make_project(organization, roles=["admin", "reader", "writer"])


@pytest.fixture
def person(world: World, organization: Organization) -> HumanUser:
    return world.make_human_user(organization)


@pytest.fixture
def user_grant(world: World, person: HumanUser, project: Project) -> UserGrant:
    """The user's role in the project."""
    return world.make_user_grant(person, project, "reader")


def _of_project(project: Project, below: str = "") -> str:
    return f"/console/projects/{project.id}/user-grants{below}"


def _of_grant(grant: ProjectGrant, below: str = "") -> str:
    return f"/console/project-grants/{grant.id}/user-grants{below}"


def _of_user(user: HumanUser, below: str = "") -> str:
    return f"/console/users/{user.id}/grants{below}"


def _page(user_grant: UserGrant, below: str) -> str:
    return f"/console/user-grants/{user_grant.id}{below}"


def _roles(world: World, user_id: str, project: Project) -> frozenset[str] | None:
    """The roles that the user holds in the project; None without a grant."""
    with world.read_only_services() as services:
        user_grants = services.storage.user_grants.page("user_id", user_id).items
    return next((user_grant.roles for user_grant in user_grants if user_grant.project_id == project.id), None)


def _choices(browser: Browser, path: str) -> list[str]:
    return [item["href"] for item in browser.open(path).html.select("a.choice")]


def _links(browser: Browser, path: str) -> set[str]:
    return {item["href"] for item in browser.open(path).html.select("main a")}


# --- on a project ----------------------------------------------------------------------------------------------------


def test_grant_to_selected_user(world: World, owner: Browser, project: Project, person: HumanUser) -> None:
    assert "No user grants yet" in owner.open(_of_project(project))
    page = owner.click("New user grant")
    assert page.html.h1.text == "Select a user"
    owner.open(_of_project(project, f"/new?q={person.user_name}"))
    page = owner.click(person.user_name)
    assert page.html.h1.text == f"Choose roles for {person.display_name}"
    owner.find_form("page-form").set("role", True, index=1)
    page = owner.submit(form="page-form")
    assert "The roles are granted." in page
    assert owner.path == _of_project(project)
    assert person.user_name in page.html.select_one("tbody").text
    assert _roles(world, person.id, project) == {"reader"}


def test_user_grant_needs_a_role(world: World, owner: Browser, project: Project, person: HumanUser) -> None:
    owner.open(_of_project(project, f"/new?user_id={person.id}"))
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert "Choose at least one role." in page.html.find(id="error-role").text
    assert _roles(world, person.id, project) is None


def test_project_without_roles_offers_none(
    world: World, owner: Browser, organization: Organization, person: HumanUser
) -> None:
    bare = world.make_project(organization)
    page = owner.open(_of_project(bare, f"/new?user_id={person.id}"))
    assert "The project has no roles yet. Add one on the page of the project." in page
    assert page.html.find("button", class_="button--primary") is None


def test_users_of_other_organizations_are_not_found(
    world: World, owner: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    stranger = world.make_human_user(holder)
    assert _choices(owner, _of_project(project, f"/new?q={stranger.user_name}")) == []
    assert owner.open(_of_project(project, f"/new?user_id={stranger.id}")).status_int == 404
    assert owner.open(_of_project(project, "/new?user_id=nobody")).status_int == 404


def test_invisible_grantees_are_unnamed(
    world: World, owner: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    stranger = world.make_human_user(holder)
    derived = world.make_user_grant(stranger, project, "reader", grant=grant)
    for page in (owner.open(_of_project(project)), owner.open(_of_grant(grant))):
        row = page.html.select_one("tbody tr")
        assert f"A user of {holder.name}" in row.text
        assert stranger.display_name not in row.text
        assert stranger.user_name not in row.text
    page = owner.open(_page(derived, "/delete?of=user"))
    assert stranger.display_name not in page.html.find("main").text
    owner.submit(form="page-form")
    assert owner.path == _of_grant(grant)
    assert _roles(world, stranger.id, project) is None


def test_search_does_not_find_invisible_users(
    world: World, owner: Browser, project: Project, holder: Organization, grant: ProjectGrant, user_grant: UserGrant
) -> None:
    """Otherwise names and addresses could be guessed character by character."""
    stranger = world.make_human_user(holder)
    world.make_user_grant(stranger, project, "reader", grant=grant)
    for query in (stranger.user_name, stranger.profile.family_name, stranger.id, f"@{holder.primary_domain}"):
        for path in (_of_project(project), _of_grant(grant)):
            found = owner.open(f"{path}?{urlencode({'q': query, 'limit': 1})}")
            assert f"A user of {holder.name}" not in found.html.find("main").text, query
            assert "Next page" not in found, query
    assert f"A user of {holder.name}" in owner.open(_of_project(project))


# --- on a project grant ----------------------------------------------------------------------------------------------


def test_grantee_offers_only_granted_roles(
    world: World, holding: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    person = world.make_human_user(holder)
    assert "No user grants yet" in holding.open(_of_grant(grant))
    holding.click("New user grant")
    holding.open(_of_grant(grant, f"/new?q={person.user_name}"))
    page = holding.click(person.user_name)
    assert [box["value"] for box in page.html.select("input[name=role]")] == ["reader", "writer"]
    holding.find_form("page-form").set("role", True, index=1)
    page = holding.submit(form="page-form")
    assert "The roles are granted." in page
    assert holding.path == _of_grant(grant)
    assert _roles(world, person.id, project) == {"writer"}


def test_granting_organization_cannot_grant_to_grantee_users(
    world: World, owner: Browser, holder: Organization, grant: ProjectGrant
) -> None:
    stranger = world.make_human_user(holder)
    assert _of_grant(grant, "/new") not in _links(owner, _of_grant(grant))
    assert _choices(owner, _of_grant(grant, f"/new?q={stranger.user_name}")) == []
    assert owner.open(_of_grant(grant, f"/new?user_id={stranger.id}")).status_int == 404


def test_grant_manager_grants_roles(
    world: World, sign_in: SignIn, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    person = world.make_human_user(holder)
    browser = sign_in("PROJECT_GRANT_OWNER", resource=project_grant_resource(grant, project), home=holder)
    browser.open("/console")
    browser.click("New user grant")
    browser.open(_of_grant(grant, f"/new?user_id={person.id}"))
    browser.find_form("page-form").set("role", True, index=0)
    browser.submit(form="page-form")
    assert _roles(world, person.id, project) == {"reader"}
    row = browser.page.html.select_one("tbody tr")
    assert person.display_name in row.text
    assert row.find("a", class_="table__name") is None, "there is no link to a user whom one may not read"


def test_deactivated_grant_gives_no_roles(world: World, holding: Browser, grant: ProjectGrant) -> None:
    assert _of_grant(grant, "/new") in _links(holding, _of_grant(grant))
    with world.transaction_services() as services:
        services.project_grants.deactivate(grant.id, principal=Principal.OPERATOR)
    assert _of_grant(grant, "/new") not in _links(holding, _of_grant(grant))


# --- on a user -------------------------------------------------------------------------------------------------------


def test_grant_of_selected_project(world: World, owner: Browser, project: Project, person: HumanUser) -> None:
    assert "No user grants yet" in owner.open(_of_user(person))
    page = owner.click("New user grant")
    assert page.html.h1.text == "Select a project"
    page = owner.click(project.name)
    assert page.html.h1.text == f"Choose roles of {project.name}"
    owner.find_form("page-form").set("role", True, index=0)
    owner.find_form("page-form").set("role", True, index=2)
    page = owner.submit(form="page-form")
    assert "The roles are granted." in page
    assert owner.path == f"/console/users/{person.id}/access"
    assert project.name in page.html.find(id="access").text
    assert _roles(world, person.id, project) == {"admin", "writer"}


def test_granted_projects_offer_granted_roles(
    world: World, holding: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    robot = world.make_service_user_program(holder)
    path = f"/console/service-users/{robot.id}/grants"
    chosen = f"{path}/new?project_id={project.id}"
    assert _choices(holding, f"{path}/new?q={project.name[:-1].upper()}") == [chosen]
    assert _choices(holding, f"{path}/new?q=something-else") == []
    page = holding.open(chosen)
    assert [box["value"] for box in page.html.select("input[name=role]")] == ["reader", "writer"]
    holding.find_form("page-form").set("role", True, index=0)
    page = holding.submit(form="page-form")
    assert holding.path == f"/console/service-users/{robot.id}/access"
    links = {link["href"] for link in page.html.find(id="access").select("a")}
    assert f"/console/project-grants/{grant.id}" in links
    assert _roles(world, robot.id, project) == {"reader"}


def test_foreign_projects_are_not_found(world: World, owner: Browser, holder: Organization, person: HumanUser) -> None:
    foreign = world.make_project(holder, roles=["admin"])
    assert _choices(owner, _of_user(person, f"/new?q={foreign.name}")) == []
    assert owner.open(_of_user(person, f"/new?project_id={foreign.id}")).status_int == 404
    assert owner.open(_of_user(person, "/new?project_id=none")).status_int == 404


def test_grant_page_returns_to_user(
    world: World, owner: Browser, project: Project, person: HumanUser, user_grant: UserGrant
) -> None:
    owner.open(_of_user(person))
    page = owner.click("Change")
    assert [link.text for link in page.html.select(".breadcrumb a")] == ["Users", person.display_name]
    form = owner.find_form("page-form")
    assert [field.checked for field in form.fields["role"]] == [False, True, False]
    form.set("role", True, index=0)
    page = owner.submit(form="page-form")
    assert "The roles are changed." in page
    assert owner.path == f"/console/users/{person.id}/access"
    assert _roles(world, person.id, project) == {"admin", "reader"}


# --- detail page -----------------------------------------------------------------------------------------------------


def test_grant_page_returns_to_project(owner: Browser, project: Project, user_grant: UserGrant) -> None:
    page = owner.open(_of_project(project))
    page = owner.open(page.html.select_one("tbody a.button")["href"])
    assert page.html.select(".breadcrumb a")[-1]["href"] == f"/console/projects/{project.id}"
    owner.find_form("page-form").set("role", True, index=0)
    page = owner.submit(form="page-form")
    assert "The roles are changed." in page
    assert owner.path == _of_project(project)


def test_stale_grant_edit_keeps_selected_roles(owner: Browser, user_grant: UserGrant) -> None:
    owner.open(_page(user_grant, "/edit"))
    browser = owner.tab()
    browser.open(_page(user_grant, "/edit"))
    browser.find_form("page-form").set("role", True, index=2)
    browser.submit(form="page-form")
    owner.find_form("page-form").set("role", True, index=0)
    page = owner.submit(form="page-form")
    assert page.status_int == 409
    assert "Currently saved: reader, writer" in page
    assert [field.checked for field in owner.find_form("page-form").fields["role"]] == [True, True, False]


def test_withdrawn_role_is_not_offered(
    world: World, holding: Browser, project: Project, holder: Organization, grant: ProjectGrant
) -> None:
    derived = world.make_user_grant(world.make_human_user(holder), project, "admin", "reader", grant=grant)
    page = holding.open(_page(derived, "/edit"))
    assert [box["value"] for box in page.html.select("input[name=role]")] == ["reader", "writer"]
    holding.submit(form="page-form")
    assert _roles(world, derived.user_id, project) == {"reader"}


def test_grant_removal_lists_impact(
    world: World, owner: Browser, project: Project, person: HumanUser, user_grant: UserGrant
) -> None:
    owner.open(_of_user(person))
    page = owner.click("Remove …")
    assert f"{person.display_name} loses reader in {project.name} at once." in page
    page = owner.submit(form="page-form")
    assert "The roles are removed." in page
    assert owner.path == f"/console/users/{person.id}/access"
    assert _roles(world, person.id, project) is None


# --- ends ------------------------------------------------------------------------------------------------------------


def test_last_day_ends_the_roles_in_utc(world: World, owner: Browser, project: Project, person: HumanUser) -> None:
    day = (world.clock() + timedelta(days=10)).date()
    owner.open(_of_project(project, f"/new?user_id={person.id}"))
    form = owner.find_form("page-form")
    form.set("role", True, index=1)
    form["until"] = str(day)
    owner.submit(form="page-form")
    with world.read_only_services() as services:
        (user_grant,) = services.storage.user_grants.page("project_id", project.id).items
    assert user_grant.until == datetime.combine(day, time(23, 59, 59), UTC)
    assert "Ends in 10 days" in owner.open(_of_project(project))
    owner.open(_page(user_grant, "/edit"))
    form = owner.find_form("page-form")
    assert form["until"].value == str(day)
    form["until"] = ""
    owner.submit(form="page-form")
    with world.read_only_services() as services:
        assert services.user_grants.get(user_grant.id).until is None


def test_end_within_a_day_stays_when_roles_change(world: World, owner: Browser, user_grant: UserGrant) -> None:
    until = world.clock() + timedelta(days=1)
    with world.transaction_services() as services:
        services.user_grants.change(user_grant.id, ChangeUserGrant(until=until), principal=Principal.OPERATOR)
    owner.open(_page(user_grant, "/edit"))
    form = owner.find_form("page-form")
    form.set("role", True, index=0)
    owner.submit(form="page-form")
    with world.read_only_services() as services:
        assert services.user_grants.get(user_grant.id).until == until


@pytest.mark.parametrize("wrong", ["soon", "2001-01-01", "9999-12-31"])
def test_wrong_last_day_is_refused(owner: Browser, user_grant: UserGrant, wrong: str) -> None:
    owner.open(_page(user_grant, "/edit"))
    form = owner.find_form("page-form")
    form["until"] = wrong
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert page.html.select_one("#error-until") is not None
