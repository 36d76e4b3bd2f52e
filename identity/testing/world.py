"""World: one assembled service under test, and short ways to what tests need in it."""

import hashlib
import itertools
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from webtest import TestApp

from identity import first_start
from identity.app import assemble, configure
from identity.crypto.keys import PrivateKey, PublicKey
from identity.crypto.passwords import Cost
from identity.crypto.secrets import digest, new_token
from identity.domain.applications import ApplicationType
from identity.domain.audiences import audience_scope
from identity.domain.audit import AuditEvent, AuditFilter
from identity.domain.authentication import BY_PASSWORD
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, organization_resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, ServiceUser, TokenFormat, User
from identity.process import Identity
from identity.services.access import THE_OPERATOR, Principal
from identity.services.bundle import Services
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import AddProjectGrant, AddProjectRole, CreateProject
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.users import CreateHumanUser
from identity.storage.paging import MAX_PAGE, PageRequest
from identity.testing.assertions import base64url, claims, signed
from identity.testing.clock import MovableClock
from identity.testing.factories import a_family, a_refresh_token, a_user_grant, an_access_token
from identity.testing.relying_party import UNASKED, Credentials, ServiceClient
from identity.testing.responses import check_granted
from identity.worker import Worker

#: All capabilities that come with the service; the plugin of the storage is put before them.
PLUGINS = (
    "client_secret_basic client_secret_post public_client authorization_code implicit refresh_token client_credentials"
    " jwt_bearer oidc_scopes project_audience project_roles organization_scopes manager_roles login account console"
    " management"
)

HOST = {"identity.issuer_url": "https://id.example.com"}
THREE_HOSTS = {
    "identity.issuer_url": "https://id.example.com",
    "identity.base_url": "https://api.example.com",
    "identity.login_url": "https://login.example.com",
}

#: Where browsers are sent back to by web applications under test, and their PKCE verifier (RFC 7636 §4.1).
CALLBACK = "https://app.example/callback"
VERIFIER = "a-verifier-that-is-long-enough-for-RFC-7636"
CHALLENGE = base64url(hashlib.sha256(VERIFIER.encode()).digest())

#: A client as tests name it: with its secret, or by the client id alone if it is public.
AnyClient = Credentials | str


class _CompiledTemplates(BytecodeCache):
    """Templates as they were compiled for the first world of this process: it takes longer than drawing them."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


_TEMPLATES = _CompiledTemplates()


class _NextToNothing(Cost):
    """What a password costs here: a thousandth of what the settings say, since nobody is after it."""

    def __post_init__(self) -> None:
        pass

    @classmethod
    def of(cls, cost: Cost) -> "_NextToNothing":
        return cls(memory_kib=cost.memory_kib // 1000, iterations=cost.iterations)


class FormCredentials(Credentials):
    """A client id with its secret, sent in the form."""


class KeyPool:
    """A few RSA keys, handed out in turn: making one takes longer than a whole test."""

    def __init__(self, size: int = 4) -> None:
        self._keys = [generate_private_key(public_exponent=65537, key_size=2048) for _ in range(size)]
        self._turn = itertools.cycle(self._keys)

    def next(self) -> RSAPrivateKey:
        """Another key than the last one."""
        return next(self._turn)


@dataclass(frozen=True)
class Robot:
    """A service user with a key, seen from the program that logs on as it."""

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
        """Right claims, but for the overrides."""
        return claims(self.user.id, self.world.issuer, self.world.clock.seconds, **overrides)

    def assertion(self, *, header: Mapping[str, Any] | None = None, **overrides: Any) -> str:
        """A right assertion, but for the overrides of claims and header."""
        return signed(self.claims(**overrides), self.key, key_id=self.key_id, header=header)

    def token(self, scope: str | None = "openid", **overrides: Any) -> Any:
        """The token endpoint's answer to an assertion with these claims."""
        return self.world.client.assertion(self.assertion(**overrides), scope)

    def access_token(self, scope: str | None = "openid") -> str:
        """A new access token."""
        token: str = check_granted(self.token(scope))["access_token"]
        return token

    def managing_token(self) -> str:
        """A new access token that is meant for the management API."""
        return self.access_token(f"openid {self.world.audience_scope()}")


@dataclass(frozen=True)
class Authorized:
    """What a person's log-on has brought an application: a family with its first tokens."""

    family_id: str
    access_token: str
    refresh_token: str


