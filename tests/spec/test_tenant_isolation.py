"""Decisions, namespaces: an application's access is limited by its own permissions and by its user's.

An audience scope in a link of a tenant's application gives that tenant no access to the service or to other tenants.
Only instance managers control the applications of the instance's project, which receive the managing tokens of all
users.
"""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.crypto.secrets import new_token, token_digest
from identity.domain.applications import ApplicationType
from identity.domain.errors import Denied
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_resource
from identity.domain.projects import Project
from identity.domain.users import HumanUser, TokenFormat
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.projects import ChangeProjectGrant
from identity.services.desired_state import apply as applying
from identity.storage.contract import factories as make
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error, check_inactive_token, check_oauth_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.application_writes import WRITES

ROLES = "urn:service:iam:org:projects:roles"
GRANTS = frozenset({"authorization_code", "refresh_token", "client_credentials"})
NAMESPACES = ("urn:service:iam", "urn:zitadel:iam")

RESPONSE_TYPES = ("code", "id_token", "id_token token")


@dataclass(frozen=True)
class TenantLinkCase:
    """A tenant's application, and an instance owner who follows its link in a browser."""

    world: World
    party: RelyingParty
    browser: Browser

    def follow(self, scope: str, response_type: str = "code", **parameters: str) -> str:
        """The error that the application receives; it must receive nothing else."""
        authorization = self.party.new_request(response_type, scope=scope, **parameters)
        members = self.party.check_response(self.browser.open(authorization.url), authorization)
        assert not members.keys() & {"code", "access_token", "id_token"}, members
        return members["error"]


@pytest.fixture
def link(make_world: WorldFactory) -> TenantLinkCase:
    world = make_world(**{"identity.urn_namespaces": " ".join(NAMESPACES)})
    with world.transaction_services() as services:
        owner = services.users.get(services.storage.managers.page(Resource.INSTANCE.key).items[0].user_id)
    browser = Browser(world)
    browser.start_session(owner)
    return TenantLinkCase(world, RelyingParty.register(world, grant_types=GRANTS), browser)


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
@pytest.mark.parametrize("prompt", [{}, {"prompt": "none"}])
def test_tenant_application_cannot_manage_service_for_user(
    link: TenantLinkCase, response_type: str, prompt: dict[str, str]
) -> None:
    """By id and by alias, in every namespace; silently or not."""
    for namespace in NAMESPACES:
        for name in (link.world.instance.project_id, namespace.rsplit(":", 2)[-2]):
            scope = f"{namespace}:org:project:id:{name}:aud"
            assert link.follow(f"openid {scope}", response_type, **prompt) == "invalid_scope", scope
            assert link.follow(f"openid profile {ROLES} {scope}", response_type, **prompt) == "invalid_scope", scope


def test_tenant_application_cannot_manage_service_itself(link: TenantLinkCase) -> None:
    client = link.party.credentials
    for scope in (link.world.audience_scope(), "urn:zitadel:iam:org:project:id:zitadel:aud"):
        form = {"grant_type": "client_credentials", "scope": scope}
        check_oauth_error(link.world.post_token_request(client, form), "invalid_scope")


@pytest.mark.parametrize("type", [ApplicationType.WEB, ApplicationType.NATIVE, ApplicationType.BROWSER])
def test_instance_application_token_omits_instance_project(world: World, type: ApplicationType) -> None:
    """The instance's project is not in the audience by default, either."""
    method = "client_secret_basic" if type is ApplicationType.WEB else "none"
    party = RelyingParty.register(world, project_id=world.instance.project_id, type=type, authentication_method=method)
    session = world.make_browser_session()
    client = party.credentials if type is ApplicationType.WEB else party.client_id
    token = world.obtain_tokens(client, session, redirect_uri=party.redirect_uri)["access_token"]
    assert world.client.call_management_api("/me", token).status_int == 401
    check_inactive_token(world.client.introspect(token, world.introspector))
    browser = Browser(world)
    browser.start_session(session.user)
    party.expect_error_at_once(browser, "invalid_scope", scope=f"openid {world.audience_scope()}", prompt="none")


