"""Decisions, namespaces: what an application gets lies within its own right as well as within its user's.

An audience scope in a link that a tenant's application sends people to brings that tenant no power over the service,
and none over what belongs to others; and nobody but the instance's own managers has a say over applications of its own
project, which are told of everybody's managing tokens.
"""

import inspect
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.crypto.secrets import digest, new_token
from identity.domain.applications import Application, ApplicationType, ConsentRule
from identity.domain.errors import Denied
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, Resource, organization_resource, project_resource
from identity.domain.projects import Project
from identity.domain.users import HumanUser, TokenFormat
from identity.services import apply as applying
from identity.services.access import THE_OPERATOR, Principal
from identity.services.applications import Applications
from identity.services.bundle import Services
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.descriptions import OrganizationDocument
from identity.services.commands.projects import ChangeProjectGrant
from identity.services.transfer import Incoming, Transfer
from identity.testing.assertions import decoded
from identity.testing.browser import Browser
from identity.testing.factories import an_access_token
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.responses import check_api_error, check_inactive, check_refused
from identity.testing.service_client import Credentials
from identity.testing.world import BrowserSession, World
from tests.plugins.management.estate import Api

ROLES = "urn:service:iam:org:projects:roles"
GRANTS = frozenset({"authorization_code", "refresh_token", "client_credentials"})
NAMESPACES = ("urn:service:iam", "urn:zitadel:iam")

RESPONSE_TYPES = ("code", "id_token", "id_token token")


@dataclass(frozen=True)
class Link:
    """A tenant's application, and the owner of the instance at a browser, who follows its link."""

    world: World
    party: RelyingParty
    browser: Browser

    def follow(self, scope: str, response_type: str = "code", **parameters: str) -> str:
        """The error that the application is told, and nothing else."""
        asked = self.party.ask(response_type, scope=scope, **parameters)
        members = self.party.read(self.browser.open(asked.url), asked)
        assert not members.keys() & {"code", "access_token", "id_token"}, members
        return members["error"]


@pytest.fixture
def link(make_world: MakeWorld) -> Link:
    world = make_world(**{"identity.urn_namespaces": " ".join(NAMESPACES)})
    with world.transaction() as services:
        owner = services.users.get(services.storage.managers.page(INSTANCE.key).items[0].user_id)
    browser = Browser(world)
    browser.start_session(owner)
    return Link(world, RelyingParty.of(world, grant_types=GRANTS), browser)


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
@pytest.mark.parametrize("prompt", [{}, {"prompt": "none"}])
def test_no_tenant_s_application_manages_the_service_in_its_user_s_name(
    link: Link, response_type: str, prompt: dict[str, str]
) -> None:
    """By id and by alias, in every namespace; silently or not."""
    for namespace in NAMESPACES:
        for name in (link.world.instance.project_id, namespace.rsplit(":", 2)[-2]):
            word = f"{namespace}:org:project:id:{name}:aud"
            assert link.follow(f"openid {word}", response_type, **prompt) == "invalid_scope", word
            assert link.follow(f"openid profile {ROLES} {word}", response_type, **prompt) == "invalid_scope", word


def test_nor_in_its_own(link: Link) -> None:
    client = link.party.credentials
    for word in (link.world.audience_scope(), "urn:zitadel:iam:org:project:id:zitadel:aud"):
        form = {"grant_type": "client_credentials", "scope": word}
        check_refused(link.world.as_client(client, form), "invalid_scope")


@pytest.mark.parametrize("type", [ApplicationType.WEB, ApplicationType.NATIVE, ApplicationType.BROWSER])
def test_an_application_of_the_own_project_does_not_either(world: World, type: ApplicationType) -> None:  # noqa: A002
    """Nor does its project come into the audience unasked."""
    method = "client_secret_basic" if type is ApplicationType.WEB else "none"
    party = RelyingParty.of(world, project_id=world.instance.project_id, type=type, authentication_method=method)
    session = world.a_session()
    client = party.credentials if type is ApplicationType.WEB else party.client_id
    token = world.tokens(client, session, redirect_uri=party.redirect_uri)["access_token"]
    assert world.client.management("/me", token).status_int == 401
    check_inactive(world.client.introspect(token, world.introspector))
    browser = Browser(world)
    browser.start_session(session.person)
    asked = party.ask(scope=f"openid {world.audience_scope()}", prompt="none")
    party.refused(browser.open(asked.url), asked, "invalid_scope")


