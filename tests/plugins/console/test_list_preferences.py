"""What managers choose for lists: columns and saved searches."""

from typing import Any

import pytest

from identity.domain.attributes import AttributeType
from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.plugins.console.list_preferences import MAX_SAVED_SEARCHES, ListPreferences, SavedSearch
from identity.services.access_control import Principal
from identity.services.commands.attributes import CreateAttribute
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser, origin
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _users(organization: Organization, query: str = "") -> str:
    return f"/console/organizations/{organization.id}/users{query}"


def _post(browser: Browser, path: str, values: list[tuple[str, str]]) -> Any:
    """Submit one of the forms of the list's page, with its token."""
    token = browser.open(path.partition("?")[0]).html.select_one("form[method=post] input[name=csrf_token]")["value"]
    return browser.post_form(path, [("csrf_token", token), *values], initiator=origin(browser.url))


def _headings(page: Any) -> list[str]:
    return [heading.get_text() for heading in page.html.select("thead th")]


def _saved(page: Any) -> dict[str, str]:
    return {link.get_text(): link["href"] for link in page.html.select("main .console__head > a.button--small")}


def test_manager_chooses_columns_for_themselves(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    person = world.make_human_user(organization)
    command = CreateAttribute(key="floor", label="Floor", type=AttributeType.TEXT)
    with world.transaction_services() as services:
        services.attributes.create(organization.id, command, principal=Principal.OPERATOR)
        change = ChangeHumanUser.build(attributes={"floor": "Seventh"})
        services.users.change(person.id, change, principal=Principal.OPERATOR)
    chosen = [("column", "state"), ("column", "email"), ("column", "attribute.floor"), ("task", "columns")]
    _post(owner, _users(organization), chosen)
    page = owner.open(_users(organization))
    assert _headings(page) == ["Name", "State", "Email", "Floor"]
    assert [row.select("td")[-1].get_text() for row in page.html.select("tbody tr")].count("Seventh") == 1
    usual = ["Name", "State", "Login name", "Last sign-in", "Created"]
    assert _headings(sign_in("ORG_OWNER").open(_users(organization))) == usual
    # Attributes of other organizations are no columns there, and the choice stays for this one.
    _post(owner, _users(organization), [("task", "columns")])
    assert _headings(owner.open(_users(organization))) == ["Name"]
    _post(owner, _users(organization), [("task", "default_columns")])
    assert _headings(owner.open(_users(organization))) == usual


@pytest.mark.parametrize("column", ["name", "password", "attribute.floor", "state\n"])
def test_column_that_the_list_does_not_offer_is_refused(
    owner: Browser, organization: Organization, column: str
) -> None:
    page = _post(owner, _users(organization), [("column", "state"), ("column", column), ("task", "columns")])
    assert page.status_int == 422
    assert "Choose one of the values offered." in page
    assert "Login name" in _headings(owner.open(_users(organization)))


def test_searches_are_saved_replaced_and_removed(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    search = "?q=ada&state=active&sort=-created_at&unknown=1&cursor="
    _post(owner, _users(organization, search), [("search_name", " Active  Adas "), ("task", "save")])
    path = _users(organization, "?q=ada&state=active&sort=-created_at")
    assert _saved(owner.open(_users(organization))) == {"Active Adas": path}
    assert owner.open(path).html.select_one("main .console__head > a[aria-current=true]").get_text() == "Active Adas"
    assert _saved(sign_in("ORG_OWNER").open(_users(organization))) == {}
    # The list of another kind has its own.
    assert _saved(owner.open(f"/console/organizations/{organization.id}/service-users")) == {}
    _post(owner, _users(organization, "?q=grace"), [("search_name", "Active Adas"), ("task", "save")])
    assert _saved(owner.open(_users(organization))) == {"Active Adas": _users(organization, "?q=grace")}
    _post(owner, _users(organization), [("removed", "Active Adas")])
    assert _saved(owner.open(_users(organization))) == {}


def test_filters_of_audit_events_are_saved(owner: Browser, organization: Organization) -> None:
    path = f"/console/organizations/{organization.id}/audit-events"
    _post(owner, f"{path}?result=refused&from=", [("search_name", "Refused"), ("task", "save")])
    assert _saved(owner.open(path)) == {"Refused": f"{path}?result=refused"}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("?q=ada", ""),
        ("?q=ada", "\u202e"),
        ("?q=ada", "n" * 61),
        ("", "Nothing"),
        ("?q=" + "%F0%9F%98%80" * 200, "Long"),
        ("?q=ada&state=dead", "Malformed"),
        ("?q=ada&sort=password", "Malformed"),
    ],
)
def test_unusable_search_is_not_saved(owner: Browser, organization: Organization, query: str, name: str) -> None:
    page = _post(owner, _users(organization, query), [("search_name", name), ("task", "save")])
    assert page.status_int == 422
    assert _saved(owner.open(_users(organization))) == {}


def test_number_of_saved_searches_is_limited() -> None:
    preferences = ListPreferences(searches=tuple(SavedSearch(str(n), "q=a") for n in range(MAX_SAVED_SEARCHES)))
    assert preferences.with_search("0", "q=b").searches[0] == SavedSearch("0", "q=b")
    with pytest.raises(Invalid, match="20"):
        preferences.with_search("another", "q=b")


def test_preferences_are_exported_and_deleted_with_the_user(world: World, organization: Organization) -> None:
    manager = world.make_human_user(organization)
    world.assign_manager_role(manager, "ORG_OWNER", resource=Resource.of_organization(organization.id))
    browser = Browser(world)
    browser.start_session(manager)
    _post(browser, _users(organization, "?q=ada"), [("search_name", "Adas"), ("task", "save")])
    with world.read_only_services() as services:
        records = services.storage.records.list_for_owner("console", "list_preferences", user_id=manager.id)
    [record] = records
    assert record.value == {
        "list": "/organizations/{organization}/users",
        "columns": None,
        "searches": [{"name": "Adas", "query": "q=ada"}],
    }
    with world.transaction_services() as services:
        services.users.remove(manager.id, principal=Principal.OPERATOR)
    with world.read_only_services() as services:
        assert services.storage.records.find("console", "list_preferences", record.key) is None


def test_columns_of_a_list_in_a_tab_are_chosen(world: World, owner: Browser, organization: Organization) -> None:
    project = world.make_project(organization, roles=["reader"])
    world.make_user_grant(world.make_human_user(organization), project, "reader")
    path = f"/console/projects/{project.id}/user-grants"
    assert _headings(owner.open(path)) == ["User", "Roles", "Since", "Actions"]
    _post(owner, path, [("column", "roles"), ("column", "user_id"), ("task", "columns")])
    page = owner.open(path)
    assert _headings(page) == ["User", "Roles", "User id", "Actions"]
    assert "Change" in page.html.select_one("tbody td:last-child").get_text()
