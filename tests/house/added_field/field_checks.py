"""A declared field works everywhere: storage, API, OpenAPI document, export, audit trail, form and page."""

import json
from typing import Any

import pytest

from identity.services.access_control import Principal
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_page
from identity.testing.world import World

FIELD = "reads_aloud"


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world()


def test_api_sets_returns_and_describes_the_field(world: World) -> None:
    manager = world.make_manager_program()
    token = manager.management_token()
    project = world.make_project(manager.organization)
    created = world.client.call_management_api(
        f"/projects/{project.id}/applications", token, "POST", {"name": "Shop", "type": "api", FIELD: True}
    ).json
    path = f"/applications/{created['id']}"
    assert world.client.call_management_api(path, token).json[FIELD] is True
    changed = world.client.call_management_api(path, token, "PATCH", {FIELD: False})
    assert changed.json[FIELD] is False
    assert world.client.call_management_api(path, token, "PATCH", {FIELD: "loud"}).json["fields"] == {
        FIELD: "This must be true or false."
    }
    schemas = world.client.get(f"{world.client.management_url}/openapi.json").json["components"]["schemas"]
    for name in ("Application", "RegisterApplication", "ChangeApplication", "DescribedApplication"):
        assert FIELD in schemas[name]["properties"], name
    [event, *_] = world.audit_events(event="application.changed")
    assert event.detail[FIELD] == {"before": True, "after": False}


def test_documents_contain_the_field(world: World) -> None:
    organization = world.make_organization()
    client = world.make_application(world.make_project(organization).id, **{FIELD: True})
    with world.transaction_services() as services:
        document: Any = json.loads(
            "".join(OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR))
        )
        [project] = document["organization"]["projects"]
        assert project["applications"][0][FIELD] is True
        state = {
            "version": 1,
            "organizations": [
                {
                    "name": organization.name,
                    "primary_domain": organization.primary_domain,
                    "projects": [{"name": project["name"], "applications": [_changed(project["applications"][0])]}],
                }
            ],
        }
        applied = apply_desired_state(services, parse_desired_state(state), principal=Principal.OPERATOR)
        assert [change.detail for change in applied.state_changes] == [f"{FIELD}: true → false"]
        found: Any = services.applications.get(client.client_id)
        assert found.reads_aloud is False


def _changed(application: dict[str, Any]) -> dict[str, Any]:
    return {"name": application["name"], "type": application["type"], FIELD: False}


def test_form_and_page_show_the_field(world: World) -> None:
    organization = world.make_organization()
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    client = world.make_application(world.make_project(organization).id)
    browser = Browser(world)
    browser.open("/console")
    browser.sign_in(set_password(world, person))
    address = f"/console/applications/{client.client_id}"
    browser.open(f"{address}/edit")
    browser.submit({FIELD: True}, form="page-form")
    text = check_page(browser.open(address)).select_one("main").get_text(" ", strip=True)
    assert "Reads aloud Yes" in text
    with world.read_only_services() as services:
        found: Any = services.applications.get(client.client_id)
    assert found.reads_aloud is True


def test_other_forms_and_pages_have_the_field(world: World) -> None:
    organization = world.make_organization()
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    project = world.make_project(organization, roles=["reader"])
    browser = Browser(world)
    browser.open("/console")
    browser.sign_in(set_password(world, person))
    for address in (f"/console/organizations/{organization.id}", f"/console/projects/{project.id}"):
        browser.open(f"{address}/edit")
        browser.submit({FIELD: True}, form="page-form")
        assert "Reads aloud Yes" in check_page(browser.open(address)).get_text(" ", strip=True)
        browser.open(f"{address}/edit")
        assert browser.find_form("page-form")[FIELD].checked
    browser.open(f"/console/projects/{project.id}/roles/reader/edit")
    browser.submit({FIELD: True}, form="page-form")
    with world.read_only_services() as services:
        roles: Any = services.projects.list_roles(project.id)
    assert [role.reads_aloud for role in roles] == [True]
