"""Create everything."""

from alembic import op

revision = "0001"
down_revision = None
oldest = "0001"

#: As SQLite has it; a row refers to rows of tables above its own.
_SCHEMA = """
CREATE TABLE audit_events (
    id TEXT NOT NULL, at BIGINT NOT NULL, event TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_id TEXT,
    client_id TEXT, session_id TEXT, client_address TEXT, request_id TEXT, object_kind TEXT NOT NULL,
    object_id TEXT, organization_id TEXT, result TEXT NOT NULL, reason TEXT, detail TEXT NOT NULL, once TEXT,
    sequence INTEGER NOT NULL CONSTRAINT pk_audit_events PRIMARY KEY AUTOINCREMENT,
    CONSTRAINT uq_audit_events_id UNIQUE (id),
    CONSTRAINT uq_audit_events_once UNIQUE (once)
);
CREATE INDEX ix_audit_events_actor_id_sequence ON audit_events (actor_id, sequence);
CREATE INDEX ix_audit_events_at ON audit_events (at);
CREATE INDEX ix_audit_events_event_sequence ON audit_events (event, sequence);
CREATE INDEX ix_audit_events_object_id_sequence ON audit_events (object_id, sequence);
CREATE INDEX ix_audit_events_organization_id_event_sequence ON audit_events (organization_id, event, sequence);
CREATE INDEX ix_audit_events_organization_id_sequence ON audit_events (organization_id, sequence);
CREATE INDEX ix_audit_events_refused ON audit_events (sequence) WHERE result = 'refused';
CREATE INDEX ix_audit_events_refused_of_organization
    ON audit_events (organization_id, sequence) WHERE result = 'refused';

CREATE TABLE domains (
    organization_id TEXT NOT NULL, name TEXT NOT NULL, challenge TEXT NOT NULL, created_at BIGINT NOT NULL,
    proof TEXT, verified_at BIGINT,
    CONSTRAINT pk_domains PRIMARY KEY (organization_id, name)
);
CREATE UNIQUE INDEX uq_domains_name ON domains (name) WHERE proof IS NOT NULL;

CREATE TABLE instance (
    organization_id TEXT NOT NULL, project_id TEXT NOT NULL, created_at BIGINT NOT NULL, id INTEGER NOT NULL,
    CONSTRAINT pk_instance PRIMARY KEY (id),
    CONSTRAINT ck_instance_one_row CHECK (id = 1)
);

CREATE TABLE organizations (
    id TEXT NOT NULL, name TEXT NOT NULL, primary_domain TEXT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, registration BOOLEAN NOT NULL, active BOOLEAN NOT NULL, version INTEGER NOT NULL,
    name_key TEXT NOT NULL, search_text TEXT NOT NULL,
    CONSTRAINT pk_organizations PRIMARY KEY (id),
    CONSTRAINT uq_organizations_primary_domain UNIQUE (primary_domain)
);
CREATE INDEX ix_organizations_created_at_id ON organizations (created_at, id);
CREATE INDEX ix_organizations_name_key_id ON organizations (name_key, id);
CREATE INDEX ix_organizations_search_text_id_active ON organizations (search_text, id, active);

CREATE TABLE outgoing_messages (
    id TEXT NOT NULL, kind TEXT NOT NULL, sealed BLOB NOT NULL, created_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, attempts INTEGER NOT NULL,
    CONSTRAINT pk_outgoing_messages PRIMARY KEY (id)
);
CREATE INDEX ix_outgoing_messages_expires_at ON outgoing_messages (expires_at);
CREATE INDEX ix_outgoing_messages_kind_next_at_id ON outgoing_messages (kind, next_at, id);

CREATE TABLE signing_keys (
    id TEXT NOT NULL, generation INTEGER NOT NULL, algorithm TEXT NOT NULL, public_key BLOB NOT NULL,
    sealed_private_key BLOB NOT NULL, created_at BIGINT NOT NULL, active_at BIGINT NOT NULL,
    CONSTRAINT pk_signing_keys PRIMARY KEY (id),
    CONSTRAINT uq_signing_keys_generation UNIQUE (generation)
);

CREATE TABLE projects (
    id TEXT NOT NULL, organization_id TEXT NOT NULL, name TEXT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, assert_roles BOOLEAN NOT NULL, check_roles BOOLEAN NOT NULL,
    active BOOLEAN NOT NULL, version INTEGER NOT NULL, name_key TEXT NOT NULL, search_text TEXT NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (id),
    CONSTRAINT fk_projects_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE INDEX ix_projects_organization_id_name_key_id ON projects (organization_id, name_key, id);

CREATE TABLE users (
    kind TEXT NOT NULL, id TEXT NOT NULL, organization_id TEXT NOT NULL, user_name TEXT NOT NULL, profile TEXT,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, registered BOOLEAN NOT NULL, named_at BIGINT,
    last_sign_in_at BIGINT, active BOOLEAN NOT NULL, version INTEGER NOT NULL, display_name TEXT NOT NULL,
    description TEXT NOT NULL, access_token_type TEXT NOT NULL, name_key TEXT NOT NULL, display_key TEXT NOT NULL,
    email_key TEXT NOT NULL, search_text TEXT NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id),
    CONSTRAINT uq_users_name_key_organization_id UNIQUE (name_key, organization_id),
    CONSTRAINT fk_users_organization_id FOREIGN KEY (organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE INDEX ix_users_created ON users (organization_id, created_at, id, kind, active);
CREATE INDEX ix_users_display ON users (organization_id, display_key, id, kind, active);
CREATE INDEX ix_users_email ON users (organization_id, email_key, id, kind, active);
CREATE INDEX ix_users_last_sign_in ON users (organization_id, coalesce(last_sign_in_at, 0), id, kind, active);
CREATE INDEX ix_users_list ON users (organization_id, name_key, id, kind, active);
CREATE INDEX ix_users_list_of_all ON users (name_key, id, kind, active);
CREATE INDEX ix_users_search ON users (organization_id, search_text, id, kind, active);

CREATE TABLE applications (
    id TEXT NOT NULL, project_id TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, authentication_method TEXT NOT NULL, response_types TEXT NOT NULL,
    grant_types TEXT NOT NULL, redirect_uris TEXT NOT NULL, post_logout_redirect_uris TEXT NOT NULL,
    access_token_type TEXT NOT NULL, access_token_lifetime BIGINT, id_token_lifetime BIGINT,
    id_token_userinfo_assertion BOOLEAN NOT NULL, assert_roles_in_access_token BOOLEAN NOT NULL,
    assert_roles_in_id_token BOOLEAN NOT NULL, consent TEXT NOT NULL, may_manage BOOLEAN NOT NULL,
    development BOOLEAN NOT NULL, active BOOLEAN NOT NULL, version INTEGER NOT NULL, name_key TEXT NOT NULL,
    search_text TEXT NOT NULL,
    CONSTRAINT pk_applications PRIMARY KEY (id),
    CONSTRAINT fk_applications_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX ix_applications_project_id_name_key_id ON applications (project_id, name_key, id);

CREATE TABLE attempts (
    "key" TEXT NOT NULL, number INTEGER NOT NULL, next_at BIGINT NOT NULL, counted_at BIGINT NOT NULL,
    user_id TEXT,
    CONSTRAINT pk_attempts PRIMARY KEY ("key"),
    CONSTRAINT fk_attempts_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_attempts_counted_at ON attempts (counted_at);
CREATE INDEX ix_attempts_user_id ON attempts (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE authorization_requests (
    id TEXT NOT NULL, digest BLOB NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    parameters TEXT NOT NULL, target TEXT, login_name TEXT NOT NULL, ui_locales TEXT NOT NULL, user_id TEXT,
    authenticated_at BIGINT, methods TEXT NOT NULL, session_id TEXT, done TEXT NOT NULL, finished_at BIGINT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_authorization_requests PRIMARY KEY (id),
    CONSTRAINT fk_authorization_requests_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_authorization_requests_expires_at ON authorization_requests (expires_at);
CREATE INDEX ix_authorization_requests_user_id ON authorization_requests (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE passwords (
    user_id TEXT NOT NULL, hash TEXT NOT NULL, changed_at BIGINT NOT NULL, must_change BOOLEAN NOT NULL,
    CONSTRAINT pk_passwords PRIMARY KEY (user_id),
    CONSTRAINT fk_passwords_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE personal_access_tokens (
    id TEXT NOT NULL, user_id TEXT NOT NULL, name TEXT NOT NULL, scope TEXT NOT NULL, created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, last_used_at BIGINT,
    CONSTRAINT pk_personal_access_tokens PRIMARY KEY (id),
    CONSTRAINT fk_personal_access_tokens_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_personal_access_tokens_expires_at_id ON personal_access_tokens (expires_at, id);
CREATE INDEX ix_personal_access_tokens_user_id_created_at_id ON personal_access_tokens (user_id, created_at, id);

CREATE TABLE project_grants (
    id TEXT NOT NULL, project_id TEXT NOT NULL, organization_id TEXT NOT NULL, roles TEXT NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, accepted BOOLEAN NOT NULL, active BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    CONSTRAINT pk_project_grants PRIMARY KEY (id),
    CONSTRAINT uq_project_grants_project_id_organization_id UNIQUE (project_id, organization_id),
    CONSTRAINT fk_project_grants_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_project_grants_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE INDEX ix_project_grants_organization_id_created_at_id ON project_grants (organization_id, created_at, id);
CREATE INDEX ix_project_grants_project_id_created_at_id ON project_grants (project_id, created_at, id);

CREATE TABLE project_roles (
    project_id TEXT NOT NULL, "key" TEXT NOT NULL, display_name TEXT NOT NULL, "group" TEXT NOT NULL,
    version INTEGER NOT NULL,
    CONSTRAINT pk_project_roles PRIMARY KEY (project_id, "key"),
    CONSTRAINT fk_project_roles_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE TABLE service_user_keys (
    id TEXT NOT NULL, user_id TEXT NOT NULL, public_key BLOB NOT NULL, created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, last_used_at BIGINT,
    CONSTRAINT pk_service_user_keys PRIMARY KEY (id),
    CONSTRAINT fk_service_user_keys_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_service_user_keys_expires_at_id ON service_user_keys (expires_at, id);
CREATE INDEX ix_service_user_keys_user_id_created_at_id ON service_user_keys (user_id, created_at, id);

CREATE TABLE service_user_secrets (
    id TEXT NOT NULL, user_id TEXT NOT NULL, digest BLOB NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT,
    CONSTRAINT pk_service_user_secrets PRIMARY KEY (id),
    CONSTRAINT fk_service_user_secrets_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_service_user_secrets_user_id_created_at_id ON service_user_secrets (user_id, created_at, id);

CREATE TABLE sessions (
    id TEXT NOT NULL, digest BLOB NOT NULL, user_id TEXT NOT NULL, started_at BIGINT NOT NULL,
    authenticated_at BIGINT NOT NULL, selected_at BIGINT NOT NULL, last_seen_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL, methods TEXT NOT NULL, user_agent TEXT NOT NULL, client_address TEXT NOT NULL,
    ended_at BIGINT,
    CONSTRAINT pk_sessions PRIMARY KEY (id),
    CONSTRAINT uq_sessions_digest UNIQUE (digest),
    CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_ends_at ON sessions (ends_at);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);

CREATE TABLE application_origins (
    application_id TEXT NOT NULL, origin TEXT NOT NULL,
    CONSTRAINT pk_application_origins PRIMARY KEY (application_id, origin),
    CONSTRAINT fk_application_origins_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE
);
CREATE INDEX ix_application_origins_origin ON application_origins (origin);

CREATE TABLE client_secrets (
    id TEXT NOT NULL, digest BLOB NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT,
    application_id TEXT NOT NULL,
    CONSTRAINT pk_client_secrets PRIMARY KEY (id),
    CONSTRAINT fk_client_secrets_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE
);
CREATE INDEX ix_client_secrets_application_id_created_at_id ON client_secrets (application_id, created_at, id);

CREATE TABLE managers (
    id TEXT NOT NULL, user_id TEXT NOT NULL, level TEXT NOT NULL, resource_id TEXT NOT NULL, roles TEXT NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, organization_id TEXT, version INTEGER NOT NULL,
    of_organization TEXT, of_project TEXT, of_project_grant TEXT,
    CONSTRAINT pk_managers PRIMARY KEY (id),
    CONSTRAINT uq_managers_user_id_level_resource_id UNIQUE (user_id, level, resource_id),
    CONSTRAINT fk_managers_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_of_organization FOREIGN KEY (of_organization)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_of_project FOREIGN KEY (of_project) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_of_project_grant FOREIGN KEY (of_project_grant)
        REFERENCES project_grants (id) ON DELETE CASCADE
);
CREATE INDEX ix_managers_level_resource_id_created_at_id ON managers (level, resource_id, created_at, id);
CREATE INDEX ix_managers_of_organization ON managers (of_organization) WHERE of_organization IS NOT NULL;
CREATE INDEX ix_managers_of_project ON managers (of_project) WHERE of_project IS NOT NULL;
CREATE INDEX ix_managers_of_project_grant ON managers (of_project_grant) WHERE of_project_grant IS NOT NULL;

CREATE TABLE records (
    plugin TEXT NOT NULL, kind TEXT NOT NULL, "key" BLOB NOT NULL, created_at BIGINT NOT NULL, user_id TEXT,
    application_id TEXT, value TEXT NOT NULL, sealed BLOB NOT NULL, expires_at BIGINT, taken_at BIGINT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_records PRIMARY KEY (plugin, kind, "key"),
    CONSTRAINT fk_records_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_records_application_id FOREIGN KEY (application_id) REFERENCES applications (id) ON DELETE CASCADE
);
CREATE INDEX ix_records_application_id ON records (application_id) WHERE application_id IS NOT NULL;
CREATE INDEX ix_records_expires_at ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ix_records_user_id ON records (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE token_families (
    id TEXT NOT NULL, user_id TEXT NOT NULL, client_id TEXT NOT NULL, scope TEXT NOT NULL,
    started_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, session_id TEXT, offline BOOLEAN NOT NULL,
    methods TEXT NOT NULL, userinfo_claims TEXT NOT NULL, id_token_claims TEXT NOT NULL, revoked_at BIGINT,
    CONSTRAINT pk_token_families PRIMARY KEY (id),
    CONSTRAINT fk_token_families_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_token_families_client_id FOREIGN KEY (client_id) REFERENCES applications (id) ON DELETE CASCADE
);
CREATE INDEX ix_token_families_client_id ON token_families (client_id);
CREATE INDEX ix_token_families_ends_at ON token_families (ends_at);
CREATE INDEX ix_token_families_user_id ON token_families (user_id);

CREATE TABLE user_grants (
    id TEXT NOT NULL, user_id TEXT NOT NULL, organization_id TEXT NOT NULL, project_id TEXT NOT NULL,
    roles TEXT NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, project_grant_id TEXT,
    active BOOLEAN NOT NULL, version INTEGER NOT NULL,
    CONSTRAINT pk_user_grants PRIMARY KEY (id),
    CONSTRAINT fk_user_grants_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_project_grant_id FOREIGN KEY (project_grant_id)
        REFERENCES project_grants (id) ON DELETE CASCADE
);
CREATE INDEX ix_user_grants_organization_id ON user_grants (organization_id);
CREATE INDEX ix_user_grants_project_grant_id_created_at_id
    ON user_grants (project_grant_id, created_at, id) WHERE project_grant_id IS NOT NULL;
CREATE INDEX ix_user_grants_project_id_created_at_id ON user_grants (project_id, created_at, id);
CREATE INDEX ix_user_grants_user_id_created_at_id ON user_grants (user_id, created_at, id);
CREATE UNIQUE INDEX uq_user_grants_derived
    ON user_grants (user_id, project_id, project_grant_id) WHERE project_grant_id IS NOT NULL;
CREATE UNIQUE INDEX uq_user_grants_direct ON user_grants (user_id, project_id) WHERE project_grant_id IS NULL;

CREATE TABLE access_tokens (
    id TEXT NOT NULL, digest BLOB NOT NULL, format TEXT NOT NULL, subject TEXT NOT NULL, client_id TEXT NOT NULL,
    scope TEXT NOT NULL, audience TEXT NOT NULL, issued_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    user_id TEXT, application_id TEXT, key_id TEXT, secret_id TEXT, personal_access_token_id TEXT, family_id TEXT,
    session_id TEXT, revoked_at BIGINT, actors TEXT NOT NULL,
    CONSTRAINT pk_access_tokens PRIMARY KEY (digest),
    CONSTRAINT fk_access_tokens_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_key_id FOREIGN KEY (key_id) REFERENCES service_user_keys (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_secret_id FOREIGN KEY (secret_id)
        REFERENCES service_user_secrets (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_personal_access_token_id FOREIGN KEY (personal_access_token_id)
        REFERENCES personal_access_tokens (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_family_id FOREIGN KEY (family_id) REFERENCES token_families (id) ON DELETE CASCADE
);
CREATE INDEX ix_access_tokens_application_id ON access_tokens (application_id) WHERE application_id IS NOT NULL;
CREATE INDEX ix_access_tokens_expires_at ON access_tokens (expires_at);
CREATE INDEX ix_access_tokens_family_id ON access_tokens (family_id) WHERE family_id IS NOT NULL;
CREATE INDEX ix_access_tokens_key_id ON access_tokens (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX ix_access_tokens_personal_access_token_id
    ON access_tokens (personal_access_token_id) WHERE personal_access_token_id IS NOT NULL;
CREATE INDEX ix_access_tokens_secret_id ON access_tokens (secret_id) WHERE secret_id IS NOT NULL;
CREATE INDEX ix_access_tokens_user_id ON access_tokens (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE authorization_codes (
    digest BLOB NOT NULL, family_id TEXT NOT NULL, client_id TEXT NOT NULL, user_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL, scope TEXT NOT NULL, issued_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    authenticated_at BIGINT NOT NULL, session_id TEXT, nonce TEXT, code_challenge TEXT, redeemed_at BIGINT,
    CONSTRAINT pk_authorization_codes PRIMARY KEY (digest),
    CONSTRAINT fk_authorization_codes_family_id FOREIGN KEY (family_id)
        REFERENCES token_families (id) ON DELETE CASCADE
);
CREATE INDEX ix_authorization_codes_expires_at ON authorization_codes (expires_at) WHERE redeemed_at IS NULL;
CREATE INDEX ix_authorization_codes_family_id ON authorization_codes (family_id);

CREATE TABLE refresh_tokens (
    id TEXT NOT NULL, digest BLOB NOT NULL, family_id TEXT NOT NULL, user_id TEXT NOT NULL,
    client_id TEXT NOT NULL, scope TEXT NOT NULL, issued_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL, authenticated_at BIGINT NOT NULL, session_id TEXT, nonce TEXT, predecessor_id TEXT,
    rotated_at BIGINT, revoked_at BIGINT,
    CONSTRAINT pk_refresh_tokens PRIMARY KEY (digest),
    CONSTRAINT fk_refresh_tokens_family_id FOREIGN KEY (family_id) REFERENCES token_families (id) ON DELETE CASCADE
);
CREATE INDEX ix_refresh_tokens_family_id_issued_at ON refresh_tokens (family_id, issued_at);
"""
#: What PostgreSQL calls otherwise.
_POSTGRESQL = {
    "INTEGER NOT NULL CONSTRAINT pk_audit_events PRIMARY KEY AUTOINCREMENT": (
        "BIGINT GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_audit_events PRIMARY KEY"
    ),
    " BLOB": " BYTEA",
    " TEXT": ' TEXT COLLATE "C"',
}
_NEVER_CHANGED = "audit events are never changed"
_GUARDS = {
    "postgresql": (
        f"""
        CREATE FUNCTION refuse_change_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '{_NEVER_CHANGED}'; END $$
        """,
        """
        CREATE TRIGGER audit_events_are_never_changed BEFORE UPDATE OR DELETE ON audit_events
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_events()
        """,
    ),
    "sqlite": tuple(
        f"""
        CREATE TRIGGER audit_events_are_never_{name} BEFORE {change} ON audit_events
        BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
        """
        for name, change in (("updated", "UPDATE"), ("deleted", "DELETE"))
    ),
}


def upgrade() -> None:
    """Tables and indexes, then the guard of the audit trail."""
    dialect, schema = op.get_context().dialect.name, _SCHEMA
    if dialect == "postgresql":
        for ours, theirs in _POSTGRESQL.items():
            schema = schema.replace(ours, theirs)
    for statement in (*schema.split(";\n"), *_GUARDS[dialect]):
        if statement.strip():
            op.execute(statement)
