"""Management API: projects and their roles."""

import pytest

from identity.domain.permissions import project_resource
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient


def test_project_life_cycle(world: World, owner: ServiceUserProgram, api: ApiClient, projects: str) -> None:
    created = api.post(projects, {"name": "Billing"})
    path = f"/projects/{created['id']}"
    assert created["organization_id"] == owner.organization.id
    assert (created["assert_roles"], created["check_roles"], created["state"]) == (False, False, "active")
    assert api.get(path) == created
    assert api.list(projects) == [created]
    changed = api.patch(path, {"assert_roles": True})
    assert (changed["name"], changed["assert_roles"], changed["version"]) == ("Billing", True, 2)
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events == {f"project.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")}


def test_project_creator_becomes_owner(world: World) -> None:
    robot = world.make_manager_program("ORG_PROJECT_CREATOR")
    api = ApiClient.for_user(robot)
    projects = f"/organizations/{robot.organization.id}/projects"
    project = world.make_project(robot.organization)
    created = api.post(projects, {"name": "Billing"})
    assert api.patch(f"/projects/{created['id']}", {"name": "Invoices"})["name"] == "Invoices"
    assert [item["id"] for item in api.list(projects)] == [created["id"]]
    check_api_error(api.ask("GET", f"/projects/{project.id}"), 403, "forbidden")


def test_project_manager_lists_only_their_projects(world: World, owner: ServiceUserProgram) -> None:
    mine = [world.make_project(owner.organization) for _ in range(2)]
    world.make_project(owner.organization)
    robot = world.make_service_user_program()
    for project in mine:
        world.assign_manager_role(robot, "PROJECT_OWNER_VIEWER", resource=project_resource(project))
    api = ApiClient.for_user(robot)
    path = f"/organizations/{owner.organization.id}/projects"
    assert [item["id"] for item in api.list(path)] == [
        project.id for project in sorted(mine, key=lambda project: project.name)
    ]
    assert [item["id"] for item in api.list(f"{path}?q={mine[1].name}")] == [mine[1].id]
    assert api.list(f"{path}?state=deactivated") == []


def test_service_project_cannot_be_deleted(world: World) -> None:
    robot = world.make_service_user_program()
    service_project = world.operator_services.projects.get(world.instance.project_id)
    world.assign_manager_role(robot, "PROJECT_OWNER", resource=project_resource(service_project))
    check_api_error(ApiClient.for_user(robot).ask("DELETE", f"/projects/{service_project.id}"), 409, "conflict")
    check_api_error(
        ApiClient.for_user(robot).ask("POST", f"/projects/{service_project.id}/deactivate"), 409, "conflict"
    )


# --- roles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["reader", "a/b", "100%", "ä?#", "a.b:c", "+"])
def test_project_role_life_cycle(world: World, api: ApiClient, projects: str, key: str) -> None:
    roles = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}/roles"
    answer = api.ask("POST", roles, {"key": key, "display_name": "Reader", "group": "People"})
    created = answer.json
    assert created == {"key": key, "display_name": "Reader", "group": "People", "version": 1}
    path = answer.headers["Location"].removeprefix(world.client.management_url)
    assert api.get(path) == created
    assert api.list(roles) == [created]
    assert api.patch(path, {"display_name": "Readers"}) == {**created, "display_name": "Readers", "version": 2}
    stale = api.ask("PATCH", path, {"display_name": "Lost"}, If_Match='"1"')
    check_api_error(stale, 412, "precondition_failed")
    api.delete(path)
    assert api.list(roles) == []
    check_api_error(api.ask("GET", path), 404, "not_found")
    check_api_error(api.ask("DELETE", path), 404, "not_found")


def test_role_keys_are_unique_and_valid(api: ApiClient, projects: str) -> None:
    roles = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}/roles"
    api.post(roles, {"key": "reader", "display_name": "Reader"})
    for key in ("reader", "a b", "", ".", "..", "x" * 101):
        answer = api.ask("POST", roles, {"key": key, "display_name": "Reader"})
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"key"}


def test_deleted_role_is_removed_from_grants(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    project = world.make_project(owner.organization, roles=["reader", "writer"])
    grant = world.make_user_grant(world.make_human_user(owner.organization), project, "reader", "writer")
    api.delete(f"/projects/{project.id}/roles/writer")
    assert api.get(f"/user-grants/{grant.id}")["roles"] == ["reader"]
