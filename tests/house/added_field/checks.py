"""What is declared of a field is enough: storage, API, its document, export, audit trail, form and page have it."""

import json
from typing import Any

import pytest

from identity.services.access import THE_OPERATOR
from identity.services.apply import apply, read_state
from identity.services.transfer import Transfer
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_page
from identity.testing.world import World

FIELD = "reads_aloud"


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """A service with the field."""
    return make_world()


def test_the_api_sets_shows_and_describes_it(world: World) -> None:
    manager = world.a_manager()
    token = manager.managing_token()
    project = world.a_project(manager.organization)
    made = world.client.management(
        f"/projects/{project.id}/applications", token, "POST", {"name": "Shop", "type": "api", FIELD: True}
    ).json
    path = f"/applications/{made['id']}"
    assert world.client.management(path, token).json[FIELD] is True
    changed = world.client.management(path, token, "PATCH", {FIELD: False})
    assert changed.json[FIELD] is False
    assert world.client.management(path, token, "PATCH", {FIELD: "loud"}).json["fields"] == {
        FIELD: "This must be true or false."
    }
    schemas = world.client.get(f"{world.client.management_url}/openapi.json").json["components"]["schemas"]
    for name in ("Application", "RegisterApplication", "ChangeApplication", "DescribedApplication"):
        assert FIELD in schemas[name]["properties"], name
    [event, *_] = world.audit_events(event="application.changed")
    assert event.detail[FIELD] == {"before": True, "after": False}


def test_documents_carry_it(world: World) -> None:
    organization = world.an_organization()
    client = world.an_application(world.a_project(organization).id, **{FIELD: True})
    with world.transaction() as services:
        document: Any = json.loads("".join(Transfer(services).document(organization.id, by=THE_OPERATOR)))
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
        applied = apply(services, read_state(state), by=THE_OPERATOR)
        assert [change.detail for change in applied.changes] == [f"{FIELD}: true → false"]
        found: Any = services.applications.get(client.client_id)
        assert found.reads_aloud is False


def _changed(application: dict[str, Any]) -> dict[str, Any]:
    return {"name": application["name"], "type": application["type"], FIELD: False}


def test_form_and_page_have_it(world: World) -> None:
    organization = world.an_organization()
    person = world.a_person(organization)
    world.make_manager(person, "ORG_OWNER")
    client = world.an_application(world.a_project(organization).id)
    browser = Browser(world)
    browser.open("/console")
    browser.sign_in(give_password(world, person))
    address = f"/console/applications/{client.client_id}"
    browser.open(f"{address}/edit")
    browser.submit({FIELD: True}, form="page-form")
    shown = check_page(browser.open(address)).select_one("#settings").get_text(" ", strip=True)
    assert "Reads aloud Yes" in shown
    with world.reading() as services:
        found: Any = services.applications.get(client.client_id)
    assert found.reads_aloud is True


def test_forms_and_pages_of_other_things_have_it(world: World) -> None:
    organization = world.an_organization()
    person = world.a_person(organization)
    world.make_manager(person, "ORG_OWNER")
    project = world.a_project(organization, roles=["reader"])
    browser = Browser(world)
    browser.open("/console")
    browser.sign_in(give_password(world, person))
    for address in (f"/console/organizations/{organization.id}", f"/console/projects/{project.id}"):
        browser.open(f"{address}/edit")
        browser.submit({FIELD: True}, form="page-form")
        assert "Reads aloud Yes" in check_page(browser.open(address)).get_text(" ", strip=True)
        browser.open(f"{address}/edit")
        assert browser.form("page-form")[FIELD].checked
    browser.open(f"/console/projects/{project.id}/roles/reader/edit")
    browser.submit({FIELD: True}, form="page-form")
    with world.reading() as services:
        roles: Any = services.projects.roles(project.id)
    assert [role.reads_aloud for role in roles] == [True]