def test_stored_token_of_tenant_manages_nothing(world: World) -> None:
    """An earlier version issued such tokens; security 7.4: every use is checked."""
    manager, client, own_project = world.make_human_user(), world.make_web_application(), world.instance.project_id
    world.assign_manager_role(manager, "ORG_OWNER")
    token = stored_token(world, manager, client, audience=(client.client_id, own_project))
    assert world.client.call_management_api("/me", token).status_int == 401
    check_inactive_token(world.client.introspect(token, world.introspector))
    assert world.client.introspect(token, client).json["aud"] == [client.client_id]
    assert world.client.fetch_userinfo(token).status_int == 200


def stored_token(world: World, person: HumanUser, client: Credentials, *, audience: tuple[str, ...]) -> str:
    """An access token with an audience that no request can obtain."""
    text, now = new_token(), world.clock()
    token = make.access_token(
        person,
        digest=token_digest(text),
        client_id=client.client_id,
        application_id=client.client_id,
        scope=("openid", world.audience_scope()),
        audience=audience,
        issued_at=now,
        expires_at=now + timedelta(hours=1),
    )
    world.operator_services.storage.tokens.add_access_token(token)
    world.client.secrets.add(text)
    return text


@dataclass(frozen=True)
class TenantScenario:
    """A project of one organization, a user of another and an application of a third; each may hold a grant."""

    world: World
    project: Project
    session: BrowserSession
    client: Credentials
    of_user: Organization
    of_client: Organization

    @property
    def scope(self) -> str:
        return f"openid {ROLES} {self.world.audience_scope(self.project.id)}"

    def error(self, **parameters: str) -> str | None:
        """The error that the application receives instead of a code."""
        answer = self.session.authorize(self.client, scope=self.scope, **parameters)
        return parse_qs(urlsplit(answer.headers["Location"]).query).get("error", [None])[0]

    def roles(self, token: str) -> set[str]:
        """The roles in the project according to userinfo and introspection, which must agree."""
        claim = f"urn:service:iam:org:project:{self.project.id}:roles"
        in_userinfo = self.world.client.fetch_userinfo(token).json.get(claim, {})
        assert self.world.client.introspect(token, self.client).json.get(claim, {}) == in_userinfo
        return set(in_userinfo)


@pytest.fixture
def shared(world: World) -> TenantScenario:
    of_user, of_client = world.make_organization(), world.make_organization()
    project = world.make_project(roles=["reader", "writer", "auditor"])
    client = world.make_web_application(world.make_project(of_client).id)
    return TenantScenario(
        world, project, world.make_browser_session(world.make_human_user(of_user)), client, of_user, of_client
    )


def test_project_audience_needs_user_and_application_access(world: World, shared: TenantScenario) -> None:
    """Either grant alone is insufficient, and revoking one ends the audience at once."""
    api = world.make_application(shared.project.id)
    assert shared.error() == "invalid_scope"
    to_user = world.make_project_grant(shared.project, shared.of_user, roles=["reader", "writer"])
    assert shared.error() == shared.error(prompt="none") == "invalid_scope"
    to_client = world.make_project_grant(shared.project, shared.of_client, roles=["writer", "auditor"])
    assert shared.error() is None
    for grant in (to_client, to_user):
        code = world.make_code(shared.client, shared.session, scope=shared.scope)
        members = world.obtain_tokens(shared.client, shared.session, scope=f"{shared.scope} offline_access")
        assert world.client.introspect(members["access_token"], api).json["active"] is True
        world.operator_services.project_grants.deactivate(grant.id)
        check_inactive_token(world.client.introspect(members["access_token"], api))
        claims = world.client.introspect(members["access_token"], shared.client).json
        assert claims["active"] is True
        assert shared.project.id not in claims["aud"]
        check_oauth_error(world.redeem(code, shared.client), "invalid_scope")
        check_oauth_error(world.refresh(members["refresh_token"], shared.client), "invalid_scope")
        world.operator_services.project_grants.reactivate(grant.id)
        assert world.client.introspect(members["access_token"], api).json["active"] is True


