"""What goes along when a row is removed."""

from identity.domain.permissions import Level, ResourceKey
from identity.storage.memory.tables import Tables


def remove_organization(tables: Tables, organization_id: str) -> None:
    """Delete the organization with users, projects, grants held, managers, keys, tokens and domains it waits for."""
    tables.organizations.delete(organization_id)
    tables.domains.delete_where(lambda domain: domain.organization_id == organization_id and not domain.counts)
    for user in tables.users:
        if user.organization_id == organization_id:
            remove_user(tables, user.id)
    for project in tables.projects:
        if project.organization_id == organization_id:
            remove_project(tables, project.id)
    for grant in tables.project_grants:
        if grant.organization_id == organization_id:
            remove_project_grant(tables, grant.id)
    tables.user_grants.delete_where(lambda grant: grant.organization_id == organization_id)
    _remove_managers(tables, ResourceKey(Level.ORGANIZATION, organization_id))


def remove_project(tables: Tables, project_id: str) -> None:
    """Delete the project with its roles, applications, grants, user grants, managers and their tokens."""
    tables.projects.delete(project_id)
    tables.project_roles.delete_where(lambda role: role.project_id == project_id)
    for application in tables.applications:
        if application.project_id == project_id:
            remove_application(tables, application.id)
    for grant in tables.project_grants:
        if grant.project_id == project_id:
            remove_project_grant(tables, grant.id)
    tables.user_grants.delete_where(lambda grant: grant.project_id == project_id)
    _remove_managers(tables, ResourceKey(Level.PROJECT, project_id))


def remove_project_grant(tables: Tables, grant_id: str) -> None:
    """Delete the project grant with the user grants and managers that derive from it."""
    tables.project_grants.delete(grant_id)
    tables.user_grants.delete_where(lambda grant: grant.project_grant_id == grant_id)
    _remove_managers(tables, ResourceKey(Level.PROJECT_GRANT, grant_id))


def remove_application(tables: Tables, application_id: str) -> None:
    """Delete the application with its secrets, records, codes and tokens."""
    tables.applications.delete(application_id)
    for key in tuple(tables.client_secrets.rows):
        if key[0] == application_id:
            tables.client_secrets.delete(key)
    for family in tables.families:
        if family.client_id == application_id:
            remove_family(tables, family.id)
    tables.records.delete_where(lambda record: record.application_id == application_id)
    tables.access_tokens.delete_where(lambda token: token.application_id == application_id)


def remove_user(tables: Tables, user_id: str) -> None:
    """Delete the user with keys, secrets, password, grants, manager roles, sessions, attempts, records, codes and
    tokens."""
    tables.users.delete(user_id)
    tables.service_user_keys.delete_where(lambda key: key.user_id == user_id)
    tables.service_user_secrets.delete_where(lambda secret: secret.user_id == user_id)
    tables.personal_access_tokens.delete_where(lambda token: token.user_id == user_id)
    tables.passwords.delete_where(lambda password: password.user_id == user_id)
    tables.user_grants.delete_where(lambda grant: grant.user_id == user_id)
    tables.managers.delete_where(lambda manager: manager.user_id == user_id)
    tables.sessions.delete_where(lambda session: session.user_id == user_id)
    tables.attempts.delete_where(lambda count: count.user_id == user_id)
    tables.records.delete_where(lambda record: record.user_id == user_id)
    tables.authorization_requests.delete_where(lambda pending: pending.user_id == user_id)
    for family in tables.families:
        if family.user_id == user_id:
            remove_family(tables, family.id)
    tables.access_tokens.delete_where(lambda token: token.user_id == user_id)


def remove_family(tables: Tables, family_id: str) -> None:
    """Delete the family with its codes and tokens."""
    tables.families.delete(family_id)
    tables.authorization_codes.delete_where(lambda code: code.family_id == family_id)
    tables.access_tokens.delete_where(lambda token: token.family_id == family_id)
    tables.refresh_tokens.delete_where(lambda token: token.family_id == family_id)


def _remove_managers(tables: Tables, resource: ResourceKey) -> None:
    tables.managers.delete_where(lambda manager: manager.resource == resource)
