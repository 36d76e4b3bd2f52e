"""Readable domain values for tests: every argument has a default, every id is new.

Parents come first and are optional: ``project(organization)`` belongs to that organization, ``project()``
to one that does not exist. Keywords override single fields. Defaults are a new id, a new digest, or now.
"""

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Protocol, TypeVar, get_args

from identity.domain.applications import Application, ApplicationType, ClientSecret
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.domain.audit import SYSTEM, AuditEvent
from identity.domain.authentication import Proof
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.outbox import OutboxMessage
from identity.domain.permissions import INSTANCE_KEY, ManagerLevel, ResourceKey
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.sent_mails import MailOutcome, SentMail
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Agent, HumanUser, PasswordHash, Profile, ServiceUser, TokenFormat, User
from identity.domain.webhooks import Webhook, WebhookDelivery

KindT = TypeVar("KindT")

#: Creation time of all values by default.
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def make_id() -> str:
    return str(uuid.uuid4())


def make_digest() -> bytes:
    """32 random bytes, like a SHA-256 digest."""
    return uuid.uuid4().bytes + uuid.uuid4().bytes


class Parent(Protocol):
    """An entity that others belong to."""

    @property
    def id(self) -> str:
        pass


#: Defaults of required fields by type.
_DEFAULTS: dict[Any, Callable[[], object]] = {str: make_id, bytes: make_digest, datetime: lambda: NOW}


def build_value(kind: type[KindT], overrides: dict[str, Any], /, **fields: Any) -> KindT:
    """A value with these fields and overrides."""
    values = fields | overrides
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.name not in values and needed and field.type in _DEFAULTS:
            values[field.name] = _DEFAULTS[field.type]()
    return kind(**values)


def other_values(kind: Any, **overrides: Any) -> dict[str, Any]:
    """A value for each optional field that differs from its default, and different moments for all fields that hold
    one: tests with these values include fields that are added later. References and the version are left out."""
    values = {}
    for number, field in enumerate(dataclasses.fields(kind)):
        kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        type_ = next(item for item in kinds if item is not NoneType)
        optional = not (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING)
        if field.name != "version" and not field.name.endswith("_id") and (optional or type_ is datetime):
            values[field.name] = _other_value(type_, field.default, number)
    return values | overrides


def _other_value(kind: Any, default: object, number: int) -> Any:
    if dataclasses.is_dataclass(kind):
        return kind(**other_values(kind))  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next(item for item in kind if item is not default)
    values: dict[Any, Any] = {
        bool: not default,
        int: number + 2,
        str: f"Zoë 株🚀\n{number}",
        bytes: bytes(range(256)),
        datetime: NOW + number * SECOND,
        timedelta: number * DAY,
        frozenset[str]: frozenset({"löwe", "株", "a b"}),
        tuple[str, ...]: ("https://z.example/cb?x=1&y=ü", "a", str(number)),
        tuple[Proof, ...]: (Proof("password", ("pwd",), NOW), Proof("ü", (), NOW + SECOND)),
        Mapping[str, str]: {"state": "ü 株\u2028\U0001f511\x00", "scope": "openid profile", "": ""},
        Mapping[str, Any]: {"text": "Zoë\n\x00株'\"", "number": 1.5, "list": [1, None, True, {"a": {}}], "": ""},
    }
    return values[kind]


def parent_ids(**parents: Parent | None) -> dict[str, str]:
    """Ids of the parents that are not None."""
    return {name: parent.id for name, parent in parents.items() if parent is not None}


def instance(project: Project | None = None, **overrides: Any) -> Instance:
    """The instance with this project as its own."""
    owner = {"organization_id": project.organization_id} if project else {}
    return build_value(Instance, overrides, **parent_ids(project_id=project), **owner)


def organization(**overrides: Any) -> Organization:
    """An active organization with a unique domain."""
    return build_value(Organization, overrides, name="Acme", primary_domain=f"{uuid.uuid4().hex}.example")


def organization_domain(organization: Organization | None = None, **overrides: Any) -> OrganizationDomain:
    """A domain pending for the organization."""
    name = f"{uuid.uuid4().hex}.example"
    return build_value(OrganizationDomain, overrides, **parent_ids(organization_id=organization), name=name)


def project(organization: Organization | None = None, **overrides: Any) -> Project:
    """An active project of the organization."""
    return build_value(Project, overrides, **parent_ids(organization_id=organization), name="Rocket")


