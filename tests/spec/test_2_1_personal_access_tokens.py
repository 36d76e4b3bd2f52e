"""Service description §2.1: a personal access token works like any other token of its service user."""

from datetime import timedelta

import pytest

from identity.domain.errors import Invalid
from identity.services.access_control import Principal
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.testing.response_checks import check_api_error, check_inactive_token, check_oauth_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient


def test_personal_access_token_opens_management_api(world: World) -> None:
    manager = world.make_manager_program()
    token = world.make_personal_access_token(manager)
    answer = world.client.call_management_api("/me", token)
    assert answer.status_int == 200
    assert answer.json["organization"]["id"] == manager.organization.id


def test_personal_access_token_needs_manager_role(world: World, robot: ServiceUserProgram) -> None:
    """Security 14.3."""
    check_api_error(
        world.client.call_management_api("/roles", world.make_personal_access_token(robot)), 403, "forbidden"
    )


def test_userinfo_describes_service_user(world: World, robot: ServiceUserProgram) -> None:
    answer = world.client.fetch_userinfo(world.make_personal_access_token(robot, scope="openid profile"))
    assert answer.status_int == 200
    assert (answer.json["sub"], answer.json["name"]) == (robot.id, robot.user.display_name)
    without = world.client.fetch_userinfo(world.make_personal_access_token(robot, scope="profile"))
    assert without.status_int == 403


def test_introspection_describes_personal_access_token(world: World, robot: ServiceUserProgram) -> None:
    answer = world.client.introspect(world.make_personal_access_token(robot), world.introspector).json
    assert answer["active"] is True
    assert (answer["sub"], answer["client_id"]) == (robot.id, robot.id)
    assert answer["aud"] == [world.instance.project_id]
    assert answer["scope"] == f"openid {world.audience_scope()}"
    assert answer["exp"] == world.clock.seconds + 365 * 24 * 3600


def test_audience_project_api_can_introspect_token(world: World, robot: ServiceUserProgram) -> None:
    project = world.make_project(robot.organization)
    api = world.make_application(project.id)
    check_inactive_token(world.client.introspect(world.make_personal_access_token(robot), api))
    token = world.make_personal_access_token(robot, project_ids=(project.id,))
    assert world.client.introspect(token, api).json["active"] is True


def test_foreign_project_scope_is_refused(world: World, robot: ServiceUserProgram) -> None:
    project = world.make_project()
    for project_id in (project.id, "nothing"):
        with pytest.raises(Invalid, match="neither owns nor was granted"):
            world.make_personal_access_token(robot, project_ids=(project_id,))
    world.make_project_grant(project, robot.organization)
    world.make_personal_access_token(robot, project_ids=(project.id,))


@pytest.fixture
def scene(world: World, robot: ServiceUserProgram) -> dict[str, str]:
    """Format parameters of scopes: the service user's organization, another organization, its project."""
    foreign = world.make_organization()
    return {
        "own": robot.organization.id,
        "own_domain": robot.organization.primary_domain.upper(),
        "foreign": foreign.id,
        "foreign_domain": foreign.primary_domain,
        "project": world.make_project(foreign).id,
    }


#: Scope beside openid → granted, dropped or refused.
SCOPE_OUTCOMES = {
    "profile": "granted",
    "urn:service:iam:user:resourceowner": "granted",
    "urn:service:iam:org:projects:roles": "granted",
    "urn:service:iam:org:project:role:reader": "granted",
    "urn:service:iam:org:id:{own}": "granted",
    "urn:service:iam:org:domain:primary:{own_domain}": "granted",
    "offline_access": "dropped",
    "something_else": "dropped",
    "urn:other:iam:org:id:{foreign}": "dropped",
    "urn:service:iam:org:id:{foreign}": "refused",
    "urn:service:iam:org:id:nothing": "refused",
    "urn:service:iam:org:domain:primary:{foreign_domain}": "refused",
    "urn:service:iam:org:project:role:": "refused",
    "urn:service:iam:org:project:id:{project}:aud": "refused",
    "urn:service:iam:org:project:id:service:aud": "refused",
}


