"""Security 7.9 for tokens of human users: deactivated and deleted entities grant no access.

{user, client, project, organization, project grant} × {code redemption, refresh, userinfo, introspection}, each
within one request.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, PresentableCode, World


@dataclass(frozen=True)
class UserStateScenario:
    """A user of one organization and an application of another, which granted a second project to the first.

    ``code`` is unused; ``members`` are the token response of another code.
    """

    world: World
    session: BrowserSession
    organization: Organization
    owner: Organization
    client: Credentials
    project: Project
    grant: ProjectGrant
    api: Credentials
    code: PresentableCode
    members: dict[str, Any]

    def standing(self) -> dict[str, str]:
        """Outcome of each use of the access token."""
        client, token = self.world.client, self.members["access_token"]
        return {
            "userinfo": str(client.fetch_userinfo(token).status_int),
            "introspection": _introspection(client.introspect(token, self.client)),
            "introspection by the other project": _introspection(client.introspect(token, self.api)),
        }

    def obtaining(self) -> dict[str, str]:
        """Outcome of redeeming the code and the refresh token."""
        return {
            "code": _token(self.world.redeem(self.code, self.client)),
            "refresh": _token(self.world.refresh(self.members["refresh_token"], self.client)),
        }


def _token(answer: Any) -> str:
    return str(answer.json.get("error", "granted"))


def _introspection(answer: Any) -> str:
    return str(answer.json.get("error") or ("active" if answer.json["active"] else "inactive"))


@pytest.fixture
def scene(world: World) -> UserStateScenario:
    organization, owner = world.make_organization(), world.make_organization()
    project, other = world.make_project(owner), world.make_project(owner)
    grant = world.make_project_grant(other, organization)
    session = world.make_browser_session(world.make_human_user(organization))
    client = world.make_web_application(project.id)
    scope = f"openid offline_access {world.audience_scope(other.id)}"
    return UserStateScenario(
        world,
        session,
        organization,
        owner,
        client,
        project,
        grant,
        world.make_application(other.id),
        world.make_code(client, session, scope=scope),
        world.obtain_tokens(client, session, scope=scope),
    )


STANDING = {"userinfo": "200", "introspection": "active", "introspection by the other project": "active"}
OBTAINED = {"code": "granted", "refresh": "granted"}

NOBODY = {"userinfo": "401", "introspection": "inactive", "introspection by the other project": "inactive"}
REFUSED = {"code": "invalid_grant", "refresh": "invalid_grant"}

NO_CLIENT = NOBODY | {"introspection": "invalid_client"}
UNKNOWN = {"code": "invalid_client", "refresh": "invalid_client"}

NO_OWNER = NO_CLIENT | {"introspection by the other project": "invalid_client"}

NO_GRANT = STANDING | {"introspection by the other project": "inactive"}
NO_AUDIENCE = {"code": "invalid_scope", "refresh": "invalid_scope"}

#: Entities that can be deactivated, reactivated and deleted: service, id, and the expected outcomes without the entity
#: for issued tokens and for new ones.
RESOURCES: dict[str, tuple[str, Callable[[UserStateScenario], str], dict[str, str], dict[str, str]]] = {
    "user": ("users", lambda scene: scene.session.user.id, NOBODY, REFUSED),
    "organization": ("organizations", lambda scene: scene.organization.id, NOBODY, REFUSED),
    "client": ("applications", lambda scene: scene.client.client_id, NO_CLIENT, UNKNOWN),
    "project": ("projects", lambda scene: scene.project.id, NO_CLIENT, UNKNOWN),
    "project's organization": ("organizations", lambda scene: scene.owner.id, NO_OWNER, UNKNOWN),
    "project grant": ("project_grants", lambda scene: scene.grant.id, NO_GRANT, NO_AUDIENCE),
}


def change(scene: UserStateScenario, resource: str, verb: str) -> None:
    """Deactivate, reactivate or remove the resource."""
    service, id_of, _, _ = RESOURCES[resource]
    if service == "users" and verb != "remove":
        # In the storage, because the service would also end sessions and tokens.
        user = scene.world.operator_services.users.get(id_of(scene))
        changed = replace(user, active=verb == "reactivate", version=user.version + 1)
        scene.world.operator_services.storage.users.update(changed)
    else:
        getattr(getattr(scene.world.operator_services, service), verb)(id_of(scene))


def test_access_is_open_before_changes(scene: UserStateScenario) -> None:
    assert scene.standing() == STANDING
    assert scene.obtaining() == OBTAINED


@pytest.mark.shows("3.1")
@pytest.mark.parametrize("resource", RESOURCES)
def test_deactivation_suspends_tokens(scene: UserStateScenario, resource: str) -> None:
    """After reactivation the existing tokens work again. A code that the client sent meanwhile is used up."""
    _, _, standing, obtaining = RESOURCES[resource]
    change(scene, resource, "deactivate")
    assert scene.standing() == standing
    assert scene.obtaining() == obtaining
    change(scene, resource, "reactivate")
    assert scene.standing() == STANDING
    spent = obtaining["code"] == "invalid_grant"
    assert scene.obtaining() == OBTAINED | ({"code": "invalid_grant"} if spent else {})


@pytest.mark.shows("3.1")
@pytest.mark.parametrize("resource", RESOURCES)
def test_deletion_ends_tokens(scene: UserStateScenario, resource: str) -> None:
    _, _, standing, obtaining = RESOURCES[resource]
    change(scene, resource, "remove")
    assert scene.standing() == standing
    assert scene.obtaining() == obtaining


@pytest.mark.parametrize("how", ["deactivate", "remove"])
def test_role_check_fails_after_project_grant_is_deleted(world: World, how: str) -> None:
    """Security 14.5: access that derives from a project grant ends with it."""
    organization, owner = world.make_organization(), world.make_organization()
    project = world.make_project(owner, roles=["reader"], check_roles=True)
    grant = world.make_project_grant(project, organization, roles=["reader"])
    person = world.make_human_user(organization)
    world.make_user_grant(person, project, "reader", grant=grant)
    client, session = world.make_web_application(project.id), world.make_browser_session(person)
    code, members = world.make_code(client, session), world.obtain_tokens(client, session)
    getattr(world.operator_services.project_grants, how)(grant.id)
    assert _token(world.redeem(code, client)) == "invalid_grant"
    assert _token(world.refresh(members["refresh_token"], client)) == "invalid_grant"
    assert "error=access_denied" in session.authorize(client).headers["Location"]