def test_regranted_project_is_not_in_earlier_tokens(world: World, shared: TenantScenario) -> None:
    """Security 18.3: for grants to the user's and to the application's organization. Later tokens have the project."""
    api = world.make_application(shared.project.id)
    holders = {shared.of_user: ["reader", "writer"], shared.of_client: ["writer", "auditor"]}
    grants = {
        holder.id: world.make_project_grant(shared.project, holder, roles=roles) for holder, roles in holders.items()
    }
    for holder, roles in holders.items():
        token = world.obtain_tokens(shared.client, shared.session, scope=shared.scope)["access_token"]
        world.clock.advance(minutes=1)
        assert world.client.introspect(token, api).json["active"] is True
        world.operator_services.project_grants.remove(grants[holder.id].id)
        grants[holder.id] = world.make_project_grant(shared.project, holder, roles=roles)
        check_inactive_token(world.client.introspect(token, api))
        assert shared.project.id not in world.client.introspect(token, shared.client).json["aud"]
        assert shared.roles(token) == set()
        again = world.obtain_tokens(shared.client, shared.session, scope=shared.scope)["access_token"]
        assert world.client.introspect(again, api).json["active"] is True


@pytest.mark.parametrize("format", TokenFormat)
def test_shared_project_roles_are_those_of_user_and_application(
    world: World, shared: TenantScenario, format: TokenFormat
) -> None:
    """In the tokens, in userinfo and in introspection."""
    to_user = world.make_project_grant(shared.project, shared.of_user, roles=["reader", "writer"])
    to_client = world.make_project_grant(shared.project, shared.of_client, roles=["writer", "auditor"])
    world.make_user_grant(shared.session.user, shared.project, "reader", "writer", grant=to_user)
    change_application = ChangeApplication(
        access_token_type=format, assert_roles_in_access_token=True, assert_roles_in_id_token=True
    )
    world.operator_services.applications.change(shared.client.client_id, change_application)
    members = world.obtain_tokens(shared.client, shared.session, scope=shared.scope)
    claim = f"urn:service:iam:org:project:{shared.project.id}:roles"
    assert set(decode_jwt_unverified(members["id_token"])[1][claim]) == {"writer"}
    if format is TokenFormat.JWT:
        assert set(decode_jwt_unverified(members["access_token"])[1][claim]) == {"writer"}
    assert shared.roles(members["access_token"]) == {"writer"}
    world.operator_services.project_grants.change(to_client.id, ChangeProjectGrant(roles=frozenset({"auditor"})))
    assert shared.roles(members["access_token"]) == set()


#: The same changes in the console: path and form input.
FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "register": ("/projects/{project}/applications/new?type=api", {"name": "Mine"}),
    "change": ("/applications/{client_id}/edit", {"name": "Mine"}),
    "deactivate": ("/applications/{client_id}/deactivate", {}),
    "add a secret": ("/applications/{client_id}/secrets/new", {}),
    "end a secret": ("/applications/{client_id}/secrets/{secret}/delete", {}),
    "delete": ("/applications/{client_id}/delete", {"confirm_name": "{name}"}),
}

#: Roles that reach the instance's project without managing the instance.
NEARLY = ("ORG_OWNER", "IAM_ORG_MANAGER", "PROJECT_OWNER")