def test_a_token_that_came_to_be_issued_manages_nothing(world: World) -> None:
    """As an earlier version did; security 7.4: judged whenever it is shown."""
    manager, client, own = world.a_person(), world.a_web_application(), world.instance.project_id
    world.make_manager(manager, "ORG_OWNER")
    token = stored_token(world, manager, client, audience=(client.client_id, own))
    assert world.client.management("/me", token).status_int == 401
    check_inactive(world.client.introspect(token, world.introspector))
    assert world.client.introspect(token, client).json["aud"] == [client.client_id]
    assert world.client.userinfo(token).status_int == 200


def stored_token(world: World, person: HumanUser, client: Credentials, *, audience: tuple[str, ...]) -> str:
    """An access token with an audience that no request brings."""
    text, now = new_token(), world.clock()
    token = an_access_token(
        person,
        digest=digest(text),
        client_id=client.client_id,
        application_id=client.client_id,
        scope=("openid", world.audience_scope()),
        audience=audience,
        issued_at=now,
        expires_at=now + timedelta(hours=1),
    )
    with world.transaction() as services:
        services.storage.tokens.add_access(token)
    world.client.secrets.add(text)
    return text


@dataclass(frozen=True)
class Shared:
    """A project of one organization with a person of another and an application of a third; each may hold a grant."""

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
        """What the application is told instead of a code."""
        answer = self.session.authorize(self.client, scope=self.scope, **parameters)
        return parse_qs(urlsplit(answer.headers["Location"]).query).get("error", [None])[0]

    def roles(self, token: str) -> set[str]:
        """The roles in the project that are told of a token, to its bearer and to the application alike."""
        claim = f"urn:service:iam:org:project:{self.project.id}:roles"
        told = self.world.client.userinfo(token).json.get(claim, {})
        assert self.world.client.introspect(token, self.client).json.get(claim, {}) == told
        return set(told)


@pytest.fixture
def shared(world: World) -> Shared:
    of_user, of_client = world.an_organization(), world.an_organization()
    project = world.a_project(roles=["reader", "writer", "auditor"])
    client = world.a_web_application(world.a_project(of_client).id)
    return Shared(world, project, world.a_session(world.a_person(of_user)), client, of_user, of_client)


def test_a_project_needs_the_right_of_the_user_and_of_the_application(world: World, shared: Shared) -> None:
    """Held by grants; either one alone is not enough, and whichever ends takes the audience along at once."""
    api = world.an_application(shared.project.id)
    assert shared.error() == "invalid_scope"
    to_user = world.a_grant(shared.project, shared.of_user, roles=["reader", "writer"])
    assert shared.error() == shared.error(prompt="none") == "invalid_scope"
    to_client = world.a_grant(shared.project, shared.of_client, roles=["writer", "auditor"])
    assert shared.error() is None
    for grant in (to_client, to_user):
        code = world.a_code(shared.client, shared.session, scope=shared.scope)
        members = world.tokens(shared.client, shared.session, scope=f"{shared.scope} offline_access")
        assert world.client.introspect(members["access_token"], api).json["active"] is True
        with world.transaction() as services:
            services.project_grants.deactivate(grant.id, by=THE_OPERATOR)
        check_inactive(world.client.introspect(members["access_token"], api))
        told = world.client.introspect(members["access_token"], shared.client).json
        assert told["active"] is True
        assert shared.project.id not in told["aud"]
        check_refused(world.redeem(code, shared.client), "invalid_scope")
        check_refused(world.refresh(members["refresh_token"], shared.client), "invalid_scope")
        with world.transaction() as services:
            services.project_grants.reactivate(grant.id, by=THE_OPERATOR)
        assert world.client.introspect(members["access_token"], api).json["active"] is True


