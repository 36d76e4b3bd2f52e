"""Service description §2.7: scopes, in particular the audience scope."""

import pytest

from identity.domain.users import TokenFormat
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import (
    check_api_error,
    check_inactive_token,
    check_oauth_error,
    check_token_response,
)
from identity.testing.world import ServiceUserProgram, World


def audience(robot: ServiceUserProgram, scope: str) -> list[str]:
    """The audience that a token of this scope has."""
    reader = ServiceUserProgram(robot.world, robot.user, robot.organization, robot.key_id, robot.key)
    _, claims = decode_jwt_unverified(reader.access_token(scope))
    found: list[str] = claims["aud"]
    return found


@pytest.fixture
def robot(world: World) -> ServiceUserProgram:
    """A service user whose access tokens can be read."""
    return world.make_service_user_program(token_format=TokenFormat.JWT)


@pytest.mark.shows("2.7.1", "4.3.6")
def test_scope_must_include_openid(robot: ServiceUserProgram) -> None:
    """Security 2.9."""
    for scope in ("profile", "offline_access", "OPENID", "openid_", "urn:service:iam:openid", "x" * 2000):
        check_oauth_error(robot.request_token(scope), "invalid_scope", description="scope must include openid")


def test_default_scope_is_openid(robot: ServiceUserProgram) -> None:
    for scope in (None, "", " "):
        assert check_token_response(robot.request_token(scope))["scope"] == "openid"


def test_claims_scopes_keep_request_order(robot: ServiceUserProgram) -> None:
    scope = "address phone openid email profile"
    assert check_token_response(robot.request_token(scope))["scope"] == scope


@pytest.mark.shows("2.4.5")
def test_unknown_scopes_are_dropped(robot: ServiceUserProgram) -> None:
    """Decisions, namespaces: the response contains the granted scope."""
    scope = "openid read:messages https://api.example/all urn:other:iam:org:project:id:1:aud"
    assert check_token_response(robot.request_token(scope))["scope"] == "openid"


def test_scope_with_forbidden_characters_is_refused(robot: ServiceUserProgram) -> None:
    """RFC 6749 §3.3."""
    for scope in ('"quoted"', "back\\slash", "ümlaut", "tab\x0bulator", "\x7f"):
        check_oauth_error(robot.request_token(f"openid {scope}"), "invalid_scope")


def test_default_audience_is_issuer(world: World, robot: ServiceUserProgram) -> None:
    assert audience(robot, "openid profile") == [world.issuer]


@pytest.mark.shows("2.7.5", "5.2.2")
def test_audience_scope_adds_instance_project(world: World, robot: ServiceUserProgram) -> None:
    """By its id, or by the alias that the namespace ends with."""
    for scope in (f"openid {world.audience_scope()}", "openid urn:service:iam:org:project:id:service:aud"):
        assert audience(robot, scope) == [world.instance.project_id]
        assert check_token_response(robot.request_token(scope))["scope"] == scope


def test_instance_project_audience_grants_no_permission(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.9: a project audience scope adds an audience only."""
    answer = world.client.call_management_api("/instance", robot.management_token())
    check_api_error(answer, 403, "forbidden")


@pytest.mark.shows("2.7.5")
def test_projects_of_user_organization_can_be_audience(world: World, robot: ServiceUserProgram) -> None:
    first, second = world.make_project(robot.organization), world.make_project(robot.organization)
    scope = f"openid {world.audience_scope(second.id)} {world.audience_scope(first.id)} {world.audience_scope()}"
    assert audience(robot, scope) == [second.id, first.id, world.instance.project_id]


def test_foreign_project_looks_unknown(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.9."""
    foreign = world.make_project()
    for project_id in (foreign.id, foreign.id[:-1] + "x", "nothing", "", "%", "*", ":", robot.organization.id):
        scope = f"urn:service:iam:org:project:id:{project_id}:aud"
        description = f"{scope} names no project that the organization owns or was granted"
        check_oauth_error(robot.request_token(f"openid {scope}"), "invalid_scope", description=description)


def test_invalid_project_refuses_whole_request(world: World, robot: ServiceUserProgram) -> None:
    project, foreign = world.make_project(robot.organization), world.make_project()
    answer = robot.request_token(f"openid {world.audience_scope(project.id)} {world.audience_scope(foreign.id)}")
    check_oauth_error(answer, "invalid_scope")
    assert foreign.id in answer.json["error_description"]


def test_project_grant_controls_audience(world: World, robot: ServiceUserProgram) -> None:
    """Security 14.5: withdrawing removes derived access at once, also from tokens issued before."""
    project = world.make_project()
    client = world.make_application(project.id)
    scope = f"openid {world.audience_scope(project.id)}"
    check_oauth_error(robot.request_token(scope), "invalid_scope")
    grant = world.make_project_grant(project, robot.organization)
    assert audience(robot, scope) == [project.id]
    token = robot.access_token(scope)
    assert world.client.introspect(token, client).json["active"] is True
    world.operator_services.project_grants.remove(grant.id)
    check_inactive_token(world.client.introspect(token, client))
    check_oauth_error(robot.request_token(scope), "invalid_scope")
    # The token still identifies its subject.
    assert world.client.fetch_userinfo(token).status_int == 200


def test_foreign_project_grant_is_ignored(world: World, robot: ServiceUserProgram) -> None:
    project = world.make_project()
    world.make_project_grant(project, world.make_organization())
    check_oauth_error(robot.request_token(f"openid {world.audience_scope(project.id)}"), "invalid_scope")


@pytest.mark.storages("memory")  # a setting; the look-up of projects is tested above
def test_configured_namespace_is_an_alias(make_world: WorldFactory) -> None:
    """Decisions, namespaces: existing clients of services with that namespace work unchanged."""
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    project_id = world.instance.project_id
    for scope in (
        "openid urn:zitadel:iam:org:project:id:zitadel:aud",
        f"openid {world.audience_scope(namespace='urn:zitadel:iam')}",
        "openid urn:service:iam:org:project:id:service:aud",
    ):
        assert audience(robot, scope) == [project_id]
        assert check_token_response(robot.request_token(scope))["scope"] == scope
        assert world.client.call_management_api("/me", robot.access_token(scope)).status_int == 200
    for scope in ("urn:zitadel:iam:org:project:id:service:aud", "urn:service:iam:org:project:id:zitadel:aud"):
        check_oauth_error(robot.request_token(f"openid {scope}"), "invalid_scope")


def test_unconfigured_namespace_is_unknown(world: World, robot: ServiceUserProgram) -> None:
    scope = "openid urn:zitadel:iam:org:project:id:zitadel:aud"
    assert check_token_response(robot.request_token(scope))["scope"] == "openid"
    assert audience(robot, scope) == [world.issuer]
