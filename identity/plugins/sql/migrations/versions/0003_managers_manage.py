"""Managers manage."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
MOMENT = sa.BigInteger()


def upgrade() -> None:
    """New tables beside those that the version before knows; to those, what it need not know."""
    op.add_column("users", sa.Column("last_sign_in_at", MOMENT, nullable=True))
    op.add_column("client_secrets", sa.Column("last_used_at", MOMENT, nullable=True))
    op.add_column("service_user_secrets", sa.Column("last_used_at", MOMENT, nullable=True))
    op.add_column("project_roles", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    _create_personal_access_tokens()
    op.create_table(
        "idempotency_records",
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_idempotency_records"),
    )
    op.create_index("ix_idempotency_records_expires_at", "idempotency_records", ["expires_at"])
    # Whoever sends one kind does not read through what waits of another.
    op.drop_index("ix_outgoing_messages_next_at_id", "outgoing_messages")
    op.create_index("ix_outgoing_messages_kind_next_at_id", "outgoing_messages", ["kind", "next_at", "id"])
    op.create_index("ix_outgoing_messages_expires_at", "outgoing_messages", ["expires_at"])
    _index_lists()


def _create_personal_access_tokens() -> None:
    """The table, and in access tokens what names the personal access token whose live form they are."""
    op.create_table(
        "personal_access_tokens",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_personal_access_tokens_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_personal_access_tokens"),
    )
    op.create_index(
        "ix_personal_access_tokens_user_id_created_at_id", "personal_access_tokens", ["user_id", "created_at", "id"]
    )
    op.create_index("ix_personal_access_tokens_expires_at_id", "personal_access_tokens", ["expires_at", "id"])
    # SQLite cannot add a reference to a table that is there, so there the table is copied.
    with op.batch_alter_table("access_tokens") as access_tokens:
        access_tokens.add_column(sa.Column("personal_access_token_id", STRING, nullable=True))
        access_tokens.create_foreign_key(
            "fk_access_tokens_personal_access_token_id",
            "personal_access_tokens",
            ["personal_access_token_id"],
            ["id"],
            ondelete="CASCADE",
        )
        access_tokens.create_index(
            "ix_access_tokens_personal_access_token_id",
            ["personal_access_token_id"],
            sqlite_where=sa.text("personal_access_token_id IS NOT NULL"),
            postgresql_where=sa.text("personal_access_token_id IS NOT NULL"),
        )


def _index_lists() -> None:
    """What answers lists and searches of users, and lists of derived grants and of audit events."""
    listed = ["kind", "active", "name_key", "id"]
    op.drop_index("ix_users_organization_id_kind_name_key_id", "users")
    op.drop_index("ix_users_organization_id_display_key", "users")
    op.drop_index("ix_users_organization_id_email_key", "users")
    op.create_index("ix_users_list", "users", ["organization_id", *listed])
    op.create_index("ix_users_display", "users", ["organization_id", "display_key", *listed])
    op.create_index("ix_users_email", "users", ["organization_id", "email_key", *listed])
    op.create_index("ix_users_list_of_all", "users", listed)
    op.create_index("ix_users_display_of_all", "users", ["display_key", *listed])
    op.create_index("ix_users_email_of_all", "users", ["email_key", *listed])
    op.drop_index("ix_user_grants_project_grant_id", "user_grants")
    op.create_index(
        "ix_user_grants_project_grant_id_created_at_id",
        "user_grants",
        ["project_grant_id", "created_at", "id"],
        sqlite_where=sa.text("project_grant_id IS NOT NULL"),
        postgresql_where=sa.text("project_grant_id IS NOT NULL"),
    )
    op.create_index(
        "ix_audit_events_organization_id_event_sequence", "audit_events", ["organization_id", "event", "sequence"]
    )
    _index_refused("ix_audit_events_refused", ["sequence"])
    _index_refused("ix_audit_events_refused_of_organization", ["organization_id", "sequence"])


def _index_refused(name: str, columns: list[str]) -> None:
    op.create_index(
        name,
        "audit_events",
        columns,
        sqlite_where=sa.text("result = 'refused'"),
        postgresql_where=sa.text("result = 'refused'"),
    )