def test_a_project_that_is_given_again_is_not_in_tokens_from_before(world: World, shared: Shared) -> None:
    """Security 18.3: to the user's organization, and to the application's. Tokens that come later have it."""
    api = world.an_application(shared.project.id)
    holders = {shared.of_user: ["reader", "writer"], shared.of_client: ["writer", "auditor"]}
    grants = {holder.id: world.a_grant(shared.project, holder, roles=roles) for holder, roles in holders.items()}
    for holder, roles in holders.items():
        token = world.tokens(shared.client, shared.session, scope=shared.scope)["access_token"]
        world.clock.advance(minutes=1)
        assert world.client.introspect(token, api).json["active"] is True
        with world.transaction() as services:
            services.project_grants.remove(grants[holder.id].id, by=THE_OPERATOR)
        grants[holder.id] = world.a_grant(shared.project, holder, roles=roles)
        check_inactive(world.client.introspect(token, api))
        assert shared.project.id not in world.client.introspect(token, shared.client).json["aud"]
        assert shared.roles(token) == set()
        again = world.tokens(shared.client, shared.session, scope=shared.scope)["access_token"]
        assert world.client.introspect(again, api).json["active"] is True


@pytest.mark.parametrize("format", TokenFormat)
def test_of_a_shared_project_the_application_is_told_of_the_roles_that_both_hold(
    world: World,
    shared: Shared,
    format: TokenFormat,  # noqa: A002
) -> None:
    """In the tokens themselves, to the bearer, and to whoever asks."""
    to_user = world.a_grant(shared.project, shared.of_user, roles=["reader", "writer"])
    to_client = world.a_grant(shared.project, shared.of_client, roles=["writer", "auditor"])
    world.a_user_grant(shared.session.person, shared.project, "reader", "writer", grant=to_user)
    with world.transaction() as services:
        told = ChangeApplication(
            access_token_type=format, assert_roles_in_access_token=True, assert_roles_in_id_token=True
        )
        services.applications.change(shared.client.client_id, told, by=THE_OPERATOR)
    members = world.tokens(shared.client, shared.session, scope=shared.scope)
    claim = f"urn:service:iam:org:project:{shared.project.id}:roles"
    assert set(decoded(members["id_token"])[1][claim]) == {"writer"}
    if format is TokenFormat.JWT:
        assert set(decoded(members["access_token"])[1][claim]) == {"writer"}
    assert shared.roles(members["access_token"]) == {"writer"}
    with world.transaction() as services:
        services.project_grants.change(to_client.id, ChangeProjectGrant(roles=frozenset({"auditor"})), by=THE_OPERATOR)
    assert shared.roles(members["access_token"]) == set()


#: What changes applications of a project, at the management API: method, path, members.
WRITES: dict[str, tuple[str, str, object]] = {
    "register": ("POST", "/projects/{project}/applications", {"name": "Mine", "type": "api"}),
    "change": ("PATCH", "/applications/{client_id}", {"name": "Mine"}),
    "deactivate": ("POST", "/applications/{client_id}/deactivate", None),
    "reactivate": ("POST", "/applications/{client_id}/reactivate", None),
    "add a secret": ("POST", "/applications/{client_id}/secrets", {}),
    "end a secret": ("DELETE", "/applications/{client_id}/secrets/{secret}", None),
    "delete": ("DELETE", "/applications/{client_id}", None),
}

#: The same in the console: path below it, and what is typed.
FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "register": ("/projects/{project}/applications/new?type=api", {"name": "Mine"}),
    "change": ("/applications/{client_id}/edit", {"name": "Mine"}),
    "deactivate": ("/applications/{client_id}/deactivate", {}),
    "add a secret": ("/applications/{client_id}/secrets/new", {}),
    "end a secret": ("/applications/{client_id}/secrets/{secret}/delete", {}),
    "delete": ("/applications/{client_id}/delete", {"confirm_name": "{name}"}),
}

