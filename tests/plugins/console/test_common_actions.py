"""Actions of all kinds of resources: deactivation, deletion, stale edits, creation only once, and search in lists."""

from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ROLE, ApiFixtureData, make_fixture_data


@dataclass(frozen=True)
class ConsoleResourceCase:
    """The path of a resource, the messages before and after its actions, and the impact of its deletion."""

    path: str
    deactivating: str
    deactivated: str
    reactivated: str
    deleted: str
    falls: tuple[str, ...]
    delete: str = "Delete …"


KINDS = (
    ConsoleResourceCase(
        "/organizations/{organization}",
        "Its users can no longer sign in, and its programs lose access at once.",
        "Organization deactivated. Its users can no longer sign in.",
        "Organization reactivated.",
        "Organization deleted.",
        ("2 users", "2 service users", "1 project", "1 application", "2 client secrets"),
    ),
    ConsoleResourceCase(
        "/projects/{project}",
        "People cannot sign in to its applications, and no token is issued for it.",
        "Project deactivated. Its applications no longer work.",
        "Project reactivated.",
        "Project deleted.",
        ("1 application", "1 role", "1 project grant"),
    ),
    ConsoleResourceCase(
        "/applications/{application}",
        "People cannot sign in to it, and it neither gets nor checks tokens.",
        "Application deactivated.",
        "Application reactivated.",
        "Application deleted.",
        ("1 client secret",),
    ),
    ConsoleResourceCase(
        "/service-users/{service_user}",
        "Its keys, secrets and tokens stop working at once.",
        "Service user deactivated. Its tokens no longer work.",
        "Service user reactivated.",
        "Service user deleted.",
        ("1 key", "1 personal access token"),
    ),
    ConsoleResourceCase(
        "/users/{user}",
        "1 session ends at once.",
        "User deactivated.",
        "User reactivated.",
        "User deleted.",
        ("1 session",),
    ),
    ConsoleResourceCase(
        "/project-grants/{project_grant}",
        "0 users of",
        "Project grant deactivated. Its users have no access.",
        "Project grant reactivated.",
        "Project grant withdrawn.",
        ("Its user grants and managers are permanently removed.",),
        "Withdraw …",
    ),
    ConsoleResourceCase(
        "/upstream-providers/{upstream_provider}",
        "People can no longer sign in with it.",
        "Identity provider deactivated. People can no longer sign in with it.",
        "Identity provider reactivated.",
        "Identity provider deleted.",
        ("People's accounts stay. Their links to it are permanently removed.",),
    ),
    ConsoleResourceCase(
        "/webhooks/{webhook}",
        "Events that happen meanwhile are not sent later.",
        "Webhook deactivated. It gets no messages.",
        "Webhook reactivated.",
        "Webhook deleted.",
        ("The receiver gets no more messages. The log and pending messages are permanently removed.",),
    ),
)


def case_path(kind: ConsoleResourceCase) -> str:
    return kind.path


@pytest.fixture
def estate(world: World) -> ApiFixtureData:
    return make_fixture_data(world)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=case_path)
def test_deactivate_and_reactivate(instance_owner: Browser, estate: ApiFixtureData, kind: ConsoleResourceCase) -> None:
    instance_owner.open(f"/console{estate.address(kind.path)}")
    page = instance_owner.click("Deactivate …")
    assert kind.deactivating in page
    assert "You belong to this organization" not in page
    page = instance_owner.submit(form="page-form")
    assert kind.deactivated in page
    assert "Deactivated" in page.html.select_one(".console__title").text
    instance_owner.click("Reactivate …")
    page = instance_owner.submit(form="page-form")
    assert kind.reactivated in page
    assert "Deactivated" not in page.html.select_one(".console__title").text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=case_path)
def test_delete_lists_impact_and_requires_name(
    world: World, instance_owner: Browser, estate: ApiFixtureData, kind: ConsoleResourceCase
) -> None:
    href = f"/console{estate.address(kind.path)}"
    page = instance_owner.open(href)
    above = page.html.select(".breadcrumb a")[-1]["href"]
    assert page.html.select_one(f".menu a[href='{href}/delete']").contents[0] == kind.delete
    page = instance_owner.open(f"{href}/delete")
    lines = [item.text for item in page.html.select("#page-form li")]
    assert set(kind.falls) <= set(lines), lines
    typed = {}
    if "confirm_name" in instance_owner.find_form("page-form").fields:
        name = page.html.select_one("label[for=field-confirm_name] strong").text
        page = instance_owner.submit({"confirm_name": f"{name}x"}, form="page-form")
        assert page.status_int == 422
        assert instance_owner.find_form("page-form")["confirm_name"].value == f"{name}x"
        typed = {"confirm_name": f" {name} "}
    else:
        assert kind.path in (
            "/project-grants/{project_grant}",
            "/upstream-providers/{upstream_provider}",
            "/webhooks/{webhook}",
        )
    page = instance_owner.submit(typed, form="page-form")
    assert kind.deleted in page
    assert instance_owner.path == above
    assert instance_owner.open(href).status_int == 404


#: A changed field of each edit form.
CHANGED = {
    "/applications/{application}": "name",
    "/organizations/{organization}": "name",
    "/projects/{project}": "name",
    "/projects/{project}/roles/{role}": "display_name",
    "/service-users/{service_user}": "display_name",
    "/upstream-providers/{upstream_provider}": "name",
    "/users/{user}": "nickname",
    "/webhooks/{webhook}": "name",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("path", "field"), CHANGED.items())
