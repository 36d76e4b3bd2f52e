"""Management API: service users, their keys, secrets and personal access tokens."""

import json

import pytest

from identity.domain.permissions import Resource
from identity.testing.response_checks import check_api_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient, make_public_key, token_with


@pytest.fixture
def service_users(owner: ServiceUserProgram) -> str:
    return f"/organizations/{owner.organization.id}/service-users"


@pytest.fixture
def path(api: ApiClient, service_users: str) -> str:
    created = api.post(service_users, {"user_name": "nightly", "display_name": "Nightly"})
    return f"/service-users/{created['id']}"


@pytest.mark.shows("2.1.4")
def test_service_user_life_cycle(world: World, api: ApiClient, service_users: str) -> None:
    members = {"user_name": "weekly", "display_name": "Weekly", "description": "Sends mails.\nOn Mondays."}
    created = api.post(service_users, {**members, "access_token_type": "jwt"})
    path = f"/service-users/{created['id']}"
    assert {name: created[name] for name in members} == members
    assert (created["access_token_type"], created["state"], created["version"]) == ("jwt", "active", 1)
    assert api.get(path) == created
    assert created in api.list(service_users)
    assert api.patch(path, {"display_name": "Every week"})["display_name"] == "Every week"
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events == {
        f"service_user.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")
    }


def test_people_are_no_service_users(
    world: World, owner: ServiceUserProgram, api: ApiClient, service_users: str
) -> None:
    person = world.make_human_user(owner.organization)
    check_api_error(api.ask("GET", f"/service-users/{person.id}"), 404, "not_found")
    check_api_error(api.ask("GET", f"/users/{owner.id}"), 404, "not_found")
    assert person.id not in [service_user["id"] for service_user in api.list(service_users)]


def test_service_users_are_listed_by_kind_and_owner(
    world: World, owner: ServiceUserProgram, api: ApiClient, service_users: str
) -> None:
    """Only those of the organization, also if the owner belongs to another one."""
    ada, ben = (world.make_human_user(owner.organization) for _ in range(2))
    agents, other = [world.make_agent(ada).id for _ in range(3)], world.make_agent(ben).id
    foreign = world.make_human_user()
    world.make_agent(foreign)

    def listed(query: str) -> list[str]:
        return [item["id"] for item in api.list(f"{service_users}?{query}")]

    assert sorted(listed("")) == sorted([owner.id, *agents, other])
    assert listed("kind=service") == [owner.id]
    assert sorted(listed("kind=agent")) == sorted([*agents, other])
    assert len(listed(f"owner_user_id={ada.id}&limit=2")) == 2
    assert listed(f"owner_user_id={ada.id}&sort=-created_at&kind=agent") == sorted(agents, reverse=True)
    for nothing in (f"owner_user_id={ada.id}&kind=service", f"owner_user_id={foreign.id}", "owner_user_id=nobody"):
        assert listed(nothing) == []
    assert listed(f"owner_user_id={ben.id}&q=nothing") == listed(f"owner_user_id={ben.id}&state=deactivated") == []
    check_api_error(api.ask("GET", f"{service_users}?kind=human"), 422, "invalid")


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.shows("2.2.4")
def test_key_file_is_shown_once_and_gets_tokens(world: World, api: ApiClient, path: str) -> None:
    """Service description §2.2 and §5.1, with the API only."""
    created = api.post(f"{path}/keys", {"expires_at": "2100-01-01T00:00:00+01:00"})
    file = created.pop("key_file")
    assert list(file) == ["type", "keyId", "key", "userId"]
    assert file["keyId"] == created["id"]
    assert created["expires_at"] == "2099-12-31T23:00:00Z"
    [key] = api.list(f"{path}/keys")
    assert key == created == api.get(f"{path}/keys/{created['id']}")
    assert "PRIVATE" not in json.dumps(key)
    token = token_with(world, file)
    check_token_response(token)
    assert api.get(f"{path}/keys/{created['id']}")["last_used_at"] is not None
    api.delete(f"{path}/keys/{created['id']}")
    assert api.list(f"{path}/keys") == []
    assert token_with(world, file).status_int == 400


def test_public_key_upload(world: World, api: ApiClient, path: str) -> None:
    created = api.post(f"{path}/keys", {"public_key": make_public_key(world)})
    assert created["key_file"] is None
    answer = api.ask("POST", f"{path}/keys", {"public_key": "-----BEGIN PUBLIC KEY-----"})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"public_key"}


