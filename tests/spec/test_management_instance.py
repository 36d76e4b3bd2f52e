"""Management API: signing keys and audit events of the instance."""

import pytest

from identity.domain.permissions import Resource
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


# --- signing keys -----------------------------------------------------------------------------------------------------


def test_signing_keys_are_listed_and_rotated(isolated_world: World) -> None:
    api = ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    [first] = api.list("/instance/signing-keys")
    assert (first["state"], first["generation"], first["retires_at"]) == ("active", 1, None)
    assert "PRIVATE" not in str(first)
    announced = api.post("/instance/signing-keys/rotate", status=200)
    assert (announced["state"], announced["generation"]) == ("waiting", 2)
    assert api.post("/instance/signing-keys/rotate", {"mode": "normal"}, status=200) == announced
    assert [item["id"] for item in api.list("/instance/signing-keys")] == [announced["id"], first["id"]]
    urgent = api.post("/instance/signing-keys/rotate", {"mode": "emergency"}, status=200)
    assert urgent["generation"] == 3
    assert urgent["active_at"] < announced["active_at"]
    assert {item["kid"] for item in isolated_world.client.fetch_jwks().json["keys"]} == {
        item["id"] for item in api.list("/instance/signing-keys")
    }
    [event, _] = isolated_world.audit_events(event="signing_key.added")[:2]
    assert event.object_id == urgent["id"]


@pytest.mark.thorough
def test_signing_key_is_withdrawn(isolated_world: World) -> None:
    api = ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    [first] = api.list("/instance/signing-keys")
    waiting = api.post("/instance/signing-keys/rotate", status=200)
    api.delete(f"/instance/signing-keys/{first['id']}")
    new, announced = api.list("/instance/signing-keys")
    assert (new["state"], announced["id"]) == ("active", waiting["id"])
    assert {item["kid"] for item in isolated_world.client.fetch_jwks().json["keys"]} == {new["id"], waiting["id"]}
    check_api_error(api.ask("DELETE", f"/instance/signing-keys/{first['id']}"), 404, "not_found")
    [event] = isolated_world.audit_events(event="signing_key.withdrawn")
    assert (event.object_id, event.detail["generation"]) == (first["id"], 1)


def test_signing_key_rotation_modes(api: ApiClient) -> None:
    answer = api.ask("POST", "/instance/signing-keys/rotate", {"mode": "slow"})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"mode"}


# --- audit events -----------------------------------------------------------------------------------------------------


def test_audit_event_has_actor_object_time_and_address(world: World, owner: ServiceUserProgram) -> None:
    api = ApiClient.for_user(owner)
    project = api.post(f"/organizations/{owner.organization.id}/projects", {"name": "Billing"})
    api.patch(f"/projects/{project['id']}", {"name": "Invoices"})
    [event] = api.list(f"/organizations/{owner.organization.id}/audit-events?event=project.changed")
    assert event["actor"]["id"] == owner.id
    assert event["actor"]["client_address"] == "192.0.2.1"
    assert (event["object_kind"], event["object_id"]) == ("project", project["id"])
    assert event["detail"] == {"name": {"before": "Billing", "after": "Invoices"}}
    assert event["at"] == world.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    assert api.get(f"/audit-events/{event['id']}") == event


def test_audit_events_are_filtered(world: World, owner: ServiceUserProgram) -> None:
    api, trail = ApiClient.for_user(owner), f"/organizations/{owner.organization.id}/audit-events"
    project = api.post(f"/organizations/{owner.organization.id}/projects", {"name": "Billing"})
    begun = world.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    world.clock.advance(60)
    api = ApiClient.for_user(owner)
    api.patch(f"/projects/{project['id']}", {"name": "Invoices"})
    api.ask("POST", "/organizations", {"name": "Mine"})
    now = world.clock().strftime("%Y-%m-%dT%H:%M:%SZ")

    def filtered_events(query: str) -> list[str]:
        return [item["event"] for item in api.list(f"{trail}?{query}")]

    assert filtered_events("event=project") == ["project.changed", "project.created"]
    assert filtered_events(f"event=project&since={now}") == ["project.changed"]
    assert filtered_events(f"event=project&until={now}&since={begun}") == ["project.created"]
    assert filtered_events(f"object_id={project['id']}&event=project.created") == ["project.created"]
    assert filtered_events("result=refused") == ["access.refused"]
    assert filtered_events(f"actor_id={owner.id}&result=success&event=organization") == []
    page = api.get(f"{trail}?event=project&limit=1")
    assert [item["event"] for item in page["items"]] == ["project.changed"]
    assert filtered_events(f"event=project&limit=1&cursor={page['next_cursor']}") == ["project.created"]


def test_invalid_audit_event_filters_are_named(api: ApiClient) -> None:
    for query in ("result=maybe", "since=yesterday", "until=1", "q=x", "state=active"):
        answer = api.ask("GET", f"/audit-events?{query}")
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {query.partition("=")[0]}


def test_instance_owner_sees_every_event(world: World, api: ApiClient) -> None:
    organization = world.make_organization()
    [event] = api.list(f"/audit-events?object_id={organization.id}")
    assert event["event"] == "organization.created"
    assert event["actor"]["kind"] == "operator"


def test_instance_events_are_not_found_for_others(world: World, owner: ServiceUserProgram) -> None:
    [event, *_] = world.audit_events(event="signing_key.added")
    check_api_error(ApiClient.for_user(owner).ask("GET", f"/audit-events/{event.id}"), 404, "not_found")
