"""SQLAlchemy Core tables; rows never leave this package.

Columns follow from the fields of the stored values (``identity.plugins.sql.row_mapping``). This module declares the
rest: keys, references, indexes, and columns without fields.

Text is compared byte by byte (collation "C" on PostgreSQL, BINARY on SQLite), so every list has the order it has in
the other backends, and "starts with" is a range that an index supports.

``info={"field": …}`` names the field reported if a unique constraint is violated.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.schema import SchemaItem

from identity.domain.application_requests import ApplicationRequest
from identity.domain.applications import Application, ClientSecret
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, StoredAttribute
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.entity import entity_fields
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.outbox import OutboxMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.sent_mails import SentMail
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Agent, HumanUser, PasswordHash, ServiceUser
from identity.domain.webhooks import Webhook, WebhookDelivery
from identity.plugins.sql.column_codecs import CodePointText, EpochSeconds, RawBoolean, SortedText
from identity.plugins.sql.row_mapping import TableLayout
from identity.storage.stores.users import UserKind

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _create_table(
    name: str,
    kinds: type | Mapping[str, type],
    *items: SchemaItem,
    value_lists: tuple[str, ...] = (),
    flattened: Mapping[str, Sequence[str]] | None = None,
    settings: frozenset[str] = frozenset(),
    field: str | None = None,
    **options: Any,
) -> Table:
    """A table of these values. A given column replaces the one that follows from its field. The id is the primary key
    unless another one is given."""
    layout = TableLayout(kinds, value_lists, flattened or {}, settings)
    columns = {column.name: column for column in layout.columns()}
    columns |= {item.name: item for item in items if isinstance(item, Column)}
    if not any(column.primary_key for column in columns.values()):
        columns["id"].primary_key = True
    rules = [item for item in items if not isinstance(item, Column)]
    return Table(name, metadata, *columns.values(), *rules, info={"layout": layout, "field": field}, **options)


def _settings_of(kind: type, *, queried: Container[str] = ()) -> frozenset[str]:
    """The fields that managers may set and may leave at their defaults, without those that a query uses."""
    items = entity_fields(kind).values()
    return frozenset(item.name for item in items if item.is_mutable and not item.required and item.name not in queried)


def _sorted_column(name: str, *, derive: Callable[[Any], str] | None = None) -> Column[str]:
    """A text for sorting or searching; ``derive`` computes it from the stored value."""
    return Column(name, SortedText, nullable=False, info={} if derive is None else {"of": derive})


def _name_key_column() -> Column[str]:
    return _sorted_column("name_key", derive=lambda value: name_key(value.name))


def _id_column(name: str = "id") -> Column[str]:
    return Column(name, CodePointText, primary_key=True)


def _digest_column() -> Column[bytes]:
    return Column("digest", LargeBinary, primary_key=True)


def _timestamp_column(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, EpochSeconds, nullable=nullable)


def _integer_column(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _foreign_key_column(name: str, target: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """A reference to a parent: the row is deleted with it."""
    key = ForeignKey(f"{target}.id", ondelete="CASCADE")
    return Column(name, CodePointText, key, primary_key=primary_key, nullable=nullable)


def _indexed_reference(name: str, target: str) -> tuple[Column[str], Index]:
    """A nullable reference, and an index of the rows that have one."""
    return _foreign_key_column(name, target, nullable=True), Index(None, name, **_partial_index(f"{name} IS NOT NULL"))


def _partial_index(condition: str) -> dict[str, Any]:
    """A partial index: it contains only rows that are looked up by it."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _ending_index(*within: str) -> Index:
    """An index of the rows that end by themselves, which are few."""
    return Index(None, *within, "until", "id", **_partial_index("until IS NOT NULL"))


organizations = _create_table(
    "organizations",
    Organization,
    _name_key_column(),
    _sorted_column("search_text"),
    UniqueConstraint("primary_domain", info={"field": "primary_domain"}),
    Index(None, "name_key", "id"),
    Index(None, "created_at", "id"),
    Index(None, "search_text", "id", "active"),
)