def project_role(project: Project | None = None, **overrides: Any) -> ProjectRole:
    """A role of the project with a unique key."""
    key = f"role-{uuid.uuid4().hex[:8]}"
    return build_value(ProjectRole, overrides, **parent_ids(project_id=project), key=key, display_name=key.title())


def project_grant(
    project: Project | None = None, organization: Organization | None = None, **overrides: Any
) -> ProjectGrant:
    """The project granted to the organization, with the roles reader and writer."""
    parents = parent_ids(project_id=project, organization_id=organization)
    return build_value(ProjectGrant, overrides, **parents, roles=frozenset({"reader", "writer"}))


def user_grant(
    user: User | None = None, project: Project | None = None, grant: ProjectGrant | None = None, **overrides: Any
) -> UserGrant:
    """The role reader in the project for the user, optionally through a project grant."""
    giver = grant or project
    owner = {"organization_id": giver.organization_id} if giver else {}
    parents = parent_ids(user_id=user, project_id=project, project_grant_id=grant)
    return build_value(UserGrant, overrides, **parents, **owner, roles=frozenset({"reader"}))


def group(organization: Organization | None = None, **overrides: Any) -> Group:
    """An active group of the organization with a unique name."""
    name = f"Team {uuid.uuid4().hex[:12]}"
    return build_value(Group, overrides, **parent_ids(organization_id=organization), name=name)


def _of_group(group: Group | None) -> dict[str, str]:
    return {} if group is None else {"group_id": group.id, "organization_id": group.organization_id}


def group_member(group: Group | None = None, user: User | None = None, **overrides: Any) -> GroupMember:
    """The user in the group."""
    return build_value(GroupMember, overrides, **_of_group(group), **parent_ids(user_id=user))


def _source_of_mapping(provider: UpstreamProvider | None, overrides: Mapping[str, Any]) -> dict[str, str]:
    """The provider, or any that does not exist, unless the mapping is one of a directory."""
    if overrides.get("directory") is not None:
        return {}
    return {"provider_id": make_id()} | parent_ids(provider_id=provider)


def group_mapping(
    group: Group | None = None, provider: UpstreamProvider | None = None, **overrides: Any
) -> GroupMapping:
    """The value sales of the claim groups, for the group."""
    parents = _source_of_mapping(provider, overrides)
    return build_value(GroupMapping, overrides, **_of_group(group), **parents, claim="groups", value="sales")


def attribute_mapping(
    attribute: AttributeDefinition | None = None, provider: UpstreamProvider | None = None, **overrides: Any
) -> AttributeMapping:
    """The claim department for the attribute."""
    parents = parent_ids(attribute_id=attribute) | _source_of_mapping(provider, overrides)
    organization = {} if attribute is None else {"organization_id": attribute.organization_id}
    return build_value(AttributeMapping, overrides, **organization, **parents, claim="department")


def group_grant(
    group: Group | None = None, project: Project | None = None, grant: ProjectGrant | None = None, **overrides: Any
) -> GroupGrant:
    """The role reader in the project for the group, optionally through a project grant."""
    parents = parent_ids(project_id=project, project_grant_id=grant)
    return build_value(GroupGrant, overrides, **_of_group(group), **parents, roles=frozenset({"reader"}))


def group_manager(group: Group | None = None, resource: ResourceKey | None = None, **overrides: Any) -> GroupManager:
    """The group as ORG_OWNER of the resource, by default of its organization."""
    at = resource or ResourceKey(ManagerLevel.ORGANIZATION, group.organization_id if group else make_id())
    return build_value(GroupManager, overrides, **_of_group(group), resource=at, roles=frozenset({"ORG_OWNER"}))


def human_user(organization: Organization | None = None, **overrides: Any) -> HumanUser:
    """An active person of the organization with a unique user name."""
    return build_value(
        HumanUser,
        overrides,
        **parent_ids(organization_id=organization),
        user_name=f"ada-{uuid.uuid4().hex[:12]}",
        profile=Profile(given_name="Ada", family_name="Lovelace", email="ada@acme.example"),
    )


def service_user(organization: Organization | None = None, **overrides: Any) -> ServiceUser:
    """An active service user of the organization with a unique user name."""
    user_name = f"robot-{uuid.uuid4().hex[:12]}"
    return build_value(
        ServiceUser, overrides, **parent_ids(organization_id=organization), user_name=user_name, display_name="Robot"
    )