#: Managers that reach the own project without managing the instance.
NEARLY = ("ORG_OWNER", "IAM_ORG_MANAGER", "PROJECT_OWNER")


class Own:
    """An API application of the own project, and who would like to have it."""

    def __init__(self, world: World) -> None:
        self.world = world
        client = world.an_application(world.instance.project_id)
        with world.reading() as services:
            self.application = services.applications.get(client.client_id)
            [secret] = services.applications.secrets(client.client_id)
            self.project = services.projects.get(world.instance.project_id)
            self.organization = services.organizations.get(world.instance.organization_id)
        self.names = {
            "project": self.project.id,
            "client_id": client.client_id,
            "secret": secret.id,
            "name": self.application.name,
        }

    def resource(self, role: str) -> Resource:
        """Where a role is held that reaches the own project."""
        if role.startswith("IAM"):
            return INSTANCE
        return (
            project_resource(self.project) if role == "PROJECT_OWNER" else organization_resource(self.organization.id)
        )

    def state(self) -> object:
        """What no refused change leaves a trace in."""
        with self.world.reading() as services:
            applications = services.storage.applications.page(self.project.id).items
            return {one: services.applications.secrets(one.id) for one in applications}


@pytest.fixture
def own(world: World) -> Own:
    return Own(world)


@pytest.mark.parametrize("role", NEARLY)
def test_applications_of_the_own_project_are_the_instance_s_at_the_api(world: World, own: Own, role: str) -> None:
    """Whoever has one is told of everybody's managing tokens, and revokes them."""
    api = Api.of(world.a_manager(role, resource=own.resource(role)))
    before = own.state()
    assert api.get(f"/applications/{own.application.id}")["name"] == own.application.name
    for method, path, members in WRITES.values():
        check_api_error(api.ask(method, path.format_map(own.names), members), 403, "forbidden")
    assert own.state() == before


def test_its_owner_changes_them(world: World, own: Own) -> None:
    api = Api.of(world.a_manager("IAM_OWNER", resource=INSTANCE))
    for method, path, members in WRITES.values():
        assert api.ask(method, path.format_map(own.names), members).status_int in (200, 201, 204), path


@pytest.mark.parametrize("role", NEARLY)
def test_and_in_the_console(world: World, own: Own, role: str) -> None:
    """Neither a button leads there, nor does a form that is posted all the same."""
    person = world.a_person()
    world.make_manager(person, role, resource=own.resource(role))
    browser, before = Browser(world), own.state()
    browser.start_session(person)
    for path in (f"/console/projects/{own.project.id}", f"/console/projects/{own.project.id}/applications"):
        assert "/applications/new" not in browser.open(path).text
    shown = browser.open(f"/console/applications/{own.application.id}").text
    for path in ("edit", "secrets/new", "deactivate", "delete"):
        assert f"/applications/{own.application.id}/{path}" not in shown
    for path, typed in FORMS.values():
        browser.open("/console" + path.format_map(own.names))
        answer = browser.submit({name: value.format_map(own.names) for name, value in typed.items()}, form="page-form")
        assert answer.status_int == 403, path
    assert own.state() == before


@pytest.mark.parametrize("role", NEARLY)
def test_and_by_a_described_state(world: World, own: Own, role: str) -> None:
    """Or are refused before, as whoever may not change the organization."""
    robot = world.a_manager(role, resource=own.resource(role))
    before = own.state()
    described = (
        {"name": "Mine alone", "type": "api"},
        {"id": own.application.id, "name": own.application.name, "type": "api", "id_token_lifetime": 60},
        {"id": own.application.id, "name": own.application.name, "type": "api", "active": False},
    )
    for application in described:
        project = {"id": own.project.id, "name": own.project.name, "applications": [application]}
        organization = {"id": own.organization.id, "name": own.organization.name, "projects": [project]}
        state = applying.read_state({"version": 1, "organizations": [organization]})
        with world.transaction() as services:
            subject = services.storage.users.find_subject(robot.id)
            assert subject is not None
            by = services.access.principal(subject)
            with pytest.raises(Denied):
                applying.apply(services, state, by=by)
    assert own.state() == before


