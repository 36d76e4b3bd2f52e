"""SQLAlchemy Core tables; rows never leave this package.

Text is compared byte by byte (collation "C" on PostgreSQL, BINARY on SQLite), so every list has the order it has in
the other backends, and "starts with" is a range that an index can answer. Moments are seconds since the epoch: a
third of the cost of DateTime columns, and never in doubt about time zones. Sets and tuples are JSON text, or words
separated by spaces where OAuth itself writes them so.

``info={"field": …}`` names the field that is taken when a unique rule is broken.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    literal_column,
    text,
    true,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class Flag(Boolean):
    """A boolean of which SQLite gives back what is neither 0 nor 1 as it is, so that it is seen to be none."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """None where the driver has booleans itself."""
        return None if dialect.supports_native_boolean else _flag_of


_FLAGS = {0: False, 1: True}


def _flag_of(stored: Any) -> Any:
    return _FLAGS.get(stored, stored)


String = Text().with_variant(Text(collation="C"), "postgresql")
Moment = BigInteger


def _string(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, String, nullable=nullable)


def _search_text() -> Column[str]:
    # Filled in by the database for versions that do not know it.
    return Column("search_text", String, nullable=False, server_default="")


def _id(name: str = "id") -> Column[str]:
    return Column(name, String, primary_key=True)


def _digest() -> Column[bytes]:
    return Column("digest", LargeBinary, primary_key=True, info={"field": "digest"})


def _moment(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Moment, nullable=nullable)


def _flag(name: str) -> Column[bool]:
    return Column(name, Flag, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _parent(name: str, of: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """A reference to a row without which this one cannot be: they go together."""
    key = ForeignKey(f"{of}.id", ondelete="CASCADE")
    return Column(name, String, key, primary_key=primary_key, nullable=nullable)


def _where(condition: str) -> dict[str, Any]:
    """A partial index: it holds only the rows that anyone will look for by it."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


organizations = Table(
    "organizations",
    metadata,
    _id(),
    _string("name"),
    _string("name_key"),
    _search_text(),
    _string("primary_domain"),
    _moment("created_at"),
    _moment("changed_at"),
    # Filled in by the database for versions that do not know it.
    Column("registration", Flag, nullable=False, server_default=true()),
    _flag("active"),
    _number("version"),
    UniqueConstraint("primary_domain", info={"field": "primary_domain"}),
    Index(None, "name_key", "id"),
    Index(None, "created_at", "id"),
    Index(None, "search_text", "id", "active"),
)

# No reference: a domain that counts stays bound to its organization when that is gone.
domains = Table(
    "domains",
    metadata,
    Column("organization_id", String, primary_key=True, info={"field": "domain"}),
    Column("name", String, primary_key=True),
    _string("challenge"),
    _moment("created_at"),
    _string("proof", nullable=True),
    _moment("verified_at", nullable=True),
    Index("uq_domains_name", "name", unique=True, info={"field": "domain"}, **_where("proof IS NOT NULL")),
)

projects = Table(
    "projects",
    metadata,
    _id(),
    _parent("organization_id", "organizations"),
    _string("name"),
    _string("name_key"),
    _search_text(),
    _moment("created_at"),
    _moment("changed_at"),
    _flag("assert_roles"),
    _flag("check_roles"),
    _flag("active"),
    _number("version"),
    Index(None, "organization_id", "name_key", "id"),
)

instance = Table(
    "instance",
    metadata,
    # One row at most: its key can only be 1.
    Column("id", Integer, primary_key=True, autoincrement=False, info={"field": "instance"}),
    _string("organization_id"),
    _string("project_id"),
    _moment("created_at"),
    CheckConstraint("id = 1", name="one_row"),
)

project_roles = Table(
    "project_roles",
    metadata,
    _parent("project_id", "projects", primary_key=True),
    Column("key", String, primary_key=True),
    _string("display_name"),
    _string("group"),
    # Filled in by the database for versions that do not know it.
    Column("version", Integer, nullable=False, server_default="1"),
    info={"field": "key"},
)

project_grants = Table(
    "project_grants",
    metadata,
    _id(),
    _parent("project_id", "projects"),
    _parent("organization_id", "organizations"),
    _string("roles"),
    _moment("created_at"),
    _moment("changed_at"),
    _flag("accepted"),
    _flag("active"),
    _number("version"),
    UniqueConstraint("project_id", "organization_id", info={"field": "organization_id"}),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "organization_id", "created_at", "id"),
)

