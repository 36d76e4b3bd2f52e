"""Settings of applications and projects are one JSON object, without those that have their defaults."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
#: Programs before read the columns that go, and would not see what is set afterwards.
oldest = "0051"

_COLUMN = {
    "sqlite": "settings TEXT NOT NULL DEFAULT '{}'",
    "postgresql": "settings TEXT COLLATE \"C\" NOT NULL DEFAULT '{}'",
    "mariadb": "settings LONGTEXT NOT NULL DEFAULT ('{}')",
}
_TEXTS = {
    "jwks": "",
    "jwks_uri": "",
    "token_endpoint_auth_signing_alg": "",
    "tls_client_auth_subject_dn": "",
    "tls_client_auth_san_dns": "",
    "tls_client_auth_san_uri": "",
    "tls_client_auth_san_ip": "",
    "tls_client_auth_san_email": "",
    "request_object_signing_alg": "",
    "sector_identifier_uri": "",
    "authentication_method": "client_secret_basic",
    "access_token_type": "opaque",
    "consent": "when_foreign",
    "subject_type": "public",
}
_LISTS = (
    "response_types",
    "grant_types",
    "redirect_uris",
    "post_logout_redirect_uris",
    "request_uris",
    "identity_assertion_audiences",
)
_FLAGS = (
    "id_token_userinfo_assertion",
    "access_token_userinfo_assertion",
    "assert_roles_in_access_token",
    "assert_roles_in_id_token",
    "may_manage",
    "development",
    "require_pushed_authorization_requests",
    "require_signed_request_object",
    "require_encoded_response",
)
_OPTIONS = (
    "access_token_lifetime",
    "id_token_lifetime",
    "id_token_signed_response_alg",
    "userinfo_signed_response_alg",
    "authorization_signed_response_alg",
    "introspection_signed_response_alg",
    "required_sender_constraint",
    "security_profile",
)
#: The columns of each table that become members, with their defaults.
_SETTINGS: dict[str, dict[str, Any]] = {
    "applications": {
        **_TEXTS,
        **{name: [] for name in _LISTS},
        **dict.fromkeys(_FLAGS, False),
        **dict.fromkeys(_OPTIONS),
    },
    "projects": {
        "assert_roles": False,
        "check_roles": False,
        "resource_uris": [],
        "open_to_dynamic_clients": False,
        "client_registration": "off",
        "registration_redirect_hosts": [],
        "registration_grant_types": [],
        "registration_token_minutes": 60,
        "registration_limit": 100,
        "registration_unused_days": 30,
    },
}
#: How many rows are converted at once.
_BATCH = 500


def upgrade() -> None:
    context = op.get_context()
    dialect = context.dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for table, defaults in _SETTINGS.items():
        op.execute(f"ALTER TABLE {table} ADD COLUMN {again}{_COLUMN[dialect]}")
        if context.as_sql:
            context.impl.static_output(f"-- Each row of {table} gets as settings what was in the columns that go.\n")
        elif _has_columns(table, defaults):
            _fill(table, defaults)
        _drop(dialect, table, defaults)


def _has_columns(table: str, defaults: Mapping[str, Any]) -> bool:
    """False if an interrupted run removed them: MariaDB commits each statement by itself."""
    return set(defaults) <= {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}


def _drop(dialect: str, table: str, names: Mapping[str, Any]) -> None:
    if dialect == "sqlite":
        for name in names:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
    else:
        op.execute(f"ALTER TABLE {table} {', '.join(f'DROP COLUMN IF EXISTS {name}' for name in names)}")


def _fill(table: str, defaults: Mapping[str, Any]) -> None:
    connection, after = op.get_bind(), ""
    columns = ", ".join(defaults)
    read = sa.text(f"SELECT id, {columns} FROM {table} WHERE id > :after ORDER BY id LIMIT :batch")  # noqa: S608
    write = sa.text(f"UPDATE {table} SET settings = :settings WHERE id = :id")  # noqa: S608 - words of our own
    while rows := connection.execute(read, {"after": after, "batch": _BATCH}).all():
        after = rows[-1].id
        settings = ((row.id, dict(_members(row._mapping, defaults))) for row in rows)
        changes = [{"id": id_, "settings": json.dumps(members, ensure_ascii=False)} for id_, members in settings]
        connection.execute(write, changes)


def _members(row: sa.RowMapping, defaults: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, default in defaults.items():
        try:
            member = _member(row[name], default)
        except ValueError:
            # A damaged row stays one that cannot be read: null is no value of a setting.
            yield name, None
        else:
            if member != default:
                yield name, member


def _member(stored: Any, default: Any) -> Any:
    """The value in JSON. Raises ValueError."""
    if default is None:
        kinds: tuple[type, ...] = (str, int, type(None))
    elif isinstance(default, bool):
        if stored not in (0, 1):
            raise ValueError
        return bool(stored)
    elif isinstance(default, list):
        stored, kinds = json.loads(stored) if type(stored) is str else None, (list,)
    else:
        kinds = (type(default),)
    if type(stored) not in kinds:
        raise ValueError
    return stored
