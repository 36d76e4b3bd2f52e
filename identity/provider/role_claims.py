"""Role claims: a user's project roles, as determined for the audience of a token.

An application also sees only what its organization may see: of a project received by a grant, only the granted
roles.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from identity.domain.applications import ApplicationClient
from identity.domain.expirations import earliest
from identity.domain.projects import Project, UserGrant
from identity.domain.users import Subject
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, OAuthError
from identity.provider.scope import GrantedScopes
from identity.services.agent_rules import list_effective_grants
from identity.storage.backend import Storage

#: The role keys to disclose of a project; None for all.
_RoleKeys = frozenset[str] | None


@dataclass(frozen=True, slots=True)
class RoleClaims:
    """Claims with a user's roles; ``ends_at`` is when the first of these roles ends, if any does."""

    values: dict[str, Any] = field(default_factory=dict)
    ends_at: datetime | None = None


class RoleScope:
    """The scopes for all roles and for single ones."""

    #: Suffix after the namespace in the scope for all roles, and in scopes for single roles.
    ALL_SUFFIX = ":org:projects:roles"
    ONE_INFIX = ":org:project:role:"

    @staticmethod
    def is_valid(scope_name: str, namespaces: tuple[str, ...]) -> bool:
        """True for the scope for all roles, and for those for a single role."""
        namespace, _, key = scope_name.partition(RoleScope.ONE_INFIX)
        return (bool(key) and namespace in namespaces) or any(
            scope_name == namespace + RoleScope.ALL_SUFFIX for namespace in namespaces
        )


def token_role_claims(
    subject: Subject | None, client: ApplicationClient | None, granted: GrantedScopes, context: Context
) -> RoleClaims:
    """The user's roles in every project of the audience, each role with {organization id: primary domain}. One claim
    per project, and one with a fixed name for the application's own project (for all projects together without an
    application). With scopes for single roles and none for all, only those roles."""
    requested = _requested_roles(granted.values, context.settings.urn_namespaces) or None
    return _claims(subject, client, _projects(client, granted.audience, context), granted, lambda _: requested, context)


def response_role_claims(
    subject: Subject | None, client: ApplicationClient | None, granted: GrantedScopes, context: Context
) -> dict[str, Any]:
    """Role claims for userinfo and introspection: the roles that scopes request in every project of the audience, and
    all roles in projects that assert roles. The service's own project does not assert them: its roles are manager
    roles."""
    projects = _projects(client, granted.audience, context)
    requested = _requested_roles(granted.values, context.settings.urn_namespaces)
    if requested is not None and not requested:
        # No query is needed for a token with only its application's project or the service's own.
        if client is not None and not client.project.assert_roles:
            projects -= {client.project.id}
        instance = context.services.find_instance()
        if instance is not None and (client is None or client.project.id != instance.project_id):
            projects -= {instance.project_id}
    return _claims(
        subject, client, projects, granted, lambda project: None if project.assert_roles else requested, context
    ).values


def _claims(
    subject: Subject | None,
    client: ApplicationClient | None,
    projects: frozenset[str],
    granted: GrantedScopes,
    wanted_of: Callable[[Project], _RoleKeys],
    context: Context,
) -> RoleClaims:
    if subject is None or not projects:
        return RoleClaims()
    with context.services.read_session() as storage:
        grants = list_effective_grants(storage, subject.user, projects, context.now)
        if not grants:
            return RoleClaims()
        projects_granted = _active(grants, client, storage)
        disclosures = {
            project.id: _disclosure(wanted_of(project), project, client, storage, context.now)
            for project in projects_granted
        }
        domains = _domains(grants, subject, storage)
    by_project: dict[str, dict[str, dict[str, str]]] = {}
    ends: list[datetime | None] = []
    for grant in grants:
        disclosure = disclosures.get(grant.project_id, _NOTHING)
        for role in sorted(disclosure.limit(grant.roles)):
            ends += (grant.until, disclosure.until)
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
    return RoleClaims(claims, earliest(ends))


@dataclass(frozen=True, slots=True)
class _Disclosure:
    """The role keys of a project to disclose, None for all, and when the right to see them ends."""

    keys: _RoleKeys
    until: datetime | None = None

    def limit(self, roles: frozenset[str]) -> frozenset[str]:
        return roles if self.keys is None else roles & self.keys


_NOTHING = _Disclosure(frozenset())


def _disclosure(
    requested: _RoleKeys, project: Project, client: ApplicationClient | None, storage: Storage, now: datetime
) -> _Disclosure:
    """The requested roles that the application's organization may see: all if it owns the project. A dynamic client
    sees those of projects that are open to such clients."""
    if client is not None and client.application.is_dynamic:
        return _Disclosure(requested) if project.open_to_dynamic_clients else _NOTHING
    if client is None or client.organization.id == project.organization_id:
        return _Disclosure(requested)
    project_grant = storage.project_grants.find_for_organization(project.id, client.organization.id)
    if project_grant is None or not project_grant.is_effective(now):
        return _NOTHING
    return _Disclosure(
        project_grant.roles if requested is None else requested & project_grant.roles, project_grant.until
    )


def refuse_without_role(
    subject: Subject | None,
    client: ApplicationClient | None,
    context: Context,
    *,
    error: type[OAuthError] = AccessDenied,
) -> None:
    """Raise the error if the application's project admits only users with a role in it and this user has none."""
    if client is None or subject is None or not client.project.check_roles:
        return
    with context.services.read_session() as storage:
        grants = list_effective_grants(storage, subject.user, frozenset({client.project.id}), context.now)
    if not any(grant.roles for grant in grants):
        raise error("the user has no role in the project of this application")


def _projects(client: ApplicationClient | None, audience: Iterable[str], context: Context) -> frozenset[str]:
    return frozenset(audience) - {context.issuer} - ({client.id} if client is not None else set())


@lru_cache(256)
def _requested_roles(scopes: tuple[str, ...], namespaces: tuple[str, ...]) -> _RoleKeys:
    """The roles that scopes request: none, single ones, or all (None)."""
    found = [name for name in scopes if RoleScope.is_valid(name, namespaces)]
    if any(name.endswith(RoleScope.ALL_SUFFIX) and RoleScope.ONE_INFIX not in name for name in found):
        return None
    return frozenset(name.partition(RoleScope.ONE_INFIX)[2] for name in found)


def _namespace(scopes: Iterable[str], context: Context) -> str:
    """The namespace used by the request; ours by default."""
    namespaces = context.settings.urn_namespaces
    return next((ours for name in scopes for ours in namespaces if name.startswith(f"{ours}:")), namespaces[0])


def _active(grants: Iterable[UserGrant], client: ApplicationClient | None, storage: Storage) -> list[Project]:
    """Active projects of the grants; the application's is already loaded."""
    known = {client.project.id: client.project} if client is not None else {}
    projects = (known.get(id_) or storage.projects.find(id_) for id_ in {grant.project_id for grant in grants})
    return [project for project in projects if project is not None and project.active]


def _domains(grants: Iterable[UserGrant], subject: Subject, storage: Storage) -> Mapping[str, str]:
    """Primary domains of the granting organizations by id; the user's own is already loaded."""
    domains = {subject.organization.id: subject.organization.primary_domain}
    for id_ in {grant.organization_id for grant in grants} - domains.keys():
        organization = storage.organizations.find(id_)
        if organization is not None:
            domains[id_] = organization.primary_domain
    return domains
