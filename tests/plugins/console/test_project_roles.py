"""Roles of a project in the console (service description §2.6, §4.9)."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.services.commands.projects import AddProjectRole
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project without roles."""
    return world.make_project(organization)


@pytest.fixture
def roles(project: Project) -> str:
    """The path of its roles."""
    return f"/console/projects/{project.id}/roles"


def _add(world: World, project: Project, *keys: str) -> None:
    with world.transaction_services() as services:
        for key in keys:
            services.projects.add_role(project.id, AddProjectRole(key=key, display_name=f"The {key}"))


def _keys(browser: Browser) -> list[str]:
    return [item.text for item in browser.page.html.select("tbody th code")]


def _effects(browser: Browser) -> list[str]:
    return [item.text for item in browser.page.html.select("ul.list li")]


def test_project_role_add_change_and_delete(owner: Browser, roles: str) -> None:
    assert "No roles yet" in owner.open(roles)
    owner.click("New role")
    page = owner.submit({"key": "editor", "display_name": "Editor", "group": "Staff"}, form="page-form")
    assert "Role added." in page
    assert _keys(owner) == ["editor"]
    assert [item.text for item in page.html.select("tbody td")[:2]] == ["Editor", "Staff"]
    owner.open(f"{roles}/editor/edit")
    assert "key" not in owner.find_form("page-form").fields
    page = owner.submit({"display_name": "Chief editor", "group": ""}, form="page-form")
    assert "The changes are saved." in page
    assert [item.text for item in page.html.select("tbody td")[:2]] == ["Chief editor", "None"]
    owner.open(f"{roles}/editor/delete")
    assert _effects(owner) == ["No grant includes it. This cannot be undone."]
    assert "Role deleted." in owner.submit(form="page-form")
    assert _keys(owner) == []


def test_project_page_shows_roles(world: World, owner: Browser, project: Project, roles: str) -> None:
    owner.open(f"/console/projects/{project.id}")
    assert "No roles yet" in owner.click("Roles")
    _add(world, project, *"abcdef")
    owner.open(f"/console/projects/{project.id}")
    assert owner.click("Roles").html.h1.text == project.name
    assert _keys(owner) == list("abcdef")


def test_invalid_role_key_is_refused(world: World, owner: Browser, project: Project, roles: str) -> None:
    _add(world, project, "taken")
    owner.open(f"{roles}/new")
    for key, message in (
        ("", "Enter a key."),
        ("two words", "Use 1 to 100 printable characters without spaces."),
        ("taken", "The project has a role with this key. Choose another."),
    ):
        typed = {"key": key, "display_name": "Editor", "group": "Staff"}
        page = owner.submit(typed, form="page-form")
        assert page.status_int == 422
        assert message in page.html.find(id="error-key").text
        assert {name: owner.find_form("page-form")[name].value for name in typed} == typed


def test_empty_role_fields_are_named(owner: Browser, roles: str) -> None:
    owner.open(f"{roles}/new")
    page = owner.submit(form="page-form")
    links = [(item["href"], item.text) for item in page.html.select("#errors a")]
    assert links == [("#field-key", "Enter a key."), ("#field-display_name", "Enter a display name.")]


def test_role_key_with_special_characters_has_pages(world: World, owner: Browser, project: Project, roles: str) -> None:
    for key in ("a/b", "new", "50%", "a?b#c", "größer", "x/edit"):
        _add(world, project, key)
        page = owner.open(roles)
        owner.open(page.html.select_one("tbody a.button")["href"])
        assert owner.page.html.h1.text == f"Change the role {key}"
        owner.submit({"display_name": "Renamed"}, form="page-form")
        assert "Renamed" in owner.page
        owner.open(owner.page.html.select("tbody a.button")[1]["href"])
        owner.submit(form="page-form")
        assert _keys(owner) == []


def test_role_deletion_names_affected_users(
    world: World, owner: Browser, organization: Organization, project: Project, roles: str
) -> None:
    _add(world, project, "editor", "reader")
    beta = world.make_organization(name="Beta Ltd")
    world.make_project_grant(project, beta, roles=("editor",))
    world.make_project_grant(project, world.make_organization(), roles=("reader",))
    for _ in range(6):
        world.make_user_grant(world.make_human_user(organization), project, "editor", "reader")
    owner.open(f"{roles}/editor/delete")
    assert _effects(owner) == [
        "Users who have it lose it at once. This cannot be undone.",
        "1 project grant loses it: Beta Ltd",
        "6 user grants lose it: " + ", ".join(["Ada Lovelace"] * 5) + ", …",
    ]
    owner.submit(form="page-form")
    with world.read_only_services() as services:
        assert {user_grant.roles for user_grant in services.storage.user_grants.page("project_id", project.id)} == {
            frozenset({"reader"})
        }


def test_project_role_list_is_paged(world: World, owner: Browser, project: Project, roles: str) -> None:
    _add(world, project, *(f"r{number}" for number in range(5)), "other")
    owner.open(f"{roles}?q=other%20the")
    assert _keys(owner) == ["other"]
    owner.open(f"{roles}?limit=4")
    assert _keys(owner) == ["other", "r0", "r1", "r2"]
    owner.click("Next page")
    assert _keys(owner) == ["r3", "r4"]
    owner.click("First page")


def test_user_grant_manager_sees_roles(world: World, sign_in: SignIn, project: Project, roles: str) -> None:
    _add(world, project, "editor")
    editor = sign_in("ORG_USER_PERMISSION_EDITOR")
    page = editor.open(f"/console/projects/{project.id}")
    assert "Roles" in [item.text for item in page.html.select(".tabs a")]
    assert page.html.find(id="applications") is None
