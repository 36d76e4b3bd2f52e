"""Deactivated and deleted entities grant no access (security 7.9; service description §3 does not define states).

Every state change is checked against every use of a token, within one request.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant
from identity.services.access_control import Principal
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import ServiceUserProgram, World


@dataclass(frozen=True)
class EntityStateScenario:
    """A service user of one organization, with a project granted by another one, and all rights in use.

    ``secret`` is its secret, ``token`` was obtained with its key and ``secret_token`` with the secret.
    """

    world: World
    robot: ServiceUserProgram
    owner: Organization
    project: Project
    grant: ProjectGrant
    client: Credentials
    scope: str
    token: str
    secret: Credentials
    secret_token: str

    def status(self) -> dict[str, str]:
        """Outcome of each use of the token."""
        client = self.world.client
        return {
            "token": _token(self.robot.request_token(self.scope)),
            "userinfo": str(client.fetch_userinfo(self.token).status_int),
            "introspection": _introspection(client.introspect(self.token, self.client)),
            "introspection by the own project": _introspection(client.introspect(self.token, self.world.introspector)),
            "management": str(client.call_management_api("/organizations", self.token).status_int),
            "by secret: token": _token(self.ask()),
            "by secret: userinfo": str(client.fetch_userinfo(self.secret_token).status_int),
            "by secret: introspection": _introspection(client.introspect(self.secret_token, self.client)),
            "by secret: management": str(client.call_management_api("/organizations", self.secret_token).status_int),
        }

    def ask(self) -> Any:
        """The token response for the secret."""
        return self.world.post_token_request(self.secret, {"grant_type": "client_credentials", "scope": self.scope})


def _token(answer: object) -> str:
    return str(answer.json.get("error", "granted"))  # type: ignore[attr-defined]


def _introspection(answer: object) -> str:
    members = answer.json  # type: ignore[attr-defined]
    return str(members.get("error") or ("active" if members["active"] else "inactive"))


@pytest.fixture
def scene(world: World) -> EntityStateScenario:
    robot = world.make_manager_program()
    owner = world.make_organization()
    project = world.make_project(owner)
    grant = world.make_project_grant(project, robot.organization)
    scope = f"openid {world.audience_scope(project.id)} {world.audience_scope()}"
    client = world.make_application(project.id)
    secret = world.make_service_user_secret(robot)
    by_secret = world.post_token_request(secret, {"grant_type": "client_credentials", "scope": scope})
    secret_token = check_token_response(by_secret)["access_token"]
    return EntityStateScenario(
        world, robot, owner, project, grant, client, scope, robot.access_token(scope), secret, secret_token
    )


ALL_WELL = {
    "token": "granted",
    "userinfo": "200",
    "introspection": "active",
    "introspection by the own project": "active",
    "management": "200",
    "by secret: token": "granted",
    "by secret: userinfo": "200",
    "by secret: introspection": "active",
    "by secret: management": "200",
}
KEY_GONE = ALL_WELL | {
    "token": "invalid_grant",
    "userinfo": "401",
    "introspection": "inactive",
    "introspection by the own project": "inactive",
    "management": "401",
}
WITHOUT_SECRET = {
    "by secret: token": "invalid_client",
    "by secret: userinfo": "401",
    "by secret: introspection": "inactive",
    "by secret: management": "401",
}
SECRET_GONE = ALL_WELL | WITHOUT_SECRET
NOBODY = KEY_GONE | WITHOUT_SECRET
CLIENT_GONE = ALL_WELL | {"introspection": "invalid_client", "by secret: introspection": "invalid_client"}
PROJECT_GONE = CLIENT_GONE | {"token": "invalid_scope", "by secret: token": "invalid_scope"}
GRANT_GONE = ALL_WELL | {
    "token": "invalid_scope",
    "introspection": "inactive",
    "by secret: token": "invalid_scope",
    "by secret: introspection": "inactive",
}

#: Entities that can be deactivated, reactivated and deleted: service, id, and the expected status without the entity.
RESOURCES: dict[str, tuple[str, Callable[[EntityStateScenario], str], dict[str, str]]] = {
    "user": ("service_users", lambda scene: scene.robot.id, NOBODY),
    "organization": ("organizations", lambda scene: scene.robot.organization.id, NOBODY),
    "application": ("applications", lambda scene: scene.client.client_id, CLIENT_GONE),
    "project": ("projects", lambda scene: scene.project.id, PROJECT_GONE),
    "project's organization": ("organizations", lambda scene: scene.owner.id, PROJECT_GONE),
    "grant": ("project_grants", lambda scene: scene.grant.id, GRANT_GONE),
}


def test_access_is_open_before_changes(scene: EntityStateScenario) -> None:
    assert scene.status() == ALL_WELL


@pytest.mark.shows("3.1")
@pytest.mark.parametrize("resource", RESOURCES)
def test_resource_state_controls_tokens(scene: EntityStateScenario, resource: str) -> None:
    """After reactivation the existing tokens work again."""
    service, id_of, without = RESOURCES[resource]
    for verb, expected in (("deactivate", without), ("reactivate", ALL_WELL), ("remove", without)):
        getattr(getattr(scene.world.operator_services, service), verb)(id_of(scene))
        assert scene.status() == expected, verb


def test_deleted_key_ends_its_tokens(scene: EntityStateScenario) -> None:
    scene.world.operator_services.service_users.remove_key(scene.robot.id, scene.robot.key_id)
    assert scene.status() == KEY_GONE


def test_deleted_secret_ends_its_tokens(scene: EntityStateScenario) -> None:
    [secret] = scene.world.operator_services.service_users.list_secrets(scene.robot.id)
    scene.world.operator_services.service_users.remove_secret(scene.robot.id, secret.id)
    assert scene.status() == SECRET_GONE


def test_deleted_application_ends_user_tokens(world: World) -> None:
    """Security 7.9, for a token that an application obtained for a user."""
    client = world.make_application()
    person = world.make_human_user()
    issued = world.make_authorization(person, client)
    assert world.client.fetch_userinfo(issued.access_token).status_int == 200
    world.operator_services.applications.deactivate(client.client_id)
    assert world.client.fetch_userinfo(issued.access_token).status_int == 401
    world.operator_services.applications.reactivate(client.client_id)
    assert world.client.fetch_userinfo(issued.access_token).status_int == 200
    world.operator_services.applications.remove(client.client_id)
    assert world.client.fetch_userinfo(issued.access_token).status_int == 401


def test_removed_manager_keeps_token_without_permissions(scene: EntityStateScenario) -> None:
    """Security 14.3: with the same token, at the next request."""
    with scene.world.transaction_services() as services:
        [manager] = services.storage.managers.list_for_user(scene.robot.id)
        services.managers.remove(manager.id, principal=Principal.OPERATOR)
    assert scene.status() == ALL_WELL | {"management": "403", "by secret: management": "403"}


def test_reactivation_keeps_tokens_revoked(scene: EntityStateScenario) -> None:
    """Security 6.5."""
    scene.world.client.revoke(scene.token, scene.world.introspector)
    scene.world.operator_services.service_users.deactivate(scene.robot.id)
    scene.world.operator_services.service_users.reactivate(scene.robot.id)
    assert scene.world.client.fetch_userinfo(scene.token).status_int == 401


def test_clock_set_back_keeps_tokens_revoked(scene: EntityStateScenario) -> None:
    """Security 16.3."""
    scene.world.client.revoke(scene.token, scene.world.introspector)
    scene.world.clock.advance(hours=-1)
    assert scene.world.client.fetch_userinfo(scene.token).status_int == 401
