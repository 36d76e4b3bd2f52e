"""Management API: organizations."""

from functools import partial

import pytest

from identity.domain.permissions import Resource, project_resource
from identity.services.access_control import Principal
from identity.storage.paging import iterate_rows
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


def test_organization_life_cycle(world: World, api: ApiClient) -> None:
    name = world.make_organization().name + " GmbH"
    created = api.post("/organizations", {"name": name})
    path = f"/organizations/{created['id']}"
    assert created["primary_domain"].endswith(".id.example.com")
    assert (created["registration"], created["state"]) == (False, "active")
    assert api.get(path) == created
    changed = api.patch(path, {"name": f"{name} & Co", "registration": True})
    assert (changed["name"], changed["registration"], changed["version"]) == (f"{name} & Co", True, 2)
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events == {
        f"organization.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")
    }


def test_primary_domain_is_unique(world: World, api: ApiClient) -> None:
    taken_domain = world.make_organization().primary_domain
    answer = api.ask("POST", "/organizations", {"name": "Other", "primary_domain": taken_domain})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"primary_domain"}
    answer = api.ask("PATCH", f"/organizations/{world.make_organization().id}", {"primary_domain": taken_domain})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"primary_domain"}
    answer = api.ask("POST", "/organizations", {"name": "Other", "primary_domain": "No Domain"})
    assert "Enter a domain" in check_api_error(answer, 422, "invalid")["fields"]["primary_domain"]


def test_instance_organization_cannot_be_deleted(world: World, api: ApiClient) -> None:
    path = f"/organizations/{world.instance.organization_id}"
    check_api_error(api.ask("POST", f"{path}/deactivate"), 409, "conflict")
    check_api_error(api.ask("DELETE", path), 409, "conflict")


@pytest.mark.parametrize("role", ["ORG_OWNER", "IAM_ORG_MANAGER"])
@pytest.mark.parametrize("of_a_person", [True, False], ids=["person", "service user"])
def test_organization_of_higher_manager_cannot_be_deleted(world: World, role: str, of_a_person: bool) -> None:
    """Security 14.4: users who cannot be changed protect their organization, too."""
    organization = world.make_organization()
    higher = world.make_human_user(organization) if of_a_person else world.make_service_user_program(organization)
    manager = world.assign_manager_role(higher, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    lower = world.make_service_user_program(organization if role == "ORG_OWNER" else None)
    world.assign_manager_role(lower, role, resource=Resource.INSTANCE if role.startswith("IAM") else None)
    lower_api, path = ApiClient.for_user(lower), f"/organizations/{organization.id}"
    for method, operation in (("POST", "/deactivate"), ("POST", "/reactivate"), ("DELETE", "")):
        check_api_error(lower_api.ask(method, path + operation), 403, "forbidden")
        assert lower_api.get(path)["state"] == "active", operation
    world.operator_services.managers.remove(manager.id)
    lower_api.delete(path)


def test_last_owner_check_ignores_deactivated_owners(world: World) -> None:
    """One of two instance owners belongs to a deactivated organization."""
    [first, second] = [world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE) for _ in range(2)]
    with world.transaction_services() as services:
        for manager in list(
            iterate_rows(partial(services.managers.page, Resource.INSTANCE, principal=Principal.OPERATOR))
        ):
            if manager.user_id not in (first.id, second.id):
                services.managers.remove(manager.id, principal=Principal.OPERATOR)
    api = ApiClient.for_user(first)
    api.post(f"/organizations/{second.organization.id}/deactivate", status=200)
    check_api_error(api.ask("POST", f"/service-users/{first.id}/deactivate"), 409, "conflict")
    check_api_error(api.ask("POST", f"/organizations/{first.organization.id}/deactivate"), 409, "conflict")
    check_api_error(api.ask("DELETE", f"/organizations/{first.organization.id}"), 409, "conflict")


def test_instance_owner_lists_all_organizations(world: World, api: ApiClient) -> None:
    prefix = world.make_organization().name
    created = [api.post("/organizations", {"name": f"{prefix}-{letter}"})["id"] for letter in "BAC"]
    page = api.get(f"/organizations?q={prefix}-&limit=2")
    following = api.get(f"/organizations?q={prefix}-&limit=2&cursor={page['next_cursor']}")
    found = [item["id"] for item in page["items"] + following["items"]]
    assert found == [created[1], created[0], created[2]]
    assert following["next_cursor"] is None


def test_manager_lists_managed_organizations(world: World) -> None:
    robot = world.make_manager_program("ORG_OWNER")
    other_project = world.make_project()
    world.assign_manager_role(robot, "PROJECT_OWNER", resource=project_resource(other_project))
    world.make_organization()
    api = ApiClient.for_user(robot)
    assert {item["id"] for item in api.list("/organizations")} == {robot.organization.id, other_project.organization_id}
    assert [item["id"] for item in api.list(f"/organizations?q={robot.organization.name}")] == [robot.organization.id]
    assert api.list("/organizations?state=deactivated") == []


def test_org_owner_cannot_create_organization(world: World) -> None:
    api = ApiClient.for_user(world.make_manager_program("ORG_OWNER"))
    answer = check_api_error(api.ask("POST", "/organizations", {"name": "Mine"}), 403, "forbidden")
    assert "organization.create" in answer["message"]
