"""Security 18.3: a resource recreated under the same name inherits nothing from the deleted one."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.crypto.signature_keys import PublicKey
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.users import Subject
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.service_test_client import Credentials
from identity.testing.world import CALLBACK_URI, BrowserSession, ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

ROLE = {"key": "reader", "display_name": "Reader"}
PERSON = {"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace"}
PROGRAM = {"user_name": "nightly", "display_name": "Nightly"}
PROJECT = {"name": "Rocket"}
APPLICATION = {
    "name": "Shop",
    "type": "web",
    "redirect_uris": [CALLBACK_URI],
    "grant_types": ["authorization_code", "refresh_token"],
}

#: Lists of resources that can be recreated.
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
class RecreatedNameScenario:
    """An organization with one resource of every kind, all in use. ``path_values`` are their current ids."""

    world: World
    api: ApiClient
    path_values: dict[str, str]
    domain: str
    holder: str
    client: Credentials
    session: BrowserSession
    tokens: dict[str, Any]
    robot: ServiceUserProgram
    secret: Credentials
    personal_token: str
    managing: str

    def works(self) -> set[str]:
        """The old credentials that still work, tried against the recreated resources, too."""
        world, client, path_values = self.world, self.world.client, self.path_values
        browser = Browser(world)
        browser.open(f"{world.issuer}/login")
        browser.sign_in(f"{PERSON['user_name']}@{self.domain}", PASSWORD)
        silent = self.session.authorize(path_values["application"], prompt="none").headers.get("Location", "")
        at_home = client.call_management_api(f"/organizations/{path_values['organization']}", self.managing)
        signed = [self.robot.request_token(iss=item, sub=item) for item in (self.robot.id, path_values["service_user"])]
        secrets = [self.secret, Credentials(path_values["service_user"], self.secret.secret)]
        parameters = {"grant_type": "client_credentials", "scope": "openid"}
        responses = [world.post_token_request(credentials, parameters) for credentials in secrets]
        found = {
            "password": bool(browser.session_cookies),
            "session": "code=" in silent,
            "access token": client.fetch_userinfo(self.tokens["access_token"]).status_int == 200,
            "refresh token": "access_token" in world.refresh(self.tokens["refresh_token"], self.client).json,
            "key": any("access_token" in item.json for item in signed),
            "secret": any("access_token" in item.json for item in responses),
            "personal access token": client.fetch_userinfo(self.personal_token).status_int == 200,
            "management": at_home.status_int == 200,
        }
        return {name for name, opens in found.items() if opens}

    def rows(self) -> dict[str, list[Any]]:
        """The rows of the current resources, by list."""
        return {path: self.api.list(path.format_map(self.path_values)) for path in LISTS}


ALL = {"password", "session", "access token", "refresh token", "key", "secret", "personal access token", "management"}
OF_PERSON = {"password", "session", "access token", "refresh token"}
OF_PROGRAM = ALL - OF_PERSON


@pytest.fixture
def scene(world: World) -> RecreatedNameScenario:
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    organization, holder = world.make_organization(), world.make_organization()
    person_id = api.post(f"/organizations/{organization.id}/users", PERSON)["id"]
    person = world.operator_services.users.get(person_id)
    set_password(world, person)
    robot = _a_robot(world, api, organization.id)
    project_id = api.post(f"/organizations/{organization.id}/projects", PROJECT)["id"]
    api.post(f"/projects/{project_id}/roles", ROLE)
    created = api.post(f"/projects/{project_id}/applications", APPLICATION)
    client = Credentials(created["id"], created["client_secret"])
    project = world.operator_services.projects.get(project_id)
    grant = world.make_project_grant(project, holder, roles=[ROLE["key"]])
    colleague = world.make_human_user(holder)
    world.make_user_grant(person, project, ROLE["key"])
    world.make_user_grant(robot.user, project, ROLE["key"])
    world.make_user_grant(colleague, project, ROLE["key"], grant=grant)
    for item in (person, robot):
        world.assign_manager_role(item, "ORG_OWNER")
        world.assign_manager_role(item, "PROJECT_OWNER", resource=project_resource(project))
    world.assign_manager_role(colleague, "PROJECT_GRANT_OWNER", resource=project_grant_resource(grant, project))
    session = world.make_browser_session(person)
    application = world.operator_services.applications.find_client(client.client_id)
    world.operator_services.consents.grant_consent(Subject(person, organization), application, ("openid", "phone"))
    path_values = {
        "organization": organization.id,
        "user": person.id,
        "service_user": robot.id,
        "project": project.id,
        "application": client.client_id,
        "project_grant": grant.id,
    }
    return RecreatedNameScenario(
        world=world,
        api=api,
        path_values=path_values,
        domain=organization.primary_domain,
        holder=holder.id,
        client=client,
        session=session,
        tokens=world.obtain_tokens(client, session, scope="openid offline_access"),
        robot=robot,
        secret=world.make_service_user_secret(robot),
        personal_token=world.make_personal_access_token(robot, scope="openid"),
        managing=robot.management_token(),
    )


def _a_robot(world: World, api: ApiClient, organization_id: str) -> ServiceUserProgram:
    user_id = api.post(f"/organizations/{organization_id}/service-users", PROGRAM)["id"]
    with world.read_only_services() as services:
        user, organization = services.service_users.get(user_id), services.organizations.get(organization_id)
    return world.add_service_user_key(ServiceUserProgram(world, user, organization, "", world.key_pool.next()))


# --- deletion and recreation of each kind -----------------------------------------------------------------------------


def user(scene: RecreatedNameScenario) -> None:
    scene.api.delete(f"/users/{scene.path_values['user']}")
    _make_user(scene)


def service_user(scene: RecreatedNameScenario) -> None:
    scene.api.delete(f"/service-users/{scene.path_values['service_user']}")
    _make_service_user(scene)


def organization(scene: RecreatedNameScenario) -> None:
    """Recreated with its domain and everything in it."""
    current = scene.api.get(f"/organizations/{scene.path_values['organization']}")
    scene.api.delete(f"/organizations/{scene.path_values['organization']}")
    members = {name: current[name] for name in ("name", "primary_domain", "registration")}
    scene.path_values["organization"] = scene.api.post("/organizations", members)["id"]
    _make_user(scene)
    _make_service_user(scene)
    _make_project(scene)


def project(scene: RecreatedNameScenario) -> None:
    scene.api.delete(f"/projects/{scene.path_values['project']}")
    _make_project(scene)


def application(scene: RecreatedNameScenario) -> None:
    scene.api.delete(f"/applications/{scene.path_values['application']}")
    _make_application(scene)


def project_grant(scene: RecreatedNameScenario) -> None:
    scene.api.delete(f"/project-grants/{scene.path_values['project_grant']}")
    _make_project_grant(scene)


def role(scene: RecreatedNameScenario) -> None:
    path = f"/projects/{scene.path_values['project']}/roles"
    scene.api.delete(f"{path}/{ROLE['key']}")
    scene.api.post(path, ROLE)


def key(scene: RecreatedNameScenario) -> None:
    """The same public key, uploaded again."""
    path = f"/service-users/{scene.path_values['service_user']}/keys"
    scene.api.delete(f"{path}/{scene.robot.key_id}")
    scene.api.post(path, {"public_key": PublicKey(scene.robot.key.public_key()).to_pem()})


def _make_user(scene: RecreatedNameScenario) -> None:
    scene.path_values["user"] = scene.api.post(f"/organizations/{scene.path_values['organization']}/users", PERSON)[
        "id"
    ]


def _make_service_user(scene: RecreatedNameScenario) -> None:
    path = f"/organizations/{scene.path_values['organization']}/service-users"
    scene.path_values["service_user"] = scene.api.post(path, PROGRAM)["id"]


def _make_project(scene: RecreatedNameScenario) -> None:
    path = f"/organizations/{scene.path_values['organization']}/projects"
    scene.path_values["project"] = scene.api.post(path, PROJECT)["id"]
    scene.api.post(f"/projects/{scene.path_values['project']}/roles", ROLE)
    _make_application(scene)
    _make_project_grant(scene)


def _make_application(scene: RecreatedNameScenario) -> None:
    path = f"/projects/{scene.path_values['project']}/applications"
    scene.path_values["application"] = scene.api.post(path, APPLICATION)["id"]


def _make_project_grant(scene: RecreatedNameScenario) -> None:
    members = {"organization_id": scene.holder, "roles": [ROLE["key"]]}
    path = f"/projects/{scene.path_values['project']}/grants"
    scene.path_values["project_grant"] = scene.api.post(path, members)["id"]


#: Recreated resource → credentials that stop working.
CLOSED_AFTER: dict[Callable[[RecreatedNameScenario], None], set[str]] = {
    user: OF_PERSON,
    service_user: OF_PROGRAM,
    organization: ALL,
    project: {"access token", "refresh token"},
    application: {"access token", "refresh token"},
    project_grant: set(),
    role: set(),
    key: {"key", "management"},
}


def test_credentials_work_before_recreation(scene: RecreatedNameScenario) -> None:
    assert scene.works() == ALL
    assert [path for path, rows in scene.rows().items() if not rows] == []


@pytest.mark.thorough
@pytest.mark.parametrize("make_again", CLOSED_AFTER, ids=lambda item: item.__name__)
def test_recreated_resource_inherits_nothing(
    scene: RecreatedNameScenario, make_again: Callable[[RecreatedNameScenario], None]
) -> None:
    before, path_values = scene.rows(), dict(scene.path_values)
    make_again(scene)
    new = {name for name in path_values if scene.path_values[name] != path_values[name]}
    old_ids = {row["id"] for rows in before.values() for row in rows} | {path_values[name] for name in new}
    after = scene.rows()
    for path, rows in after.items():
        of_new = any(f"{{{name}}}" in path for name in new)
        for row in rows:
            assert not of_new or row["id"] not in old_ids, path
            assert not any(path_values[name] in json.dumps(row) for name in new), path
    if make_again is role:
        roles = [row["roles"] for path, rows in after.items() if path.endswith("grants") for row in rows]
        assert roles
        assert not any(roles), "the role that is there now was given to nobody"
    assert scene.works() == ALL - CLOSED_AFTER[make_again]
