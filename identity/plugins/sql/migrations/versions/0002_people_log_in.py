"""People log in."""

import json
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

from identity.domain.applications import web_origin

revision = "0002"
down_revision = "0001"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
MOMENT = sa.BigInteger()


def upgrade() -> None:
    """New tables beside those that the version before knows; to those, what it need not know."""
    op.add_column("organizations", sa.Column("registration", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.drop_index("ix_access_tokens_session_id", "access_tokens")
    op.drop_index("ix_refresh_tokens_family_id", "refresh_tokens")
    op.create_index("ix_refresh_tokens_family_id_issued_at", "refresh_tokens", ["family_id", "issued_at"])
    _create_application_origins()
    _create_service_user_secrets()
    op.create_table(
        "authorization_requests",
        sa.Column("id", STRING, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("parameters", STRING, nullable=False),
        sa.Column("target", STRING, nullable=True),
        sa.Column("login_name", STRING, nullable=False),
        sa.Column("ui_locales", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=True),
        sa.Column("authenticated_at", MOMENT, nullable=True),
        sa.Column("methods", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=True),
        sa.Column("done", STRING, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_authorization_requests"),
    )
    op.create_index("ix_authorization_requests_expires_at", "authorization_requests", ["expires_at"])
    op.create_table(
        "sessions",
        sa.Column("id", STRING, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("authenticated_at", MOMENT, nullable=False),
        sa.Column("selected_at", MOMENT, nullable=False),
        sa.Column("last_seen_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("methods", STRING, nullable=False),
        sa.Column("user_agent", STRING, nullable=False),
        sa.Column("client_address", STRING, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sessions_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("digest", name="uq_sessions_digest"),
    )
    op.create_index("ix_sessions_ends_at", "sessions", ["ends_at"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_table(
        "attempts",
        sa.Column("key", STRING, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("next_at", MOMENT, nullable=False),
        sa.Column("counted_at", MOMENT, nullable=False),
        sa.Column("user_id", STRING, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_attempts_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name="pk_attempts"),
    )
    op.create_index(
        "ix_attempts_counted_at",
        "attempts",
        ["counted_at"],
        sqlite_where=sa.text("user_id IS NULL"),
        postgresql_where=sa.text("user_id IS NULL"),
    )
    _index_of_some_users("attempts")
    op.create_table(
        "one_time_codes",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("user_id", STRING, nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_one_time_codes_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name="pk_one_time_codes"),
    )
    op.create_index("ix_one_time_codes_expires_at", "one_time_codes", ["expires_at"])
    _index_of_some_users("one_time_codes")
    op.create_table(
        "outgoing_messages",
        sa.Column("id", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("next_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outgoing_messages"),
    )
    op.create_index("ix_outgoing_messages_next_at_id", "outgoing_messages", ["next_at", "id"])


def _create_service_user_secrets() -> None:
    """The table, and in access tokens what names the secret that obtained them."""
    op.create_table(
        "service_user_secrets",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_service_user_secrets_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_service_user_secrets"),
    )
    op.create_index(
        "ix_service_user_secrets_user_id_created_at_id", "service_user_secrets", ["user_id", "created_at", "id"]
    )
    # SQLite cannot add a reference to a table that is there, so there the table is copied.
    with op.batch_alter_table("access_tokens") as access_tokens:
        access_tokens.add_column(sa.Column("secret_id", STRING, nullable=True))
        access_tokens.create_foreign_key(
            "fk_access_tokens_secret_id", "service_user_secrets", ["secret_id"], ["id"], ondelete="CASCADE"
        )
        access_tokens.create_index(
            "ix_access_tokens_secret_id",
            ["secret_id"],
            sqlite_where=sa.text("secret_id IS NOT NULL"),
            postgresql_where=sa.text("secret_id IS NOT NULL"),
        )


def _create_application_origins() -> None:
    """The table, filled from the redirect URIs that are stored as JSON."""
    table = op.create_table(
        "application_origins",
        sa.Column("application_id", STRING, nullable=False),
        sa.Column("origin", STRING, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_application_origins_application_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("application_id", "origin", name="pk_application_origins"),
    )
    op.create_index("ix_application_origins_origin", "application_origins", ["origin"])
    rows = [{"application_id": id_, "origin": origin} for id_, origin in _origins()]
    op.bulk_insert(table, rows)


def _origins() -> Iterator[tuple[str, str]]:
    stored = op.get_bind().execute(sa.text("SELECT id, redirect_uris FROM applications"))
    for id_, redirect_uris in stored.all():
        for origin in {web_origin(uri) for uri in json.loads(redirect_uris)}:
            if origin is not None:
                yield id_, origin


def _index_of_some_users(table: str) -> None:
    op.create_index(
        f"ix_{table}_user_id",
        table,
        ["user_id"],
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
