"""Management API: project grants and user grants."""

import pytest

from identity.domain.projects import Project
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient


@pytest.fixture
def project(world: World, owner: ServiceUserProgram) -> Project:
    return world.make_project(owner.organization, roles=["reader", "writer"])


@pytest.fixture
def holder(world: World) -> ServiceUserProgram:
    """The owner of another organization."""
    return world.make_manager_program("ORG_OWNER")


def test_project_grant_life_cycle(world: World, api: ApiClient, project: Project, holder: ServiceUserProgram) -> None:
    created = api.post(
        f"/projects/{project.id}/grants", {"organization_id": holder.organization.id, "roles": ["reader"]}
    )
    path = f"/project-grants/{created['id']}"
    assert (created["project_id"], created["organization_id"]) == (project.id, holder.organization.id)
    assert (created["roles"], created["state"]) == (["reader"], "active")
    assert api.get(path) == created
    assert api.list(f"/projects/{project.id}/grants") == [created]
    client = ApiClient.for_user(holder)
    assert client.list(f"/organizations/{holder.organization.id}/granted-projects") == [created]
    assert client.get(path) == created
    assert api.patch(path, {"roles": ["writer", "reader"]})["roles"] == ["reader", "writer"]
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.list(f"/projects/{project.id}/grants?state=active") == []
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(client.ask("GET", path), 404, "not_found")
    assert client.list(f"/organizations/{holder.organization.id}/granted-projects") == []


def test_grantee_cannot_widen_project_grant(world: World, project: Project, holder: ServiceUserProgram) -> None:
    grant = world.make_project_grant(project, holder.organization, roles=["reader"])
    client = ApiClient.for_user(holder)
    path = f"/project-grants/{grant.id}"
    check_api_error(client.ask("PATCH", path, {"roles": ["writer"]}), 403, "forbidden")
    check_api_error(client.ask("POST", f"{path}/reactivate"), 403, "forbidden")
    check_api_error(client.ask("DELETE", path), 403, "forbidden")
    check_api_error(client.ask("GET", f"/projects/{project.id}"), 404, "not_found")


def test_invalid_project_grant_is_named(
    api: ApiClient, project: Project, holder: ServiceUserProgram, owner: ServiceUserProgram
) -> None:
    grants = f"/projects/{project.id}/grants"
    holder_organization_id = holder.organization.id
    for members, field in (
        ({"organization_id": holder_organization_id, "roles": ["owner"]}, "roles"),
        ({"organization_id": "nothing"}, "organization_id"),
        ({"organization_id": owner.organization.id}, "organization_id"),
        ({"roles": ["reader"]}, "organization_id"),
        ({"organization_id": holder_organization_id, "roles": "reader"}, "roles"),
    ):
        assert set(check_api_error(api.ask("POST", grants, members), 422, "invalid")["fields"]) == {field}
    api.post(grants, {"organization_id": holder_organization_id})
    answer = api.ask("POST", grants, {"organization_id": holder_organization_id})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"organization_id"}


# --- user grants ------------------------------------------------------------------------------------------------------


def test_user_grant_life_cycle(world: World, owner: ServiceUserProgram, api: ApiClient, project: Project) -> None:
    person = world.make_human_user(owner.organization)
    created = api.post(f"/users/{person.id}/grants", {"project_id": project.id, "roles": ["reader"]})
    path = f"/user-grants/{created['id']}"
    assert (created["user_id"], created["project_grant_id"], created["roles"]) == (person.id, None, ["reader"])
    assert api.get(path) == created
    assert api.list(f"/users/{person.id}/grants") == [created] == api.list(f"/projects/{project.id}/user-grants")
    assert api.patch(path, {"roles": ["writer"]})["roles"] == ["writer"]
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    assert api.list(f"/users/{person.id}/grants") == []
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events == {f"user_grant.{verb}" for verb in ("added", "changed", "deactivated", "reactivated", "removed")}


def test_service_user_grants(owner: ServiceUserProgram, api: ApiClient, project: Project) -> None:
    created = api.post(f"/service-users/{owner.id}/grants", {"project_id": project.id, "roles": ["reader"]})
    assert api.list(f"/service-users/{owner.id}/grants") == [created]
    answer = api.ask("POST", f"/projects/{project.id}/user-grants", {"user_id": owner.id})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"user_id"}


def test_grantee_users_get_granted_roles(
    world: World, api: ApiClient, project: Project, holder: ServiceUserProgram
) -> None:
    """Security 14.5."""
    grant = world.make_project_grant(project, holder.organization, roles=["reader"])
    client, person = ApiClient.for_user(holder), world.make_human_user(holder.organization)
    path = f"/project-grants/{grant.id}/user-grants"
    answer = client.ask("POST", path, {"user_id": person.id, "roles": ["reader", "writer"]})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"roles"}
    created = client.post(path, {"user_id": person.id, "roles": ["reader"]})
    assert created["project_grant_id"] == grant.id
    assert client.list(path) == [created] == api.list(f"/projects/{project.id}/user-grants")
    api.delete(f"/project-grants/{grant.id}")
    assert client.list(f"/users/{person.id}/grants") == []


def test_project_grant_covers_only_grantee_users(
    world: World, owner: ServiceUserProgram, api: ApiClient, project: Project, holder: ServiceUserProgram
) -> None:
    grant = world.make_project_grant(project, holder.organization, roles=["reader"])
    path = f"/project-grants/{grant.id}/user-grants"
    sentences = set()
    for user_id in (owner.id, world.make_human_user().id, "nothing"):
        answer = ApiClient.for_user(holder).ask("POST", path, {"user_id": user_id, "roles": ["reader"]})
        sentences.add(check_api_error(answer, 422, "invalid")["fields"]["user_id"])
    assert len(sentences) == 1


def test_grant_to_invisible_user_is_refused(world: World, api: ApiClient, project: Project) -> None:
    stranger = world.make_human_user()
    for user_id in (stranger.id, "nothing"):
        answer = api.ask("POST", f"/projects/{project.id}/user-grants", {"user_id": user_id, "roles": ["reader"]})
        assert check_api_error(answer, 422, "invalid")["fields"] == {"user_id": "There is no such user."}


def test_grant_of_invisible_project_is_refused(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    foreign = world.make_project()
    for project_id in (foreign.id, "nothing"):
        answer = api.ask("POST", f"/service-users/{owner.id}/grants", {"project_id": project_id})
        assert check_api_error(answer, 422, "invalid")["fields"] == {"project_id": "There is no such project."}
