"""Concurrent identical POST requests to the management API (security 5.2, 12.6): success or refusal, never a 500."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from identity.domain.domains import MAX_DOMAINS
from identity.domain.permissions import Resource
from identity.plugins.management.operation import Operation
from identity.plugins.management.operation_table import OPERATIONS
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ROLE, ApiClient, ApiFixtureData, make_fixture_data

# The other storages have a single writer.
pytestmark = pytest.mark.storages("postgresql")

AT_ONCE = 4
#: Operations that may conflict or depend on an unavailable service.
UNSURE = {
    # There is no mail server.
    "send_test_mail": {409, 422},
    "import_organization": {409, 422, 503},
    "assert_domain": {409, 422},
    "verify_domain": {409, 422, 503},
    # Only who started the import can run it.
    "run_user_import": {403},
    # Concurrent exports per organization are limited.
    "export_organization": {503},
}
POSTS = [operation for operation in OPERATIONS if operation.method == "POST"]


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    """Repetitions; more with `make test-all`."""
    return 3 if pytestconfig.getoption("--exhaustive") else 1


def _members(name: str, world: World, estate: ApiFixtureData) -> dict[str, Any]:
    """The members of all concurrent requests; identical ones, to provoke conflicts on unique values."""
    person, robot = estate.path_values["user"], estate.path_values["service_user"]
    roles = {"instance": "IAM_OWNER_VIEWER", "organization": "ORG_OWNER_VIEWER"}
    roles |= {"project": "PROJECT_OWNER_VIEWER", "project_grant": "PROJECT_GRANT_OWNER_VIEWER"}
    managers = {f"add_{level}_manager": {"user_id": person, "roles": [role]} for level, role in roles.items()}
    # Instance roles need a user who can sign in, so a service user is used.
    managers["add_instance_manager"]["user_id"] = robot
    found: dict[str, dict[str, Any]] = {
        **managers,
        "create_organization": {"name": "Narwhal", "primary_domain": f"{person}.id.example.com"},
        "invite_user": {
            "user_name": "bert", "given_name": "B", "family_name": "E", "email": "b@e.example", "initial": "link",
        },
        "add_group": {"name": "Night shift"},
        "add_group_member": {"user_id": robot},
        "add_group_grant": {"project_id": world.make_project(estate.organization, roles=[ROLE]).id, "roles": [ROLE]},
        "add_group_manager": {"level": "project", "resource_id": estate.project.id, "roles": ["PROJECT_OWNER_VIEWER"]},
        "add_attribute_mapping": {
            "claim": "team", "attribute_id": world.make_attribute(estate.organization, "team").id,
        },
        "add_group_mapping": {"claim": "groups", "value": "support", "group_id": estate.path_values["group"]},
        "add_directory_attribute_mapping": {
            "claim": "team", "attribute_id": world.make_attribute(estate.organization, "squad").id,
        },
        "add_directory_group_mapping": {
            "claim": "memberOf", "value": "cn=support", "group_id": estate.path_values["group"],
        },
        "create_service_user": {"user_name": "nightly", "display_name": "Nightly"},
        "create_attribute": {"key": "department", "label": "Department"},
        "create_upstream_provider": {
            "name": "Elsewhere", "issuer": "https://elsewhere.example", "client_id": "us", "client_secret": "secret",
        },
        "create_webhook": {"name": "Receiver", "url": "https://hooks.example.com/"},
        "create_instance_webhook": {"name": "Receiver", "url": "https://hooks.example.com/"},
        "add_personal_access_token": {"name": "CI"},
        "add_federated_credential": {
            "name": "CI", "issuer": "https://ci.example", "conditions": ["sub = repo:acme/app:main"],
        },
        "add_application_federated_credential": {
            "name": "CI", "issuer": "https://ci.example", "conditions": ["sub = repo:acme/app:main"],
        },
        "create_project": {"name": "Ocean"},
        "add_project_role": {"key": "writer", "display_name": "Writer"},
        "register_application": {"name": "Stock", "type": "api"},
        "add_project_grant": {"organization_id": world.make_organization().id, "roles": [ROLE]},
        "add_domain": {"domain": f"{person}.example"},
        "add_user_grant": {"project_id": world.make_project(estate.organization, roles=[ROLE]).id, "roles": [ROLE]},
        "add_service_user_grant": {"project_id": estate.project.id, "roles": [ROLE]},
        "place_legal_hold": {"kind": "user", "held_id": person, "reason": "Case 12"},
        "start_user_import": {"csv": "user_name,given_name,family_name\nlise,Lise,Meitner\n", "dry_run": True},
        "add_project_user_grant": {"user_id": robot, "roles": [ROLE]},
        "add_project_grant_user_grant": {"user_id": world.make_human_user(estate.holder).id, "roles": [ROLE]},
    }  # fmt: skip
    return found.get(name, {})


@pytest.mark.parametrize("operation", POSTS, ids=lambda item: item.name)
def test_concurrent_posts_succeed_or_conflict(world: World, rounds: int, operation: Operation) -> None:
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    together = threading.Barrier(AT_ONCE)
    for _ in range(rounds):
        estate = make_fixture_data(world)
        path, members = estate.address(operation.path), _members(operation.name, world, estate)
        if operation.name == "import_organization":
            members = api.post(f"/organizations/{estate.organization.id}/export", status=200)
            path += "?keep_ids=false"

        def ask(_: int, path: str = path, members: object = members) -> int:
            together.wait(60)
            status: int = api.ask("POST", path, members).status_int
            return status

        with ThreadPoolExecutor(AT_ONCE) as pool:
            statuses = list(pool.map(ask, range(AT_ONCE)))
        refused = UNSURE.get(operation.name, {409, 422})
        assert set(statuses) <= {operation.status, *refused}, statuses
        assert operation.status in statuses or operation.name in UNSURE, statuses


@pytest.mark.parametrize("path", ["/service-users/{service_user}/secrets", "/applications/{application}/secrets"])
def test_concurrent_secrets_stay_within_limit(world: World, rounds: int, path: str) -> None:
    """Security 3.2: one secret existed before; each response contains its own secret."""
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    together = threading.Barrier(AT_ONCE)
    for _ in range(rounds):
        address = make_fixture_data(world).address(path)

        def ask(_: int, address: str = address) -> Any:
            together.wait(60)
            return api.ask("POST", address)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(ask, range(AT_ONCE)))
        assert sorted(answer.status_int for answer in answers) == [201] + [409] * (AT_ONCE - 1)
        [created] = [answer.json for answer in answers if answer.status_int == 201]
        assert len(api.list(address)) == 2
        del created["client_secret"]
        assert created in api.list(address)


def test_concurrent_domains_stay_within_limit(world: World, rounds: int) -> None:
    """One more was allowed."""
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    together = threading.Barrier(AT_ONCE)
    for _ in range(rounds):
        address = make_fixture_data(world).address("/organizations/{organization}/domains")
        for number in range(MAX_DOMAINS - 1 - len(api.list(address))):
            api.post(address, {"domain": f"d{number}.example"})

        def ask(number: int, address: str = address) -> int:
            together.wait(60)
            status: int = api.ask("POST", address, {"domain": f"last{number}.example"}).status_int
            return status

        with ThreadPoolExecutor(AT_ONCE) as pool:
            assert sorted(pool.map(ask, range(AT_ONCE))) == [201] + [422] * (AT_ONCE - 1)
        assert len(api.list(address)) == MAX_DOMAINS
