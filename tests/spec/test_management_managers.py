"""Management API: managers and manager roles (service description §2.6, security 14.4)."""

from datetime import timedelta

import pytest

from identity.domain.permissions import Resource, project_resource
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient, make_fixture_data


@pytest.fixture
def managers(owner: ServiceUserProgram) -> str:
    return f"/organizations/{owner.organization.id}/managers"


@pytest.mark.shows("1.6")
def test_manager_life_cycle(world: World, owner: ServiceUserProgram, api: ApiClient, managers: str) -> None:
    robot = world.make_service_user_program(owner.organization)
    created = api.post(managers, {"user_id": robot.id, "roles": ["ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER"]})
    path = f"/managers/{created['id']}"
    assert (created["level"], created["resource_id"], created["user_id"]) == (
        "organization",
        owner.organization.id,
        robot.id,
    )
    assert created["roles"] == ["ORG_SETTINGS_MANAGER", "ORG_USER_MANAGER"]
    assert api.get(path) == created
    assert api.list(managers)[0]["id"] == created["id"]
    client = ApiClient.for_user(robot)
    assert client.get("/me")["roles"][0]["roles"] == created["roles"]
    assert api.patch(path, {"roles": ["ORG_OWNER_VIEWER"]})["roles"] == ["ORG_OWNER_VIEWER"]
    api.delete(path)
    check_api_error(client.ask("GET", "/roles"), 403, "forbidden")
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = world.audit_events(object_id=created["id"])
    assert [event.event for event in events] == ["manager.removed", "manager.changed", "manager.added"]
    assert (events[2].detail["roles"], events[2].organization_id) == (created["roles"], owner.organization.id)


def test_manager_roles_have_an_end(world: World, owner: ServiceUserProgram, api: ApiClient, managers: str) -> None:
    robot = world.make_service_user_program(owner.organization)
    end = world.clock() + timedelta(minutes=10)
    until = f"{end:%Y-%m-%dT%H:%M:%SZ}"
    created = api.post(managers, {"user_id": robot.id, "roles": ["ORG_OWNER_VIEWER"], "until": until})
    path, client = f"/managers/{created['id']}", ApiClient.for_user(robot)
    assert created["until"] == until
    assert client.get("/me")["roles"][0]["until"] == until
    assert api.patch(path, {"until": None})["until"] is None
    assert api.patch(path, {"roles": ["ORG_SETTINGS_MANAGER"]})["until"] is None
    assert api.patch(path, {"until": until})["roles"] == ["ORG_SETTINGS_MANAGER"]
    for wrong in (f"{world.clock():%Y-%m-%dT%H:%M:%SZ}", "2099-01-01T00:00:00Z", "2027-01-31", 1):
        error = check_api_error(api.ask("PATCH", path, {"until": wrong}), 422, "invalid")
        assert "until" in str(error)
    world.clock.advance(minutes=10)
    check_api_error(client.ask("GET", managers), 403, "forbidden")
    assert api.get(path)["until"] == until, "it is still listed"


@pytest.mark.shows("2.6.1", "2.6.2", "2.6.3", "2.6.4")
@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/instance/managers", "IAM_OWNER_VIEWER"),
        ("/organizations/{organization}/managers", "ORG_OWNER"),
        ("/projects/{project}/managers", "PROJECT_OWNER"),
        ("/project-grants/{project_grant}/managers", "PROJECT_GRANT_OWNER"),
    ],
)
def test_each_level_has_managers(world: World, path: str, role: str) -> None:
    estate = make_fixture_data(world)
    robot = world.make_service_user_program(estate.organization)
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    managers = estate.address(path)
    created = api.post(managers, {"user_id": robot.id, "roles": [role]})
    assert created["id"] in [manager["id"] for manager in api.list(managers)]
    assert ApiClient.for_user(robot).get("/me")["roles"] == [
        {"level": created["level"], "resource_id": created["resource_id"], "roles": [role], "until": None}
    ]
    answer = api.ask(
        "POST",
        managers,
        {"user_id": world.make_service_user_program(estate.organization).id, "roles": ["NO_SUCH_ROLE"]},
    )
    assert role in check_api_error(answer, 422, "invalid")["fields"]["roles"]


