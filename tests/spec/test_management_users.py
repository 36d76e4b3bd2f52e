"""Management API: users and sessions."""

import pytest

from identity.domain.login_names import LoginName
from identity.domain.permissions import Resource
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

ADA = {"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace", "email": "ada@example.com"}


@pytest.fixture
def users(owner: ServiceUserProgram) -> str:
    return f"/organizations/{owner.organization.id}/users"


def test_user_life_cycle(world: World, api: ApiClient, users: str) -> None:
    created = api.post(users, ADA)
    path = f"/users/{created['id']}"
    assert created.pop("initial")["kind"] == "link"
    assert {name: created[name] for name in ADA} == ADA
    assert (created["state"], created["email_verified"], created["last_sign_in_at"]) == ("invited", False, None)
    assert api.get(path) == created
    assert api.list(users) == [created]
    changed = api.patch(
        path,
        {
            "user_name": "countess",
            "nickname": "Ada",
            "locale": "en",
            "address": {"locality": "London", "country": "UK"},
        },
    )
    assert (changed["user_name"], changed["nickname"], changed["version"]) == ("countess", "Ada", 2)
    assert (changed["address"]["locality"], changed["address"]["region"]) == ("London", "")
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "invited"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events >= {f"user.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")}


def test_user_search_by_part_of_name_or_email(api: ApiClient, users: str) -> None:
    created = api.post(users, ADA)
    api.post(users, {**ADA, "user_name": "grace", "given_name": "Grace", "family_name": "Hopper", "email": ""})
    domain = api.get(users.removesuffix("/users"))["primary_domain"]
    for query in (
        "lovelace",
        "LOVE",
        "velac",
        "ada%20lovelace",
        "lace%20ada",
        "example.com",
        f"ada%40{domain}",
        created["id"],
    ):
        assert [item["id"] for item in api.list(f"{users}?q={query}")] == [created["id"]], query
    for query in ("loveless", "velac%20hopper", "%25", "_", f"race%40{domain}.x", created["id"][:7]):
        assert api.list(f"{users}?q={query}") == [], query
    assert [item["user_name"] for item in api.list(f"{users}?sort=-email")] == ["ada", "grace"]
    assert [item["user_name"] for item in api.list(f"{users}?sort=email")] == ["grace", "ada"]


def test_user_search_excludes_other_organizations(world: World, api: ApiClient, users: str) -> None:
    """Security 14.2: neither rows nor totals."""
    stranger = world.make_manager_program("ORG_OWNER")
    stranger_api = ApiClient.for_user(stranger)
    stranger_api.post(f"/organizations/{stranger.organization.id}/users", ADA)
    answer = api.get(f"{users}?q=lovelace")
    assert (answer["items"], answer["total"]) == ([], 0)


def test_new_user_with_one_time_password(api: ApiClient, users: str) -> None:
    created = api.post(users, {**ADA, "initial": "one_time_password"})
    assert created["initial"]["kind"] == "one_time_password"
    assert created["initial"]["secret"]
    assert created["state"] == "must_change_password"
    assert "initial" not in api.get(f"/users/{created['id']}")


def test_further_links_and_passwords_are_shown_once(world: World, api: ApiClient, users: str) -> None:
    path = f"/users/{api.post(users, ADA)['id']}"
    login_url = world.identity.settings.login_url
    assert api.post(f"{path}/password-link", status=200)["password_link"].startswith(login_url)
    assert api.post(f"{path}/one-time-password", status=200)["one_time_password"]
    assert api.get(path)["state"] == "must_change_password"
    api.post(f"{path}/deactivate", status=200)
    check_api_error(api.ask("POST", f"{path}/password-link"), 409, "conflict")


def test_invalid_user_is_named(api: ApiClient, users: str) -> None:
    for members, fields in (
        ({"user_name": "a b"}, {"user_name"}),
        ({"email": "nowhere"}, {"email"}),
        ({"given_name": "", "family_name": ""}, {"given_name", "family_name"}),
        ({"initial": "telegram"}, {"initial"}),
        ({"password": "secret"}, {"password"}),
    ):
        answer = api.ask("POST", users, {**ADA, **members})
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == fields
        assert api.list(users) == []


def test_postal_address_is_an_object(api: ApiClient, users: str) -> None:
    path = f"/users/{api.post(users, ADA)['id']}"
    for address in ("London", {"locality": 7}, {"planet": "Earth"}, [], None):
        answer = api.ask("PATCH", path, {"address": address})
        if address is None:
            assert answer.status_int == 200
        else:
            assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"address"}


def test_user_search_by_name_and_state(api: ApiClient, users: str) -> None:
    ada = api.post(users, ADA)
    bob = api.post(users, {**ADA, "user_name": "bob", "given_name": "Bob", "family_name": "Ross", "email": ""})
    api.post(f"/users/{bob['id']}/deactivate", status=200)
    assert [item["id"] for item in api.list(f"{users}?q=ad")] == [ada["id"]]
    assert [item["id"] for item in api.list(f"{users}?state=deactivated")] == [bob["id"]]
    assert [user["user_name"] for user in api.list(users)] == ["ada", "bob"]