def agent(owner: HumanUser, **overrides: Any) -> Agent:
    """An active agent of this person."""
    return build_value(
        Agent,
        overrides,
        organization_id=owner.organization_id,
        owner_user_id=owner.id,
        user_name=f"agent-{uuid.uuid4().hex[:12]}",
        display_name="Agent",
    )


def password_hash(user: User | None = None, **overrides: Any) -> PasswordHash:
    """A password hash that no password matches."""
    hash_ = "$argon2id$v=19$m=47104,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaA"
    return build_value(PasswordHash, overrides, **parent_ids(user_id=user), hash=hash_)


def service_user_key(user: User | None = None, **overrides: Any) -> ServiceUserKey:
    """A key of the service user, valid for 90 days; its public key is not a real one."""
    public_key = b"0\x82\x01\x22 not a key \x00\xff"
    return build_value(
        ServiceUserKey, overrides, **parent_ids(user_id=user), public_key=public_key, expires_at=NOW + 90 * DAY
    )


def service_user_secret(user: User | None = None, **overrides: Any) -> ServiceUserSecret:
    """A secret of the service user; no text has its digest."""
    return build_value(ServiceUserSecret, overrides, **parent_ids(user_id=user))


def federated_credential(owner: User | Application | None = None, **overrides: Any) -> FederatedCredential:
    """A federated credential of the service user or application."""
    fields: dict[str, Any] = {
        "name": "Deployment",
        "issuer": "https://token.actions.githubusercontent.com",
        "conditions": ("sub = repo:acme/app:ref:refs/heads/main",),
    }
    reference = "application_id" if isinstance(owner, Application) else "user_id"
    owner_id = make_id() if owner is None else owner.id
    return build_value(FederatedCredential, overrides, **{reference: owner_id}, **fields)


def personal_access_token(user: User | None = None, **overrides: Any) -> PersonalAccessToken:
    """A personal access token of the service user, valid for 90 days."""
    fields: dict[str, Any] = {"name": "Nightly backup", "scope": ("openid",), "expires_at": NOW + 90 * DAY}
    return build_value(PersonalAccessToken, overrides, **parent_ids(user_id=user), **fields)


def application(project: Project | None = None, **overrides: Any) -> Application:
    return build_value(
        Application,
        overrides,
        id=uuid.uuid4().hex,
        **parent_ids(project_id=project),
        name="Shop",
        type=ApplicationType.WEB,
        response_types=frozenset({"code"}),
        grant_types=frozenset({"a_grant"}),
        redirect_uris=("https://shop.example/callback",),
    )


def upstream_provider(organization: Organization | None = None, **overrides: Any) -> UpstreamProvider:
    """An active OpenID provider of the organization; its secret is not a real one."""
    return build_value(
        UpstreamProvider,
        overrides,
        **parent_ids(organization_id=organization),
        name="Elsewhere",
        client_id="identity",
        issuer="https://login.elsewhere.example",
        secret=b"sealed \x00\xff",
    )


def attribute_definition(organization: Organization | None = None, **overrides: Any) -> AttributeDefinition:
    """A text of the organization's people, with a key of its own."""
    parents = parent_ids(organization_id=organization)
    return build_value(AttributeDefinition, overrides, **parents, key=f"k{uuid.uuid4().hex}", label="Department")


def webhook(organization: Organization | None = None, **overrides: Any) -> Webhook:
    """An active webhook for all events; its secret is not a real one."""
    return build_value(
        Webhook,
        overrides,
        **parent_ids(organization_id=organization),
        name="Receiver",
        url="https://hooks.example.com/events",
        secret=b"sealed \x00\xff",
    )


def webhook_delivery(webhook: Webhook | None = None, **overrides: Any) -> WebhookDelivery:
    """A delivery that is due now."""
    fields: dict[str, Any] = {"event_id": make_id(), "event": "user.created", "next_at": NOW, "expires_at": NOW + DAY}
    return build_value(WebhookDelivery, overrides, **parent_ids(webhook_id=webhook), **fields)


def client_secret(**overrides: Any) -> ClientSecret:
    return build_value(ClientSecret, overrides)


def manager(user: User | None = None, resource: ResourceKey = INSTANCE_KEY, **overrides: Any) -> Manager:
    """The user as IAM_OWNER of the resource."""
    return build_value(
        Manager, overrides, **parent_ids(user_id=user), resource=resource, roles=frozenset({"IAM_OWNER"})
    )


