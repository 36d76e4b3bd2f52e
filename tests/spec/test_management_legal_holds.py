"""Management API: legal holds."""

from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

HOLDS = "/instance/legal-holds"


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


def ids(api: ApiClient) -> list[str]:
    return [item["id"] for item in api.list(HOLDS)]


def test_legal_hold_life_cycle(world: World, api: ApiClient) -> None:
    person = world.make_human_user()
    hold = api.post(HOLDS, {"kind": "user", "held_id": person.id, "reason": " Case 12/2027 "})
    assert hold == {
        "id": hold["id"],
        "kind": "user",
        "held_id": person.id,
        "organization_id": person.organization_id,
        "since": world.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": "Case 12/2027",
    }
    assert api.get(f"{HOLDS}/{hold['id']}") == hold
    assert hold in api.list(HOLDS)
    assert api.ask("DELETE", f"{HOLDS}/{hold['id']}").status_int == 204
    assert hold not in api.list(HOLDS)
    for method in ("GET", "DELETE"):
        check_api_error(api.ask(method, f"{HOLDS}/{hold['id']}"), 404, "not_found")
    events = world.audit_events(event="legal_hold", object_id=hold["id"])
    assert [event.event for event in events] == ["legal_hold.released", "legal_hold.placed"]
    assert {(event.organization_id, event.actor.kind, *event.detail.items()) for event in events} == {
        (person.organization_id, "user", ("user_id", person.id), ("reason", "Case 12/2027"))
    }


def test_legal_hold_on_organization_and_everything(isolated_world: World) -> None:
    world = isolated_world
    api, organization = (
        ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)),
        world.make_organization(),
    )
    whole = api.post(HOLDS, {"kind": "organization", "held_id": organization.id, "reason": "Case 1"})
    assert (whole["held_id"], whole["organization_id"]) == (organization.id, organization.id)
    all_ = api.post(HOLDS, {"kind": "instance", "reason": "Case 2"})
    assert (all_["held_id"], all_["organization_id"]) == (None, None)
    assert ids(api) == [whole["id"], all_["id"]]


def test_held_entity_is_not_deleted_until_lifted(world: World, api: ApiClient) -> None:
    person = world.make_human_user()
    hold = api.post(HOLDS, {"kind": "user", "held_id": person.id, "reason": "Case 12"})
    answer = check_api_error(api.ask("DELETE", f"/users/{person.id}"), 409, "conflict")
    assert answer["message"] == "This account is under a legal hold and cannot be deleted."
    answer = check_api_error(api.ask("DELETE", f"/organizations/{person.organization_id}"), 409, "conflict")
    assert "under a legal hold" in answer["message"]
    assert api.get(f"/users/{person.id}")["state"] == "invited"
    api.post(f"/users/{person.id}/deactivate", status=200)
    assert api.ask("DELETE", f"{HOLDS}/{hold['id']}").status_int == 204
    assert api.ask("DELETE", f"/users/{person.id}").status_int == 204


def test_repeated_hold_request_places_one(world: World, api: ApiClient) -> None:
    person = world.make_human_user()
    members = {"kind": "user", "held_id": person.id, "reason": "Case 12"}
    first, second = (api.ask("POST", HOLDS, members, Idempotency_Key="once") for _ in range(2))
    assert (first.status_int, first.json) == (second.status_int, second.json) == (201, first.json)
    assert first.headers["Location"].endswith(f"{HOLDS}/{first.json['id']}")
    check_api_error(api.ask("POST", HOLDS, members), 409, "conflict")
    assert [item["held_id"] for item in api.list(HOLDS)].count(person.id) == 1


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"kind": "user", "held_id": "nobody"}, "held_id"),
        ({"kind": "user"}, "held_id"),
        ({"kind": "organization", "held_id": "nothing"}, "held_id"),
        ({"kind": "instance", "held_id": "something"}, "held_id"),
        ({"kind": "project", "held_id": "x"}, "kind"),
        ({"kind": "instance", "reason": ""}, "reason"),
        ({"kind": "instance", "reason": "x" * 10_000}, "reason"),
        ({"kind": "instance", "reason": "\u202e"}, "reason"),
    ],
)
def test_invalid_hold_target_is_named(api: ApiClient, members: dict[str, Any], field: str) -> None:
    before = ids(api)
    answer = api.ask("POST", HOLDS, {"reason": "Case 12", **members})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {field}
    assert ids(api) == before


def test_service_user_cannot_be_held(world: World, api: ApiClient, owner: ServiceUserProgram) -> None:
    answer = api.ask("POST", HOLDS, {"kind": "user", "held_id": owner.id, "reason": "Case 12"})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"held_id"}


def test_service_users_of_held_organization_stay(isolated_world: World) -> None:
    api, robot = (
        ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)),
        isolated_world.make_service_user_program(),
    )
    api.post(HOLDS, {"kind": "organization", "held_id": robot.organization.id, "reason": "Case 12"})
    check_api_error(api.ask("DELETE", f"/service-users/{robot.id}"), 409, "conflict")


def test_organization_manager_cannot_use_holds(world: World, owner: ServiceUserProgram) -> None:
    """A manager under legal hold could lift it."""
    person = world.make_human_user(owner.organization)
    members = {"kind": "user", "held_id": person.id, "reason": "Case 12"}
    check_api_error(ApiClient.for_user(owner).ask("POST", HOLDS, members), 403, "forbidden")