def test_invalid_manager_is_named(world: World, owner: ServiceUserProgram, api: ApiClient, managers: str) -> None:
    for members, field in (
        ({"roles": []}, "roles"),
        ({"roles": ["PROJECT_OWNER"]}, "roles"),
        ({"roles": ["ORG_OWNER"], "user_id": "nothing"}, "user_id"),
        ({"roles": ["ORG_OWNER"], "user_id": None}, "user_id"),
        ({"roles": "ORG_OWNER"}, "roles"),
    ):
        answer = api.ask(
            "POST", managers, {"user_id": world.make_service_user_program(owner.organization).id, **members}
        )
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {field}


def test_manager_cannot_grant_more_than_their_roles(world: World, owner: ServiceUserProgram, managers: str) -> None:
    robot = world.make_service_user_program(owner.organization)
    world.assign_manager_role(robot, "ORG_OWNER_VIEWER")
    with world.transaction_services() as services:
        holder = services.storage.managers.list_for_user(robot.id)[0]
    lower = world.make_service_user_program(owner.organization)
    world.assign_manager_role(lower, "ORG_USER_MANAGER")
    assert holder.roles == {"ORG_OWNER_VIEWER"}
    answer = ApiClient.for_user(lower).ask("POST", managers, {"user_id": lower.id, "roles": ["ORG_OWNER"]})
    check_api_error(answer, 403, "forbidden")
    # A project owner can grant project roles, none of which exceeds their own.
    project = world.make_project(owner.organization)
    world.assign_manager_role(lower, "PROJECT_OWNER", resource=project_resource(project))
    api = ApiClient.for_user(lower)
    api.post(f"/projects/{project.id}/managers", {"user_id": robot.id, "roles": ["PROJECT_OWNER_VIEWER"]})
    check_api_error(
        api.ask("POST", f"/projects/{project.id}/managers", {"user_id": owner.id, "roles": ["ORG_OWNER"]}),
        422,
        "invalid",
    )


def test_higher_manager_cannot_be_changed(
    world: World, owner: ServiceUserProgram, api: ApiClient, managers: str
) -> None:
    higher = world.make_service_user_program(owner.organization)
    world.assign_manager_role(higher, "IAM_OWNER", resource=Resource.INSTANCE)
    manager = world.assign_manager_role(higher, "ORG_OWNER", resource=Resource.of_organization(owner.organization.id))
    check_api_error(api.ask("PATCH", f"/managers/{manager.id}", {"roles": ["ORG_OWNER_VIEWER"]}), 403, "forbidden")
    check_api_error(api.ask("DELETE", f"/managers/{manager.id}"), 403, "forbidden")
    assert api.get(f"/managers/{manager.id}")["roles"] == ["ORG_OWNER"]


def test_stale_manager_change_is_refused(
    world: World, owner: ServiceUserProgram, api: ApiClient, managers: str
) -> None:
    created = api.post(
        managers, {"user_id": world.make_service_user_program(owner.organization).id, "roles": ["ORG_OWNER"]}
    )
    api.patch(f"/managers/{created['id']}", {"roles": ["ORG_OWNER_VIEWER"]}, If_Match='"1"')
    answer = api.ask("PATCH", f"/managers/{created['id']}", {"roles": ["ORG_OWNER"]}, If_Match='"1"')
    check_api_error(answer, 412, "precondition_failed")


@pytest.mark.shows("2.6.6")
def test_manager_roles_list_permissions(world: World, api: ApiClient) -> None:
    roles = {item["name"]: item for item in api.list("/roles")}
    assert set(roles) == set(world.identity.process_state.manager_roles)
    assert roles["ORG_SETTINGS_MANAGER"]["permissions"] == ["organization.read", "organization.write"]
    assert roles["IAM_OWNER"]["level"] == "instance"
    assert all(item["description"] for item in roles.values())