# No foreign key: a verified domain stays reserved for its organization after that is gone.
domains = _create_table(
    "domains",
    OrganizationDomain,
    _id_column("organization_id"),
    _id_column("name"),
    Index("uq_domains_name", "name", unique=True, info={"field": "domain"}, **_partial_index("proof IS NOT NULL")),
    field="domain",
)

projects = _create_table(
    "projects",
    Project,
    _foreign_key_column("organization_id", "organizations"),
    _name_key_column(),
    _sorted_column("search_text"),
    Index(None, "organization_id", "name_key", "id"),
    settings=_settings_of(Project),
)

# The addresses of projects' APIs, for ``list_by_resource_uri``.
project_resources = Table(
    "project_resources",
    metadata,
    _foreign_key_column("project_id", "projects", primary_key=True),
    _id_column("uri"),
    Index(None, "uri"),
)

instance = _create_table(
    "instance",
    Instance,
    # At most one row: its key can only be 1.
    Column("id", Integer, primary_key=True, autoincrement=False, info={"of": lambda _: 1}),
    # Not a field: it changes with each change of a policy, and is read with each subject.
    Column("rules_version", Integer, nullable=False, server_default=text("0"), info={"of": lambda _: 0}),
    CheckConstraint("id = 1", name="one_row"),
    field="instance",
)

project_roles = _create_table(
    "project_roles",
    ProjectRole,
    _foreign_key_column("project_id", "projects", primary_key=True),
    _id_column("key"),
    field="key",
)

project_grants = _create_table(
    "project_grants",
    ProjectGrant,
    _foreign_key_column("project_id", "projects"),
    _foreign_key_column("organization_id", "organizations"),
    UniqueConstraint("project_id", "organization_id", info={"field": "organization_id"}),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "organization_id", "created_at", "id"),
    _ending_index(),
    _ending_index("organization_id"),
    _ending_index("project_id"),
)

users = _create_table(
    "users",
    {UserKind.HUMAN.value: HumanUser, UserKind.SERVICE.value: ServiceUser, UserKind.AGENT.value: Agent},
    _foreign_key_column("organization_id", "organizations"),
    _sorted_column("name_key", derive=lambda user: name_key(user.user_name)),
    _sorted_column("display_key", derive=lambda user: name_key(user.display_name)),
    _sorted_column(
        "email_key", derive=lambda user: name_key(user.profile.email) if isinstance(user, HumanUser) else ""
    ),
    _sorted_column("search_text"),
    Column("verified_email_key", SortedText, info={"of": lambda user: getattr(user, "verified_email_key", None)}),
    # The name comes first: a bare user name is looked up in all organizations.
    UniqueConstraint("name_key", "organization_id", info={"field": "user_name"}),
)

#: Sort key that also covers users who never signed in.
last_sign_in = func.coalesce(users.c.last_sign_in_at, literal_column("0"), type_=EpochSeconds())

# One index per sort key. Columns of filters are included.
for _name, _order in (
    ("list", users.c.name_key),
    ("display", users.c.display_key),
    ("email", users.c.email_key),
    ("created", users.c.created_at),
    ("last_sign_in", last_sign_in),
    # Searches scan this index: a third of the size of the table.
    ("search", users.c.search_text),
):
    Index(f"ix_users_{_name}", users.c.organization_id, _order, users.c.id, users.c.kind, users.c.active)
Index("ix_users_deletion_at", users.c.deletion_at, users.c.id, **_partial_index("deletion_at IS NOT NULL"))
Index(
    "ix_users_verified_email_key",
    users.c.verified_email_key,
    users.c.created_at,
    users.c.id,
    **_partial_index("verified_email_key IS NOT NULL"),
)
# No foreign key: the service deletes agents with their owner, and one that is left behind gets no tokens.
Index("ix_users_owner_user_id", users.c.owner_user_id, **_partial_index("owner_user_id IS NOT NULL"))
Index("ix_users_list_of_all", users.c.name_key, users.c.id, users.c.kind, users.c.active)

