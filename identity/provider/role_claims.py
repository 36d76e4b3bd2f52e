"""Role claims: the project roles that a user was given, as decided for the audience of a token.

What an application is told is within its own right too: of a project that its organization holds by a grant, it is told
of the granted roles alone.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from identity.domain.applications import ApplicationClient
from identity.domain.projects import Project, UserGrant
from identity.domain.users import Subject
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, OAuthError
from identity.provider.scope import GrantedScopes
from identity.storage.backend import Storage

#: What follows the namespace in a scope that asks for all roles, and in one that asks for a single role.
ALL_ROLES_SUFFIX = ":org:projects:roles"
ONE_ROLE_INFIX = ":org:project:role:"

#: The role keys that are told of a project; None for all.
_RoleKeys = frozenset[str] | None


def token_role_claims(
    subject: Subject | None, client: ApplicationClient | None, granted: GrantedScopes, context: Context
) -> dict[str, Any]:
    """The user's roles in every project of the audience, each role with {organization id: primary domain}.

    One claim per project, and one of a fixed name for the application's own project (for all projects together where no
    application is concerned). With scopes for single roles and none for all, those roles alone.
    """
    requested = _requested_roles(granted.values, context.settings.urn_namespaces) or None
    return _claims(subject, client, _projects(client, granted.audience, context), granted, lambda _: requested, context)


def response_role_claims(
    subject: Subject | None, client: ApplicationClient | None, granted: GrantedScopes, context: Context
) -> dict[str, Any]:
    """Role claims for userinfo and introspection: what role scopes ask for, in every project of the audience, and all
    roles in those projects that assert roles.

    The service's own project does not assert them by itself: what counts there are manager roles.
    """
    projects = _projects(client, granted.audience, context)
    requested = _requested_roles(granted.values, context.settings.urn_namespaces)
    if requested is not None and not requested:
        # Nothing is looked up for a token with its own application's project alone, or the service's own.
        if client is not None and not client.project.assert_roles:
            projects -= {client.project.id}
        instance = context.services.find_instance()
        if instance is not None and (client is None or client.project.id != instance.project_id):
            projects -= {instance.project_id}
    return _claims(
        subject, client, projects, granted, lambda project: None if project.assert_roles else requested, context
    )


def _claims(
    subject: Subject | None,
    client: ApplicationClient | None,
    projects: frozenset[str],
    granted: GrantedScopes,
    wanted_of: Callable[[Project], _RoleKeys],
    context: Context,
) -> dict[str, Any]:
    if subject is None or not projects:
        return {}
    with context.services.read_session() as storage:
        grants = storage.user_grants.list_effective(subject.user.id, projects)
        if not grants:
            return {}
        projects_granted = _active(grants, client, storage)
        allowed_keys = {
            project.id: _within(wanted_of(project), project, client, storage) for project in projects_granted
        }
        domains = _domains(grants, subject, storage)
    by_project: dict[str, dict[str, dict[str, str]]] = {}
    for grant in grants:
        for role in sorted(_disclosed_roles(grant, allowed_keys)):
            holders = by_project.setdefault(grant.project_id, {}).setdefault(role, {})
            holders[grant.organization_id] = domains.get(grant.organization_id, "")
    namespace = _namespace(granted.values, context)
    claims: dict[str, Any] = {f"{namespace}:org:project:{id_}:roles": roles for id_, roles in by_project.items()}
    fixed_name_roles = by_project.values() if client is None else [by_project.get(client.project.id, {})]
    together: dict[str, dict[str, str]] = {}
    for roles in fixed_name_roles:
        for role, holders in roles.items():
            together.setdefault(role, {}).update(holders)
    if together:
        claims[f"{namespace}:org:project:roles"] = together
    return claims


def _within(requested: _RoleKeys, project: Project, client: ApplicationClient | None, storage: Storage) -> _RoleKeys:
    """Of the wanted roles those that the application's organization may know: all if it owns the project."""
    if client is None or client.organization.id == project.organization_id:
        return requested
    project_grant = storage.project_grants.find_for_organization(project.id, client.organization.id)
    allowed = project_grant.roles if project_grant is not None and project_grant.active else frozenset()
    return allowed if requested is None else requested & allowed


def _disclosed_roles(grant: UserGrant, allowed_keys: Mapping[str, _RoleKeys]) -> frozenset[str]:
    keys = allowed_keys.get(grant.project_id, frozenset())
    return grant.roles if keys is None else grant.roles & keys


def is_role_scope(scope_name: str, namespaces: tuple[str, ...]) -> bool:
    """True for the scope that asks for all roles, and for those that ask for one."""
    namespace, _, key = scope_name.partition(ONE_ROLE_INFIX)
    return (bool(key) and namespace in namespaces) or any(
        scope_name == namespace + ALL_ROLES_SUFFIX for namespace in namespaces
    )


def refuse_without_role(
    subject: Subject | None,
    client: ApplicationClient | None,
    context: Context,
    *,
    error: type[OAuthError] = AccessDenied,
) -> None:
    """Raise the error if the application's project admits only users with a role in it, and this one has none."""
    if client is None or subject is None or not client.project.check_roles:
        return
    with context.services.read_session() as storage:
        grants = storage.user_grants.list_effective(subject.user.id, frozenset({client.project.id}))
    if not any(grant.roles for grant in grants):
        raise error("the user has no role in the project of this application")


def _projects(client: ApplicationClient | None, audience: Iterable[str], context: Context) -> frozenset[str]:
    return frozenset(audience) - {context.issuer} - ({client.id} if client is not None else set())


@lru_cache(256)
def _requested_roles(scopes: tuple[str, ...], namespaces: tuple[str, ...]) -> _RoleKeys:
    """The roles that scopes ask for: none, single ones, or (None) all."""
    found = [scope_name for scope_name in scopes if is_role_scope(scope_name, namespaces)]
    if any(scope_name.endswith(ALL_ROLES_SUFFIX) and ONE_ROLE_INFIX not in scope_name for scope_name in found):
        return None
    return frozenset(scope_name.partition(ONE_ROLE_INFIX)[2] for scope_name in found)


def _namespace(scopes: Iterable[str], context: Context) -> str:
    """The namespace that the request used; ours if it used none."""
    namespaces = context.settings.urn_namespaces
    return next(
        (ours for scope_name in scopes for ours in namespaces if scope_name.startswith(f"{ours}:")), namespaces[0]
    )


def _active(grants: Iterable[UserGrant], client: ApplicationClient | None, storage: Storage) -> list[Project]:
    """The projects of the grants, deactivated ones left out; that of the application is known already."""
    known = {client.project.id: client.project} if client is not None else {}
    projects = (known.get(id_) or storage.projects.find(id_) for id_ in {grant.project_id for grant in grants})
    return [project for project in projects if project is not None and project.active]


def _domains(grants: Iterable[UserGrant], subject: Subject, storage: Storage) -> Mapping[str, str]:
    """The primary domains of the organizations that gave the grants, by id; the user's own is known already."""
    domains = {subject.organization.id: subject.organization.primary_domain}
    for id_ in {grant.organization_id for grant in grants} - domains.keys():
        organization = storage.organizations.find(id_)
        if organization is not None:
            domains[id_] = organization.primary_domain
    return domains
