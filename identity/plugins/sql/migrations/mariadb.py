"""The schema with which MariaDB begins: that of revision 0008, in its own words; what comes later is the same for all.

Each statement can be repeated, as MariaDB commits each by itself: a migration that was killed is run again. There are
no partial indexes; where a rule is about some rows, it is about a computed column that is NULL in the others. What
lists are sorted by is bytes, for which indexes have room.
"""

from sqlalchemy import Connection

BEGINS_WITH = "0008"

_TABLE_OPTIONS = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"
_TABLES = """
CREATE TABLE IF NOT EXISTS audit_events (
    id VARCHAR(64) NOT NULL, at BIGINT NOT NULL, event VARCHAR(64) NOT NULL, actor_kind LONGTEXT NOT NULL,
    actor_id VARCHAR(64), client_id LONGTEXT, session_id LONGTEXT, client_address LONGTEXT, request_id LONGTEXT,
    object_kind LONGTEXT NOT NULL, object_id VARCHAR(255), organization_id VARCHAR(64), result VARCHAR(64) NOT NULL,
    reason LONGTEXT, detail LONGTEXT NOT NULL, once VARCHAR(500), sequence BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (sequence),
    UNIQUE KEY uq_audit_events_id (id),
    UNIQUE KEY uq_audit_events_once (once),
    KEY ix_audit_events_actor_id_sequence (actor_id, sequence),
    KEY ix_audit_events_at (at),
    KEY ix_audit_events_event_sequence (event, sequence),
    KEY ix_audit_events_object_id_sequence (object_id, sequence),
    KEY ix_audit_events_organization_id_event_sequence (organization_id, event, sequence),
    KEY ix_audit_events_organization_id_sequence (organization_id, sequence),
    KEY ix_audit_events_refused (result, sequence),
    KEY ix_audit_events_refused_of_organization (organization_id, result, sequence)
);

CREATE TABLE IF NOT EXISTS domains (
    organization_id VARCHAR(64) NOT NULL, name VARCHAR(255) NOT NULL, challenge LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL, proof LONGTEXT, verified_at BIGINT,
    name_that_counts VARCHAR(255) AS (IF(proof IS NULL, NULL, name)) VIRTUAL,
    PRIMARY KEY (organization_id, name),
    UNIQUE KEY uq_domains_name (name_that_counts)
);

CREATE TABLE IF NOT EXISTS instance (
    organization_id LONGTEXT NOT NULL, project_id LONGTEXT NOT NULL, created_at BIGINT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_instance_one_row CHECK (id = 1)
);

CREATE TABLE IF NOT EXISTS organizations (
    id VARCHAR(64) NOT NULL, name LONGTEXT NOT NULL, primary_domain VARCHAR(255) NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, registration BOOLEAN NOT NULL,
    branded BOOLEAN NOT NULL DEFAULT FALSE,
    active BOOLEAN NOT NULL, version INTEGER NOT NULL, name_key VARBINARY(800) NOT NULL,
    search_text VARBINARY(2000) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_organizations_primary_domain (primary_domain),
    KEY ix_organizations_created_at_id (created_at, id),
    KEY ix_organizations_name_key_id (name_key, id),
    KEY ix_organizations_search_text_id_active (search_text, id, active)
);

CREATE TABLE IF NOT EXISTS outgoing_messages (
    id VARCHAR(64) NOT NULL, kind VARCHAR(64) NOT NULL, sealed LONGBLOB NOT NULL, created_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, attempts INTEGER NOT NULL,
    PRIMARY KEY (id),
    KEY ix_outgoing_messages_expires_at (expires_at),
    KEY ix_outgoing_messages_kind_next_at_id (kind, next_at, id)
);

CREATE TABLE IF NOT EXISTS signing_keys (
    id VARCHAR(64) NOT NULL, generation INTEGER NOT NULL, algorithm LONGTEXT NOT NULL, public_key LONGBLOB NOT NULL,
    sealed_private_key LONGBLOB NOT NULL, created_at BIGINT NOT NULL, active_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_signing_keys_generation (generation)
);

CREATE TABLE IF NOT EXISTS projects (
    id VARCHAR(64) NOT NULL, organization_id VARCHAR(64) NOT NULL, name LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, assert_roles BOOLEAN NOT NULL,
    check_roles BOOLEAN NOT NULL, active BOOLEAN NOT NULL, version INTEGER NOT NULL,
    name_key VARBINARY(800) NOT NULL, search_text VARBINARY(2000) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_projects_organization_id_name_key_id (organization_id, name_key, id),
    CONSTRAINT fk_projects_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS upstream_providers (
    id VARCHAR(64) NOT NULL, organization_id VARCHAR(64) NOT NULL, name LONGTEXT NOT NULL, kind LONGTEXT NOT NULL,
    client_id LONGTEXT NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, issuer LONGTEXT NOT NULL,
    authentication LONGTEXT NOT NULL, team_id LONGTEXT NOT NULL, key_id LONGTEXT NOT NULL, scopes LONGTEXT NOT NULL,
    claims LONGTEXT NOT NULL, create_accounts BOOLEAN NOT NULL, trust_email BOOLEAN NOT NULL,
    by_domain BOOLEAN NOT NULL, trust_methods BOOLEAN NOT NULL, sign_out_there BOOLEAN NOT NULL,
    everywhere BOOLEAN NOT NULL, secret LONGBLOB NOT NULL, secret_changed_at BIGINT, active BOOLEAN NOT NULL,
    version INTEGER NOT NULL, search_text VARBINARY(2000) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_upstream_providers_everywhere (created_at, id),
    KEY ix_upstream_providers_organization_id_created_at_id (organization_id, created_at, id),
    CONSTRAINT fk_upstream_providers_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS users (
    kind VARCHAR(64) NOT NULL, id VARCHAR(64) NOT NULL, organization_id VARCHAR(64) NOT NULL,
    user_name LONGTEXT NOT NULL, profile LONGTEXT, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL,
    registered BOOLEAN NOT NULL, named_at BIGINT, last_sign_in_at BIGINT, deletion_at BIGINT,
    active BOOLEAN NOT NULL, version INTEGER NOT NULL, display_name LONGTEXT NOT NULL,
    description LONGTEXT NOT NULL, access_token_type LONGTEXT NOT NULL, name_key VARBINARY(800) NOT NULL,
    display_key VARBINARY(800) NOT NULL, email_key VARBINARY(800) NOT NULL, search_text VARBINARY(2000) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_users_name_key_organization_id (name_key, organization_id),
    KEY ix_users_created (organization_id, created_at, id, kind, active),
    KEY ix_users_deletion_at (deletion_at, id),
    KEY ix_users_display (organization_id, display_key, id, kind, active),
    KEY ix_users_email (organization_id, email_key, id, kind, active),
    KEY ix_users_last_sign_in (organization_id, last_sign_in_at, id, kind, active),
    KEY ix_users_list (organization_id, name_key, id, kind, active),
    KEY ix_users_list_of_all (name_key, id, kind, active),
    KEY ix_users_search (organization_id, search_text, id, kind, active),
    CONSTRAINT fk_users_organization_id FOREIGN KEY (organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS applications (
    id VARCHAR(64) NOT NULL, project_id VARCHAR(64) NOT NULL, name LONGTEXT NOT NULL, type LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, authentication_method LONGTEXT NOT NULL,
    response_types LONGTEXT NOT NULL, grant_types LONGTEXT NOT NULL, redirect_uris LONGTEXT NOT NULL,
    post_logout_redirect_uris LONGTEXT NOT NULL, access_token_type LONGTEXT NOT NULL, access_token_lifetime BIGINT,
    id_token_lifetime BIGINT, id_token_userinfo_assertion BOOLEAN NOT NULL,
    access_token_userinfo_assertion BOOLEAN NOT NULL DEFAULT FALSE, assert_roles_in_access_token BOOLEAN NOT NULL,
    assert_roles_in_id_token BOOLEAN NOT NULL, consent LONGTEXT NOT NULL, may_manage BOOLEAN NOT NULL,
    development BOOLEAN NOT NULL, branded BOOLEAN NOT NULL DEFAULT FALSE, active BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    name_key VARBINARY(800) NOT NULL, search_text VARBINARY(2000) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_applications_project_id_name_key_id (project_id, name_key, id),
    CONSTRAINT fk_applications_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS attempts (
    `key` VARCHAR(255) NOT NULL, number INTEGER NOT NULL, next_at BIGINT NOT NULL, counted_at BIGINT NOT NULL,
    user_id VARCHAR(64),
    PRIMARY KEY (`key`),
    KEY ix_attempts_counted_at (counted_at),
    KEY ix_attempts_user_id (user_id),
    CONSTRAINT fk_attempts_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS authorization_requests (
    id VARCHAR(64) NOT NULL, digest LONGBLOB NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    parameters LONGTEXT NOT NULL, target LONGTEXT, login_name LONGTEXT NOT NULL, ui_locales LONGTEXT NOT NULL,
    user_id VARCHAR(64), authenticated_at BIGINT, proofs LONGTEXT NOT NULL DEFAULT '[]', session_id LONGTEXT,
    done LONGTEXT NOT NULL, finished_at BIGINT, version INTEGER NOT NULL,
    PRIMARY KEY (id),
    KEY ix_authorization_requests_expires_at (expires_at),
    KEY ix_authorization_requests_user_id (user_id),
    CONSTRAINT fk_authorization_requests_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS passwords (
    user_id VARCHAR(64) NOT NULL, hash LONGTEXT NOT NULL, changed_at BIGINT NOT NULL, must_change BOOLEAN NOT NULL,
    PRIMARY KEY (user_id),
    CONSTRAINT fk_passwords_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS personal_access_tokens (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, name LONGTEXT NOT NULL, scope LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, last_used_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_personal_access_tokens_expires_at_id (expires_at, id),
    KEY ix_personal_access_tokens_user_id_created_at_id (user_id, created_at, id),
    CONSTRAINT fk_personal_access_tokens_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS project_grants (
    id VARCHAR(64) NOT NULL, project_id VARCHAR(64) NOT NULL, organization_id VARCHAR(64) NOT NULL,
    roles LONGTEXT NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, accepted BOOLEAN NOT NULL,
    active BOOLEAN NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_project_grants_project_id_organization_id (project_id, organization_id),
    KEY ix_project_grants_organization_id_created_at_id (organization_id, created_at, id),
    KEY ix_project_grants_project_id_created_at_id (project_id, created_at, id),
    CONSTRAINT fk_project_grants_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_project_grants_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS project_roles (
    project_id VARCHAR(64) NOT NULL, `key` VARCHAR(255) NOT NULL, display_name LONGTEXT NOT NULL,
    `group` LONGTEXT NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (project_id, `key`),
    CONSTRAINT fk_project_roles_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS service_user_keys (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, public_key LONGBLOB NOT NULL, created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, last_used_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_service_user_keys_expires_at_id (expires_at, id),
    KEY ix_service_user_keys_user_id_created_at_id (user_id, created_at, id),
    CONSTRAINT fk_service_user_keys_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS service_user_secrets (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, digest LONGBLOB NOT NULL, created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_service_user_secrets_user_id_created_at_id (user_id, created_at, id),
    CONSTRAINT fk_service_user_secrets_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS sessions (
    id VARCHAR(64) NOT NULL, digest VARBINARY(255) NOT NULL, user_id VARCHAR(64) NOT NULL,
    started_at BIGINT NOT NULL, authenticated_at BIGINT NOT NULL, selected_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, proofs LONGTEXT NOT NULL DEFAULT '[]',
    user_agent LONGTEXT NOT NULL,
    client_address LONGTEXT NOT NULL, ended_at BIGINT,
    PRIMARY KEY (id),
    UNIQUE KEY uq_sessions_digest (digest),
    KEY ix_sessions_ends_at (ends_at),
    KEY ix_sessions_user_id (user_id),
    CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS application_origins (
    application_id VARCHAR(64) NOT NULL, origin VARCHAR(300) NOT NULL,
    PRIMARY KEY (application_id, origin),
    KEY ix_application_origins_origin (origin),
    CONSTRAINT fk_application_origins_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS client_secrets (
    id VARCHAR(64) NOT NULL, digest LONGBLOB NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT,
    application_id VARCHAR(64) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_client_secrets_application_id_created_at_id (application_id, created_at, id),
    CONSTRAINT fk_client_secrets_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS managers (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, level VARCHAR(64) NOT NULL,
    resource_id VARCHAR(255) NOT NULL, roles LONGTEXT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, organization_id LONGTEXT, version INTEGER NOT NULL, of_organization VARCHAR(64),
    of_project VARCHAR(64), of_project_grant VARCHAR(64),
    PRIMARY KEY (id),
    UNIQUE KEY uq_managers_user_id_level_resource_id (user_id, level, resource_id),
    KEY ix_managers_level_resource_id_created_at_id (level, resource_id, created_at, id),
    KEY ix_managers_of_organization (of_organization),
    KEY ix_managers_of_project (of_project),
    KEY ix_managers_of_project_grant (of_project_grant),
    CONSTRAINT fk_managers_of_organization FOREIGN KEY (of_organization)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_of_project FOREIGN KEY (of_project) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_of_project_grant FOREIGN KEY (of_project_grant)
        REFERENCES project_grants (id) ON DELETE CASCADE,
    CONSTRAINT fk_managers_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS records (
    plugin VARCHAR(64) NOT NULL, kind VARCHAR(64) NOT NULL, `key` VARBINARY(255) NOT NULL,
    created_at BIGINT NOT NULL, user_id VARCHAR(64), application_id VARCHAR(64), value LONGTEXT NOT NULL,
    sealed LONGBLOB NOT NULL, expires_at BIGINT, taken_at BIGINT, version INTEGER NOT NULL,
    PRIMARY KEY (plugin, kind, `key`),
    KEY ix_records_application_id (application_id),
    KEY ix_records_expires_at (expires_at),
    KEY ix_records_user_id (user_id),
    CONSTRAINT fk_records_application_id FOREIGN KEY (application_id) REFERENCES applications (id) ON DELETE CASCADE,
    CONSTRAINT fk_records_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS token_families (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, client_id VARCHAR(64) NOT NULL, scope LONGTEXT NOT NULL,
    started_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, session_id LONGTEXT, offline BOOLEAN NOT NULL,
    methods LONGTEXT NOT NULL, acr LONGTEXT NOT NULL DEFAULT '', authenticated_at BIGINT,
    userinfo_claims LONGTEXT NOT NULL,
    id_token_claims LONGTEXT NOT NULL, revoked_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_token_families_client_id (client_id),
    KEY ix_token_families_ends_at (ends_at),
    KEY ix_token_families_user_id (user_id),
    CONSTRAINT fk_token_families_client_id FOREIGN KEY (client_id) REFERENCES applications (id) ON DELETE CASCADE,
    CONSTRAINT fk_token_families_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS user_grants (
    id VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, organization_id VARCHAR(64) NOT NULL,
    project_id VARCHAR(64) NOT NULL, roles LONGTEXT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, project_grant_id VARCHAR(64), active BOOLEAN NOT NULL, version INTEGER NOT NULL,
    project_itself VARCHAR(64) AS (IF(project_grant_id IS NULL, project_id, NULL)) VIRTUAL,
    PRIMARY KEY (id),
    KEY ix_user_grants_organization_id (organization_id),
    KEY ix_user_grants_project_grant_id_created_at_id (project_grant_id, created_at, id),
    KEY ix_user_grants_project_id_created_at_id (project_id, created_at, id),
    KEY ix_user_grants_user_id_created_at_id (user_id, created_at, id),
    UNIQUE KEY uq_user_grants_derived (user_id, project_id, project_grant_id),
    UNIQUE KEY uq_user_grants_direct (user_id, project_itself),
    CONSTRAINT fk_user_grants_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_project_grant_id FOREIGN KEY (project_grant_id)
        REFERENCES project_grants (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_user_grants_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS access_tokens (
    id LONGTEXT NOT NULL, digest VARBINARY(255) NOT NULL, format LONGTEXT NOT NULL, subject LONGTEXT NOT NULL,
    client_id LONGTEXT NOT NULL, scope LONGTEXT NOT NULL, audience LONGTEXT NOT NULL, issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, user_id VARCHAR(64), application_id VARCHAR(64), key_id VARCHAR(64),
    secret_id VARCHAR(64), personal_access_token_id VARCHAR(64), family_id VARCHAR(64), session_id LONGTEXT,
    revoked_at BIGINT, actors LONGTEXT NOT NULL,
    PRIMARY KEY (digest),
    KEY ix_access_tokens_application_id (application_id),
    KEY ix_access_tokens_expires_at (expires_at),
    KEY ix_access_tokens_family_id (family_id),
    KEY ix_access_tokens_key_id (key_id),
    KEY ix_access_tokens_personal_access_token_id (personal_access_token_id),
    KEY ix_access_tokens_secret_id (secret_id),
    KEY ix_access_tokens_user_id (user_id),
    CONSTRAINT fk_access_tokens_application_id FOREIGN KEY (application_id)
        REFERENCES applications (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_family_id FOREIGN KEY (family_id) REFERENCES token_families (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_key_id FOREIGN KEY (key_id) REFERENCES service_user_keys (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_personal_access_token_id FOREIGN KEY (personal_access_token_id)
        REFERENCES personal_access_tokens (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_secret_id FOREIGN KEY (secret_id)
        REFERENCES service_user_secrets (id) ON DELETE CASCADE,
    CONSTRAINT fk_access_tokens_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS authorization_codes (
    digest VARBINARY(255) NOT NULL, family_id VARCHAR(64) NOT NULL, client_id LONGTEXT NOT NULL,
    user_id LONGTEXT NOT NULL, redirect_uri LONGTEXT NOT NULL, scope LONGTEXT NOT NULL, issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, authenticated_at BIGINT NOT NULL, session_id LONGTEXT, nonce LONGTEXT,
    code_challenge LONGTEXT, redeemed_at BIGINT,
    PRIMARY KEY (digest),
    KEY ix_authorization_codes_expires_at (expires_at),
    KEY ix_authorization_codes_family_id (family_id),
    CONSTRAINT fk_authorization_codes_family_id FOREIGN KEY (family_id)
        REFERENCES token_families (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS refresh_tokens (
    id LONGTEXT NOT NULL, digest VARBINARY(255) NOT NULL, family_id VARCHAR(64) NOT NULL, user_id LONGTEXT NOT NULL,
    client_id LONGTEXT NOT NULL, scope LONGTEXT NOT NULL, issued_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL, authenticated_at BIGINT NOT NULL, session_id LONGTEXT, nonce LONGTEXT,
    predecessor_id LONGTEXT, rotated_at BIGINT, revoked_at BIGINT,
    PRIMARY KEY (digest),
    KEY ix_refresh_tokens_family_id_issued_at (family_id, issued_at),
    CONSTRAINT fk_refresh_tokens_family_id FOREIGN KEY (family_id) REFERENCES token_families (id) ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS audit_floor (
    id INTEGER NOT NULL, kept_since BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_audit_floor_one_row CHECK (id = 1)
);

CREATE TABLE IF NOT EXISTS audit_gate (
    id INTEGER NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, oldest VARCHAR(32),
    PRIMARY KEY (version_num)
)
"""
_REFUSE = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit events are never changed'"
_GUARDS = (
    "INSERT INTO audit_gate (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 1",
    f"""
    CREATE OR REPLACE TRIGGER audit_events_are_never_updated BEFORE UPDATE ON audit_events
    FOR EACH ROW {_REFUSE}
    """,
    f"""
    CREATE OR REPLACE TRIGGER audit_events_are_kept BEFORE DELETE ON audit_events
    FOR EACH ROW BEGIN
        IF OLD.at >= coalesce((SELECT kept_since FROM audit_floor), 0) THEN {_REFUSE}; END IF;
    END
    """,  # noqa: S608 - words of our own
)


def begin(connection: Connection) -> None:
    """Make tables, indexes and the guard of the audit trail; what is there already stays."""
    for table in _TABLES.split(";\n"):
        connection.exec_driver_sql(f"{table} {_TABLE_OPTIONS}")
    for statement in _GUARDS:
        connection.exec_driver_sql(statement)
