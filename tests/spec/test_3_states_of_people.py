"""Security 7.9 for what applications have of people: what is deactivated or deleted counts no more.

{user, client, project, organization, project grant} × {code redemption, refresh, userinfo, introspection}, each within
one request.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.testing.service_client import Credentials
from identity.testing.world import BrowserSession, Code, World

Change = Callable[["Scene", Services], object]


@dataclass(frozen=True)
class Scene:
    """A person of one organization at an application of another one, which granted a second project to the first.

    ``code`` was not used yet; ``members`` are what another code brought.
    """

    world: World
    session: BrowserSession
    organization: Organization
    owner: Organization
    client: Credentials
    project: Project
    grant: ProjectGrant
    api: Credentials
    code: Code
    members: dict[str, Any]

    def standing(self) -> dict[str, str]:
        """What becomes of the access token where it is shown, in one word."""
        client, token = self.world.client, self.members["access_token"]
        return {
            "userinfo": str(client.userinfo(token).status_int),
            "introspection": _introspection(client.introspect(token, self.client)),
            "introspection by the other project": _introspection(client.introspect(token, self.api)),
        }

    def obtaining(self) -> dict[str, str]:
        """What becomes of code and refresh token, in one word."""
        return {
            "code": _token(self.world.redeem(self.code, self.client)),
            "refresh": _token(self.world.refresh(self.members["refresh_token"], self.client)),
        }


def _token(answer: Any) -> str:
    return str(answer.json.get("error", "granted"))


def _introspection(answer: Any) -> str:
    return str(answer.json.get("error") or ("active" if answer.json["active"] else "inactive"))


@pytest.fixture
def scene(world: World) -> Scene:
    organization, owner = world.an_organization(), world.an_organization()
    project, other = world.a_project(owner), world.a_project(owner)
    grant = world.a_grant(other, organization)
    session = world.a_session(world.a_person(organization))
    client = world.a_web_application(project.id)
    scope = f"openid offline_access {world.audience_scope(other.id)}"
    return Scene(
        world,
        session,
        organization,
        owner,
        client,
        project,
        grant,
        world.an_application(other.id),
        world.a_code(client, session, scope=scope),
        world.tokens(client, session, scope=scope),
    )


def _set_user(scene: Scene, services: Services, *, active: bool) -> None:
    user = services.users.get(scene.session.person.id)
    services.storage.users.update(replace(user, active=active, version=user.version + 1))


STANDING = {"userinfo": "200", "introspection": "active", "introspection by the other project": "active"}
OBTAINED = {"code": "granted", "refresh": "granted"}

NOBODY = {"userinfo": "401", "introspection": "inactive", "introspection by the other project": "inactive"}
REFUSED = {"code": "invalid_grant", "refresh": "invalid_grant"}

NO_CLIENT = NOBODY | {"introspection": "invalid_client"}
UNKNOWN = {"code": "invalid_client", "refresh": "invalid_client"}

NO_OWNER = NO_CLIENT | {"introspection by the other project": "invalid_client"}

NO_GRANT = STANDING | {"introspection by the other project": "inactive"}
NO_AUDIENCE = {"code": "invalid_scope", "refresh": "invalid_scope"}

DEACTIVATED: dict[str, tuple[Change, Change, dict[str, str], dict[str, str]]] = {
    "user": (
        lambda scene, services: _set_user(scene, services, active=False),
        lambda scene, services: _set_user(scene, services, active=True),
        NOBODY,
        REFUSED,
    ),
    "organization": (
        lambda scene, services: services.organizations.deactivate(scene.organization.id, by=THE_OPERATOR),
        lambda scene, services: services.organizations.reactivate(scene.organization.id, by=THE_OPERATOR),
        NOBODY,
        REFUSED,
    ),
    "client": (
        lambda scene, services: services.applications.deactivate(scene.client.client_id, by=THE_OPERATOR),
        lambda scene, services: services.applications.reactivate(scene.client.client_id, by=THE_OPERATOR),
        NO_CLIENT,
        UNKNOWN,
    ),
    "project": (
        lambda scene, services: services.projects.deactivate(scene.project.id, by=THE_OPERATOR),
        lambda scene, services: services.projects.reactivate(scene.project.id, by=THE_OPERATOR),
        NO_CLIENT,
        UNKNOWN,
    ),
    "project's organization": (
        lambda scene, services: services.organizations.deactivate(scene.owner.id, by=THE_OPERATOR),
        lambda scene, services: services.organizations.reactivate(scene.owner.id, by=THE_OPERATOR),
        NO_OWNER,
        UNKNOWN,
    ),
    "project grant": (
        lambda scene, services: services.project_grants.deactivate(scene.grant.id, by=THE_OPERATOR),
        lambda scene, services: services.project_grants.reactivate(scene.grant.id, by=THE_OPERATOR),
        NO_GRANT,
        NO_AUDIENCE,
    ),
}

DELETED: dict[str, tuple[Change, dict[str, str], dict[str, str]]] = {
    "user": (lambda scene, services: services.storage.users.remove(scene.session.person.id), NOBODY, REFUSED),
    "organization": (
        lambda scene, services: services.organizations.remove(scene.organization.id, by=THE_OPERATOR),
        NOBODY,
        REFUSED,
    ),
    "client": (
        lambda scene, services: services.applications.remove(scene.client.client_id, by=THE_OPERATOR),
        NO_CLIENT,
        UNKNOWN,
    ),
    "project": (
        lambda scene, services: services.projects.remove(scene.project.id, by=THE_OPERATOR),
        NO_CLIENT,
        UNKNOWN,
    ),
    "project's organization": (
        lambda scene, services: services.organizations.remove(scene.owner.id, by=THE_OPERATOR),
        NO_OWNER,
        UNKNOWN,
    ),
    "project grant": (
        lambda scene, services: services.project_grants.remove(scene.grant.id, by=THE_OPERATOR),
        NO_GRANT,
        NO_AUDIENCE,
    ),
}


def test_before_any_change_all_is_well(scene: Scene) -> None:
    assert scene.standing() == STANDING
    assert scene.obtaining() == OBTAINED


@pytest.mark.parametrize(("away", "back", "standing", "obtaining"), DEACTIVATED.values(), ids=DEACTIVATED.keys())
def test_deactivated(
    scene: Scene, away: Change, back: Change, standing: dict[str, str], obtaining: dict[str, str]
) -> None:
    """And reactivated: the tokens of before count again. A code that was shown meanwhile by its client is used up."""
    with scene.world.transaction() as services:
        away(scene, services)
    assert scene.standing() == standing
    assert scene.obtaining() == obtaining
    with scene.world.transaction() as services:
        back(scene, services)
    assert scene.standing() == STANDING
    spent = obtaining["code"] == "invalid_grant"
    assert scene.obtaining() == OBTAINED | ({"code": "invalid_grant"} if spent else {})


@pytest.mark.parametrize(("remove", "standing", "obtaining"), DELETED.values(), ids=DELETED.keys())
def test_deleted(scene: Scene, remove: Change, standing: dict[str, str], obtaining: dict[str, str]) -> None:
    with scene.world.transaction() as services:
        remove(scene, services)
    assert scene.standing() == standing
    assert scene.obtaining() == obtaining


@pytest.mark.parametrize("how", ["deactivate", "remove"])
def test_a_project_that_checks_roles_sees_that_they_are_gone_with_the_grant(world: World, how: str) -> None:
    """Security 14.5: what derives from a project grant ends with it, the way in included."""
    organization, owner = world.an_organization(), world.an_organization()
    project = world.a_project(owner, roles=["reader"], check_roles=True)
    grant = world.a_grant(project, organization, roles=["reader"])
    person = world.a_person(organization)
    world.a_user_grant(person, project, "reader", grant=grant)
    client, session = world.a_web_application(project.id), world.a_session(person)
    code, members = world.a_code(client, session), world.tokens(client, session)
    with world.transaction() as services:
        getattr(services.project_grants, how)(grant.id, by=THE_OPERATOR)
    assert _token(world.redeem(code, client)) == "invalid_grant"
    assert _token(world.refresh(members["refresh_token"], client)) == "invalid_grant"
    assert "error=access_denied" in session.authorize(client).headers["Location"]
