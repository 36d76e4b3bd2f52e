"""Roles with an end: tokens never carry them beyond it, and the API gives and shows it."""

from datetime import timedelta
from typing import Any

import pytest

from identity.domain.users import TokenFormat
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProjectGrant
from identity.services.commands.user_grants import ChangeUserGrant
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from tests.spec.test_2_7_role_scopes import ALL, ROLES_CLAIM, RoleScopeScenario


@pytest.fixture
def scene(make_world: WorldFactory) -> RoleScopeScenario:
    return RoleScopeScenario(make_world(), access_token_type=TokenFormat.JWT, assert_roles_in_access_token=True)


def end_grant(scene: RoleScopeScenario, **span: int) -> None:
    with scene.world.transaction_services() as services:
        command = ChangeUserGrant(until=services.now + timedelta(**span))
        services.user_grants.change(scene.grant.id, command, principal=Principal.OPERATOR)


def claims_of(tokens: dict[str, Any]) -> dict[str, Any]:
    _, claims = decode_jwt_unverified(tokens["access_token"])
    return claims


def test_token_with_roles_expires_with_the_first_of_them(scene: RoleScopeScenario) -> None:
    end_grant(scene, minutes=10)
    tokens = scene.tokens(ALL)
    claims = claims_of(tokens)
    assert set(claims[ROLES_CLAIM]) == {"reader", "writer"}
    assert claims["exp"] - claims["iat"] == tokens["expires_in"] == 600


def test_token_without_roles_keeps_its_lifetime(scene: RoleScopeScenario) -> None:
    usual = scene.tokens(ALL)["expires_in"]
    end_grant(scene, days=30)
    assert scene.tokens(ALL)["expires_in"] == usual
    end_grant(scene, minutes=10)
    scene.world.clock.advance(minutes=10)
    tokens = scene.tokens(ALL)
    assert ROLES_CLAIM not in claims_of(tokens)
    assert tokens["expires_in"] == usual


def test_refreshed_token_lacks_roles_that_have_ended(scene: RoleScopeScenario) -> None:
    end_grant(scene, minutes=10)
    tokens = scene.tokens(ALL)
    scene.world.clock.advance(minutes=10)
    refreshed = scene.world.refresh(tokens["refresh_token"], scene.client).json
    assert ROLES_CLAIM not in claims_of(refreshed)


def test_introspection_lacks_roles_from_their_end_on(make_world: WorldFactory) -> None:
    scene = RoleScopeScenario(make_world())
    end_grant(scene, minutes=10)
    token = scene.tokens(ALL)["access_token"]
    assert scene.roles_of_token(token)[ROLES_CLAIM] == {"reader", "writer"}
    scene.world.clock.advance(minutes=10)
    assert ROLES_CLAIM not in scene.roles_of_token(token)


def test_token_through_a_project_grant_expires_with_it(make_world: WorldFactory) -> None:
    world = make_world()
    owner, partner = world.make_organization(), world.make_organization()
    project = world.make_project(owner, roles=["reader"])
    grant = world.make_project_grant(project, partner, roles=["reader"])
    person = world.make_human_user(partner)
    world.make_user_grant(person, project, "reader", grant=grant)
    client = world.make_web_application(
        project.id, access_token_type=TokenFormat.JWT, assert_roles_in_access_token=True
    )
    with world.transaction_services() as services:
        command = ChangeProjectGrant(until=services.now + timedelta(minutes=5))
        services.project_grants.change(grant.id, command, principal=Principal.OPERATOR)
    tokens = world.obtain_tokens(client, world.make_browser_session(person), scope=f"openid {ALL}")
    assert set(claims_of(tokens)[ROLES_CLAIM]) == {"reader"}
    assert tokens["expires_in"] == 300
