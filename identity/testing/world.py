"""World: an assembled service under test, with helpers for tests."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from identity.crypto.secrets import new_token, token_digest
from identity.crypto.signature_keys import PrivateKey, PublicKey
from identity.domain.applications import Application, ApplicationOrigin, ApplicationType, ConsentRule
from identity.domain.attributes import AttributeDefinition
from identity.domain.authentication import Proof
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, ServiceUser, TokenFormat, User
from identity.domain.webhooks import Webhook
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.attributes import CreateAttribute
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import AddProjectGrant, AddProjectRole, CreateProject
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.upstream_providers import CreateUpstreamProvider
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser
from identity.services.commands.webhooks import CreateWebhook
from identity.services.container import Services
from identity.storage.contract import factories as make
from identity.testing.assembled_service import AssembledService
from identity.testing.jwt_assertions import assertion_claims, pkce_challenge, sign_assertion
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import Credentials

#: Redirect URI of web applications under test, and their PKCE verifier (RFC 7636 §4.1).
CALLBACK_URI = "https://app.example/callback"
CODE_VERIFIER = "a-verifier-that-is-long-enough-for-RFC-7636"
CODE_CHALLENGE = pkce_challenge(CODE_VERIFIER)

#: A client: credentials, or the client id of a public one.
CredentialsOrClientId = Credentials | str


class FormCredentials(Credentials):
    """A client id with its secret, sent in the form."""


@dataclass(frozen=True)
class ServiceUserProgram:
    """A service user with a key, as the program that authenticates as it."""

    world: "World"
    user: ServiceUser
    organization: Organization
    key_id: str
    key: RSAPrivateKey

    @property
    def id(self) -> str:
        """The user id."""
        return self.user.id

    def claims(self, **overrides: Any) -> dict[str, Any]:
        """Valid claims with overrides."""
        return assertion_claims(self.user.id, self.world.issuer, self.world.clock.seconds, **overrides)

    def assertion(self, *, header: Mapping[str, Any] | None = None, **overrides: Any) -> str:
        """A valid assertion, with overrides of claims and header."""
        return sign_assertion(self.claims(**overrides), self.key, key_id=self.key_id, header=header)

    def request_token(self, scope: str | None = "openid", **overrides: Any) -> Any:
        """The token endpoint's response to an assertion with these claims."""
        return self.world.client.exchange_assertion(self.assertion(**overrides), scope)

    def access_token(self, scope: str | None = "openid") -> str:
        """A new access token."""
        token: str = check_token_response(self.request_token(scope))["access_token"]
        return token

    def management_token(self) -> str:
        """A new access token for the management API."""
        return self.access_token(f"openid {self.world.audience_scope()}")


@dataclass(frozen=True)
class IssuedAuthorization:
    """A family with its first tokens, from a person's sign-in to an application."""

    family_id: str
    access_token: str
    refresh_token: str


@dataclass(frozen=True)
class BrowserSession:
    """A user's session in a browser, without pages."""

    world: "World"
    user: HumanUser
    id: str
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        """The browser's cookie."""
        start = "__Host-" if self.world.identity.settings.login_url.startswith("https://") else ""
        return {"Cookie": f"{start}session-{self.id}={self.secret}"}

    def authorize(self, client: CredentialsOrClientId, **parameters: str | None) -> Any:
        """The authorization endpoint's response to this browser; a parameter that is None is left out."""
        options = {
            "client_id": client if isinstance(client, str) else client.client_id,
            "redirect_uri": CALLBACK_URI,
            "response_type": "code",
            "scope": "openid",
            "code_challenge": CODE_CHALLENGE,
            "code_challenge_method": "S256",
            **parameters,
        }
        query = urlencode({name: value for name, value in options.items() if value is not None})
        return self.world.client.get(f"{self.world.client.discovery['authorization_endpoint']}?{query}", self.headers)