attribute_definitions = _create_table(
    "attribute_definitions",
    AttributeDefinition,
    _foreign_key_column("organization_id", "organizations"),
    UniqueConstraint("organization_id", "key", info={"field": "key"}),
)

attribute_values = _create_table(
    "attribute_values",
    StoredAttribute,
    _foreign_key_column("user_id", "users", primary_key=True),
    _foreign_key_column("definition_id", "attribute_definitions", primary_key=True),
    Index(None, "definition_id", "value"),
    field="key",
)

user_grants = _create_table(
    "user_grants",
    UserGrant,
    _foreign_key_column("user_id", "users"),
    _foreign_key_column("organization_id", "organizations"),
    _foreign_key_column("project_id", "projects"),
    _foreign_key_column("project_grant_id", "project_grants", nullable=True),
    # NULLs are distinct in a unique constraint, hence two.
    Index(
        "uq_user_grants_direct",
        "user_id",
        "project_id",
        unique=True,
        info={"field": "user_id"},
        **_partial_index("project_grant_id IS NULL"),
    ),
    Index(
        "uq_user_grants_derived",
        "user_id",
        "project_id",
        "project_grant_id",
        unique=True,
        info={"field": "user_id"},
        **_partial_index("project_grant_id IS NOT NULL"),
    ),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "organization_id"),
    Index(None, "project_grant_id", "created_at", "id", **_partial_index("project_grant_id IS NOT NULL")),
    _ending_index(),
    _ending_index("organization_id"),
)

groups = _create_table(
    "groups",
    Group,
    _foreign_key_column("organization_id", "organizations"),
    _name_key_column(),
    _sorted_column("search_text"),
    UniqueConstraint("organization_id", "name_key", info={"field": "name"}),
)

# The organization of members and roles is that of their group, with which they are deleted.
group_members = _create_table(
    "group_members",
    GroupMember,
    _foreign_key_column("group_id", "groups"),
    _foreign_key_column("user_id", "users"),
    *_indexed_reference("mapping_id", "group_mappings"),
    UniqueConstraint("group_id", "user_id", info={"field": "user_id"}),
    Index(None, "group_id", "created_at", "id"),
    Index(None, "user_id"),
    _ending_index(),
    _ending_index("organization_id"),
)

attribute_mappings = _create_table(
    "attribute_mappings",
    AttributeMapping,
    _foreign_key_column("provider_id", "upstream_providers", nullable=True),
    _foreign_key_column("attribute_id", "attribute_definitions"),
    UniqueConstraint("provider_id", "attribute_id", info={"field": "attribute_id"}),
    Index("uq_attribute_mappings_directory", "directory", "attribute_id", unique=True, info={"field": "attribute_id"}),
    CheckConstraint("(provider_id IS NULL) <> (directory IS NULL)", name="source"),
    Index(None, "attribute_id"),
)

# Members are deleted with the mapping that added them.
group_mappings = _create_table(
    "group_mappings",
    GroupMapping,
    _foreign_key_column("provider_id", "upstream_providers", nullable=True),
    _foreign_key_column("group_id", "groups"),
    Index(None, "provider_id", "created_at", "id"),
    Index(None, "directory", "organization_id", "created_at", "id"),
    CheckConstraint("(provider_id IS NULL) <> (directory IS NULL)", name="source"),
    Index(None, "group_id", "created_at", "id"),
)

group_grants = _create_table(
    "group_grants",
    GroupGrant,
    _foreign_key_column("group_id", "groups"),
    _foreign_key_column("project_id", "projects"),
    *_indexed_reference("project_grant_id", "project_grants"),
    UniqueConstraint("group_id", "project_id", info={"field": "project_id"}),
    Index(None, "group_id", "created_at", "id"),
    Index(None, "project_id"),
    _ending_index(),
)

