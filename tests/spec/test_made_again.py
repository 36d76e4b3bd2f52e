"""Security 18.3: what is deleted and made again under the same name inherits nothing from what had the name before."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.crypto.keys import PublicKey
from identity.domain.permissions import INSTANCE, project_grant_resource, project_resource
from identity.domain.users import Subject
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.service_client import Credentials
from identity.testing.world import CALLBACK, BrowserSession, Robot, World
from tests.plugins.management.estate import Api

ROLE = {"key": "reader", "display_name": "Reader"}
PERSON = {"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace"}
PROGRAM = {"user_name": "nightly", "display_name": "Nightly"}
PROJECT = {"name": "Rocket"}
APPLICATION = {
    "name": "Shop",
    "type": "web",
    "redirect_uris": [CALLBACK],
    "grant_types": ["authorization_code", "refresh_token"],
}

#: All that a manager of the instance can list of things that can be made again.
LISTS = (
    "/users/{user}/connections",
    "/users/{user}/grants",
    "/users/{user}/sessions",
    "/service-users/{service_user}/grants",
    "/service-users/{service_user}/keys",
    "/service-users/{service_user}/secrets",
    "/service-users/{service_user}/personal-access-tokens",
    "/organizations/{organization}/users",
    "/organizations/{organization}/service-users",
    "/organizations/{organization}/projects",
    "/organizations/{organization}/managers",
    "/projects/{project}/managers",
    "/projects/{project}/grants",
    "/projects/{project}/user-grants",
    "/projects/{project}/applications",
    "/applications/{application}/secrets",
    "/project-grants/{project_grant}/managers",
    "/project-grants/{project_grant}/user-grants",
)


@dataclass(frozen=True)
class Scene:
    """An organization with one of everything, all of it used. ``places`` are the ids of what has the names now."""

    world: World
    api: Api
    places: dict[str, str]
    domain: str
    holder: str
    client: Credentials
    session: BrowserSession
    tokens: dict[str, Any]
    robot: Robot
    secret: Credentials
    personal_token: str
    managing: str

    def works(self) -> set[str]:
        """Which of the old credentials still open anything, also where what has the name now is meant by them."""
        world, client, places = self.world, self.world.client, self.places
        browser = Browser(world)
        browser.open(f"{world.issuer}/login")
        browser.sign_in(f"{PERSON['user_name']}@{self.domain}", PASSWORD)
        silent = self.session.authorize(places["application"], prompt="none").headers.get("Location", "")
        at_home = client.management(f"/organizations/{places['organization']}", self.managing)
        signed = [self.robot.token(iss=one, sub=one) for one in (self.robot.id, places["service_user"])]
        secrets = [self.secret, Credentials(places["service_user"], self.secret.secret)]
        asked = {"grant_type": "client_credentials", "scope": "openid"}
        shown = [world.as_client(one, asked) for one in secrets]
        found = {
            "password": bool(browser.session_cookies),
            "session": "code=" in silent,
            "access token": client.userinfo(self.tokens["access_token"]).status_int == 200,
            "refresh token": "access_token" in world.refresh(self.tokens["refresh_token"], self.client).json,
            "key": any("access_token" in one.json for one in signed),
            "secret": any("access_token" in one.json for one in shown),
            "personal access token": client.userinfo(self.personal_token).status_int == 200,
            "management": at_home.status_int == 200,
        }
        return {word for word, opens in found.items() if opens}

    def rows(self) -> dict[str, list[Any]]:
        """What hangs at what has the names now, list by list."""
        return {path: self.api.list(path.format_map(self.places)) for path in LISTS}


ALL = {"password", "session", "access token", "refresh token", "key", "secret", "personal access token", "management"}
OF_PERSON = {"password", "session", "access token", "refresh token"}
OF_PROGRAM = ALL - OF_PERSON


@pytest.fixture
def scene(world: World) -> Scene:
    api = Api.of(world.a_manager("IAM_OWNER", resource=INSTANCE))
    organization, holder = world.an_organization(), world.an_organization()
    person_id = api.post(f"/organizations/{organization.id}/users", PERSON)["id"]
    person = world.operator.users.get(person_id)
    give_password(world, person)
    robot = _a_robot(world, api, organization.id)
    project_id = api.post(f"/organizations/{organization.id}/projects", PROJECT)["id"]
    api.post(f"/projects/{project_id}/roles", ROLE)
    made = api.post(f"/projects/{project_id}/applications", APPLICATION)
    client = Credentials(made["id"], made["client_secret"])
    project = world.operator.projects.get(project_id)
    grant = world.a_grant(project, holder, roles=[ROLE["key"]])
    colleague = world.a_person(holder)
    world.a_user_grant(person, project, ROLE["key"])
    world.a_user_grant(robot.user, project, ROLE["key"])
    world.a_user_grant(colleague, project, ROLE["key"], grant=grant)
    for one in (person, robot):
        world.make_manager(one, "ORG_OWNER")
        world.make_manager(one, "PROJECT_OWNER", resource=project_resource(project))
    world.make_manager(colleague, "PROJECT_GRANT_OWNER", resource=project_grant_resource(grant, project))
    session = world.a_session(person)
    application = world.operator.applications.find_client(client.client_id)
    world.operator.consents.give(Subject(person, organization), application, ("openid", "phone"))
    places = {
        "organization": organization.id,
        "user": person.id,
        "service_user": robot.id,
        "project": project.id,
        "application": client.client_id,
        "project_grant": grant.id,
    }
    return Scene(
        world=world,
        api=api,
        places=places,
        domain=organization.primary_domain,
        holder=holder.id,
        client=client,
        session=session,
        tokens=world.tokens(client, session, scope="openid offline_access"),
        robot=robot,
        secret=world.a_secret(robot),
        personal_token=world.a_personal_access_token(robot, scope="openid"),
        managing=robot.managing_token(),
    )


def _a_robot(world: World, api: Api, organization_id: str) -> Robot:
    made = api.post(f"/organizations/{organization_id}/service-users", PROGRAM)["id"]
    with world.reading() as services:
        user, organization = services.service_users.get(made), services.organizations.get(organization_id)
    return world.another_key(Robot(world, user, organization, "", world.key_pool.next()))


# --- each kind: gone, and there again ---------------------------------------------------------------------------------


def user(scene: Scene) -> None:
    scene.api.delete(f"/users/{scene.places['user']}")
    _make_user(scene)


def service_user(scene: Scene) -> None:
    scene.api.delete(f"/service-users/{scene.places['service_user']}")
    _make_service_user(scene)


def organization(scene: Scene) -> None:
    """With its domain, and all that was in it."""
    shown = scene.api.get(f"/organizations/{scene.places['organization']}")
    scene.api.delete(f"/organizations/{scene.places['organization']}")
    members = {name: shown[name] for name in ("name", "primary_domain", "registration")}
    scene.places["organization"] = scene.api.post("/organizations", members)["id"]
    _make_user(scene)
    _make_service_user(scene)
    _make_project(scene)


def project(scene: Scene) -> None:
    scene.api.delete(f"/projects/{scene.places['project']}")
    _make_project(scene)


def application(scene: Scene) -> None:
    scene.api.delete(f"/applications/{scene.places['application']}")
    _make_application(scene)


def project_grant(scene: Scene) -> None:
    scene.api.delete(f"/project-grants/{scene.places['project_grant']}")
    _make_project_grant(scene)


def role(scene: Scene) -> None:
    path = f"/projects/{scene.places['project']}/roles"
    scene.api.delete(f"{path}/{ROLE['key']}")
    scene.api.post(path, ROLE)


def key(scene: Scene) -> None:
    """The very same key, uploaded once more."""
    path = f"/service-users/{scene.places['service_user']}/keys"
    scene.api.delete(f"{path}/{scene.robot.key_id}")
    scene.api.post(path, {"public_key": PublicKey(scene.robot.key.public_key()).to_pem()})


def _make_user(scene: Scene) -> None:
    scene.places["user"] = scene.api.post(f"/organizations/{scene.places['organization']}/users", PERSON)["id"]


def _make_service_user(scene: Scene) -> None:
    path = f"/organizations/{scene.places['organization']}/service-users"
    scene.places["service_user"] = scene.api.post(path, PROGRAM)["id"]


def _make_project(scene: Scene) -> None:
    path = f"/organizations/{scene.places['organization']}/projects"
    scene.places["project"] = scene.api.post(path, PROJECT)["id"]
    scene.api.post(f"/projects/{scene.places['project']}/roles", ROLE)
    _make_application(scene)
    _make_project_grant(scene)


def _make_application(scene: Scene) -> None:
    path = f"/projects/{scene.places['project']}/applications"
    scene.places["application"] = scene.api.post(path, APPLICATION)["id"]


def _make_project_grant(scene: Scene) -> None:
    members = {"organization_id": scene.holder, "roles": [ROLE["key"]]}
    path = f"/projects/{scene.places['project']}/grants"
    scene.places["project_grant"] = scene.api.post(path, members)["id"]


#: Kind → what no longer opens anything then.
GONE: dict[Callable[[Scene], None], set[str]] = {
    user: OF_PERSON,
    service_user: OF_PROGRAM,
    organization: ALL,
    project: {"access token", "refresh token"},
    application: {"access token", "refresh token"},
    project_grant: set(),
    role: set(),
    key: {"key", "management"},
}


def test_all_of_it_works_before(scene: Scene) -> None:
    assert scene.works() == ALL
    assert [path for path, rows in scene.rows().items() if not rows] == []


@pytest.mark.parametrize("make_again", GONE, ids=lambda one: one.__name__)
def test_what_is_made_again_inherits_nothing(scene: Scene, make_again: Callable[[Scene], None]) -> None:
    before, places = scene.rows(), dict(scene.places)
    make_again(scene)
    new = {name for name in places if scene.places[name] != places[name]}
    old_ids = {row["id"] for rows in before.values() for row in rows} | {places[name] for name in new}
    after = scene.rows()
    for path, rows in after.items():
        of_new = any(f"{{{name}}}" in path for name in new)
        for row in rows:
            assert not of_new or row["id"] not in old_ids, path
            assert not any(places[name] in json.dumps(row) for name in new), path
    if make_again is role:
        held = [row["roles"] for path, rows in after.items() if path.endswith("grants") for row in rows]
        assert held
        assert not any(held), "the role that is there now was given to nobody"
    assert scene.works() == ALL - GONE[make_again]