@dataclass(frozen=True)
class PresentableCode:
    """An authorization code with what must be presented beside it."""

    text: str = field(repr=False)
    redirect_uri: str = CALLBACK_URI
    verifier: str | None = CODE_VERIFIER

    def form(self, **changed: str | None) -> dict[str, str]:
        """The code grant's own parameters; a changed one that is None is left out."""
        form = {"code": self.text, "redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **changed}
        return {name: value for name, value in form.items() if value is not None}


class World(AssembledService):
    """An assembled, bootstrapped service behind WebTest with a fake clock.

    Created entities have unique names, so that tests sharing a world do not interfere.
    """

    @cached_property
    def introspector(self) -> Credentials:
        """An API application of the service's own project: it may introspect and revoke tokens of service users."""
        return self.make_application(self.instance.project_id)

    def make_organization(self, **overrides: Any) -> Organization:
        """A new organization in which people may register."""
        with self.transaction_services() as services:
            return self._organization(services, **overrides)

    def make_service_user_program(
        self,
        organization: Organization | None = None,
        *,
        token_format: TokenFormat = TokenFormat.OPAQUE,
        display_name: str = "Nightly Robot",
        expires_at: datetime | None = None,
    ) -> ServiceUserProgram:
        """A new service user with a key, by default in a new organization."""
        with self.transaction_services() as services:
            organization = organization or self._organization(services)
            command = CreateServiceUser.build(
                user_name=_unique("robot"), display_name=display_name, access_token_type=token_format
            )
            user = services.service_users.create(organization.id, command)
        return self._with_key(user, organization, expires_at)

    def add_service_user_key(
        self, robot: ServiceUserProgram, *, expires_at: datetime | None = None
    ) -> ServiceUserProgram:
        """The same service user with another key, as a program that holds only that one."""
        return self._with_key(robot.user, robot.organization, expires_at)

    def _with_key(
        self, user: ServiceUser, organization: Organization, expires_at: datetime | None
    ) -> ServiceUserProgram:
        key = self.key_pool.next()
        upload = UploadServiceUserKey(public_key=PublicKey(key.public_key()).to_pem(), expires_at=expires_at)
        with self.transaction_services() as services:
            stored = services.service_users.upload_key(user.id, upload, principal=Principal.OPERATOR)
        return ServiceUserProgram(self, user, organization, stored.id, key)

    def make_agent(self, owner: HumanUser) -> ServiceUserProgram:
        """A new agent of the person, who creates it in a new session, with its key."""
        session = self.make_browser_session(owner)
        with self.transaction_services() as services:
            account = services.sessions.find_live(session.id)
            assert account is not None, "the session is not live"
            key_file = services.agents.create(account, _unique("Agent"))
            agent = services.service_users.get(key_file.user_id)
        key = load_pem_private_key(key_file.key.encode(), None)
        assert isinstance(key, RSAPrivateKey)
        return ServiceUserProgram(self, agent, account.subject.organization, key_file.key_id, key)

    def make_service_user_secret(self, robot: ServiceUserProgram, *, in_form: bool = False) -> Credentials:
        """A new secret of the service user with its id: its client credentials."""
        with self.transaction_services() as services:
            _, secret = services.service_users.add_secret(robot.id, principal=Principal.OPERATOR)
        self.client.secrets.add(secret)
        return (FormCredentials if in_form else Credentials)(robot.id, secret)

    def make_personal_access_token(self, robot: ServiceUserProgram, **members: Any) -> str:
        """A new personal access token of the service user, by default for the service itself."""
        command = AddPersonalAccessToken(**({"name": _unique("Token")} | members))
        with self.transaction_services() as services:
            _, text = services.service_users.add_personal_access_token(robot.id, command, principal=Principal.OPERATOR)
        self.client.secrets.add(text)
        return text

    def make_manager_program(self, role: str = "ORG_OWNER", *, resource: Resource | None = None) -> ServiceUserProgram:
        """A new service user with a manager role, by default at its own organization."""
        robot = self.make_service_user_program()
        self.assign_manager_role(robot, role, resource=resource)
        return robot

    def assign_manager_role(
        self, user: ServiceUserProgram | HumanUser, role: str, *, resource: Resource | None = None
    ) -> Manager:
        """Make the user a manager, by default of its own organization."""
        home = user.organization.id if isinstance(user, ServiceUserProgram) else user.organization_id
        resource = resource or Resource.of_organization(home)
        with self.transaction_services() as services:
            command = AddManager(user_id=user.id, roles=frozenset({role}))
            return services.managers.add(
                resource, command, principal=Principal.OPERATOR, allow_without_sign_in_method=True
            )

    def make_human_user(self, organization: Organization | None = None) -> HumanUser:
        """A new human user."""
        with self.transaction_services() as services:
            organization = organization or self._organization(services)
            command = CreateHumanUser(user_name=_unique("ada"), given_name="Ada", family_name="Lovelace")
            return services.users.create(organization.id, command)

    def make_attribute(self, organization: Organization, key: str, **members: Any) -> AttributeDefinition:
        """An attribute of the organization's people, by default a text that managers see and change."""
        command = CreateAttribute.build(**{"key": key, "label": key.capitalize(), **members})
        with self.transaction_services() as services:
            return services.attributes.create(organization.id, command, principal=Principal.OPERATOR)

    def set_attributes(self, person: HumanUser, **values: Any) -> HumanUser:
        """Values by key, set by the operator."""
        with self.transaction_services() as services:
            command = ChangeHumanUser(attributes=values)
            return services.users.change(person.id, command, principal=Principal.OPERATOR)

    def make_project(
        self, organization: Organization | None = None, *, roles: Iterable[str] = (), **members: Any
    ) -> Project:
        """A new project with these roles."""
        with self.transaction_services() as services:
            organization = organization or self._organization(services)
            project = services.projects.create(
                organization.id, CreateProject.build(name=_unique("Project"), **members), principal=Principal.OPERATOR
            )
            for key in roles:
                services.projects.add_role(project.id, AddProjectRole.build(key=key, display_name=key))
            return project

    def make_project_grant(
        self,
        project: Project,
        organization: Organization,
        *,
        roles: Iterable[str] = (),
        principal: Principal = Principal.OPERATOR,
    ) -> ProjectGrant:
        """Grant the project with these roles to the organization."""
        command = AddProjectGrant(organization_id=organization.id, roles=frozenset(roles))
        with self.transaction_services() as services:
            return services.project_grants.add(project.id, command, principal=principal)

    def make_user_grant(
        self, user: User, project: Project, *roles: str, grant: ProjectGrant | None = None
    ) -> UserGrant:
        """Grant these roles of the project to the user, optionally through a project grant."""
        user_grant = make.user_grant(user, project, grant, roles=frozenset(roles))
        with self.transaction_services() as services:
            services.storage.user_grants.add(user_grant)
        return user_grant

    def make_application(
        self, project_id: str | None = None, *, type: ApplicationType = ApplicationType.API, **members: Any
    ) -> Credentials:
        """The credentials of a new application without consent, by default in a new project."""
        application, secret = self.register_application(project_id, type=type, **members)
        assert secret is not None, "the application is public"
        in_form = application.authentication_method == "client_secret_post"
        return (FormCredentials if in_form else Credentials)(application.id, secret)

    def make_upstream_provider(self, organization: Organization | None = None, **members: Any) -> UpstreamProvider:
        """A new identity provider, by default in a new organization: no server responds there."""
        with self.transaction_services() as services:
            organization = organization or self._organization(services)
            usual = {"name": _unique("Elsewhere"), "issuer": "https://login.elsewhere.example", "client_id": "identity"}
            command = CreateUpstreamProvider.build(**{**usual, "client_secret": new_token(), **members})
            return services.upstream_providers.create(organization.id, command, principal=Principal.OPERATOR)

    def make_webhook(self, organization: Organization | None = None, **members: Any) -> Webhook:
        """A webhook for all events of the organization; without one, of the instance."""
        usual: dict[str, Any] = {"name": "Receiver", "url": "https://hooks.example.com/events"}
        with self.transaction_services() as services:
            webhook, secret = services.webhooks.create_with_new_secret(
                None if organization is None else organization.id,
                CreateWebhook.build(**{**usual, **members}),
                principal=Principal.OPERATOR,
            )
        self.client.secrets.add(secret)
        return webhook

    def make_web_application(self, project_id: str | None = None, **members: Any) -> Credentials:
        """A new application for people: it may use codes and refresh tokens."""
        return self.make_application(project_id, **(_WEB | members))

    def make_public_application(self, project_id: str | None = None, **members: Any) -> str:
        """The client id of a new native application, which has no secret."""
        public = {"type": ApplicationType.NATIVE, "authentication_method": "none"}
        application, _ = self.register_application(project_id, **(_WEB | public | members))
        return application.id

    def register_application(
        self,
        project_id: str | None = None,
        *,
        origin: ApplicationOrigin = ApplicationOrigin.MANAGER,
        **members: Any,
    ) -> tuple[Application, str | None]:
        """A new application without consent, and its secret, by default in a new project."""
        project_id = project_id or self.make_project().id
        command = RegisterApplication.build(
            **({"name": _unique("Application"), "consent": ConsentRule.NEVER} | members)
        )
        with self.transaction_services() as services:
            application, secret = services.applications.register_with_secret(
                project_id, command, principal=Principal.OPERATOR, origin=origin
            )
        if secret is not None:
            self.client.secrets.add(secret)
        return application, secret

    def make_browser_session(self, person: HumanUser | None = None) -> BrowserSession:
        """A session of the user, by default of a new user, who has just entered a password."""
        person = person or self.make_human_user()
        with self.transaction_services() as services:
            subject = services.storage.users.find_subject(person.id)
            assert subject is not None, "there is no such person"
            proof = Proof("password", (Proof.PASSWORD_METHOD,), services.now)
            account, secret = services.sessions.start(subject, (), proofs=(proof,), user_agent="Browser/1.0")
        self.client.secrets.add(secret)
        return BrowserSession(self, person, account.session.id, secret)

    def make_code(
        self, client: CredentialsOrClientId, session: BrowserSession | None = None, **parameters: str | None
    ) -> PresentableCode:
        """A code of the authorization endpoint, by default for a user who has just signed in."""
        session = session or self.make_browser_session()
        answer = session.authorize(client, **parameters)
        assert answer.status_int == 303, answer
        members = parse_qs(urlsplit(answer.headers["Location"]).query)
        assert "code" in members, answer
        [text] = members["code"]
        self.client.secrets |= {text, CODE_VERIFIER}
        challenged = parameters.get("code_challenge", CODE_CHALLENGE) is not None
        return PresentableCode(
            text, parameters.get("redirect_uri") or CALLBACK_URI, CODE_VERIFIER if challenged else None
        )

    def redeem(self, code: PresentableCode, client: CredentialsOrClientId, /, **changed: str | None) -> Any:
        """The token endpoint's response to a code; a changed parameter that is None is left out."""
        return self.post_token_request(client, {"grant_type": "authorization_code", **code.form(**changed)})

    def refresh(self, refresh_token: str, client: CredentialsOrClientId, /, **parameters: str) -> Any:
        """The token endpoint's response to a refresh token."""
        return self.post_token_request(
            client, {"grant_type": "refresh_token", "refresh_token": refresh_token, **parameters}
        )

    def post_token_request(self, client: CredentialsOrClientId, form: Mapping[str, str]) -> Any:
        """The token endpoint's response to this form of this client."""
        credentials, headers = self.client_credentials(client)
        return self.client.request_token({**credentials, **form}, headers)

    def client_credentials(self, client: CredentialsOrClientId) -> tuple[dict[str, str], dict[str, str]]:
        """Form parameters and headers that authenticate the client by its registered method."""
        if isinstance(client, str):
            return {"client_id": client}, {}
        self.client.secrets.add(client.secret)
        if isinstance(client, FormCredentials):
            return {"client_id": client.client_id, "client_secret": client.secret}, {}
        return {}, {"Authorization": client.header}

    def obtain_tokens(
        self, client: CredentialsOrClientId, session: BrowserSession | None = None, **parameters: str | None
    ) -> dict[str, Any]:
        """The members of the response to a new code; by default including a refresh token."""
        sent_parameters = {"scope": "openid offline_access", **parameters}
        return check_token_response(self.redeem(self.make_code(client, session, **sent_parameters), client))

    def make_authorization(
        self, person: HumanUser, client: Credentials, *, scope: tuple[str, ...] = ("openid", "offline_access")
    ) -> IssuedAuthorization:
        """Tokens as the code grant leaves them, stored directly."""
        now = self.clock()
        access_token, refresh_token = new_token(), new_token()
        with self.read_only_services() as services:
            project_id = services.applications.get(client.client_id).project_id
        family = make.token_family(
            client_id=client.client_id, user_id=person.id, scope=scope, started_at=now, ends_at=now + timedelta(days=90)
        )
        access = make.access_token(
            person,
            digest=token_digest(access_token),
            client_id=client.client_id,
            application_id=client.client_id,
            family_id=family.id,
            scope=scope,
            audience=(client.client_id, project_id),
            issued_at=now,
            expires_at=now + timedelta(hours=1),
        )
        refresh = make.refresh_token(
            family,
            digest=token_digest(refresh_token),
            issued_at=now,
            expires_at=now + timedelta(days=30),
            authenticated_at=now,
        )
        with self.transaction_services() as services:
            services.storage.tokens.add_family(family)
            services.storage.tokens.add_access_token(access)
            services.storage.tokens.add_refresh_token(refresh)
        self.client.secrets |= {access_token, refresh_token}
        return IssuedAuthorization(family.id, access_token, refresh_token)

    def _organization(self, services: Services, **overrides: Any) -> Organization:
        members: dict[str, Any] = {"name": _unique("Organization"), "registration": True}
        return services.organizations.create(CreateOrganization(**(members | overrides)), principal=Principal.OPERATOR)


_WEB: dict[str, Any] = {
    "type": ApplicationType.WEB,
    "redirect_uris": (CALLBACK_URI,),
    "response_types": frozenset({"code"}),
    "grant_types": frozenset({"authorization_code", "refresh_token"}),
}


def _unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def pkcs1_pem(key: RSAPrivateKey) -> str:
    """The private key in the text format of key files."""
    return PrivateKey(key).to_pem()