group_managers = _create_table(
    "group_managers",
    GroupManager,
    _foreign_key_column("group_id", "groups"),
    # As of managers: foreign keys that delete the roles with the resource.
    *_indexed_reference("of_project", "projects"),
    *_indexed_reference("of_project_grant", "project_grants"),
    UniqueConstraint("group_id", "level", "resource_id", info={"field": "resource_id"}),
    Index(None, "group_id", "created_at", "id"),
    _ending_index(),
    flattened={"resource": ("level", "resource_id")},
)

passwords = _create_table("passwords", PasswordHash, _foreign_key_column("user_id", "users", primary_key=True))

service_user_keys = _create_table(
    "service_user_keys",
    ServiceUserKey,
    _foreign_key_column("user_id", "users"),
    # During an upgrade, versions that do not know the column add keys for RS256.
    Column("algorithm", CodePointText, nullable=False, server_default="RS256"),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
)

service_user_secrets = _create_table(
    "service_user_secrets",
    ServiceUserSecret,
    _foreign_key_column("user_id", "users"),
    Index(None, "user_id", "created_at", "id"),
)

personal_access_tokens = _create_table(
    "personal_access_tokens",
    PersonalAccessToken,
    _foreign_key_column("user_id", "users"),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
    value_lists=("scope",),
)

applications = _create_table(
    "applications",
    Application,
    _foreign_key_column("project_id", "projects"),
    _name_key_column(),
    _sorted_column("search_text"),
    Index(None, "project_id", "name_key", "id"),
    settings=_settings_of(Application, queried=("backchannel_logout_uri", "frontchannel_logout_uri")),
)

federated_credentials = _create_table(
    "federated_credentials",
    FederatedCredential,
    _foreign_key_column("user_id", "users", nullable=True),
    _foreign_key_column("application_id", "applications", nullable=True),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "application_id", "created_at", "id", **_partial_index("application_id IS NOT NULL")),
    CheckConstraint("(user_id IS NULL) <> (application_id IS NULL)", name="owner"),
)

# The web origins of applications' redirect URIs, for ``is_registered_origin``.
application_origins = Table(
    "application_origins",
    metadata,
    _foreign_key_column("application_id", "applications", primary_key=True),
    _id_column("origin"),
    Index(None, "origin"),
)

client_secrets = _create_table(
    "client_secrets",
    ClientSecret,
    _foreign_key_column("application_id", "applications"),
    Index(None, "application_id", "created_at", "id"),
)

upstream_providers = _create_table(
    "upstream_providers",
    UpstreamProvider,
    _foreign_key_column("organization_id", "organizations"),
    _sorted_column("search_text"),
    Index(None, "organization_id", "created_at", "id"),
    # Providers for all organizations are few, and every sign-in reads them.
    Index("ix_upstream_providers_everywhere", "created_at", "id", **_partial_index("everywhere")),
)

# The applications that get tokens for assertions of the providers, for ``list_asserting``.
upstream_provider_clients = Table(
    "upstream_provider_clients",
    metadata,
    _foreign_key_column("provider_id", "upstream_providers", primary_key=True),
    _id_column("client_id"),
    Index(None, "client_id"),
)

webhooks = _create_table(
    "webhooks",
    Webhook,
    _foreign_key_column("organization_id", "organizations", nullable=True),
    _sorted_column("search_text"),
    Index(None, "organization_id", "created_at", "id"),
)

webhook_deliveries = _create_table(
    "webhook_deliveries",
    WebhookDelivery,
    _foreign_key_column("webhook_id", "webhooks"),
    Index(None, "webhook_id", "created_at", "id"),
    Index(None, "webhook_id", "state", "next_at", "id"),
    Index(None, "expires_at"),
)

