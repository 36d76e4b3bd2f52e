"""Create everything."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
MOMENT = sa.BigInteger()

_NEVER_CHANGED = "audit events are never changed"
_POSTGRESQL_GUARD = (
    f"""
    CREATE FUNCTION refuse_change_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '{_NEVER_CHANGED}'; END $$
    """,
    """
    CREATE TRIGGER audit_events_are_never_changed BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_events()
    """,
)
_SQLITE_GUARD = tuple(
    f"""
    CREATE TRIGGER audit_events_are_never_{name} BEFORE {change} ON audit_events
    BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
    """
    for name, change in (("updated", "UPDATE"), ("deleted", "DELETE"))
)


def upgrade() -> None:
    """Tables in an order in which each finds what it refers to, then the guard of the audit trail."""
    op.create_table(
        "assertions",
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("jti", STRING, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "jti", name="pk_assertions"),
    )
    op.create_index("ix_assertions_until", "assertions", ["until"])
    op.create_table(
        "audit_events",
        sa.Column(
            "sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=True), nullable=False
        ),
        sa.Column("id", STRING, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("event", STRING, nullable=False),
        sa.Column("actor_kind", STRING, nullable=False),
        sa.Column("actor_id", STRING, nullable=True),
        sa.Column("client_address", STRING, nullable=True),
        sa.Column("request_id", STRING, nullable=True),
        sa.Column("object_kind", STRING, nullable=False),
        sa.Column("object_id", STRING, nullable=True),
        sa.Column("organization_id", STRING, nullable=True),
        sa.Column("result", STRING, nullable=False),
        sa.Column("reason", STRING, nullable=True),
        sa.Column("detail", STRING, nullable=False),
        sa.Column("once", STRING, nullable=True),
        sa.PrimaryKeyConstraint("sequence", name="pk_audit_events"),
        sa.UniqueConstraint("id", name="uq_audit_events_id"),
        sa.UniqueConstraint("once", name="uq_audit_events_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_actor_id_sequence", "audit_events", ["actor_id", "sequence"])
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_index("ix_audit_events_event_sequence", "audit_events", ["event", "sequence"])
    op.create_index("ix_audit_events_object_id_sequence", "audit_events", ["object_id", "sequence"])
    op.create_index("ix_audit_events_organization_id_sequence", "audit_events", ["organization_id", "sequence"])
    op.create_table(
        "instance",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("project_id", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("id = 1", name="ck_instance_one_row"),
        sa.PrimaryKeyConstraint("id", name="pk_instance"),
    )
    op.create_table(
        "leases",
        sa.Column("name", STRING, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "organizations",
        sa.Column("id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("name_key", STRING, nullable=False),
        sa.Column("primary_domain", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
        sa.UniqueConstraint("primary_domain", name="uq_organizations_primary_domain"),
    )
    op.create_index("ix_organizations_name_key_id", "organizations", ["name_key", "id"])
    op.create_table(
        "signing_keys",
        sa.Column("id", STRING, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("algorithm", STRING, nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_private_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("active_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
        sa.UniqueConstraint("generation", name="uq_signing_keys_generation"),
    )
    op.create_table(
        "projects",
        sa.Column("id", STRING, nullable=False),
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("name_key", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("assert_roles", sa.Boolean(), nullable=False),
        sa.Column("check_roles", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_projects_organization_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )
    op.create_index("ix_projects_organization_id_name_key_id", "projects", ["organization_id", "name_key", "id"])
    op.create_table(
        "users",
        sa.Column("id", STRING, nullable=False),
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("user_name", STRING, nullable=False),
        sa.Column("name_key", STRING, nullable=False),
        sa.Column("display_name", STRING, nullable=False),
        sa.Column("display_key", STRING, nullable=False),
        sa.Column("email_key", STRING, nullable=False),
        sa.Column("description", STRING, nullable=False),
        sa.Column("access_token_type", STRING, nullable=False),
        sa.Column("profile", STRING, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_users_organization_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name_key", "organization_id", name="uq_users_name_key_organization_id"),
    )
    op.create_index("ix_users_organization_id_display_key", "users", ["organization_id", "display_key"])
    op.create_index("ix_users_organization_id_email_key", "users", ["organization_id", "email_key"])
    op.create_index("ix_users_organization_id_kind_name_key_id", "users", ["organization_id", "kind", "name_key", "id"])
    op.create_table(
        "applications",
        sa.Column("id", STRING, nullable=False),
        sa.Column("project_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("name_key", STRING, nullable=False),
        sa.Column("type", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("authentication_method", STRING, nullable=False),
        sa.Column("response_types", STRING, nullable=False),
        sa.Column("grant_types", STRING, nullable=False),
        sa.Column("redirect_uris", STRING, nullable=False),
        sa.Column("post_logout_redirect_uris", STRING, nullable=False),
        sa.Column("access_token_type", STRING, nullable=False),
        sa.Column("access_token_lifetime", MOMENT, nullable=True),
        sa.Column("id_token_lifetime", MOMENT, nullable=True),
        sa.Column("id_token_userinfo_assertion", sa.Boolean(), nullable=False),
        sa.Column("assert_roles_in_access_token", sa.Boolean(), nullable=False),
        sa.Column("assert_roles_in_id_token", sa.Boolean(), nullable=False),
        sa.Column("development", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_applications_project_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_applications"),
    )
    op.create_index("ix_applications_project_id_name_key_id", "applications", ["project_id", "name_key", "id"])
    op.create_table(
        "passwords",
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("hash", STRING, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("must_change", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_passwords_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name="pk_passwords"),
    )
    op.create_table(
        "project_grants",
        sa.Column("id", STRING, nullable=False),
        sa.Column("project_id", STRING, nullable=False),
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("roles", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_project_grants_organization_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_grants_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_project_grants"),
        sa.UniqueConstraint("project_id", "organization_id", name="uq_project_grants_project_id_organization_id"),
    )
    op.create_index(
        "ix_project_grants_organization_id_created_at_id", "project_grants", ["organization_id", "created_at", "id"]
    )
    op.create_index("ix_project_grants_project_id_created_at_id", "project_grants", ["project_id", "created_at", "id"])
    op.create_table(
        "project_roles",
        sa.Column("project_id", STRING, nullable=False),
        sa.Column("key", STRING, nullable=False),
        sa.Column("display_name", STRING, nullable=False),
        sa.Column("group", STRING, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_roles_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "key", name="pk_project_roles"),
        info={"field": "key"},
    )
    op.create_table(
        "service_user_keys",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_service_user_keys_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_service_user_keys"),
    )
    op.create_index("ix_service_user_keys_expires_at_id", "service_user_keys", ["expires_at", "id"])
    op.create_index("ix_service_user_keys_user_id_created_at_id", "service_user_keys", ["user_id", "created_at", "id"])
    op.create_table(
        "client_secrets",
        sa.Column("id", STRING, nullable=False),
        sa.Column("application_id", STRING, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_client_secrets_application_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_client_secrets"),
    )
    op.create_index(
        "ix_client_secrets_application_id_created_at_id", "client_secrets", ["application_id", "created_at", "id"]
    )
    op.create_table(
        "managers",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("level", STRING, nullable=False),
        sa.Column("resource_id", STRING, nullable=False),
        sa.Column("roles", STRING, nullable=False),
        sa.Column("organization_id", STRING, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("of_organization", STRING, nullable=True),
        sa.Column("of_project", STRING, nullable=True),
        sa.Column("of_project_grant", STRING, nullable=True),
        sa.ForeignKeyConstraint(
            ["of_organization"], ["organizations.id"], name="fk_managers_of_organization", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["of_project"], ["projects.id"], name="fk_managers_of_project", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["of_project_grant"], ["project_grants.id"], name="fk_managers_of_project_grant", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_managers_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_managers"),
        sa.UniqueConstraint("user_id", "level", "resource_id", name="uq_managers_user_id_level_resource_id"),
    )
    op.create_index(
        "ix_managers_level_resource_id_created_at_id", "managers", ["level", "resource_id", "created_at", "id"]
    )
    op.create_index(
        "ix_managers_of_organization",
        "managers",
        ["of_organization"],
        sqlite_where=sa.text("of_organization IS NOT NULL"),
        postgresql_where=sa.text("of_organization IS NOT NULL"),
    )
    op.create_index(
        "ix_managers_of_project",
        "managers",
        ["of_project"],
        sqlite_where=sa.text("of_project IS NOT NULL"),
        postgresql_where=sa.text("of_project IS NOT NULL"),
    )
    op.create_index(
        "ix_managers_of_project_grant",
        "managers",
        ["of_project_grant"],
        sqlite_where=sa.text("of_project_grant IS NOT NULL"),
        postgresql_where=sa.text("of_project_grant IS NOT NULL"),
    )
    op.create_table(
        "token_families",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("client_id", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("session_id", STRING, nullable=True),
        sa.Column("offline", sa.Boolean(), nullable=False),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["client_id"], ["applications.id"], name="fk_token_families_client_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_token_families_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_token_families"),
    )
    op.create_index("ix_token_families_client_id", "token_families", ["client_id"])
    op.create_index("ix_token_families_ends_at", "token_families", ["ends_at"])
    op.create_index("ix_token_families_user_id", "token_families", ["user_id"])
    op.create_table(
        "user_grants",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("project_id", STRING, nullable=False),
        sa.Column("project_grant_id", STRING, nullable=True),
        sa.Column("roles", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_user_grants_organization_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_grant_id"], ["project_grants.id"], name="fk_user_grants_project_grant_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_user_grants_project_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_user_grants_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_user_grants"),
    )
    op.create_index("ix_user_grants_organization_id", "user_grants", ["organization_id"])
    op.create_index(
        "ix_user_grants_project_grant_id",
        "user_grants",
        ["project_grant_id"],
        sqlite_where=sa.text("project_grant_id IS NOT NULL"),
        postgresql_where=sa.text("project_grant_id IS NOT NULL"),
    )
    op.create_index("ix_user_grants_project_id_created_at_id", "user_grants", ["project_id", "created_at", "id"])
    op.create_index("ix_user_grants_user_id_created_at_id", "user_grants", ["user_id", "created_at", "id"])
    op.create_index(
        "uq_user_grants_derived",
        "user_grants",
        ["user_id", "project_id", "project_grant_id"],
        unique=True,
        sqlite_where=sa.text("project_grant_id IS NOT NULL"),
        postgresql_where=sa.text("project_grant_id IS NOT NULL"),
    )
    op.create_index(
        "uq_user_grants_direct",
        "user_grants",
        ["user_id", "project_id"],
        unique=True,
        sqlite_where=sa.text("project_grant_id IS NULL"),
        postgresql_where=sa.text("project_grant_id IS NULL"),
    )
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("id", STRING, nullable=False),
        sa.Column("format", STRING, nullable=False),
        sa.Column("subject", STRING, nullable=False),
        sa.Column("client_id", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("audience", STRING, nullable=False),
        sa.Column("issued_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("user_id", STRING, nullable=True),
        sa.Column("application_id", STRING, nullable=True),
        sa.Column("key_id", STRING, nullable=True),
        sa.Column("family_id", STRING, nullable=True),
        sa.Column("session_id", STRING, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_access_tokens_application_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["family_id"], ["token_families.id"], name="fk_access_tokens_family_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["key_id"], ["service_user_keys.id"], name="fk_access_tokens_key_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_access_tokens_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name="pk_access_tokens"),
    )
    op.create_index(
        "ix_access_tokens_application_id",
        "access_tokens",
        ["application_id"],
        sqlite_where=sa.text("application_id IS NOT NULL"),
        postgresql_where=sa.text("application_id IS NOT NULL"),
    )
    op.create_index("ix_access_tokens_expires_at", "access_tokens", ["expires_at"])
    op.create_index(
        "ix_access_tokens_family_id",
        "access_tokens",
        ["family_id"],
        sqlite_where=sa.text("family_id IS NOT NULL"),
        postgresql_where=sa.text("family_id IS NOT NULL"),
    )
    op.create_index(
        "ix_access_tokens_key_id",
        "access_tokens",
        ["key_id"],
        sqlite_where=sa.text("key_id IS NOT NULL"),
        postgresql_where=sa.text("key_id IS NOT NULL"),
    )
    op.create_index(
        "ix_access_tokens_session_id",
        "access_tokens",
        ["session_id"],
        sqlite_where=sa.text("session_id IS NOT NULL"),
        postgresql_where=sa.text("session_id IS NOT NULL"),
    )
    op.create_index(
        "ix_access_tokens_user_id",
        "access_tokens",
        ["user_id"],
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_table(
        "authorization_codes",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("family_id", STRING, nullable=False),
        sa.Column("client_id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("redirect_uri", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("issued_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("authenticated_at", MOMENT, nullable=False),
        sa.Column("session_id", STRING, nullable=True),
        sa.Column("nonce", STRING, nullable=True),
        sa.Column("code_challenge", STRING, nullable=True),
        sa.Column("redeemed_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["family_id"], ["token_families.id"], name="fk_authorization_codes_family_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_authorization_codes"),
    )
    op.create_index(
        "ix_authorization_codes_expires_at",
        "authorization_codes",
        ["expires_at"],
        sqlite_where=sa.text("redeemed_at IS NULL"),
        postgresql_where=sa.text("redeemed_at IS NULL"),
    )
    op.create_index("ix_authorization_codes_family_id", "authorization_codes", ["family_id"])
    op.create_table(
        "refresh_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("id", STRING, nullable=False),
        sa.Column("family_id", STRING, nullable=False),
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("client_id", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("issued_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("authenticated_at", MOMENT, nullable=False),
        sa.Column("session_id", STRING, nullable=True),
        sa.Column("nonce", STRING, nullable=True),
        sa.Column("predecessor_id", STRING, nullable=True),
        sa.Column("rotated_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["family_id"], ["token_families.id"], name="fk_refresh_tokens_family_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_refresh_tokens"),
    )
    op.create_index("ix_refresh_tokens_family_id", "refresh_tokens", ["family_id"])
    guard = _POSTGRESQL_GUARD if op.get_bind().dialect.name == "postgresql" else _SQLITE_GUARD
    for statement in guard:
        op.execute(statement)
