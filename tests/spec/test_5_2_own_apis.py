"""Service description §5.2: access to the service's own APIs."""

import pytest

from identity.domain.permissions import organization_resource
from identity.services.bootstrap import ensure_roles
from identity.testing.fixtures import MakeWorld
from identity.testing.responses import check_api_error
from identity.testing.world import Robot, World


def test_role_audience_scope_and_token_permit_access(world: World, robot: Robot) -> None:
    """The three steps: ORG_OWNER, the scope with the own project's id, the call."""
    world.make_manager(robot, "ORG_OWNER")
    token = robot.access_token(f"openid profile {world.audience_scope(world.instance.project_id)}")
    answer = world.client.management("/me", token)
    assert answer.status_int == 200
    assert answer.json["organization"]["id"] == robot.organization.id


def test_the_audience_of_that_token_contains_the_own_project(world: World, robot: Robot) -> None:
    answer = world.client.introspect(robot.managing_token(), world.introspector)
    assert world.instance.project_id in answer.json["aud"]


def test_a_role_in_another_organization_counts_there(world: World, robot: Robot) -> None:
    elsewhere = world.an_organization()
    world.make_manager(robot, "ORG_OWNER", resource=organization_resource(elsewhere.id))
    [role] = world.client.management("/me", robot.managing_token()).json["roles"]
    assert role["resource_id"] == elsewhere.id


def test_rights_end_with_the_service_user_s_organization(world: World, robot: Robot) -> None:
    world.make_manager(robot, "ORG_OWNER")
    token = robot.managing_token()
    world.operator.organizations.deactivate(robot.organization.id)
    check_api_error(world.client.management("/me", token), 401, "unauthenticated")


def test_giving_a_role_is_an_audit_event(world: World, robot: Robot) -> None:
    manager = world.make_manager(robot, "ORG_OWNER")
    [event] = world.audit_events(event="manager.added", object_id=manager.id)
    assert event.detail["roles"] == ["ORG_OWNER"]
    assert event.organization_id == robot.organization.id


@pytest.mark.storages("memory")  # a setting; roles are read from each storage above
def test_the_alias_of_another_namespace_opens_the_management_api(make_world: MakeWorld) -> None:
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    robot = world.a_robot()
    with world.transaction() as services:
        ensure_roles(services, robot.id, organization_resource(robot.organization.id), frozenset({"ORG_OWNER"}))
    token = robot.access_token("openid urn:zitadel:iam:org:project:id:zitadel:aud")
    assert world.client.management("/me", token).status_int == 200
