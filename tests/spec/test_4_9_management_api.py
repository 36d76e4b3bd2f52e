"""Service description §4.9: access to the management API."""

import pytest

from identity.domain.permissions import INSTANCE, project_resource
from identity.services.commands.managers import ChangeManager
from identity.testing.responses import check_api_error
from identity.testing.service_client import basic
from identity.testing.world import Robot, World

PATHS = ["/me", "/instance"]


@pytest.mark.shows("2.6.5", "4.3.7", "4.9.1")
@pytest.mark.parametrize("path", PATHS)
def test_a_manager_s_token_with_the_audience_scope_is_accepted(world: World, owner: Robot, path: str) -> None:
    answer = world.client.management(path, owner.managing_token())
    assert answer.status_int == 200
    assert answer.content_type == "application/json"


def test_me_tells_who_i_am_which_roles_and_which_organization(world: World, owner: Robot) -> None:
    assert world.client.management("/me", owner.managing_token()).json == {
        "id": owner.id,
        "kind": "service_user",
        "user_name": owner.user.user_name,
        "display_name": owner.user.display_name,
        "login_name": f"{owner.user.user_name}@{owner.organization.primary_domain}",
        "organization": {
            "id": owner.organization.id,
            "name": owner.organization.name,
            "primary_domain": owner.organization.primary_domain,
        },
        "roles": [{"level": "organization", "resource_id": owner.organization.id, "roles": ["ORG_OWNER"]}],
    }


@pytest.mark.shows("5.2.2")
def test_instance_tells_the_own_project_s_id(world: World, owner: Robot) -> None:
    answer = world.client.management("/instance", owner.managing_token()).json
    assert answer["project_id"] == world.instance.project_id
    assert answer["organization_id"] == world.instance.organization_id
    assert answer["audience_scope"] == world.audience_scope()


@pytest.mark.parametrize("path", PATHS)
def test_without_a_token_the_challenge_names_no_error(world: World, path: str) -> None:
    """RFC 6750 §3.1."""
    for headers in (
        {},
        {"Authorization": basic("client:secret")},
        {"Authorization": "Bearer"},
        {"Cookie": "session=x"},
    ):
        answer = world.client.request("GET", world.client.management_url + path, headers=headers)
        check_api_error(answer, 401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="identity"'


@pytest.mark.shows("4.3.7")
@pytest.mark.parametrize("path", PATHS)
def test_a_token_without_the_audience_scope_is_refused(world: World, owner: Robot, path: str) -> None:
    """Security 14.3: the role alone is not enough."""
    project = world.a_project(owner.organization)
    for scope in ("openid", "openid profile", f"openid {world.audience_scope(project.id)}"):
        answer = world.client.management(path, owner.access_token(scope))
        check_api_error(answer, 401, "unauthenticated")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_token_without_any_manager_role_is_refused(world: World, robot: Robot) -> None:
    """Security 14.3: the audience alone is not enough."""
    check_api_error(world.client.management("/instance", robot.managing_token()), 403, "forbidden")


def test_me_answers_whoever_shows_a_token_for_this_service(world: World, robot: Robot) -> None:
    """Who am I, even without a role."""
    me = world.client.management("/me", robot.managing_token()).json
    assert (me["id"], me["organization"]["id"], me["roles"]) == (robot.id, robot.organization.id, [])


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_token_is_refused(world: World, path: str) -> None:
    for token in ("rubbish", "a.b.c", "x" * 8000):
        answer = world.client.management(path, token)
        check_api_error(answer, 401, "unauthenticated")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_neither_id_token_nor_assertion_is_accepted(world: World, owner: Robot) -> None:
    for token in (owner.token().json["id_token"], owner.assertion()):
        check_api_error(world.client.management("/me", token), 401, "unauthenticated")


def test_a_token_in_address_or_body_does_not_count(world: World, owner: Robot) -> None:
    token = owner.managing_token()
    answer = world.client.get(f"{world.client.management_url}/me?access_token={token}")
    check_api_error(answer, 401, "unauthenticated")


@pytest.mark.shows("5.2.3")
def test_roles_are_read_at_request_time(world: World, robot: Robot) -> None:
    """Security 14.3: given and taken roles count at the next request, with the same token."""
    token = robot.managing_token()
    check_api_error(world.client.management("/instance", token), 403, "forbidden")
    manager = world.make_manager(robot, "ORG_OWNER")
    assert world.client.management("/me", token).json["roles"][0]["roles"] == ["ORG_OWNER"]
    world.operator.managers.change(manager.id, ChangeManager(roles=frozenset({"ORG_OWNER_VIEWER"})))
    assert world.client.management("/me", token).json["roles"][0]["roles"] == ["ORG_OWNER_VIEWER"]
    world.operator.managers.remove(manager.id)
    check_api_error(world.client.management("/instance", token), 403, "forbidden")


@pytest.mark.shows("2.6.6")
def test_roles_of_every_level_are_told(world: World, robot: Robot) -> None:
    project = world.a_project(robot.organization)
    world.make_manager(robot, "IAM_OWNER_VIEWER", resource=INSTANCE)
    world.make_manager(robot, "PROJECT_OWNER", resource=project_resource(project))
    roles = world.client.management("/me", robot.managing_token()).json["roles"]
    assert sorted((one["level"], one["resource_id"], *one["roles"]) for one in roles) == [
        ("instance", "instance", "IAM_OWNER_VIEWER"),
        ("project", project.id, "PROJECT_OWNER"),
    ]


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_refused(world: World, owner: Robot, path: str) -> None:
    """Decisions, errors: 405."""
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = world.client.management(path, owner.managing_token(), method)
        check_api_error(answer, 405, "method_not_allowed")
        assert "GET" in answer.headers["Allow"]


def test_there_is_nothing_at_other_addresses(world: World, owner: Robot) -> None:
    for path in ("", "/nothing", "/me/", "/me/x", "/instance%00", "/%ff", "/..%2f"):
        check_api_error(world.client.management(path, owner.managing_token()), 404, "not_found")


def test_it_lives_on_the_base_host_alone(three_hosts: World) -> None:
    owner = three_hosts.a_manager()
    token = owner.managing_token()
    assert three_hosts.client.management("/me", token).status_int == 200
    for address in ("https://id.example.com", "https://login.example.com"):
        answer = three_hosts.client.get(f"{address}/management/v1/me", {"Authorization": f"Bearer {token}"})
        check_api_error(answer, 404, "not_found")


def test_answers_are_never_cached(world: World, owner: Robot) -> None:
    """They tell what only this caller may know."""
    answer = world.client.management("/me", owner.managing_token())
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_request_id_is_ours_and_new_each_time(world: World) -> None:
    """Security 16.2."""
    ids = set()
    for _ in range(2):
        answer = world.client.request(
            "GET", f"{world.client.management_url}/me", headers={"X-Request-Id": "chosen-by-the-caller"}
        )
        ids.add(check_api_error(answer, 401, "unauthenticated")["request_id"])
    assert len(ids) == 2
    assert "chosen-by-the-caller" not in ids


def test_a_refused_manager_is_an_audit_event(world: World, robot: Robot) -> None:
    """Security 9.2, with who it was and what was missing."""
    world.client.management("/instance", robot.managing_token())
    [event] = world.audit_events(event="access.refused", actor_id=robot.id)
    assert event.organization_id == robot.organization.id
    assert event.result == "refused"
    assert event.reason
    assert event.actor.client_address == "192.0.2.1"