@dataclass(frozen=True)
class BrowserSession:
    """A person who is signed in at a browser, without the pages that lead there."""

    world: "World"
    person: HumanUser
    id: str
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        """The cookie that the browser shows."""
        start = "__Host-" if self.world.identity.settings.login_url.startswith("https://") else ""
        return {"Cookie": f"{start}session-{self.id}={self.secret}"}

    def authorize(self, client: AnyClient, **parameters: str | None) -> Any:
        """The authorization endpoint's answer to this browser; a parameter that is None is left out."""
        asked = {
            "client_id": client if isinstance(client, str) else client.client_id,
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": "openid",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **parameters,
        }
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return self.world.client.get(f"{self.world.client.discovery['authorization_endpoint']}?{query}", self.headers)


@dataclass(frozen=True)
class Code:
    """An authorization code, with what has to be shown beside it."""

    text: str = field(repr=False)
    redirect_uri: str = CALLBACK
    verifier: str | None = VERIFIER

    def form(self, **changed: str | None) -> dict[str, str]:
        """The code grant's own parameters; a changed one that is None is left out."""
        form = {"code": self.text, "redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **changed}
        return {name: value for name, value in form.items() if value is not None}


class World:
    """An assembled, bootstrapped service behind WebTest, whose clock moves only when told.

    What the methods make is named uniquely, so that tests sharing a world do not meet.
    """

    def __init__(self, settings: Mapping[str, str], *, clock: MovableClock, key_pool: KeyPool) -> None:
        self.settings = dict(settings)
        self.clock = clock
        self.key_pool = key_pool
        self.identity: Identity = assemble(self.settings, clock=clock)
        self.identity.process.hasher.cost = _NextToNothing.of(self.identity.process.hasher.cost)
        # Background work would meet tests at moments of its own choosing; they call it where they want it.
        self.identity.worker = Worker([])
        self.app = configure(self.identity, self.settings)
        self.app.registry.pages.environment.bytecode_cache = _TEMPLATES
        self.client = ServiceClient(TestApp(self.app), self.issuer)

    def bootstrap(self) -> None:
        """Bring schema, instance and signing key into place, as far as they are missing."""
        self.identity.backend.migrate()
        first_start.run(self.identity)

    @property
    def issuer(self) -> str:
        """The issuer, as it stands in tokens."""
        return self.identity.settings.issuer_url

    @cached_property
    def instance(self) -> Instance:
        """The ids of the instance's own organization and project."""
        with self.reading() as services:
            found = services.storage.organizations.find_instance()
        assert found is not None, "the world was not bootstrapped"
        return found

    @cached_property
    def introspector(self) -> Credentials:
        """An API application of the own project: it may introspect and revoke what service users get."""
        return self.an_application(self.instance.project_id)

    def transaction(self) -> AbstractContextManager[Services]:
        """Services of the operator, committed at the end."""
        return self.identity.transaction()

    def reading(self) -> AbstractContextManager[Services]:
        """Services on a read connection."""
        return self.identity.reading()

    def audience_scope(self, project_id: str | None = None, *, namespace: str = "urn:service:iam") -> str:
        """The scope that adds a project to the audience; by default the own project."""
        return audience_scope(project_id or self.instance.project_id, namespace)

    def an_organization(self, **overrides: Any) -> Organization:
        """A new organization, in which people may register."""
        with self.transaction() as services:
            return self._organization(services, **overrides)

    def a_robot(
        self,
        organization: Organization | None = None,
        *,
        token_format: TokenFormat = TokenFormat.OPAQUE,
        display_name: str = "Nightly Robot",
        expires_at: datetime | None = None,
    ) -> Robot:
        """A new service user with a key, by default of a new organization."""
        key = self.key_pool.next()
        with self.transaction() as services:
            organization = organization or self._organization(services)
            command = CreateServiceUser.of(
                user_name=_unique("robot"), display_name=display_name, access_token_type=token_format
            )
            user = services.service_users.create(organization.id, command)
            upload = UploadServiceUserKey(public_key=_public_pem(key), expires_at=expires_at)
            stored = services.service_users.upload_key(user.id, upload, by=THE_OPERATOR)
        return Robot(self, user, organization, stored.id, key)

    def another_key(self, robot: Robot, *, expires_at: datetime | None = None) -> Robot:
        """The same service user with one more key, seen from a program that holds that one."""
        key = self.key_pool.next()
        with self.transaction() as services:
            upload = UploadServiceUserKey(public_key=_public_pem(key), expires_at=expires_at)
            stored = services.service_users.upload_key(robot.id, upload, by=THE_OPERATOR)
        return Robot(self, robot.user, robot.organization, stored.id, key)

    def a_secret(self, robot: Robot, *, in_form: bool = False) -> Credentials:
        """A new secret of the service user, with its id: what it shows to be a client."""
        with self.transaction() as services:
            _, secret = services.service_users.add_secret(robot.id, by=THE_OPERATOR)
        self.client.secrets.add(secret)
        return (FormCredentials if in_form else Credentials)(robot.id, secret)

    def a_personal_access_token(self, robot: Robot, **members: Any) -> str:
        """A new personal access token of the service user, by default for the service itself."""
        command = AddPersonalAccessToken(**({"name": _unique("Token")} | members))
        with self.transaction() as services:
            _, text = services.service_users.add_token(robot.id, command, by=THE_OPERATOR)
        self.client.secrets.add(text)
        return text

    def a_manager(self, role: str = "ORG_OWNER", *, resource: Resource | None = None) -> Robot:
        """A new service user that holds a manager role, by default at its own organization."""
        robot = self.a_robot()
        self.make_manager(robot, role, resource=resource)
        return robot

    def make_manager(self, user: Robot | HumanUser, role: str, *, resource: Resource | None = None) -> Manager:
        """The user as manager, by default of its own organization."""
        home = user.organization.id if isinstance(user, Robot) else user.organization_id
        resource = resource or organization_resource(home)
        with self.transaction() as services:
            command = AddManager(user_id=user.id, roles=frozenset({role}))
            return services.managers.add(resource, command, by=THE_OPERATOR)

    def a_person(self, organization: Organization | None = None) -> HumanUser:
        """A new human user."""
        with self.transaction() as services:
            organization = organization or self._organization(services)
            command = CreateHumanUser(user_name=_unique("ada"), given_name="Ada", family_name="Lovelace")
            return services.users.create(organization.id, command)

    def a_project(
        self, organization: Organization | None = None, *, roles: Iterable[str] = (), **members: Any
    ) -> Project:
        """A new project with these roles."""
        with self.transaction() as services:
            organization = organization or self._organization(services)
            project = services.projects.create(
                organization.id, CreateProject.of(name=_unique("Project"), **members), by=THE_OPERATOR
            )
            for key in roles:
                services.projects.add_role(project.id, AddProjectRole.of(key=key, display_name=key))
            return project

    def a_grant(
        self,
        project: Project,
        organization: Organization,
        *,
        roles: Iterable[str] = (),
        by: Principal = THE_OPERATOR,
    ) -> ProjectGrant:
        """The project, with these of its roles, granted to the organization."""
        command = AddProjectGrant(organization_id=organization.id, roles=frozenset(roles))
        with self.transaction() as services:
            return services.project_grants.add(project.id, command, by=by)

    def a_user_grant(self, user: User, project: Project, *roles: str, grant: ProjectGrant | None = None) -> UserGrant:
        """These roles of the project given to the user, where asked by way of a project grant."""
        given = a_user_grant(user, project, grant, roles=frozenset(roles))
        with self.transaction() as services:
            services.storage.user_grants.add(given)
        return given

    def an_application(
        self,
        project_id: str | None = None,
        *,
        type: ApplicationType = ApplicationType.API,  # noqa: A002
        **members: Any,
    ) -> Credentials:
        """The credentials of a new application, by default of a new project, whose people are not asked for consent."""
        project_id = project_id or self.a_project().id
        with self.transaction() as services:
            command = RegisterApplication.of(name=_unique("Application"), type=type, **(UNASKED | members))
            application, secret = services.applications.register(project_id, command, by=THE_OPERATOR)
        assert secret is not None, "the application is public"
        in_form = application.authentication_method == "client_secret_post"
        return (FormCredentials if in_form else Credentials)(application.id, secret)

    def a_web_application(self, project_id: str | None = None, **members: Any) -> Credentials:
        """A new application that people sign in to: it may use codes and refresh."""
        return self.an_application(project_id, **(_WEB | members))

    def a_public_application(self, project_id: str | None = None, **members: Any) -> str:
        """The client id of a new native application, which has no secret."""
        project_id = project_id or self.a_project().id
        with self.transaction() as services:
            public = {"type": ApplicationType.NATIVE, "authentication_method": "none"}
            command = RegisterApplication.of(name=_unique("Application"), **(_WEB | UNASKED | public | members))
            application, _ = services.applications.register(project_id, command, by=THE_OPERATOR)
        return application.id

    def a_session(self, person: HumanUser | None = None) -> BrowserSession:
        """A new session of the person, by default of a new one, who has just given a password."""
        person = person or self.a_person()
        with self.transaction() as services:
            subject = services.storage.users.find_subject(person.id)
            assert subject is not None, "there is no such person"
            account, secret = services.sessions.sign_in(subject, (), methods=(BY_PASSWORD,), user_agent="Browser/1.0")
        self.client.secrets.add(secret)
        return BrowserSession(self, person, account.session.id, secret)

    def a_code(self, client: AnyClient, session: BrowserSession | None = None, **parameters: str | None) -> Code:
        """A new code of the authorization endpoint, by default for a person who has just signed in."""
        session = session or self.a_session()
        answer = session.authorize(client, **parameters)
        assert answer.status_int == 303, answer
        members = parse_qs(urlsplit(answer.headers["Location"]).query)
        assert "code" in members, answer
        [text] = members["code"]
        self.client.secrets |= {text, VERIFIER}
        challenged = parameters.get("code_challenge", CHALLENGE) is not None
        return Code(text, parameters.get("redirect_uri") or CALLBACK, VERIFIER if challenged else None)

    def redeem(self, code: Code, client: AnyClient, /, **changed: str | None) -> Any:
        """The token endpoint's answer to a code; a changed parameter that is None is left out."""
        return self.as_client(client, {"grant_type": "authorization_code", **code.form(**changed)})

    def refresh(self, refresh_token: str, client: AnyClient, /, **parameters: str) -> Any:
        """The token endpoint's answer to a refresh token."""
        return self.as_client(client, {"grant_type": "refresh_token", "refresh_token": refresh_token, **parameters})

    def as_client(self, client: AnyClient, form: Mapping[str, str]) -> Any:
        """The token endpoint's answer to this form of this client."""
        credentials, headers = self.credentials_of(client)
        return self.client.token({**credentials, **form}, headers)

    def credentials_of(self, client: AnyClient) -> tuple[dict[str, str], dict[str, str]]:
        """What the client sends to be known, by the method that it is registered with: form parameters and headers."""
        if isinstance(client, str):
            return {"client_id": client}, {}
        self.client.secrets.add(client.secret)
        if isinstance(client, FormCredentials):
            return {"client_id": client.client_id, "client_secret": client.secret}, {}
        return {}, {"Authorization": client.header}

    def tokens(
        self, client: AnyClient, session: BrowserSession | None = None, **parameters: str | None
    ) -> dict[str, Any]:
        """The members of the answer to a new code; by default a refresh token is among them."""
        asked = {"scope": "openid offline_access", **parameters}
        return check_granted(self.redeem(self.a_code(client, session, **asked), client))

    def an_authorization(
        self, person: HumanUser, client: Credentials, *, scope: tuple[str, ...] = ("openid", "offline_access")
    ) -> Authorized:
        """Tokens as the code grant leaves them, put straight into the storage."""
        now = self.clock()
        access_token, refresh_token = new_token(), new_token()
        project_id = self._project_of(client)
        family = a_family(
            client_id=client.client_id, user_id=person.id, scope=scope, started_at=now, ends_at=now + timedelta(days=90)
        )
        access = an_access_token(
            person,
            digest=digest(access_token),
            client_id=client.client_id,
            application_id=client.client_id,
            family_id=family.id,
            scope=scope,
            audience=(client.client_id, project_id),
            issued_at=now,
            expires_at=now + timedelta(hours=1),
        )
        refresh = a_refresh_token(
            family,
            digest=digest(refresh_token),
            issued_at=now,
            expires_at=now + timedelta(days=30),
            authenticated_at=now,
        )
        with self.transaction() as services:
            services.storage.tokens.start_family(family)
            services.storage.tokens.add_access(access)
            services.storage.tokens.add_refresh(refresh)
        self.client.secrets |= {access_token, refresh_token}
        return Authorized(family.id, access_token, refresh_token)

    def audit_events(self, **filters: Any) -> tuple[AuditEvent, ...]:
        """Audit events that fit the filters, newest first; a thousand at most."""
        with self.reading() as services:
            return services.storage.audit.page(PageRequest(limit=MAX_PAGE), AuditFilter(**filters)).items

    def every_audit_event(self) -> Iterable[AuditEvent]:
        """All audit events, newest first."""
        request = PageRequest(limit=MAX_PAGE)
        with self.reading() as services:
            while True:
                page = services.storage.audit.page(request)
                yield from page.items
                if page.next is None:
                    return
                request = PageRequest(limit=MAX_PAGE, cursor=page.next)

    def _project_of(self, client: Credentials) -> str:
        with self.reading() as services:
            return services.applications.get(client.client_id).project_id

    def close(self) -> None:
        """Give back connections."""
        self.identity.close()

    def _organization(self, services: Services, **overrides: Any) -> Organization:
        members: dict[str, Any] = {"name": _unique("Organization"), "registration": True}
        return services.organizations.create(CreateOrganization(**(members | overrides)), by=THE_OPERATOR)


_WEB: dict[str, Any] = {
    "type": ApplicationType.WEB,
    "redirect_uris": (CALLBACK,),
    "response_types": frozenset({"code"}),
    "grant_types": frozenset({"authorization_code", "refresh_token"}),
}


def _unique(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:12]}"


def _public_pem(key: RSAPrivateKey) -> str:
    return PublicKey(key.public_key()).to_pem()


def pkcs1_pem(key: RSAPrivateKey) -> str:
    """The private key in the text form that key files carry."""
    return PrivateKey(key).to_pkcs1_pem()