def session(user: User | None = None, **overrides: Any) -> Session:
    """A session of the user, just started, with a maximum lifetime of 30 days."""
    browser = {"user_agent": "Browser/1.0", "client_address": "192.0.2.1"}
    proofs = (Proof("password", ("pwd",), NOW),)
    return build_value(Session, overrides, **parent_ids(user_id=user), **browser, proofs=proofs, ends_at=NOW + 30 * DAY)


def pending_authorization(application: Application | None = None, **overrides: Any) -> PendingAuthorization:
    """A pending authorization request of the application, which expires after half an hour."""
    parameters = {"client_id": application.id if application else make_id(), "response_type": "code"}
    return build_value(PendingAuthorization, overrides, expires_at=NOW + timedelta(minutes=30), parameters=parameters)


def record(user: User | None = None, application: Application | None = None, **overrides: Any) -> Record:
    """A record of these owners, if any, which expires after an hour."""
    owners = parent_ids(user_id=user, application_id=application)
    defaults = {"plugin": "sample", "kind": "thing", "value": {"name": "Ada"}}
    return build_value(Record, overrides, **owners, **defaults, expires_at=NOW + timedelta(hours=1))


def sent_mail(**members: Any) -> SentMail:
    return SentMail(
        **{
            "id": make_id(),
            "kind": "invitation",
            "recipient": "ada@acme.example",
            "outcome": MailOutcome.SENT,
            "created_at": NOW,
            "ended_at": NOW + SECOND,
            "attempts": 1,
            **members,
        }
    )


def outbox_message(**overrides: Any) -> OutboxMessage:
    """A mail that is due now."""
    return build_value(OutboxMessage, overrides, kind="mail", sealed=b"sealed \x00\xff", expires_at=NOW + DAY)


def token_family(user: User | None = None, application: Application | None = None, **overrides: Any) -> TokenFamily:
    """A token family of the user at the application, which ends after 90 days."""
    return build_value(
        TokenFamily,
        overrides,
        **parent_ids(user_id=user, client_id=application),
        scope=("openid", "offline_access"),
        ends_at=NOW + 90 * DAY,
        offline=True,
        methods=("pwd",),
        acr="urn:service:iam:acr:1",
    )


def authorization_code(family: TokenFamily | None = None, **overrides: Any) -> AuthorizationCode:
    """An unredeemed code of the family, valid for a minute."""
    family = family or token_family()
    return build_value(
        AuthorizationCode,
        overrides,
        **_family_fields(family),
        redirect_uri="https://shop.example/callback",
        expires_at=NOW + timedelta(seconds=60),
    )


def access_token(
    user: User | None = None,
    application: Application | None = None,
    family: TokenFamily | None = None,
    **overrides: Any,
) -> AccessToken:
    """An access token valid for an hour: a user's at an application, a service user's, or an application's."""
    return build_value(
        AccessToken,
        overrides,
        **parent_ids(user_id=user, application_id=application, family_id=family),
        **parent_ids(subject=user or application, client_id=application or user),
        format=TokenFormat.OPAQUE,
        scope=("openid",),
        audience=("https://identity.example",),
        expires_at=NOW + timedelta(hours=1),
    )


def refresh_token(family: TokenFamily | None = None, **overrides: Any) -> RefreshToken:
    """A live refresh token of the family, valid for 30 days."""
    family = family or token_family()
    return build_value(
        RefreshToken, overrides, **_family_fields(family), expires_at=NOW + 30 * DAY, ends_at=family.ends_at
    )


def _family_fields(family: TokenFamily) -> dict[str, Any]:
    return {
        "family_id": family.id,
        "client_id": family.client_id,
        "user_id": family.user_id,
        "scope": family.scope,
        "authenticated_at": NOW - timedelta(minutes=5),
    }


def signing_key(generation: int = 1, **overrides: Any) -> SigningKey:
    """A signing key of this generation; neither half is a real key."""
    halves = {"public_key": b"0\x82 public \x00\xff", "sealed_private_key": b"sealed \x00\xff"}
    return build_value(SigningKey, overrides, **halves, generation=generation, algorithm="RS256")


def audit_event(**overrides: Any) -> AuditEvent:
    """The system's event about a new organization."""
    return build_value(
        AuditEvent,
        overrides,
        event="organization.created",
        actor=SYSTEM,
        object_kind="organization",
        object_id=make_id(),
    )
