"""Readable domain values for tests: every argument has a default, every id is new.

Parents come first and are optional: ``a_project(organization)`` belongs to that organization, ``a_project()`` to one
that exists nowhere. Keywords override single fields.
"""

import dataclasses
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from identity.domain.applications import Application, ApplicationType, ClientSecret
from identity.domain.audit import SYSTEM, AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.permissions import INSTANCE_KEY, ResourceKey
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.users import HumanUser, PasswordHash, Profile, ServiceUser, TokenFormat, User

Kind = TypeVar("Kind")

#: The moment at which everything is made unless said otherwise.
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def an_id() -> str:
    """A new identifier."""
    return str(uuid.uuid4())


def a_digest() -> bytes:
    """32 new bytes, shaped like a SHA-256."""
    return uuid.uuid4().bytes + uuid.uuid4().bytes


def made(kind: type[Kind], overrides: dict[str, Any], /, **fields: Any) -> Kind:
    """A value with these fields, but for the overrides; its id is new, and it was made and changed now."""
    usual = {"id": an_id(), "created_at": NOW, "changed_at": NOW}
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**({name: value for name, value in usual.items() if name in names} | fields | overrides))


def an_instance(project: Project | None = None, **overrides: Any) -> Instance:
    """The instance, whose own project is the one given."""
    return made(
        Instance,
        overrides,
        organization_id=project.organization_id if project else an_id(),
        project_id=project.id if project else an_id(),
    )


def an_organization(**overrides: Any) -> Organization:
    """An active organization with a domain of its own."""
    return made(Organization, overrides, name="Acme", primary_domain=f"{uuid.uuid4().hex}.example")


def a_domain(organization: Organization | None = None, **overrides: Any) -> OrganizationDomain:
    """A domain that the organization waits for."""
    return made(
        OrganizationDomain,
        overrides,
        organization_id=organization.id if organization else an_id(),
        name=f"{uuid.uuid4().hex}.example",
        challenge=uuid.uuid4().hex,
    )


def a_project(organization: Organization | None = None, **overrides: Any) -> Project:
    """An active project of the organization."""
    return made(Project, overrides, organization_id=organization.id if organization else an_id(), name="Rocket")


def a_project_role(project: Project | None = None, **overrides: Any) -> ProjectRole:
    """A role of the project with a key of its own."""
    key = f"role-{uuid.uuid4().hex[:8]}"
    return made(
        ProjectRole, overrides, project_id=project.id if project else an_id(), key=key, display_name=key.title()
    )


def a_project_grant(
    project: Project | None = None, organization: Organization | None = None, **overrides: Any
) -> ProjectGrant:
    """The project granted to the organization, with the roles reader and writer."""
    return made(
        ProjectGrant,
        overrides,
        project_id=project.id if project else an_id(),
        organization_id=organization.id if organization else an_id(),
        roles=frozenset({"reader", "writer"}),
    )


def a_user_grant(
    user: User | None = None, project: Project | None = None, grant: ProjectGrant | None = None, **overrides: Any
) -> UserGrant:
    """The role reader in the project given to the user, where asked by way of a project grant."""
    owner = project.organization_id if project else an_id()
    return made(
        UserGrant,
        overrides,
        user_id=user.id if user else an_id(),
        organization_id=grant.organization_id if grant else owner,
        project_id=project.id if project else an_id(),
        project_grant_id=grant.id if grant else None,
        roles=frozenset({"reader"}),
    )


def a_human_user(organization: Organization | None = None, **overrides: Any) -> HumanUser:
    """An active person of the organization with a user name of their own."""
    return made(
        HumanUser,
        overrides,
        organization_id=organization.id if organization else an_id(),
        user_name=f"ada-{uuid.uuid4().hex[:12]}",
        profile=Profile(given_name="Ada", family_name="Lovelace", email="ada@acme.example"),
    )


def a_service_user(organization: Organization | None = None, **overrides: Any) -> ServiceUser:
    """An active service user of the organization with a user name of its own."""
    return made(
        ServiceUser,
        overrides,
        organization_id=organization.id if organization else an_id(),
        user_name=f"robot-{uuid.uuid4().hex[:12]}",
        display_name="Robot",
    )


def a_password(user: User | None = None, **overrides: Any) -> PasswordHash:
    """A password hash of the user; no password fits it."""
    return made(
        PasswordHash,
        overrides,
        user_id=user.id if user else an_id(),
        hash="$argon2id$v=19$m=47104,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaA",
    )


def a_key(user: User | None = None, **overrides: Any) -> ServiceUserKey:
    """A key of the service user that lives for 90 days; its public key is no real one."""
    return made(
        ServiceUserKey,
        overrides,
        user_id=user.id if user else an_id(),
        public_key=b"0\x82\x01\x22 not a key \x00\xff",
        expires_at=NOW + timedelta(days=90),
    )


def a_service_user_secret(user: User | None = None, **overrides: Any) -> ServiceUserSecret:
    """A secret of the service user; no text has its digest."""
    return made(ServiceUserSecret, overrides, user_id=user.id if user else an_id(), digest=a_digest())


def a_personal_access_token(user: User | None = None, **overrides: Any) -> PersonalAccessToken:
    """A personal access token of the service user that lives for 90 days."""
    return made(
        PersonalAccessToken,
        overrides,
        user_id=user.id if user else an_id(),
        name="Nightly backup",
        scope=("openid",),
        expires_at=NOW + timedelta(days=90),
    )