# --- what an application may be allowed beyond its organization -------------------------------------------------------

#: Members of an application that only who manages the instance decides.
BEYOND: dict[str, dict[str, object]] = {"managing": {"may_manage": True}, "unasked": {"consent": "never"}}


class Tenant:
    """An organization with a project and an application, and its owner."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.organization = world.an_organization()
        self.project = world.a_project(self.organization)
        self.client = world.an_application(self.project.id, consent=ConsentRule.WHEN_FOREIGN)
        self.person = world.a_person(self.organization)
        world.make_manager(self.person, "ORG_OWNER")
        self.robot = world.a_robot(self.organization)
        world.make_manager(self.robot, "ORG_OWNER")

    @property
    def application(self) -> Application:
        """As it is stored."""
        with self.world.reading() as services:
            return services.applications.get(self.client.client_id)

    def principal(self, services: Services, user_id: str | None = None) -> Principal:
        """The owner, or another user."""
        subject = services.storage.users.find_subject(user_id or self.robot.id)
        assert subject is not None
        return services.access.principal(subject)


@pytest.fixture
def tenant(world: World) -> Tenant:
    return Tenant(world)


@pytest.mark.parametrize("beyond", BEYOND)
def test_an_owner_of_an_organization_cannot_let_an_application_go_beyond(tenant: Tenant, beyond: str) -> None:
    """At the API, registering or changing; instance.write can."""
    members, before = BEYOND[beyond], tenant.application
    new = ("POST", f"/projects/{tenant.project.id}/applications", {"name": "Mine", "type": "api", **members})
    change = ("PATCH", f"/applications/{tenant.client.client_id}", members)
    api = Api.of(tenant.robot)
    for request in (new, change):
        check_api_error(api.ask(*request), 403, "forbidden")
    assert tenant.application == before
    owner = Api.of(tenant.world.a_manager("IAM_OWNER", resource=INSTANCE))
    for request in (new, change):
        answer = owner.ask(*request)
        assert answer.status_int in (200, 201)
        assert {name: answer.json[name] for name in members} == members
    # It can be taken back by whoever may change the application, which who lets it manage alone may.
    answer = api.ask("PATCH", f"/applications/{tenant.client.client_id}", {"consent": "always"})
    assert answer.status_int == (403 if beyond == "managing" else 200)


def test_an_application_that_may_manage_is_the_instance_s_to_change(tenant: Tenant) -> None:
    """Whoever could lead its codes elsewhere would manage in the name of all who agreed."""
    with tenant.world.transaction() as services:
        marked = ChangeApplication(may_manage=True)
        services.applications.change(tenant.client.client_id, marked, by=THE_OPERATOR)
        [secret] = services.applications.secrets(tenant.client.client_id)
    api, before = Api.of(tenant.robot), tenant.application
    names = {"project": tenant.project.id, "client_id": tenant.client.client_id, "secret": secret.id}
    for name, (method, path, members) in WRITES.items():
        if name != "register":
            check_api_error(api.ask(method, path.format_map(names), members), 403, "forbidden")
    assert tenant.application == before
    browser = Browser(tenant.world)
    browser.start_session(tenant.person)
    shown = browser.open(f"/console/applications/{tenant.client.client_id}").text
    assert "May manage" in shown
    assert f"{tenant.client.client_id}/edit" not in shown


def test_nor_in_the_console(tenant: Tenant) -> None:
    """It is not offered, and what is posted all the same changes nothing."""
    path = f"/console/applications/{tenant.client.client_id}/edit"
    browser, before = Browser(tenant.world), tenant.application
    browser.start_session(tenant.person)
    form = browser.open(path).forms["page-form"]
    assert "may_manage" not in form.fields
    typed = dict(form.submit_fields())
    browser.send(path, {**typed, "may_manage": "yes", "name": "Renamed"}, by=browser.login_url)
    assert (tenant.application.name, tenant.application.may_manage) == ("Renamed", False)
    browser.open(path)
    answer = browser.send(path, {**typed, "version": "2", "consent": "never"}, by=browser.login_url)
    assert answer.status_int in (200, 403)
    assert tenant.application.consent is before.consent


def test_in_the_console_it_is_for_who_manages_the_instance(tenant: Tenant) -> None:
    party = RelyingParty.of(tenant.world, project_id=tenant.project.id, consent=ConsentRule.WHEN_FOREIGN)
    owner = tenant.world.a_person()
    tenant.world.make_manager(owner, "IAM_OWNER", resource=INSTANCE)
    for person, consent, offered in ((owner, "never", True), (tenant.person, "always", False)):
        browser = Browser(tenant.world)
        browser.start_session(person)
        form = browser.open(f"/console/applications/{party.client_id}/edit").forms["page-form"]
        assert ("may_manage" in form.fields) is offered
        browser.submit({"consent": consent}, form="page-form")
        with tenant.world.reading() as services:
            assert services.applications.get(party.client_id).consent == consent
    browser = Browser(tenant.world)
    browser.start_session(owner)
    browser.open(f"/console/applications/{party.client_id}/edit")
    browser.submit({"may_manage": True}, form="page-form")
    assert "May manage" in browser.open(f"/console/applications/{party.client_id}").text


@pytest.mark.parametrize("beyond", BEYOND)
def test_nor_by_a_described_state(tenant: Tenant, beyond: str) -> None:
    before = tenant.application
    for application in ({"name": "Mine"}, {"id": before.id, "name": before.name}):
        described = {**application, "type": "api", **BEYOND[beyond]}
        project = {"id": tenant.project.id, "name": tenant.project.name, "applications": [described]}
        organization = {"id": tenant.organization.id, "name": tenant.organization.name, "projects": [project]}
        state = applying.read_state({"version": 1, "organizations": [organization]})
        with tenant.world.transaction() as services, pytest.raises(Denied, match="manages the instance"):
            applying.apply(services, state, by=tenant.principal(services))
    assert tenant.application == before


def _document(values: dict[str, Any]) -> OrganizationDocument:
    with Incoming() as incoming:
        return incoming.document(values)


@pytest.mark.parametrize("beyond", BEYOND)
def test_nor_by_an_imported_organization(tenant: Tenant, beyond: str) -> None:
    """Who may make organizations takes over what an export says, but not that."""
    importer = tenant.world.a_manager("IAM_ORG_MANAGER", resource=INSTANCE)
    with tenant.world.transaction() as services:
        command = ChangeApplication(**BEYOND[beyond])
        services.applications.change(tenant.client.client_id, command, by=THE_OPERATOR)
        values = json.loads("".join(Transfer(services).document(tenant.organization.id, by=THE_OPERATOR)))
    values["organization"]["primary_domain"] = f"copy-{tenant.organization.primary_domain}"
    with tenant.world.transaction() as services:
        by = tenant.principal(services, importer.id)
        document = _document(values)
        with pytest.raises(Denied, match="manages the instance"):
            Transfer(services).import_(document, by=by, keep_ids=False)
    values["organization"]["projects"][0]["applications"][0] |= {"may_manage": False, "consent": "always"}
    values["organization"]["primary_domain"] = f"again-{tenant.organization.primary_domain}"
    with tenant.world.transaction() as services:
        by = tenant.principal(services, importer.id)
        made = Transfer(services).import_(_document(values), by=by, keep_ids=False)
        [project] = services.storage.projects.page(made.id).items
        [copy] = services.storage.applications.page(project.id).items
        assert (copy.consent, copy.may_manage) == (ConsentRule.ALWAYS, False)


def test_every_use_case_that_changes_applications_asks_for_the_caller() -> None:
    """So that no new door forgets."""
    reading = {"find_client", "get", "is_origin", "secrets", "authenticate", "defaults", "may_decide"}
    for name, method in inspect.getmembers(Applications, inspect.isfunction):
        if not name.startswith("_") and name not in reading:
            assert inspect.signature(method).parameters["by"].default is inspect.Parameter.empty, name