class OwnProjectScenario:
    """An API application of the instance's project, and a manager who may not change it."""

    def __init__(self, world: World) -> None:
        self.world = world
        client = world.make_application(world.instance.project_id)
        with world.read_only_services() as services:
            self.application = services.applications.get(client.client_id)
            [secret] = services.applications.list_secrets(client.client_id)
            self.project = services.projects.get(world.instance.project_id)
            self.organization = services.organizations.get(world.instance.organization_id)
        self.names = {
            "project": self.project.id,
            "client_id": client.client_id,
            "secret": secret.id,
            "name": self.application.name,
        }

    def resource(self, role: str) -> Resource:
        """The resource of a role that reaches the instance's project."""
        if role.startswith("IAM"):
            return Resource.INSTANCE
        return (
            project_resource(self.project)
            if role == "PROJECT_OWNER"
            else Resource.of_organization(self.organization.id)
        )

    def state(self) -> object:
        """State that refused changes must not modify."""
        with self.world.read_only_services() as services:
            applications = services.storage.applications.page(self.project.id).items
            return {application: services.applications.list_secrets(application.id) for application in applications}


@pytest.fixture
def own_project(world: World) -> OwnProjectScenario:
    return OwnProjectScenario(world)


@pytest.mark.parametrize("role", NEARLY)
def test_instance_application_is_changed_by_instance_manager_only(
    world: World, own_project: OwnProjectScenario, role: str
) -> None:
    """The application's owner could see and revoke the managing tokens of all users."""
    api = ApiClient.for_user(world.make_manager_program(role, resource=own_project.resource(role)))
    before = own_project.state()
    assert api.get(f"/applications/{own_project.application.id}")["name"] == own_project.application.name
    for method, path, members in WRITES.values():
        check_api_error(api.ask(method, path.format_map(own_project.names), members), 403, "forbidden")
    assert own_project.state() == before


def test_instance_owner_changes_instance_applications(world: World, own_project: OwnProjectScenario) -> None:
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    for method, path, members in WRITES.values():
        assert api.ask(method, path.format_map(own_project.names), members).status_int in (200, 201, 204), path


@pytest.mark.parametrize("role", NEARLY)
def test_console_refuses_instance_application_changes(world: World, own_project: OwnProjectScenario, role: str) -> None:
    """Pages omit the button, and submitting the form is refused."""
    person = world.make_human_user()
    world.assign_manager_role(person, role, resource=own_project.resource(role))
    browser, before = Browser(world), own_project.state()
    browser.start_session(person)
    for path in (
        f"/console/projects/{own_project.project.id}",
        f"/console/projects/{own_project.project.id}/applications",
    ):
        assert "/applications/new" not in browser.open(path).text
    page = browser.open(f"/console/applications/{own_project.application.id}").text
    for path in ("edit", "secrets/new", "deactivate", "delete"):
        assert f"/applications/{own_project.application.id}/{path}" not in page
    for path, typed in FORMS.values():
        browser.open("/console" + path.format_map(own_project.names))
        answer = browser.submit({name: value.format_map(own_project.names) for name, value in typed.items()})
        assert answer.status_int == 403, path
    assert own_project.state() == before


@pytest.mark.parametrize("role", NEARLY)
def test_state_file_cannot_change_instance_applications(
    world: World, own_project: OwnProjectScenario, role: str
) -> None:
    """It may be refused earlier, if the caller may not change the organization."""
    robot = world.make_manager_program(role, resource=own_project.resource(role))
    before = own_project.state()
    described = (
        {"name": "Mine alone", "type": "api"},
        {
            "id": own_project.application.id,
            "name": own_project.application.name,
            "type": "api",
            "id_token_lifetime": 60,
        },
        {"id": own_project.application.id, "name": own_project.application.name, "type": "api", "active": False},
    )
    for application in described:
        project = {"id": own_project.project.id, "name": own_project.project.name, "applications": [application]}
        organization = {"id": own_project.organization.id, "name": own_project.organization.name, "projects": [project]}
        state = applying.parse_desired_state({"version": 1, "organizations": [organization]})
        with world.transaction_services() as services:
            subject = services.storage.users.find_subject(robot.id)
            assert subject is not None
            principal = services.access_control.load_principal(subject)
            with pytest.raises(Denied):
                applying.apply_desired_state(services, state, principal=principal)
    assert own_project.state() == before


# --- access beyond the application's organization ---------------------------------------------------------------------
