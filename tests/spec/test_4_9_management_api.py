"""Service description §4.9: access to the management API."""

import pytest

from identity.domain.permissions import Resource, project_resource
from identity.services.commands.managers import ChangeManager
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error
from identity.testing.service_test_client import basic_auth_header
from identity.testing.world import ServiceUserProgram, World

PATHS = ["/me", "/instance"]
METADATA_URL = "https://id.example.com/.well-known/oauth-protected-resource/management/v1"


@pytest.mark.shows("2.6.5", "4.3.7", "4.9.1")
@pytest.mark.parametrize("path", PATHS)
def test_manager_token_with_audience_scope_is_accepted(world: World, owner: ServiceUserProgram, path: str) -> None:
    answer = world.client.call_management_api(path, owner.management_token())
    assert answer.status_int == 200
    assert answer.content_type == "application/json"


def test_me_returns_user_roles_and_organization(world: World, owner: ServiceUserProgram) -> None:
    assert world.client.call_management_api("/me", owner.management_token()).json == {
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
        "roles": [
            {"level": "organization", "resource_id": owner.organization.id, "roles": ["ORG_OWNER"], "until": None}
        ],
    }


@pytest.mark.shows("5.2.2")
def test_instance_returns_its_project_id(world: World, owner: ServiceUserProgram) -> None:
    answer = world.client.call_management_api("/instance", owner.management_token()).json
    assert answer["project_id"] == world.instance.project_id
    assert answer["organization_id"] == world.instance.organization_id
    assert answer["audience_scope"] == world.audience_scope()