def test_user_state_changes_without_version(
    world: World, owner: ServiceUserProgram, api: ApiClient, users: str
) -> None:
    """The state depends on the password, so it can change while the version stays."""
    path = f"/users/{api.post(users, ADA)['id']}"
    tag = api.ask("GET", path).headers["ETag"]
    api.post(f"{path}/one-time-password", status=200)
    answer = api.ask("GET", path, If_None_Match=tag)
    assert (answer.status_int, answer.headers["ETag"]) == (200, tag)
    assert answer.json["state"] == "must_change_password"


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_and_ended(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    person = world.make_human_user(owner.organization)
    first, second, third = (world.make_browser_session(person) for _ in range(3))
    path = f"/users/{person.id}/sessions"
    sessions = {item["id"]: item for item in api.list(path)}
    assert set(sessions) == {first.id, second.id, third.id}
    assert sessions[first.id]["user_agent"] == "Browser/1.0"
    assert sessions[first.id]["methods"] == ["pwd"]
    assert "secret" not in str(sessions)
    api.delete(f"{path}/{first.id}")
    check_api_error(api.ask("DELETE", f"{path}/{first.id}"), 404, "not_found")
    assert {item["id"] for item in api.list(path)} == {second.id, third.id}
    api.delete(path)
    assert api.list(path) == []


def test_session_of_other_user_is_not_found(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    person, user = world.make_human_user(owner.organization), world.make_human_user(owner.organization)
    session = world.make_browser_session(user)
    check_api_error(api.ask("DELETE", f"/users/{person.id}/sessions/{session.id}"), 404, "not_found")
    assert len(api.list(f"/users/{user.id}/sessions")) == 1


def test_deactivated_user_is_signed_out(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    person = world.make_human_user(owner.organization)
    world.make_browser_session(person)
    api.post(f"/users/{person.id}/deactivate", status=200)
    api.post(f"/users/{person.id}/reactivate", status=200)
    assert api.list(f"/users/{person.id}/sessions") == []


# --- escalation -------------------------------------------------------------------------------------------------------


def test_credentials_of_higher_user_are_refused(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    """Security 14.4."""
    person = world.make_human_user(owner.organization)
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    session = world.make_browser_session(person)
    path = f"/users/{person.id}"
    for method, address, members in (
        ("PATCH", path, {"email": "mine@example.com"}),
        ("POST", f"{path}/password-link", None),
        ("POST", f"{path}/one-time-password", None),
        ("POST", f"{path}/deactivate", None),
        ("DELETE", f"{path}/sessions/{session.id}", None),
        ("DELETE", f"{path}/sessions", None),
        ("DELETE", path, None),
    ):
        check_api_error(api.ask(method, address, members), 403, "forbidden")
    assert len(api.list(f"{path}/sessions")) == 1


def test_last_owner_cannot_be_removed(isolated_world: World) -> None:
    with isolated_world.read_only_services() as services:
        [owner] = services.storage.managers.page(Resource.INSTANCE.key).items
    robot = isolated_world.make_service_user_program()
    second = isolated_world.assign_manager_role(robot, "IAM_OWNER", resource=Resource.INSTANCE)
    api = ApiClient.for_user(robot)
    api.delete(f"/managers/{owner.id}")
    check_api_error(api.ask("DELETE", f"/managers/{second.id}"), 409, "conflict")
    check_api_error(api.ask("PATCH", f"/managers/{second.id}", {"roles": ["IAM_OWNER_VIEWER"]}), 409, "conflict")
    check_api_error(api.ask("POST", f"/service-users/{robot.id}/deactivate"), 409, "conflict")
    check_api_error(api.ask("DELETE", f"/service-users/{robot.id}"), 409, "conflict")
    check_api_error(api.ask("DELETE", f"/organizations/{robot.organization.id}"), 409, "conflict")


def test_locked_user_is_unlocked(world: World, api: ApiClient, owner: ServiceUserProgram) -> None:
    person = world.make_human_user(owner.organization)
    subject = world.operator_services.storage.users.find_subject(person.id)
    world.operator_services.attempts.reserve_password_attempt(LoginName.parse(person.user_name), subject, None)
    for _ in range(2):
        assert api.post(f"/users/{person.id}/unlock", status=200)["id"] == person.id
    with world.read_only_services() as services:
        assert services.users.count_failed_attempts(person.id) == 0
    events = [event for event in world.audit_events(event="user.unlocked") if event.object_id == person.id]
    assert [event.actor.id for event in events] == [owner.id]
    stranger = ApiClient.for_user(world.make_manager_program("ORG_OWNER"))
    check_api_error(stranger.ask("POST", f"/users/{person.id}/unlock"), 404, "not_found")