def test_stale_edit_keeps_typed_values(instance_owner: Browser, estate: ApiFixtureData, path: str, field: str) -> None:
    browser = instance_owner.tab()
    for item in (instance_owner, browser):
        item.open(f"/console{estate.address(path)}/edit")
    assert "The changes are saved." in instance_owner.submit({field: "First"}, form="page-form")
    page = browser.submit({field: "Second"}, form="page-form")
    assert page.status_int == 409
    assert "Currently saved: First" in page
    assert browser.find_form("page-form")[field].value == "Second"
    assert "The changes are saved." in browser.submit(form="page-form")
    browser.open(f"/console{estate.address(path)}/edit")
    assert browser.find_form("page-form")[field].value == "Second"


#: Each create form, its values, and those of the second attempt.
CREATE_FORMS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "/applications/{application}/secrets/new": ({}, {}),
    "/organizations/new": ({"name": "Narwhal", "primary_domain": "narwhal.example"}, {"primary_domain": "two.example"}),
    "/organizations/{organization}/domains/new": ({"domain": "made.example"}, {"domain": "two.example"}),
    "/organizations/{organization}/projects/new": ({"name": "Invoices"}, {}),
    "/organizations/{organization}/service-users/new": (
        {"user_name": "runner", "display_name": "Runner"},
        {"user_name": "second-runner"},
    ),
    "/organizations/{organization}/users/new": (
        {"user_name": "anna", "given_name": "Anna", "family_name": "Berg"},
        {"user_name": "anna2"},
    ),
    "/projects/{project}/applications/new?type=api": ({"name": "Shop"}, {}),
    "/projects/{project}/roles/new": ({"key": "a", "display_name": "A"}, {"key": "b"}),
    "/service-users/{service_user}/keys/new": ({}, {}),
    "/service-users/{service_user}/personal-access-tokens/new": ({"name": "Nightly"}, {}),
    "/service-users/{service_user}/secrets/new": ({}, {}),
    "/users/{user}/password-link": ({}, {}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", CREATE_FORMS)
def test_create_form_sent_twice_creates_once(
    world: World, instance_owner: Browser, estate: ApiFixtureData, path: str
) -> None:
    typed, other = CREATE_FORMS[path]
    instance_owner.open(f"/console{path.format_map({**estate.path_values, 'role': ROLE})}")
    again = instance_owner.tab()
    again.answers = list(instance_owner.answers)
    assert instance_owner.submit(typed, form="page-form").status_int == 200
    last = world.audit_events()[0].sequence
    page = again.submit({**typed, **other}, form="page-form")
    assert page.status_int == 409
    assert "This was " in page or "its secret was shown then" in page
    for name, value in {**typed, **other}.items():
        assert again.find_form("page-form")[name].value == value
    assert world.audit_events()[0].sequence == last


#: Each role form, and its message on the second attempt.
ROLE_FORMS = {
    "/projects/{project}/grants/new?organization_id={other}": "This organization already has a grant of the project.",
    "/organizations/{organization}/managers/new?user_id={user}": "This user is already a manager here.",
    "/projects/{project}/user-grants/new?user_id={service_user}": "This user already has a grant of the project.",
}


def test_roles_form_sent_twice_grants_once(world: World, instance_owner: Browser, estate: ApiFixtureData) -> None:
    organization = world.make_organization()
    for path, message in ROLE_FORMS.items():
        href = f"/console{path.format_map({**estate.path_values, 'other': organization.id})}"
        instance_owner.open(href)
        instance_owner.find_form("page-form").set("role", True, index=0)
        again = instance_owner.tab()
        again.answers = list(instance_owner.answers)
        assert instance_owner.submit(form="page-form").status_int == 200
        assert again.submit(form="page-form").status_int == 409, "the form was sent already"
        instance_owner.open(href)
        instance_owner.find_form("page-form").set("role", True, index=0)
        page = instance_owner.submit(form="page-form")
        assert page.status_int == 422
        assert message in page.html.find(id="errors").text
        assert instance_owner.find_form("page-form").fields["role"][0].checked


LISTS = (
    "/organizations",
    "/organizations/{organization}/projects",
    "/organizations/{organization}/service-users",
    "/organizations/{organization}/users",
    "/projects/{project}/applications",
    "/projects/{project}/grants",
    "/projects/{project}/roles",
    "/projects/{project}/user-grants",
    "/users/{user}/grants",
)


@pytest.mark.thorough
def test_list_search_and_empty_state(instance_owner: Browser, estate: ApiFixtureData) -> None:
    granted = f"/organizations/{estate.holder.id}/granted-projects"
    for path in (*LISTS, granted):
        href = f"/console{estate.address(path)}"
        page = instance_owner.open(href)
        assert page.html.find("form", role="search").find("input", attrs={"name": "q"}) is not None, path
        name = page.html.select_one("tbody th").find(string=True, recursive=True).strip()
        page = instance_owner.open(f"{href}?{urlencode({'q': name[:-1].upper()})}")
        assert name in [item.find(string=True, recursive=True).strip() for item in page.html.select("tbody th")], path
        page = instance_owner.open(f"{href}?q=zebra")
        assert "Nothing here contains “zebra”." in page, path
        assert page.html.select("tbody tr") == []