@pytest.mark.parametrize("path", PATHS)
def test_missing_token_challenge_names_no_error(world: World, path: str) -> None:
    """RFC 6750 §3.1."""
    for headers in (
        {},
        {"Authorization": basic_auth_header("client:secret")},
        {"Authorization": "Bearer"},
        {"Cookie": "session=x"},
    ):
        answer = world.client.request("GET", world.client.management_url + path, headers=headers)
        check_api_error(answer, 401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == f'Bearer realm="identity", resource_metadata="{METADATA_URL}"'


def test_challenge_leads_to_a_token(three_host_world: World) -> None:
    """RFC 9728 §3: a client that knows the address of the API alone learns where to get which token."""
    world = three_host_world
    robot = world.make_manager_program("ORG_OWNER")
    header = world.client.request("GET", f"{world.client.management_url}/me").headers["WWW-Authenticate"]
    metadata = world.client.get(header.rpartition('resource_metadata="')[2].removesuffix('"')).json
    assert metadata["resource"] == world.client.management_url == "https://api.example.com/management/v1"
    assert metadata["authorization_servers"] == [world.issuer]
    assert metadata["dpop_signing_alg_values_supported"]
    for parameters in ({"scope": " ".join(metadata["scopes_supported"])}, {"resource": metadata["resource"]}):
        answer = world.client.exchange_assertion(robot.assertion(), **{"scope": "openid", **parameters})
        token = answer.json["access_token"]
        assert world.client.call_management_api("/me", token).json["id"] == robot.id


def test_resource_of_the_management_api_is_refused_to_applications(world: World) -> None:
    """The address gives no right that its audience scope does not give."""
    party, browser = RelyingParty.register(world), Browser(world)
    browser.start_session(world.make_human_user())
    party.expect_error_at_once(browser, "invalid_target", "code", "openid", resource=world.client.management_url)


@pytest.mark.shows("4.3.7")
@pytest.mark.parametrize("path", PATHS)
def test_token_without_audience_scope_is_refused(world: World, owner: ServiceUserProgram, path: str) -> None:
    """Security 14.3: the role alone is not enough."""
    project = world.make_project(owner.organization)
    for scope in ("openid", "openid profile", f"openid {world.audience_scope(project.id)}"):
        answer = world.client.call_management_api(path, owner.access_token(scope))
        check_api_error(answer, 401, "unauthenticated")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_token_without_manager_role_is_refused(world: World, robot: ServiceUserProgram) -> None:
    """Security 14.3: the audience alone is not enough."""
    check_api_error(world.client.call_management_api("/instance", robot.management_token()), 403, "forbidden")


def test_me_needs_audience_but_no_role(world: World, robot: ServiceUserProgram) -> None:
    """The caller's own identity, even without a role."""
    me = world.client.call_management_api("/me", robot.management_token()).json
    assert (me["id"], me["organization"]["id"], me["roles"]) == (robot.id, robot.organization.id, [])


@pytest.mark.parametrize("path", PATHS)
def test_unknown_token_is_refused(world: World, path: str) -> None:
    for token in ("rubbish", "a.b.c", "x" * 8000):
        answer = world.client.call_management_api(path, token)
        check_api_error(answer, 401, "unauthenticated")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_id_token_and_assertion_are_refused(world: World, owner: ServiceUserProgram) -> None:
    for token in (owner.request_token().json["id_token"], owner.assertion()):
        check_api_error(world.client.call_management_api("/me", token), 401, "unauthenticated")


def test_token_in_query_or_body_is_ignored(world: World, owner: ServiceUserProgram) -> None:
    token = owner.management_token()
    answer = world.client.get(f"{world.client.management_url}/me?access_token={token}")
    check_api_error(answer, 401, "unauthenticated")


@pytest.mark.shows("5.2.3")
def test_roles_are_read_at_request_time(world: World, robot: ServiceUserProgram) -> None:
    """Security 14.3: added and removed roles count at the next request, with the same token."""
    token = robot.management_token()
    check_api_error(world.client.call_management_api("/instance", token), 403, "forbidden")
    manager = world.assign_manager_role(robot, "ORG_OWNER")
    assert world.client.call_management_api("/me", token).json["roles"][0]["roles"] == ["ORG_OWNER"]
    world.operator_services.managers.change(manager.id, ChangeManager(roles=frozenset({"ORG_OWNER_VIEWER"})))
    assert world.client.call_management_api("/me", token).json["roles"][0]["roles"] == ["ORG_OWNER_VIEWER"]
    world.operator_services.managers.remove(manager.id)
    check_api_error(world.client.call_management_api("/instance", token), 403, "forbidden")


@pytest.mark.shows("2.6.6")
def test_me_returns_roles_of_every_level(world: World, robot: ServiceUserProgram) -> None:
    project = world.make_project(robot.organization)
    world.assign_manager_role(robot, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    world.assign_manager_role(robot, "PROJECT_OWNER", resource=project_resource(project))
    roles = world.client.call_management_api("/me", robot.management_token()).json["roles"]
    assert sorted((role["level"], role["resource_id"], *role["roles"]) for role in roles) == [
        ("instance", "instance", "IAM_OWNER_VIEWER"),
        ("project", project.id, "PROJECT_OWNER"),
    ]


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_refused(world: World, owner: ServiceUserProgram, path: str) -> None:
    """Decisions, errors: 405."""
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = world.client.call_management_api(path, owner.management_token(), method)
        check_api_error(answer, 405, "method_not_allowed")
        assert "GET" in answer.headers["Allow"]


def test_unknown_paths_are_not_found(world: World, owner: ServiceUserProgram) -> None:
    for path in ("", "/nothing", "/me/", "/me/x", "/instance%00", "/%ff", "/..%2f"):
        check_api_error(world.client.call_management_api(path, owner.management_token()), 404, "not_found")


def test_management_api_exists_on_base_host_only(three_host_world: World) -> None:
    owner = three_host_world.make_manager_program()
    token = owner.management_token()
    assert three_host_world.client.call_management_api("/me", token).status_int == 200
    for address in ("https://id.example.com", "https://login.example.com"):
        answer = three_host_world.client.get(f"{address}/management/v1/me", {"Authorization": f"Bearer {token}"})
        check_api_error(answer, 404, "not_found")


def test_responses_are_not_cacheable(world: World, owner: ServiceUserProgram) -> None:
    """They contain data for this caller only."""
    answer = world.client.call_management_api("/me", owner.management_token())
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_request_id_is_generated_for_each_request(world: World) -> None:
    """Security 16.2."""
    ids = set()
    for _ in range(2):
        answer = world.client.request(
            "GET", f"{world.client.management_url}/me", headers={"X-Request-Id": "chosen-by-the-caller"}
        )
        ids.add(check_api_error(answer, 401, "unauthenticated")["request_id"])
    assert len(ids) == 2
    assert "chosen-by-the-caller" not in ids


def test_refused_manager_is_audited(world: World, robot: ServiceUserProgram) -> None:
    """Security 9.2, with the user and the missing permission."""
    world.client.call_management_api("/instance", robot.management_token())
    [event] = world.audit_events(event="access.refused", actor_id=robot.id)
    assert event.organization_id == robot.organization.id
    assert event.result == "refused"
    assert event.reason
    assert event.actor.client_address == "192.0.2.1"
