"""One-time codes, consents, leases, used assertions and idempotency keys are records, and plugins have their own."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from identity.crypto.secrets import digest

revision = "0013"
down_revision = "0012"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BATCH = 1000


def upgrade() -> None:
    """All move over but leases, which are taken anew; answers that were kept under idempotency keys are not told again.

    The version before cannot go on: what is used once would be used once by each version.
    """
    op.create_table(
        "records",
        sa.Column("plugin", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("user_id", STRING),
        sa.Column("application_id", STRING),
        sa.Column("value", STRING, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("taken_at", sa.BigInteger()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_records_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_records_application_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("plugin", "kind", "key", name="pk_records"),
    )
    for column in ("user_id", "application_id", "expires_at"):
        some = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"ix_records_{column}", "records", [column], sqlite_where=some, postgresql_where=some)
    op.execute(
        sa.text(
            "INSERT INTO records"
            " (plugin, kind, key, created_at, user_id, value, sealed, expires_at, taken_at, version)"
            " SELECT 'identity', kind, digest, created_at, user_id, '{}', sealed, expires_at, used_at, 1"
            " FROM one_time_codes"
        )
    )
    if not op.get_context().as_sql:
        _move("assertions", ("user_id", "jti", "until"), _of_assertion)
        _move("idempotency_records", ("key", "request", "created_at", "expires_at"), _of_idempotency_key)
        _move("consents", ("user_id", "application_id", "scope", "given_at"), _of_consent)
    for table in ("one_time_codes", "consents", "assertions", "leases", "idempotency_records"):
        op.drop_table(table)


def _move(name: str, columns: tuple[str, ...], record_of: Any) -> None:
    connection = op.get_bind()
    found: Any = connection.execute(sa.select(*map(sa.column, columns)).select_from(sa.table(name))).all()
    kept = {"plugin": "identity", "value": "{}", "sealed": b"", "version": 1}
    nothing = dict.fromkeys(("user_id", "application_id", "expires_at"))
    records = sa.table("records", *map(sa.column, ("kind", "key", "created_at", *kept, *nothing)))
    for start in range(0, len(found), _BATCH):
        rows = [{**kept, **nothing, **record_of(*row)} for row in found[start : start + _BATCH]]
        connection.execute(records.insert(), rows)


def _of_assertion(user_id: str, jti: str, until: int) -> dict[str, Any]:
    return {"kind": "assertion", "key": digest(f"{user_id}\n{jti}"), "created_at": until, "expires_at": until}


def _of_idempotency_key(key: bytes, request: bytes, created_at: int, expires_at: int) -> dict[str, Any]:
    return {
        "kind": "idempotency key",
        "key": key,
        "value": json.dumps({"request": request.hex()}),
        "created_at": created_at,
        "expires_at": expires_at,
    }


def _of_consent(user_id: str, application_id: str, scope: str, given_at: int) -> dict[str, Any]:
    return {
        "kind": "consent",
        "key": digest(f"{user_id}\n{application_id}"),
        "user_id": user_id,
        "application_id": application_id,
        "value": json.dumps({"scope": scope.split()}),
        "created_at": given_at,
    }