@pytest.mark.parametrize("scope", SCOPE_OUTCOMES)
def test_token_scope_equals_scope_obtained_by_key(
    world: World, robot: ServiceUserProgram, scene: dict[str, str], scope: str
) -> None:
    """Security 18.2: scopes tell resource servers the user's organization, so all grants check them the same way."""
    owner = world.make_service_user_program(robot.organization)
    world.assign_manager_role(owner, "ORG_OWNER")
    outcome, scope = SCOPE_OUTCOMES[scope], scope.format_map(scene)
    path, api = f"/service-users/{robot.id}/personal-access-tokens", ApiClient.for_user(owner)
    answer = api.ask("POST", path, {"name": "CI", "scope": f"openid {scope}"})
    if outcome == "refused":
        assert list(check_api_error(answer, 422, "invalid")["fields"]) == ["scope"]
        return
    assert answer.status_int == 201
    audience = [world.audience_scope()]
    expected = ["openid", scope] if outcome == "granted" else ["openid"]
    assert answer.json["scope"] == [*expected, *audience]
    assert world.client.introspect(answer.json["token"], world.introspector).json["scope"].split() == [
        *expected,
        *audience,
    ]
    # The JWT bearer grant also drops offline_access and unknown scopes.
    assert robot.request_token(f"openid {scope}").json["scope"].split() == expected


def test_unknown_scope_is_refused(world: World, robot: ServiceUserProgram) -> None:
    owner = world.make_service_user_program(robot.organization)
    world.assign_manager_role(owner, "ORG_OWNER")
    path = f"/service-users/{robot.id}/personal-access-tokens"
    refused = ApiClient.for_user(owner).ask("POST", path, {"name": "CI", "scope": "something_else"})
    assert check_api_error(refused, 422, "invalid")["fields"] == {"scope": "There is no such scope."}


def test_service_user_revokes_token_with_secret(world: World, robot: ServiceUserProgram) -> None:
    """RFC 7009 §2.1."""
    token = world.make_personal_access_token(robot)
    stranger = world.make_service_user_secret(world.make_service_user_program())
    check_oauth_error(world.client.revoke(token, stranger), "invalid_grant")
    assert world.client.fetch_userinfo(token).status_int == 200
    assert world.client.revoke(token, world.make_service_user_secret(robot)).status_int == 200
    assert world.client.fetch_userinfo(token).status_int == 401
    with world.read_only_services() as services:
        assert not services.service_users.page_personal_access_tokens(robot.id).items


def test_instance_api_application_revokes_token(world: World, robot: ServiceUserProgram) -> None:
    token = world.make_personal_access_token(robot)
    assert world.client.revoke(token, world.introspector).status_int == 200
    assert world.client.fetch_userinfo(token).status_int == 401


def test_removed_token_is_inactive(world: World, robot: ServiceUserProgram) -> None:
    token, other = world.make_personal_access_token(robot), world.make_personal_access_token(robot)
    with world.transaction_services() as services:
        _, first = services.service_users.page_personal_access_tokens(robot.id)
        services.service_users.remove_personal_access_token(robot.id, first.id, principal=Principal.OPERATOR)
    assert world.client.fetch_userinfo(token).status_int == 401
    assert world.client.fetch_userinfo(other).status_int == 200


def test_token_expires(world: World, robot: ServiceUserProgram) -> None:
    token = world.make_personal_access_token(robot, expires_at=world.clock() + timedelta(days=1))
    world.clock.advance(seconds=86399)
    assert world.client.fetch_userinfo(token).status_int == 200
    world.clock.advance(seconds=1)
    assert world.client.fetch_userinfo(token).status_int == 401


def test_token_is_inactive_while_service_user_is_deactivated(world: World, robot: ServiceUserProgram) -> None:
    token = world.make_personal_access_token(robot)
    world.operator_services.service_users.deactivate(robot.id)
    assert world.client.fetch_userinfo(token).status_int == 401
    check_inactive_token(world.client.introspect(token, world.introspector))
    world.operator_services.service_users.reactivate(robot.id)
    assert world.client.fetch_userinfo(token).status_int == 200


def test_last_use_is_recorded(world: World, robot: ServiceUserProgram) -> None:
    token = world.make_personal_access_token(robot)
    world.client.fetch_userinfo(token)
    world.identity.background_jobs.flush_last_used()
    [found] = world.operator_services.service_users.page_personal_access_tokens(robot.id)
    assert found.last_used_at == world.clock()


def test_token_text_is_returned_once(world: World, robot: ServiceUserProgram) -> None:
    token, text = world.operator_services.service_users.add_personal_access_token(
        robot.id, AddPersonalAccessToken(name="Nightly")
    )
    world.client.secrets.add(text)
    [event] = world.audit_events(event="personal_access_token.added", object_id=token.id)
    assert event.organization_id == robot.organization.id
    assert text not in repr((event, token))