users = Table(
    "users",
    metadata,
    _id(),
    _parent("organization_id", "organizations"),
    _string("kind"),
    _string("user_name"),
    _string("name_key"),
    _string("display_name"),
    _string("display_key"),
    _string("email_key"),
    _search_text(),
    _string("description"),
    _string("access_token_type"),
    # All of a person's profile in one JSON object; NULL for service users.
    _string("profile", nullable=True),
    _moment("created_at"),
    _moment("changed_at"),
    _moment("last_sign_in_at", nullable=True),
    Column("registered", Flag, nullable=False, server_default=false()),
    _moment("named_at", nullable=True),
    _flag("active"),
    _number("version"),
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
Index("ix_users_list_of_all", users.c.name_key, users.c.id, users.c.kind, users.c.active)

user_grants = Table(
    "user_grants",
    metadata,
    _id(),
    _parent("user_id", "users"),
    _parent("organization_id", "organizations"),
    _parent("project_id", "projects"),
    _parent("project_grant_id", "project_grants", nullable=True),
    _string("roles"),
    _moment("created_at"),
    _moment("changed_at"),
    _flag("active"),
    _number("version"),
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

passwords = Table(
    "passwords",
    metadata,
    _parent("user_id", "users", primary_key=True),
    _string("hash"),
    _moment("changed_at"),
    _flag("must_change"),
)

service_user_keys = Table(
    "service_user_keys",
    metadata,
    _id(),
    _parent("user_id", "users"),
    Column("public_key", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("expires_at"),
    _moment("last_used_at", nullable=True),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
)

service_user_secrets = Table(
    "service_user_secrets",
    metadata,
    _id(),
    _parent("user_id", "users"),
    Column("digest", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("last_used_at", nullable=True),
    Index(None, "user_id", "created_at", "id"),
)

personal_access_tokens = Table(
    "personal_access_tokens",
    metadata,
    _id(),
    _parent("user_id", "users"),
    _string("name"),
    _string("scope"),
    _moment("created_at"),
    _moment("expires_at"),
    _moment("last_used_at", nullable=True),
    Index(None, "user_id", "created_at", "id"),
    Index(None, "expires_at", "id"),
)

applications = Table(
    "applications",
    metadata,
    _id(),
    _parent("project_id", "projects"),
    _string("name"),
    _string("name_key"),
    _search_text(),
    _string("type"),
    _moment("created_at"),
    _moment("changed_at"),
    _string("authentication_method"),
    _string("response_types"),
    _string("grant_types"),
    _string("redirect_uris"),
    _string("post_logout_redirect_uris"),
    _string("access_token_type"),
    Column("access_token_lifetime", BigInteger),
    Column("id_token_lifetime", BigInteger),
    _flag("id_token_userinfo_assertion"),
    _flag("assert_roles_in_access_token"),
    _flag("assert_roles_in_id_token"),
    # Filled in by the database for versions that do not know them.
    Column("consent", String, nullable=False, server_default="when_foreign"),
    Column("may_manage", Flag, nullable=False, server_default=false()),
    _flag("development"),
    _flag("active"),
    _number("version"),
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

client_secrets = Table(
    "client_secrets",
    metadata,
    _id(),
    _parent("application_id", "applications"),
    Column("digest", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("last_used_at", nullable=True),
    Index(None, "application_id", "created_at", "id"),
)

managers = Table(
    "managers",
    metadata,
    _id(),
    _parent("user_id", "users"),
    _string("level"),
    _string("resource_id"),
    _string("roles"),
    _string("organization_id", nullable=True),
    _moment("created_at"),
    _moment("changed_at"),
    _number("version"),
    # The resource once more, by which the manager goes with it.
    _parent("of_organization", "organizations", nullable=True),
    _parent("of_project", "projects", nullable=True),
    _parent("of_project_grant", "project_grants", nullable=True),
    UniqueConstraint("user_id", "level", "resource_id", info={"field": "user_id"}),
    Index(None, "level", "resource_id", "created_at", "id"),
    Index(None, "of_organization", **_where("of_organization IS NOT NULL")),
    Index(None, "of_project", **_where("of_project IS NOT NULL")),
    Index(None, "of_project_grant", **_where("of_project_grant IS NOT NULL")),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    Column("digest", LargeBinary, nullable=False),
    _parent("user_id", "users"),
    _moment("started_at"),
    _moment("authenticated_at"),
    _moment("selected_at"),
    _moment("last_seen_at"),
    _moment("ends_at"),
    _string("methods"),
    _string("user_agent"),
    _string("client_address"),
    _moment("ended_at", nullable=True),
    UniqueConstraint("digest", info={"field": "digest"}),
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

# What a request names may be gone when it is continued: it refers to nothing.
authorization_requests = Table(
    "authorization_requests",
    metadata,
    _id(),
    Column("digest", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("expires_at"),
    # All parameters in one JSON object.
    _string("parameters"),
    _string("target", nullable=True),
    _string("login_name"),
    _string("ui_locales"),
    _parent("user_id", "users", nullable=True),
    _moment("authenticated_at", nullable=True),
    _string("methods"),
    _string("session_id", nullable=True),
    _string("done"),
    _moment("finished_at", nullable=True),
    _number("version"),
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

token_families = Table(
    "token_families",
    metadata,
    _id(),
    _parent("user_id", "users"),
    _parent("client_id", "applications"),
    _string("scope"),
    _moment("started_at"),
    _moment("ends_at"),
    _string("session_id", nullable=True),
    _flag("offline"),
    _string("methods"),
    _string("userinfo_claims"),
    _string("id_token_claims"),
    _moment("revoked_at", nullable=True),
    Index(None, "user_id"),
    Index(None, "client_id"),
    Index(None, "ends_at"),
)

authorization_codes = Table(
    "authorization_codes",
    metadata,
    _digest(),
    _parent("family_id", "token_families"),
    _string("client_id"),
    _string("user_id"),
    _string("redirect_uri"),
    _string("scope"),
    _moment("issued_at"),
    _moment("expires_at"),
    _moment("authenticated_at"),
    _string("session_id", nullable=True),
    _string("nonce", nullable=True),
    _string("code_challenge", nullable=True),
    _moment("redeemed_at", nullable=True),
    Index(None, "family_id"),
    Index(None, "expires_at", **_where("redeemed_at IS NULL")),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    _digest(),
    _string("id"),
    _string("format"),
    _string("subject"),
    _string("client_id"),
    _string("scope"),
    _string("audience"),
    _moment("issued_at"),
    _moment("expires_at"),
    _parent("user_id", "users", nullable=True),
    _parent("application_id", "applications", nullable=True),
    _parent("key_id", "service_user_keys", nullable=True),
    _parent("secret_id", "service_user_secrets", nullable=True),
    _parent("personal_access_token_id", "personal_access_tokens", nullable=True),
    _parent("family_id", "token_families", nullable=True),
    # No reference: a token outlives the row of its session.
    _string("session_id", nullable=True),
    _moment("revoked_at", nullable=True),
    Index(None, "expires_at"),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
    Index(None, "application_id", **_where("application_id IS NOT NULL")),
    Index(None, "key_id", **_where("key_id IS NOT NULL")),
    Index(None, "secret_id", **_where("secret_id IS NOT NULL")),
    Index(None, "personal_access_token_id", **_where("personal_access_token_id IS NOT NULL")),
    Index(None, "family_id", **_where("family_id IS NOT NULL")),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    _digest(),
    _string("id"),
    _parent("family_id", "token_families"),
    _string("user_id"),
    _string("client_id"),
    _string("scope"),
    _moment("issued_at"),
    _moment("expires_at"),
    _moment("ends_at"),
    _moment("authenticated_at"),
    _string("session_id", nullable=True),
    _string("nonce", nullable=True),
    _string("predecessor_id", nullable=True),
    _moment("rotated_at", nullable=True),
    _moment("revoked_at", nullable=True),
    # The moment tells when a family was last used.
    Index(None, "family_id", "issued_at"),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    _id(),
    _number("generation"),
    _string("algorithm"),
    Column("public_key", LargeBinary, nullable=False),
    Column("sealed_private_key", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("active_at"),
    UniqueConstraint("generation", info={"field": "generation"}),
)

outgoing_messages = Table(
    "outgoing_messages",
    metadata,
    _id(),
    _string("kind"),
    Column("sealed", LargeBinary, nullable=False),
    _moment("created_at"),
    _moment("next_at"),
    _moment("expires_at"),
    _number("attempts"),
    Index(None, "kind", "next_at", "id"),
    Index(None, "expires_at"),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column(
        "sequence",
        BigInteger().with_variant(Integer(), "sqlite"),
        Identity(always=True),
        primary_key=True,
    ),
    _string("id"),
    _moment("at"),
    _string("event"),
    _string("actor_kind"),
    _string("actor_id", nullable=True),
    _string("client_id", nullable=True),
    _string("session_id", nullable=True),
    _string("client_address", nullable=True),
    _string("request_id", nullable=True),
    _string("object_kind"),
    _string("object_id", nullable=True),
    _string("organization_id", nullable=True),
    _string("result"),
    _string("reason", nullable=True),
    _string("detail"),
    _string("once", nullable=True),
    UniqueConstraint("id", info={"field": "id"}),
    UniqueConstraint("once", info={"field": "once"}),
    Index(None, "organization_id", "sequence"),
    Index(None, "organization_id", "event", "sequence"),
    Index("ix_audit_events_refused", "sequence", **_where("result = 'refused'")),
    Index("ix_audit_events_refused_of_organization", "organization_id", "sequence", **_where("result = 'refused'")),
    Index(None, "actor_id", "sequence"),
    Index(None, "object_id", "sequence"),
    Index(None, "event", "sequence"),
    Index(None, "at"),
    # SQLite never gives a number twice, even after its highest row was lost.
    sqlite_autoincrement=True,
)

# No unique rule but the key's: what is there already is never an error.
records = Table(
    "records",
    metadata,
    _id("plugin"),
    _id("kind"),
    Column("key", LargeBinary, primary_key=True),
    _moment("created_at"),
    _parent("user_id", "users", nullable=True),
    _parent("application_id", "applications", nullable=True),
    _string("value"),
    Column("sealed", LargeBinary, nullable=False),
    _moment("expires_at", nullable=True),
    _moment("taken_at", nullable=True),
    _number("version"),
    Index(None, "user_id", **_where("user_id IS NOT NULL")),
    Index(None, "application_id", **_where("application_id IS NOT NULL")),
    Index(None, "expires_at", **_where("expires_at IS NOT NULL")),
)