managers = _create_table(
    "managers",
    Manager,
    _foreign_key_column("user_id", "users"),
    # The resource again, as foreign keys that delete the manager with it.
    *_indexed_reference("of_organization", "organizations"),
    *_indexed_reference("of_project", "projects"),
    *_indexed_reference("of_project_grant", "project_grants"),
    UniqueConstraint("user_id", "level", "resource_id", info={"field": "user_id"}),
    Index(None, "level", "resource_id", "created_at", "id"),
    _ending_index(),
    flattened={"resource": ("level", "resource_id")},
)

sessions = _create_table(
    "sessions",
    Session,
    _foreign_key_column("user_id", "users"),
    UniqueConstraint("digest", info={"field": "digest"}),
    Index(None, "user_id"),
    Index(None, "ends_at"),
    Index(None, "impersonator_id", **_partial_index("impersonator_id IS NOT NULL")),
)

# No foreign keys: what a request names may be gone when it is continued.
authorization_requests = _create_table(
    "authorization_requests",
    PendingAuthorization,
    *_indexed_reference("user_id", "users"),
    Index(None, "expires_at"),
)

attempts = Table(
    "attempts",
    metadata,
    _id_column("key"),
    _integer_column("number"),
    _timestamp_column("next_at"),
    _timestamp_column("counted_at"),
    *_indexed_reference("user_id", "users"),
    Index(None, "counted_at"),
)

token_families = _create_table(
    "token_families",
    TokenFamily,
    _foreign_key_column("user_id", "users"),
    _foreign_key_column("client_id", "applications"),
    *_indexed_reference("provider_id", "upstream_providers"),
    Index(None, "user_id"),
    Index(None, "client_id"),
    Index(None, "ends_at"),
    value_lists=("scope", "methods", "userinfo_claims", "id_token_claims", "resources"),
)

authorization_codes = _create_table(
    "authorization_codes",
    AuthorizationCode,
    _digest_column(),
    _foreign_key_column("family_id", "token_families"),
    Index(None, "family_id"),
    Index(None, "expires_at", **_partial_index("redeemed_at IS NULL")),
    value_lists=("scope",),
)

access_tokens = _create_table(
    "access_tokens",
    AccessToken,
    _digest_column(),
    *_indexed_reference("user_id", "users"),
    *_indexed_reference("application_id", "applications"),
    *_indexed_reference("key_id", "service_user_keys"),
    *_indexed_reference("secret_id", "service_user_secrets"),
    *_indexed_reference("client_secret_id", "client_secrets"),
    *_indexed_reference("personal_access_token_id", "personal_access_tokens"),
    *_indexed_reference("federated_credential_id", "federated_credentials"),
    *_indexed_reference("family_id", "token_families"),
    Index(None, "expires_at"),
    value_lists=("scope", "audience", "ancestors"),
)

refresh_tokens = _create_table(
    "refresh_tokens",
    RefreshToken,
    _digest_column(),
    _foreign_key_column("family_id", "token_families"),
    # The time a family was last used.
    Index(None, "family_id", "issued_at"),
    value_lists=("scope",),
)

signing_keys = _create_table("signing_keys", SigningKey, UniqueConstraint("generation", info={"field": "generation"}))

outgoing_messages = _create_table(
    "outgoing_messages",
    OutboxMessage,
    # Nullable: during an upgrade, versions that do not know these columns still write.
    Column("organization_id", CodePointText, nullable=True),
    Column("bulk", RawBoolean, nullable=False, server_default=text("false")),
    Column("last_answer", CodePointText, nullable=True),
    *(Column(name, CodePointText, nullable=True) for name in ("purpose", "user_id", "language")),
    Index(None, "kind", "next_at", "id"),
    Index("ix_outgoing_messages_lanes", "kind", "bulk", "organization_id", "next_at", "id", "expires_at"),
    Index(None, "expires_at"),
)

