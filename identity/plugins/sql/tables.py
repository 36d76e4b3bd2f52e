"""SQLAlchemy Core tables; rows never leave this package.

Columns follow from the fields of what a table holds (``identity.plugins.sql.mapping``). What stands here is what does
not follow: keys, references, indexes, and columns that are no fields.

Text is compared byte by byte (collation "C" on PostgreSQL, BINARY on SQLite), so every list has the order it has in
the other backends, and "starts with" is a range that an index can answer.

``info={"field": …}`` names the field that is taken when a unique rule is broken.
"""

from collections.abc import Callable, Mapping, Sequence
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

from identity.domain.applications import Application, ClientSecret
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, PasswordHash, ServiceUser
from identity.plugins.sql.codecs import Flag, Moment, Sorted, String
from identity.plugins.sql.mapping import Layout
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


def _table(
    name: str,
    kinds: type | Mapping[str, type],
    *items: SchemaItem,
    words: tuple[str, ...] = (),
    spread: Mapping[str, Sequence[str]] | None = None,
    field: str | None = None,
    **options: Any,
) -> Table:
    """A table of these values. A column that is given takes the place of what would follow from its field.

    The id is the key where none is given.
    """
    layout = Layout(kinds, words, spread or {})
    columns = {column.name: column for column in layout.columns()}
    columns |= {item.name: item for item in items if isinstance(item, Column)}
    if not any(column.primary_key for column in columns.values()):
        columns["id"].primary_key = True
    rules = [item for item in items if not isinstance(item, Column)]
    return Table(name, metadata, *columns.values(), *rules, info={"layout": layout, "field": field}, **options)


def _sorted(name: str, *, of: Callable[[Any], str] | None = None) -> Column[str]:
    """A text that lists are sorted by, or searches look at; ``of`` makes it of the value that is stored."""
    return Column(name, Sorted, nullable=False, info={} if of is None else {"of": of})


def _name_key() -> Column[str]:
    return _sorted("name_key", of=lambda value: name_key(value.name))


def _id(name: str = "id") -> Column[str]:
    return Column(name, String, primary_key=True)


def _digest() -> Column[bytes]:
    return Column("digest", LargeBinary, primary_key=True)


