"""Trying operations of the management API in the console: with the session, and the caller's own permissions."""

import json
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


def browser_of(world: World, organization: Organization, role: str | None) -> Browser:
    person = world.make_human_user(organization)
    if role is not None:
        level = Resource.INSTANCE if role.startswith("IAM") else Resource.of_organization(organization.id)
        world.assign_manager_role(person, role, resource=level)
    browser = Browser(world)
    browser.start_session(person)
    return browser


def try_operation(
    browser: Browser, name: str, *, body: object = None, confirmed: bool = True, **parameters: str
) -> Any:
    """The page with the response."""
    page = browser.open(f"/console/api/{name}")
    assert page.status_int == 200, page
    fields: dict[str, Any] = {f"parameter-{key}": value for key, value in parameters.items()}
    if body is not None:
        fields["body"] = body if isinstance(body, str) else json.dumps(body)
    if "confirmed" in browser.find_form("page-form").fields:
        fields["confirmed"] = confirmed
    return browser.submit(fields, form="page-form")


def response(page: Any) -> Any:
    return json.loads(page.html.find(id="response").find("pre").get_text())


def test_reading_shows_the_response_of_the_api(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "ORG_OWNER_VIEWER")
    page = try_operation(browser, "show_organization", organization=organization.id)
    assert "The API answered 200." in page.text
    assert response(page)["name"] == organization.name
    listed = response(try_operation(browser, "list_users", organization=organization.id, limit="1"))
    assert len(listed["items"]) == 1


def test_changes_need_a_confirmation_and_are_recorded_as_the_callers(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "ORG_OWNER")
    change = {"organization": organization.id, "body": {"name": "Renamed"}}
    assert (
        "Confirm that this operation" in try_operation(browser, "change_organization", confirmed=False, **change).text
    )
    assert stored_name(world, organization) == organization.name
    page = try_operation(browser, "change_organization", **change)
    assert response(page)["name"] == "Renamed"
    assert stored_name(world, organization) == "Renamed"
    with world.read_only_services() as services:
        (event, *_) = [event for event in services.storage.audit.page() if event.event == "organization.changed"]
    assert event.actor.id == browser_user_id(browser)


def test_errors_are_those_of_the_api_and_change_nothing(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "ORG_OWNER")
    page = try_operation(browser, "change_organization", organization=organization.id, body={"name": ""})
    assert "The API answered 422." in page.text
    assert response(page)["fields"].keys() == {"name"}
    for body in ("{", "[]", '{"name": "x", "name": "y"}'):
        page = try_operation(browser, "change_organization", organization=organization.id, body=body)
        assert response(page)["error"] == "invalid"
    page = try_operation(browser, "show_user", user="unknown")
    assert "The API answered 404." in page.text
    assert stored_name(world, organization) == organization.name


def test_permissions_are_the_callers(world: World, organization: Organization) -> None:
    viewer = browser_of(world, organization, "ORG_OWNER_VIEWER")
    page = try_operation(viewer, "change_organization", organization=organization.id, body={"name": "Mine"})
    assert response(page)["error"] == "forbidden"
    other = world.make_organization()
    page = try_operation(viewer, "show_organization", organization=other.id)
    assert response(page)["error"] in ("forbidden", "not_found")
    assert stored_name(world, organization) == organization.name
    with world.read_only_services() as services:
        refused = [event for event in services.storage.audit.page() if event.event == "access.refused"]
    assert browser_user_id(viewer) in {event.actor.id for event in refused}
    assert browser_of(world, organization, None).open("/console/api/show_me").status_int == 403


def test_forms_of_other_sites_are_refused(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "ORG_OWNER")
    url = f"{world.issuer}/console/api/change_organization"
    form = {"parameter-organization": organization.id, "body": '{"name": "Theirs"}', "confirmed": "yes"}
    browser.open("/console/api/change_organization")
    # Without the token of the form.
    assert browser.post_form(url, form, initiator=url).status_int == 403
    assert browser.post_form(url, form, initiator="https://evil.example").html.find(id="response") is None
    assert stored_name(world, organization) == organization.name


def test_values_cannot_leave_their_part_of_the_path(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "ORG_OWNER")
    for value in ("../me", "a/b", "a?b=c", "%2e%2e"):
        assert response(try_operation(browser, "show_user", user=value))["error"] == "not_found"


def test_streamed_and_unknown_operations_have_no_form(world: World, organization: Organization) -> None:
    browser = browser_of(world, organization, "IAM_OWNER")
    for name in ("export_organization", "import_organization", "nothing"):
        assert browser.open(f"/console/api/{name}").status_int == 404
    assert "show_organization" in browser.open("/console/api").text


def test_every_operation_has_a_form(make_world: WorldFactory) -> None:
    world = make_world()
    browser = browser_of(world, world.make_organization(), "IAM_OWNER")
    links = [link["href"] for link in browser.open("/console/api").html.select("main li a")]
    assert len(links) > 100
    for link in links:
        assert browser.open(link).status_int == 200, link


def stored_name(world: World, organization: Organization) -> str:
    with world.read_only_services() as services:
        name: str = services.organizations.get(organization.id).name
        return name


def browser_user_id(browser: Browser) -> str:
    (account,) = (response(try_operation(browser, "show_me")),)
    return str(account["user"]["id"] if "user" in account else account["id"])