def test_invalid_key_is_refused(api: ApiClient, path: str) -> None:
    for members in (
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": "tomorrow"},
        {"expires_at": 4102444800},
        {"expires_at": "2100-01-01T00:00:00"},
        {"expires_at": "2100-01-01"},
        {"expires_at": "9999-12-31T23:59:59-14:00"},
        {"expires_at": "0000-00-00T00:00:00Z"},
        {"expires_at": "0001-01-01T00:00:00+14:00"},
        {"key_size": 1024},
        {"key_size": "2048"},
        {"algorithm": "HS256"},
        {"algorithm": "none"},
    ):
        answer = api.ask("POST", f"{path}/keys", members)
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == set(members)
        assert api.list(f"{path}/keys") == []


@pytest.mark.shows("2.2.1")
def test_key_of_other_service_user_is_not_found(
    world: World, owner: ServiceUserProgram, api: ApiClient, path: str
) -> None:
    for method in ("GET", "DELETE"):
        check_api_error(api.ask(method, f"{path}/keys/{owner.key_id}"), 404, "not_found")
    assert world.client.call_management_api("/me", owner.management_token()).status_int == 200


# --- secrets and personal access tokens -------------------------------------------------------------------------------


def test_secret_is_shown_once_and_gets_tokens(world: World, api: ApiClient, path: str) -> None:
    created = api.post(f"{path}/secrets")
    credentials = Credentials(path.rpartition("/")[2], created.pop("client_secret"))
    assert api.list(f"{path}/secrets") == [created] == [api.get(f"{path}/secrets/{created['id']}")]
    form = {"grant_type": "client_credentials"}
    check_token_response(world.post_token_request(credentials, form))
    api.post(f"{path}/secrets")
    check_api_error(api.ask("POST", f"{path}/secrets"), 409, "conflict")
    api.delete(f"{path}/secrets/{created['id']}")
    assert world.post_token_request(credentials, form).status_int == 401


def test_personal_access_token_is_an_access_token(
    world: World, owner: ServiceUserProgram, api: ApiClient, path: str
) -> None:
    created = api.post(f"{path}/personal-access-tokens", {"name": "Backup"})
    token = created.pop("token")
    assert created["scope"] == ["openid", world.audience_scope()]
    [listed] = api.list(f"{path}/personal-access-tokens")
    assert listed == created == api.get(f"{path}/personal-access-tokens/{created['id']}")
    holder = ApiClient(world, token)
    check_api_error(holder.ask("GET", "/roles"), 403, "forbidden")
    api.post(
        f"/organizations/{owner.organization.id}/managers",
        {"user_id": path.rpartition("/")[2], "roles": ["ORG_OWNER_VIEWER"]},
    )
    assert holder.get("/me")["id"] == path.rpartition("/")[2]
    api.delete(f"{path}/personal-access-tokens/{created['id']}")
    check_api_error(holder.ask("GET", "/me"), 401, "unauthenticated")


def test_invalid_personal_access_token_is_refused(api: ApiClient, path: str) -> None:
    for members in (
        {"name": ""},
        {"name": "a", "expires_at": "2001-01-01T00:00:00Z"},
        {"name": "a", "scope": "\u00e4"},
        {"name": "a", "project_ids": ["nothing"]},
    ):
        answer = api.ask("POST", f"{path}/personal-access-tokens", members)
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {list(members)[-1]}


# --- escalation -------------------------------------------------------------------------------------------------------


def test_credentials_of_higher_service_user_are_refused(world: World, owner: ServiceUserProgram) -> None:
    """Security 14.4: its credentials would be a privilege escalation."""
    higher = world.make_service_user_program(owner.organization)
    world.assign_manager_role(higher, "IAM_OWNER", resource=Resource.INSTANCE)
    api = ApiClient.for_user(owner)
    path = f"/service-users/{higher.id}"
    for method, address, members in (
        ("POST", f"{path}/keys", {}),
        ("POST", f"{path}/keys", {"public_key": make_public_key(world)}),
        ("DELETE", f"{path}/keys/{higher.key_id}", None),
        ("POST", f"{path}/secrets", {}),
        ("POST", f"{path}/personal-access-tokens", {"name": "Mine"}),
        ("PATCH", path, {"display_name": "Mine"}),
        ("POST", f"{path}/deactivate", None),
        ("DELETE", path, None),
    ):
        answer = check_api_error(api.ask(method, address, members), 403, "forbidden")
        assert answer["message"] == "This user holds manager roles beyond your own."
    assert world.audit_events(event="access.refused", actor_id=owner.id)
    assert api.list(f"{path}/secrets") == []