def _moment(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Moment, nullable=nullable)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _parent(name: str, of: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """A reference to a row without which this one cannot be: they go together."""
    key = ForeignKey(f"{of}.id", ondelete="CASCADE")
    return Column(name, String, key, primary_key=primary_key, nullable=nullable)


def _where(condition: str) -> dict[str, Any]:
    """A partial index: it holds only the rows that anyone will look for by it."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


organizations = _table(
    "organizations",
    Organization,
    _name_key(),
    _sorted("search_text"),
    UniqueConstraint("primary_domain", info={"field": "primary_domain"}),
    Index(None, "name_key", "id"),
    Index(None, "created_at", "id"),
    Index(None, "search_text", "id", "active"),
)

# No reference: a domain that counts stays bound to its organization when that is gone.
domains = _table(
    "domains",
    OrganizationDomain,
    _id("organization_id"),
    _id("name"),
    Index("uq_domains_name", "name", unique=True, info={"field": "domain"}, **_where("proof IS NOT NULL")),
    field="domain",
)

projects = _table(
    "projects",
    Project,
    _parent("organization_id", "organizations"),
    _name_key(),
    _sorted("search_text"),
    Index(None, "organization_id", "name_key", "id"),
)

instance = _table(
    "instance",
    Instance,
    # One row at most: its key can only be 1.
    Column("id", Integer, primary_key=True, autoincrement=False, info={"of": lambda _: 1}),
    # Of no field: it moves with each change of rules, and is read with each subject.
    Column("rules_version", Integer, nullable=False, server_default=text("0"), info={"of": lambda _: 0}),
    CheckConstraint("id = 1", name="one_row"),
    field="instance",
)

project_roles = _table(
    "project_roles",
    ProjectRole,
    _parent("project_id", "projects", primary_key=True),
    _id("key"),
    field="key",
)

project_grants = _table(
    "project_grants",
    ProjectGrant,
    _parent("project_id", "projects"),
    _parent("organization_id", "organizations"),
    UniqueConstraint("project_id", "organization_id", info={"field": "organization_id"}),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "organization_id", "created_at", "id"),
)

users = _table(
    "users",
    {UserKind.HUMAN.value: HumanUser, UserKind.SERVICE.value: ServiceUser},
    _parent("organization_id", "organizations"),
    _sorted("name_key", of=lambda user: name_key(user.user_name)),
    _sorted("display_key", of=lambda user: name_key(user.display_name)),
    _sorted("email_key", of=lambda user: name_key(user.profile.email) if isinstance(user, HumanUser) else ""),
    _sorted("search_text"),
    Column("verified_email_key", Sorted, info={"of": lambda user: getattr(user, "verified_email_key", None)}),
    # The name comes first: a bare user name is looked for in all organizations.
    UniqueConstraint("name_key", "organization_id", info={"field": "user_name"}),
)

#: What lists are sorted by where nobody ever signed in, too.
last_sign_in = func.coalesce(users.c.last_sign_in_at, literal_column("0"), type_=Moment())

# Lists in each of their orders. What narrows them stands in the index as well.
for _name, _order in (
    ("list", users.c.name_key),
    ("display", users.c.display_key),
    ("email", users.c.email_key),
    ("created", users.c.created_at),
    ("last_sign_in", last_sign_in),
    # Searches read it from end to end: a third of what the table itself takes.
    ("search", users.c.search_text),
):
    Index(f"ix_users_{_name}", users.c.organization_id, _order, users.c.id, users.c.kind, users.c.active)
Index("ix_users_deletion_at", users.c.deletion_at, users.c.id, **_where("deletion_at IS NOT NULL"))
Index(
    "ix_users_verified_email_key",
    users.c.verified_email_key,
    users.c.created_at,
    users.c.id,
    **_where("verified_email_key IS NOT NULL"),
)
Index("ix_users_list_of_all", users.c.name_key, users.c.id, users.c.kind, users.c.active)

user_grants = _table(
    "user_grants",
    UserGrant,
    _parent("user_id", "users"),
    _parent("organization_id", "organizations"),
    _parent("project_id", "projects"),
    _parent("project_grant_id", "project_grants", nullable=True),
    # NULL differs from NULL in a unique rule, hence two.
    Index(
        "uq_user_grants_direct",
        "user_id",
        "project_id",
        unique=True,
        info={"field": "user_id"},
        **_where("project_grant_id IS NULL"),
    ),
    Index(
        "uq_user_grants_derived",
        "user_id",
        "project_id",
        "project_grant_id",
        unique=True,
        info={"field": "user_id"},
        **_where("project_grant_id IS NOT NULL"),
    ),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "organization_id"),
    Index(None, "project_grant_id", "created_at", "id", **_where("project_grant_id IS NOT NULL")),
)

passwords = _table(
    "passwords",
    PasswordHash,
    _parent("user_id", "users", primary_key=True),
)

service_user_keys = _table(
    "service_user_keys",
    ServiceUserKey,
    _parent("user_id", "users"),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
)

service_user_secrets = _table(
    "service_user_secrets",
    ServiceUserSecret,
    _parent("user_id", "users"),
    Index(None, "user_id", "created_at", "id"),
)

personal_access_tokens = _table(
    "personal_access_tokens",
    PersonalAccessToken,
    _parent("user_id", "users"),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
    words=("scope",),
)

applications = _table(
    "applications",
    Application,
    _parent("project_id", "projects"),
    _name_key(),
    _sorted("search_text"),
    Index(None, "project_id", "name_key", "id"),
)

# What is_origin answers from: the web origins of an application's redirect URIs.
application_origins = Table(
    "application_origins",
    metadata,
    _parent("application_id", "applications", primary_key=True),
    _id("origin"),
    Index(None, "origin"),
)

client_secrets = _table(
    "client_secrets",
    ClientSecret,
    _parent("application_id", "applications"),
    Index(None, "application_id", "created_at", "id"),
)

upstream_providers = _table(
    "upstream_providers",
    UpstreamProvider,
    _parent("organization_id", "organizations"),
    _sorted("search_text"),
    Index(None, "organization_id", "created_at", "id"),
    # Those for all are few, and asked for by every sign-in.
    Index("ix_upstream_providers_everywhere", "created_at", "id", **_where("everywhere")),
)

managers = _table(
    "managers",
    Manager,
    _parent("user_id", "users"),
    # The resource once more, by which the manager goes with it.
    _parent("of_organization", "organizations", nullable=True),
    _parent("of_project", "projects", nullable=True),
    _parent("of_project_grant", "project_grants", nullable=True),
    UniqueConstraint("user_id", "level", "resource_id", info={"field": "user_id"}),
    Index(None, "level", "resource_id", "created_at", "id"),
    Index(None, "of_organization", **_where("of_organization IS NOT NULL")),
    Index(None, "of_project", **_where("of_project IS NOT NULL")),
    Index(None, "of_project_grant", **_where("of_project_grant IS NOT NULL")),
    spread={"resource": ("level", "resource_id")},
)

sessions = _table(
    "sessions",
    Session,
    _parent("user_id", "users"),
    UniqueConstraint("digest", info={"field": "digest"}),
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

# What a request names may be gone when it is continued: it refers to nothing.
authorization_requests = _table(
    "authorization_requests",
    PendingAuthorization,
    _parent("user_id", "users", nullable=True),
    Index(None, "expires_at"),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
)

attempts = Table(
    "attempts",
    metadata,
    _id("key"),
    _number("number"),
    _moment("next_at"),
    _moment("counted_at"),
    _parent("user_id", "users", nullable=True),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
    Index(None, "counted_at"),
)

token_families = _table(
    "token_families",
    TokenFamily,
    _parent("user_id", "users"),
    _parent("client_id", "applications"),
    Index(None, "user_id"),
    Index(None, "client_id"),
    Index(None, "ends_at"),
    words=("scope", "methods", "userinfo_claims", "id_token_claims"),
)

authorization_codes = _table(
    "authorization_codes",
    AuthorizationCode,
    _digest(),
    _parent("family_id", "token_families"),
    Index(None, "family_id"),
    Index(None, "expires_at", **_where("redeemed_at IS NULL")),
    words=("scope",),
)

access_tokens = _table(
    "access_tokens",
    AccessToken,
    _digest(),
    _parent("user_id", "users", nullable=True),
    _parent("application_id", "applications", nullable=True),
    _parent("key_id", "service_user_keys", nullable=True),
    _parent("secret_id", "service_user_secrets", nullable=True),
    _parent("client_secret_id", "client_secrets", nullable=True),
    _parent("personal_access_token_id", "personal_access_tokens", nullable=True),
    _parent("family_id", "token_families", nullable=True),
    Index(None, "expires_at"),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
    Index(None, "application_id", **_where("application_id IS NOT NULL")),
    Index(None, "key_id", **_where("key_id IS NOT NULL")),
    Index(None, "secret_id", **_where("secret_id IS NOT NULL")),
    Index(None, "client_secret_id", **_where("client_secret_id IS NOT NULL")),
    Index(None, "personal_access_token_id", **_where("personal_access_token_id IS NOT NULL")),
    Index(None, "family_id", **_where("family_id IS NOT NULL")),
    words=("scope", "audience"),
)

refresh_tokens = _table(
    "refresh_tokens",
    RefreshToken,
    _digest(),
    _parent("family_id", "token_families"),
    # The moment tells when a family was last used.
    Index(None, "family_id", "issued_at"),
    words=("scope",),
)

signing_keys = _table(
    "signing_keys",
    SigningKey,
    UniqueConstraint("generation", info={"field": "generation"}),
)

outgoing_messages = _table(
    "outgoing_messages",
    OutgoingMessage,
    # Programs that know neither go on during an upgrade.
    Column("organization_id", String, nullable=True),
    Column("bulk", Flag, nullable=False, server_default=text("false")),
    Index(None, "kind", "next_at", "id"),
    Index("ix_outgoing_messages_lanes", "kind", "bulk", "organization_id", "next_at", "id", "expires_at"),
    Index(None, "expires_at"),
)

audit_events = _table(
    "audit_events",
    AuditEvent,
    Column("sequence", BigInteger().with_variant(Integer(), "sqlite"), Identity(always=True), primary_key=True),
    UniqueConstraint("id", info={"field": "id"}),
    UniqueConstraint("once", info={"field": "once"}),
    Index(None, "organization_id", "sequence"),
    Index(None, "organization_id", "event", "sequence"),
    Index("ix_audit_events_refused", "sequence", **_where("result = 'refused'")),
    Index("ix_audit_events_refused_of_organization", "organization_id", "sequence", **_where("result = 'refused'")),
    Index(None, "actor_id", "sequence"),
    Index(None, "object_id", "sequence"),
    Index("ix_audit_events_user_id_sequence", "user_id", "sequence", **_where("user_id IS NOT NULL")),
    Index("ix_audit_events_request_id", "request_id", **_where("request_id IS NOT NULL")),
    Index(None, "event", "sequence"),
    Index(None, "at"),
    # SQLite never gives a number twice, even after its highest row was lost.
    sqlite_autoincrement=True,
    spread={
        "actor": ("actor_kind", "actor_id", "client_id", "session_id", "client_address", "request_id"),
    },
)

# Events from this moment on cannot be deleted; without a row none can.
audit_floor = Table(
    "audit_floor",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _moment("kept_since"),
    CheckConstraint("id = 1", name="one_row"),
)

# No unique rule but the key's: what is there already is never an error.
records = _table(
    "records",
    Record,
    _id("plugin"),
    _id("kind"),
    Column("key", LargeBinary, primary_key=True),
    _parent("user_id", "users", nullable=True),
    _parent("application_id", "applications", nullable=True),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
    Index(None, "application_id", **_where("application_id IS NOT NULL")),
    Index(None, "expires_at", **_where("expires_at IS NOT NULL")),
)
