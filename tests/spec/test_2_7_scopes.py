"""Service description §2.7: scopes, the audience scope above all."""

import pytest

from identity.domain.users import TokenFormat
from identity.testing.assertions import decoded
from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_api_error, check_granted, check_inactive, check_refused
from identity.testing.world import Robot, World


def audience(robot: Robot, scope: str) -> list[str]:
    """The audience that a token of this scope has."""
    reader = Robot(robot.world, robot.user, robot.organization, robot.key_id, robot.key)
    _, claims = decoded(reader.access_token(scope))
    found: list[str] = claims["aud"]
    return found


@pytest.fixture
def robot(world: World) -> Robot:
    """A service user whose access tokens can be read."""
    return world.a_robot(token_format=TokenFormat.JWT)


@pytest.mark.shows("2.7.1", "4.3.6")
def test_a_request_that_names_scopes_must_name_openid(robot: Robot) -> None:
    """Security 2.9."""
    for scope in ("profile", "offline_access", "OPENID", "openid_", "urn:service:iam:openid", "x" * 2000):
        check_refused(robot.token(scope), "invalid_scope", description="scope must include openid")


def test_without_a_scope_it_is_openid(robot: Robot) -> None:
    for scope in (None, "", " "):
        assert check_granted(robot.token(scope))["scope"] == "openid"


def test_the_claims_scopes_are_granted_in_the_order_asked(robot: Robot) -> None:
    scope = "address phone openid email profile"
    assert check_granted(robot.token(scope))["scope"] == scope


@pytest.mark.shows("2.4.5")
def test_unknown_scopes_are_dropped(robot: Robot) -> None:
    """Decisions, namespaces: the answer's scope says what was granted."""
    scope = "openid read:messages https://api.example/all urn:other:iam:org:project:id:1:aud"
    assert check_granted(robot.token(scope))["scope"] == "openid"


def test_a_scope_of_forbidden_characters_is_refused(robot: Robot) -> None:
    """RFC 6749 §3.3."""
    for word in ('"quoted"', "back\\slash", "ümlaut", "tab\x0bulator", "\x7f"):
        check_refused(robot.token(f"openid {word}"), "invalid_scope")


def test_without_an_audience_scope_the_audience_is_the_issuer(world: World, robot: Robot) -> None:
    assert audience(robot, "openid profile") == [world.issuer]


@pytest.mark.shows("2.7.5", "5.2.2")
def test_the_audience_scope_adds_the_own_project(world: World, robot: Robot) -> None:
    """By its id, or by the alias that the namespace ends with."""
    for scope in (f"openid {world.audience_scope()}", "openid urn:service:iam:org:project:id:service:aud"):
        assert audience(robot, scope) == [world.instance.project_id]
        assert check_granted(robot.token(scope))["scope"] == scope


def test_the_own_project_is_open_to_everyone_and_brings_no_right(world: World, robot: Robot) -> None:
    """Security 2.9: a project audience scope adds an audience only."""
    answer = world.client.management("/instance", robot.managing_token())
    check_api_error(answer, 403, "forbidden")


@pytest.mark.shows("2.7.5")
def test_projects_of_one_s_own_organization_can_be_in_the_audience(world: World, robot: Robot) -> None:
    first, second = world.a_project(robot.organization), world.a_project(robot.organization)
    scope = f"openid {world.audience_scope(second.id)} {world.audience_scope(first.id)} {world.audience_scope()}"
    assert audience(robot, scope) == [second.id, first.id, world.instance.project_id]


def test_a_foreign_project_cannot_be_told_from_one_that_does_not_exist(world: World, robot: Robot) -> None:
    """Security 2.9."""
    foreign = world.a_project()
    for project_id in (foreign.id, foreign.id[:-1] + "x", "nothing", "", "%", "*", ":", robot.organization.id):
        scope = f"urn:service:iam:org:project:id:{project_id}:aud"
        description = f"{scope} names no project that the organization owns or was granted"
        check_refused(robot.token(f"openid {scope}"), "invalid_scope", description=description)


def test_one_bad_project_refuses_the_whole_request(world: World, robot: Robot) -> None:
    own, foreign = world.a_project(robot.organization), world.a_project()
    answer = robot.token(f"openid {world.audience_scope(own.id)} {world.audience_scope(foreign.id)}")
    check_refused(answer, "invalid_scope")
    assert foreign.id in answer.json["error_description"]


def test_a_project_grant_gives_the_audience_and_takes_it_away(world: World, robot: Robot) -> None:
    """Security 14.5: withdrawing removes derived access at once, also from tokens issued before."""
    project = world.a_project()
    client = world.an_application(project.id)
    scope = f"openid {world.audience_scope(project.id)}"
    check_refused(robot.token(scope), "invalid_scope")
    grant = world.a_grant(project, robot.organization)
    assert audience(robot, scope) == [project.id]
    token = robot.access_token(scope)
    assert world.client.introspect(token, client).json["active"] is True
    world.operator.project_grants.remove(grant.id)
    check_inactive(world.client.introspect(token, client))
    check_refused(robot.token(scope), "invalid_scope")
    # The token itself still tells its bearer who they are.
    assert world.client.userinfo(token).status_int == 200


def test_a_grant_to_another_organization_is_no_grant(world: World, robot: Robot) -> None:
    project = world.a_project()
    world.a_grant(project, world.an_organization())
    check_refused(robot.token(f"openid {world.audience_scope(project.id)}"), "invalid_scope")


@pytest.mark.storages("memory")  # a setting; the look-up of projects is tested above
def test_another_namespace_is_understood_equally_if_configured(make_world: MakeWorld) -> None:
    """Decisions, namespaces: existing clients of such services work unchanged."""
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    robot = world.a_robot(token_format=TokenFormat.JWT)
    own = world.instance.project_id
    for scope in (
        "openid urn:zitadel:iam:org:project:id:zitadel:aud",
        f"openid {world.audience_scope(namespace='urn:zitadel:iam')}",
        "openid urn:service:iam:org:project:id:service:aud",
    ):
        assert audience(robot, scope) == [own]
        assert check_granted(robot.token(scope))["scope"] == scope
        assert world.client.management("/me", robot.access_token(scope)).status_int == 200
    for scope in ("urn:zitadel:iam:org:project:id:service:aud", "urn:service:iam:org:project:id:zitadel:aud"):
        check_refused(robot.token(f"openid {scope}"), "invalid_scope")


def test_a_namespace_that_is_not_configured_is_unknown(world: World, robot: Robot) -> None:
    scope = "openid urn:zitadel:iam:org:project:id:zitadel:aud"
    assert check_granted(robot.token(scope))["scope"] == "openid"
    assert audience(robot, scope) == [world.issuer]