sent_mails = _create_table(
    "sent_mails",
    SentMail,
    _foreign_key_column("user_id", "users", nullable=True),
    Index(None, "created_at", "id"),
    Index(None, "user_id", "created_at", "id", **_partial_index("user_id IS NOT NULL")),
)

audit_events = _create_table(
    "audit_events",
    AuditEvent,
    Column("sequence", BigInteger().with_variant(Integer(), "sqlite"), Identity(always=True), primary_key=True),
    UniqueConstraint("id", info={"field": "id"}),
    UniqueConstraint("once", info={"field": "once"}),
    Index(None, "organization_id", "sequence"),
    Index(None, "organization_id", "event", "sequence"),
    Index("ix_audit_events_refused", "sequence", **_partial_index("result = 'refused'")),
    Index(
        "ix_audit_events_refused_of_organization", "organization_id", "sequence", **_partial_index("result = 'refused'")
    ),
    Index(None, "actor_id", "sequence"),
    Index(None, "object_id", "sequence"),
    Index("ix_audit_events_user_id_sequence", "user_id", "sequence", **_partial_index("user_id IS NOT NULL")),
    Index("ix_audit_events_group_id_sequence", "group_id", "sequence", **_partial_index("group_id IS NOT NULL")),
    Index("ix_audit_events_request_id", "request_id", **_partial_index("request_id IS NOT NULL")),
    Index(None, "event", "sequence"),
    Index(None, "at"),
    # SQLite never reuses a number, even after its highest row was deleted.
    sqlite_autoincrement=True,
    flattened={"actor": ("actor_kind", "actor_id", "client_id", "session_id", "client_address", "request_id")},
)

# Events from this moment on cannot be deleted; without a row none can.
audit_floor = Table(
    "audit_floor",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _timestamp_column("kept_since"),
    CheckConstraint("id = 1", name="one_row"),
)


def _search_term_table(owner: str, *scopes: str, within: Sequence[Sequence[str]]) -> Table:
    """The words by whose starts entities are found (``identity.domain.search.index_terms``), with an index for all of
    them, and one for those within each of the scopes."""
    key = f"{owner}_id"
    return Table(
        f"{owner}_search_terms",
        metadata,
        _foreign_key_column(key, f"{owner}s", primary_key=True),
        Column("term", SortedText, primary_key=True),
        *(Column(name, CodePointText, nullable=False) for name in scopes),
        *(Index(None, *scope, "term", key) for scope in within),
    )


organization_search_terms = _search_term_table("organization", within=[()])
project_search_terms = _search_term_table("project", "organization_id", within=[(), ("organization_id",)])
application_search_terms = _search_term_table(
    "application", "project_id", "organization_id", within=[(), ("organization_id",), ("project_id",)]
)
group_search_terms = _search_term_table("group", "organization_id", within=[(), ("organization_id",)])
user_search_terms = _search_term_table(
    "user", "organization_id", "kind", within=[("kind",), ("organization_id", "kind")]
)

# No unique constraint besides the key: an existing row is never an error.
records = _create_table(
    "records",
    Record,
    _id_column("plugin"),
    _id_column("kind"),
    Column("key", LargeBinary, primary_key=True),
    *_indexed_reference("user_id", "users"),
    *_indexed_reference("application_id", "applications"),
    Index(None, "expires_at", **_partial_index("expires_at IS NOT NULL")),
)

# No foreign keys: what was counted stays counted. The day is the number of days since 1970-01-01.
figures = Table(
    "figures",
    metadata,
    _id_column("organization_id"),
    _id_column("kind"),
    Column("day", Integer, primary_key=True, autoincrement=False),
    _id_column("object_id"),
    Column("number", BigInteger, nullable=False),
    Index(None, "day"),
)

application_requests = _create_table(
    "application_requests",
    ApplicationRequest,
    _foreign_key_column("application_id", "applications"),
    *_indexed_reference("user_id", "users"),
    Index(None, "application_id", "at", "id"),
    Index(None, "at"),
)