def an_application(project: Project | None = None, **overrides: Any) -> Application:
    """An active web application of the project."""
    return made(
        Application,
        overrides,
        id=uuid.uuid4().hex,
        project_id=project.id if project else an_id(),
        name="Shop",
        type=ApplicationType.WEB,
        response_types=frozenset({"code"}),
        grant_types=frozenset({"authorization_code"}),
        redirect_uris=("https://shop.example/callback",),
    )


def a_client_secret(**overrides: Any) -> ClientSecret:
    """A client secret."""
    return made(ClientSecret, overrides, digest=a_digest())


def a_manager(user: User | None = None, resource: ResourceKey = INSTANCE_KEY, **overrides: Any) -> Manager:
    """The user as IAM_OWNER of the resource."""
    return made(
        Manager, overrides, user_id=user.id if user else an_id(), resource=resource, roles=frozenset({"IAM_OWNER"})
    )


def a_session(user: User | None = None, **overrides: Any) -> Session:
    """The user signed in just now on a browser, for 30 days at most."""
    return made(
        Session,
        overrides,
        digest=a_digest(),
        user_id=user.id if user else an_id(),
        started_at=NOW,
        authenticated_at=NOW,
        selected_at=NOW,
        last_seen_at=NOW,
        ends_at=NOW + timedelta(days=30),
        user_agent="Browser/1.0",
        client_address="192.0.2.1",
    )


def a_pending(application: Application | None = None, **overrides: Any) -> PendingAuthorization:
    """An authorization request of the application that waits for its user, half an hour at most."""
    return made(
        PendingAuthorization,
        overrides,
        digest=a_digest(),
        expires_at=NOW + timedelta(minutes=30),
        parameters={"client_id": application.id if application else uuid.uuid4().hex, "response_type": "code"},
    )


def a_record(user: User | None = None, application: Application | None = None, **overrides: Any) -> Record:
    """A record of these owners, if any, which is good for an hour."""
    return made(
        Record,
        overrides,
        plugin="sample",
        kind="thing",
        key=a_digest(),
        user_id=user.id if user else None,
        application_id=application.id if application else None,
        value={"name": "Ada"},
        expires_at=NOW + timedelta(hours=1),
    )


def an_outgoing_message(**overrides: Any) -> OutgoingMessage:
    """A mail that is due at once."""
    return made(
        OutgoingMessage,
        overrides,
        kind="mail",
        sealed=b"sealed \x00\xff",
        next_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )


def a_family(user: User | None = None, application: Application | None = None, **overrides: Any) -> TokenFamily:
    """What the user allowed the application: a family of 90 days."""
    return made(
        TokenFamily,
        overrides,
        user_id=user.id if user else an_id(),
        client_id=application.id if application else uuid.uuid4().hex,
        scope=("openid", "offline_access"),
        started_at=NOW,
        ends_at=NOW + timedelta(days=90),
        offline=True,
        methods=("pwd",),
    )


def a_code(family: TokenFamily | None = None, **overrides: Any) -> AuthorizationCode:
    """An unredeemed code of the family that lives for a minute."""
    family = family or a_family()
    return made(
        AuthorizationCode,
        overrides,
        digest=a_digest(),
        family_id=family.id,
        client_id=family.client_id,
        user_id=family.user_id,
        redirect_uri="https://shop.example/callback",
        scope=family.scope,
        issued_at=NOW,
        expires_at=NOW + timedelta(seconds=60),
        authenticated_at=NOW - timedelta(minutes=5),
    )


def an_access_token(
    user: User | None = None,
    application: Application | None = None,
    family: TokenFamily | None = None,
    **overrides: Any,
) -> AccessToken:
    """A live access token of an hour: a user's for an application, a service user's own, or an application's own."""
    return made(
        AccessToken,
        overrides,
        digest=a_digest(),
        format=TokenFormat.OPAQUE,
        subject=user.id if user else application.id if application else an_id(),
        client_id=application.id if application else user.id if user else an_id(),
        scope=("openid",),
        audience=("https://identity.example",),
        issued_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        user_id=user.id if user else None,
        application_id=application.id if application else None,
        family_id=family.id if family else None,
    )


def a_refresh_token(family: TokenFamily | None = None, **overrides: Any) -> RefreshToken:
    """A live refresh token of the family, to be used within 30 days."""
    family = family or a_family()
    return made(
        RefreshToken,
        overrides,
        digest=a_digest(),
        family_id=family.id,
        user_id=family.user_id,
        client_id=family.client_id,
        scope=family.scope,
        issued_at=NOW,
        expires_at=NOW + timedelta(days=30),
        ends_at=family.ends_at,
        authenticated_at=NOW - timedelta(minutes=5),
    )


def a_signing_key(generation: int = 1, **overrides: Any) -> SigningKey:
    """A signing key of this generation; neither half is a real key."""
    return made(
        SigningKey,
        overrides,
        generation=generation,
        algorithm="RS256",
        public_key=b"0\x82 public \x00\xff",
        sealed_private_key=b"sealed \x00\xff",
        active_at=NOW,
    )


def an_audit_event(**overrides: Any) -> AuditEvent:
    """The system's note that an organization was created."""
    return made(
        AuditEvent,
        overrides,
        at=NOW,
        event="organization.created",
        actor=SYSTEM,
        object_kind="organization",
        object_id=an_id(),
    )
