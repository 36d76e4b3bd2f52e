"""Management API (decisions): idempotency keys."""

import json
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.plugins.management.operation import one_time_members, readable_representations
from identity.plugins.management.operation_table import OPERATIONS
from identity.testing.response_checks import check_api_error, format_response
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient, make_fixture_data, make_public_key


def test_repeated_request_is_replayed_and_runs_once(world: World, api: ApiClient, projects: str) -> None:
    answers = [api.ask("POST", projects, {"name": "Billing"}, Idempotency_Key="key-1") for _ in range(3)]
    assert {(answer.status_int, answer.body, answer.headers["Location"]) for answer in answers} == {
        (201, answers[0].body, answers[0].headers["Location"])
    }
    assert len({answer.headers["ETag"] for answer in answers}) == 1
    assert len(api.list(projects)) == 1
    assert len(world.audit_events(event="project.created", object_id=answers[0].json["id"])) == 1


#: The one-time members of an operation's response, and the request's members.
SHOWN_ONCE: dict[str, tuple[set[str], dict[str, Any]]] = {
    "add_service_user_key": ({"key_file"}, {}),
    "add_service_user_secret": ({"client_secret"}, {}),
    "add_personal_access_token": ({"token"}, {"name": "CI"}),
    "add_application_secret": ({"client_secret"}, {}),
    "register_application": ({"client_secret"}, {"name": "Stock", "type": "api"}),
    "invite_user": (
        {"initial"},
        {"user_name": "bert", "given_name": "B", "family_name": "E", "email": "b@e.example", "initial": "link"},
    ),
    "issue_password_link": ({"password_link"}, {}),
    "set_one_time_password": ({"one_time_password"}, {}),
    "create_webhook": ({"secret"}, {"name": "Stock", "url": "https://stock.example/events"}),
    "create_instance_webhook": ({"secret"}, {"name": "Stock", "url": "https://stock.example/events"}),
    "rotate_webhook_secret": ({"secret"}, {}),
    # No secrets, but personal data, which each request exports again.
    "export_organization": ({"format", "version", "instance", "organization"}, {}),
}


def test_one_time_members_are_listed() -> None:
    """A new operation with one-time members must be added to the table."""
    readable = readable_representations(OPERATIONS)
    found = {
        operation.name: set(one_time_members(operation, readable))
        for operation in OPERATIONS
        if operation.method == "POST"
    }
    # What servers reply is no secret, and neither are numbers of what has ended.
    del found["send_test_mail"], found["test_directory"], found["stop_agents"]
    found = {name: members for name, members in found.items() if not name.startswith("revoke_")}
    assert {name: members for name, members in found.items() if members} == {
        name: members for name, (members, _) in SHOWN_ONCE.items()
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SHOWN_ONCE)
def test_one_time_secrets_are_never_stored(world: World, name: str) -> None:
    """Not even sealed: a replayed response has only status and location."""
    estate, (operation,) = make_fixture_data(world), [operation for operation in OPERATIONS if operation.name == name]
    manager = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    api, path, (once, members) = ApiClient.for_user(manager), estate.address(operation.path), SHOWN_ONCE[name]
    first, second = (api.ask("POST", path, members, Idempotency_Key="the-first-time") for _ in range(2))
    assert first.status_int in (200, 201), format_response(first)
    assert "shown once" in check_api_error(second, 409, "conflict")["message"]
    assert second.headers.get("Location") == first.headers.get("Location")
    assert (operation.location is not None) == ("Location" in second.headers)
    request = f"POST\n/management/v1{path}\n{json.dumps(members)}".encode()
    stored = world.operator_services.idempotency.claim_key(manager.id, "the-first-time", request)
    assert stored is not None
    assert json.loads(stored.body)[0] == ""
    assert all(first.json[name] for name in once)


@pytest.mark.parametrize("name", ["preview_instance_policy", "preview_organization_policy"])
def test_read_only_operation_can_be_repeated_with_its_key(world: World, name: str) -> None:
    estate, (operation,) = make_fixture_data(world), [operation for operation in OPERATIONS if operation.name == name]
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    path, members = estate.address(operation.path), {"second_factor": "required"}
    first, second = (api.post(path, members, Idempotency_Key="asked", status=200) for _ in range(2))
    assert first == second
    assert first.keys() == {"sessions", "more", "own"}


def test_response_without_its_optional_secret_is_replayed(
    world: World, owner: ServiceUserProgram, api: ApiClient
) -> None:
    members = {"public_key": make_public_key(world)}
    path = f"/service-users/{owner.id}/keys"
    first, second = (api.post(path, members, Idempotency_Key="uploaded") for _ in range(2))
    assert first == second
    assert first["key_file"] is None


def test_secret_stored_by_earlier_version_is_not_replayed(
    world: World, owner: ServiceUserProgram, api: ApiClient
) -> None:
    path = f"/service-users/{owner.id}/secrets"
    with world.transaction_services() as services:
        assert services.idempotency.claim_key(owner.id, "old", f"POST\n/management/v1{path}\n".encode()) is None
        body = json.dumps({"id": "x", "client_secret": "y"})
        services.idempotency.store_response(201, json.dumps([body, None, "https://id.example.com/x"]).encode())
    answer = api.ask("POST", path, Idempotency_Key="old")
    check_api_error(answer, 409, "conflict")
    assert answer.headers["Location"] == "https://id.example.com/x"


def test_different_request_with_same_key_is_refused(world: World, api: ApiClient, projects: str) -> None:
    api.post(projects, {"name": "Billing"}, Idempotency_Key="k")
    other_path = projects.replace("projects", "users")
    for path, members in ((projects, {"name": "Shipping"}), (other_path, {"name": "Billing"})):
        answer = api.ask("POST", path, members, Idempotency_Key="k")
        assert "another request" in check_api_error(answer, 409, "conflict")["message"]
    assert len(api.list(projects)) == 1
    program = world.make_manager_program("ORG_OWNER")
    ApiClient.for_user(program).post(
        f"/organizations/{program.organization.id}/projects", {"name": "Shipping"}, Idempotency_Key="k"
    )


def test_refused_request_can_reuse_its_key(api: ApiClient, projects: str) -> None:
    check_api_error(api.ask("POST", projects, {"name": ""}, Idempotency_Key="k2"), 422, "invalid")
    api.post(projects, {"name": "Billing"}, Idempotency_Key="k2")


def test_idempotency_key_expires_after_a_day(world: World, owner: ServiceUserProgram, projects: str) -> None:
    first = ApiClient.for_user(owner).post(projects, {"name": "Billing"}, Idempotency_Key="k3")
    world.clock.advance(24 * 3600 + 1)
    second = ApiClient.for_user(owner).post(projects, {"name": "Billing"}, Idempotency_Key="k3")
    assert first["id"] != second["id"]


def test_malformed_idempotency_key_is_refused(api: ApiClient, projects: str) -> None:
    for key in ("", "a b", "ü", "x" * 256):
        answer = api.ask("POST", projects, {"name": "Billing"}, Idempotency_Key=key)
        assert "Idempotency-Key" in check_api_error(answer, 400, "invalid")["message"]
        assert api.list(projects) == []


def test_replay_needs_permission(world: World, api: ApiClient, owner: ServiceUserProgram) -> None:
    path = f"/service-users/{owner.id}/secrets"
    api.post(path, Idempotency_Key="k4")
    program = world.make_manager_program("ORG_OWNER")
    check_api_error(ApiClient.for_user(program).ask("POST", path, Idempotency_Key="k4"), 404, "not_found")
