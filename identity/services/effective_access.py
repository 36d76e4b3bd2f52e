"""Effective access: what a user can do, and through what."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from identity.domain.effective_access import AccessEntry, AccessKind, AccessProblem, HeldRole
from identity.domain.expirations import earliest
from identity.domain.groups import Group, GroupMember
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, ResourceKey
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import Agent, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.agent_rules import list_effective_grants
from identity.services.base import Service
from identity.storage.paging import PageRequest, iterate_rows

Memberships = tuple[tuple[Group, GroupMember], ...]


@dataclass(eq=False, repr=False)
class EffectiveAccessService(Service):
    """Reads what ``list_effective`` of the stores reads at each use, but also what has no effect, with the reason."""

    _access: AccessControl

    def list_entries(
        self, subject: Subject, limit: int | None = None, *, principal: Principal
    ) -> tuple[AccessEntry, ...]:
        """The manager roles and the user grants, at most ``limit``, of the user that the caller may see, newest first
        of each, also those through groups. In the user's organization, project roles need ``user_grant.read``, and
        roles through groups ``group.read``."""
        home = Resource.of_organization(subject.organization.id)
        reads_groups = self._access.is_permitted(principal, "group.read", home)
        memberships = self._storage.groups.list_of_user(subject.user.id) if reads_groups else ()
        managers = self._manager_entries(subject, memberships, principal)
        grants: Iterable[AccessEntry] = ()
        if self._access.is_permitted(principal, "user_grant.read", home):
            grants = self._grant_entries(subject, memberships, limit, principal)
        return tuple(self._limit(subject, [*managers, *grants]))

    def _limit(self, subject: Subject, entries: Sequence[AccessEntry]) -> Iterable[AccessEntry]:
        """The entries; of an agent with the roles that its owner does not have withheld."""
        if not isinstance(subject.user, Agent):
            return entries
        project_ids = frozenset(entry.resource.id for entry in entries if entry.kind is AccessKind.PROJECT_ROLES)
        grants = list_effective_grants(self._storage, subject.user, project_ids, self._now)
        counting = {item.id: item.roles for item in self._access.load_principal(subject).manager_entries}
        counting |= {item.id: item.roles for item in grants}
        return [_limit_entry(entry, counting.get(entry.id, frozenset())) for entry in entries]

    def _manager_entries(
        self, subject: Subject, memberships: Memberships, principal: Principal
    ) -> Iterator[AccessEntry]:
        stored, groups = [*self._storage.managers.list_for_user(subject.user.id)], dict[str, Group]()
        for group, member in memberships:
            for row in iterate_rows(partial(self._storage.group_managers.page, group.id)):
                groups[row.id] = group
                owner_id = self._access.get_resource(row.resource).organization_id or ""
                stored.append(row.for_member(member, owner_id))
        managers = [
            manager
            for manager in self._access.filter_visible(principal, stored)
            if manager.organization_id is None or self._can_see(manager, principal)
        ]
        names = _ResourceNames(self, {manager.resource for manager in managers})
        for manager in sorted(managers, key=lambda manager: manager.created_at, reverse=True):
            named = names.find(manager.resource)
            if named is None:
                continue
            grant = names.grants.get(manager.resource.id)
            yield AccessEntry(
                kind=AccessKind.MANAGER_ROLES,
                id=manager.id,
                resource=manager.resource,
                resource_name=named[0],
                owner_id=None if named[1] is None else named[1].id,
                owner_name="" if named[1] is None else named[1].name,
                roles=tuple(self._manager_role(name) for name in sorted(manager.roles)),
                group=groups.get(manager.id),
                until=earliest((manager.until, None if grant is None else grant.until)),
                created_at=manager.created_at,
                problem=_manager_problem(subject, manager, grant, groups.get(manager.id), self._now),
            )

    def _can_see(self, manager: Manager, principal: Principal) -> bool:
        """Managers of a project grant are visible with the grant, others with their organization."""
        if manager.resource.level is ManagerLevel.PROJECT_GRANT:
            return self._access.can_see_resource(principal, self._access.get_resource(manager.resource))
        return self._access.can_see_organization(principal, manager.organization_id)

    def _manager_role(self, name: str) -> HeldRole:
        role = self._access.find_role(name)
        return HeldRole(name, "" if role is None else role.label)

    def _grant_entries(
        self, subject: Subject, memberships: Memberships, limit: int | None, principal: Principal
    ) -> Iterator[AccessEntry]:
        stored = partial(self._storage.user_grants.page, "user_id", subject.user.id)
        rows = iterate_rows(stored) if limit is None else stored(PageRequest(limit=limit)).items[:limit]
        found, groups = [*rows], dict[str, Group]()
        for group, member in memberships:
            for row in iterate_rows(partial(self._storage.group_grants.page, group.id)):
                groups[row.id] = group
                found.append(row.for_member(member))
        user_grants = tuple(self._access.filter_visible(principal, found))
        project_ids = {grant.project_id for grant in user_grants}
        names = _ResourceNames(
            self,
            {ResourceKey(ManagerLevel.PROJECT, project_id) for project_id in project_ids},
            {grant.project_grant_id for grant in user_grants if grant.project_grant_id is not None},
        )
        roles = {project_id: self._role_names(project_id) for project_id in project_ids}
        for user_grant in user_grants:
            project, source = names.projects.get(user_grant.project_id), None
            if project is None or project.organization_id not in names.organizations:
                continue
            if user_grant.project_grant_id is not None:
                source = names.grants.get(user_grant.project_grant_id)
                if source is None:
                    continue
            owner = names.organizations[project.organization_id]
            effective = user_grant.roles if source is None else user_grant.roles & source.roles
            yield AccessEntry(
                kind=AccessKind.PROJECT_ROLES,
                id=user_grant.id,
                resource=ResourceKey(ManagerLevel.PROJECT, project.id),
                resource_name=project.name,
                owner_id=owner.id,
                owner_name=owner.name,
                roles=tuple(HeldRole(key, roles[project.id].get(key, "")) for key in sorted(effective)),
                withheld_roles=tuple(sorted(user_grant.roles - effective)),
                project_grant_id=user_grant.project_grant_id,
                group=groups.get(user_grant.id),
                until=earliest((user_grant.until, None if source is None else source.until)),
                created_at=user_grant.created_at,
                problem=_grant_problem(
                    subject, user_grant, source, project, owner, groups.get(user_grant.id), self._now
                ),
            )

    def _role_names(self, project_id: str) -> Mapping[str, str]:
        return {role.key: role.display_name for role in self._storage.projects.list_roles(project_id)}


def _limit_entry(entry: AccessEntry, keys: frozenset[str]) -> AccessEntry:
    if entry.problem is not None:
        return entry
    roles = tuple(role for role in entry.roles if role.key in keys)
    withheld = tuple(sorted({*entry.withheld_roles, *(role.key for role in entry.roles if role.key not in keys)}))
    return replace(
        entry,
        roles=roles or entry.roles,
        withheld_roles=withheld if roles else entry.withheld_roles,
        problem=None if roles else AccessProblem.LIMITED_BY_OWNER,
    )


class _ResourceNames:
    """What resources are called, loaded in bulk."""

    def __init__(self, service: Service, keys: Iterable[ResourceKey], grant_ids: Iterable[str] = ()) -> None:
        storage = service._storage
        ids: dict[ManagerLevel, set[str]] = {level: set() for level in ManagerLevel}
        for key in keys:
            ids[key.level].add(key.id)
        self.grants: Mapping[str, ProjectGrant] = storage.project_grants.find_many(
            ids[ManagerLevel.PROJECT_GRANT] | set(grant_ids)
        )
        self.projects: Mapping[str, Project] = storage.projects.find_many(
            ids[ManagerLevel.PROJECT] | {grant.project_id for grant in self.grants.values()}
        )
        self.organizations: Mapping[str, Organization] = storage.organizations.find_many(
            ids[ManagerLevel.ORGANIZATION] | {project.organization_id for project in self.projects.values()}
        )

    def find(self, key: ResourceKey) -> tuple[str, Organization | None] | None:
        """The name, empty for the instance, and the organization that owns the resource; None if it is gone."""
        if key.level is ManagerLevel.INSTANCE:
            return "", None
        if key.level is ManagerLevel.ORGANIZATION:
            organization = self.organizations.get(key.id)
            return None if organization is None else (organization.name, organization)
        project_id = key.id
        if key.level is ManagerLevel.PROJECT_GRANT:
            grant = self.grants.get(key.id)
            project_id = "" if grant is None else grant.project_id
        project = self.projects.get(project_id)
        owner = None if project is None else self.organizations.get(project.organization_id)
        return None if project is None or owner is None else (project.name, owner)


def _manager_problem(
    subject: Subject, manager: Manager, grant: ProjectGrant | None, group: Group | None, now: datetime
) -> AccessProblem | None:
    if manager.has_ended(now):
        return AccessProblem.ENDED
    if grant is not None and grant.has_ended(now):
        return AccessProblem.PROJECT_GRANT_ENDED
    if group is not None and not group.active:
        return AccessProblem.GROUP_DEACTIVATED
    return None if subject.is_active else AccessProblem.USER_DEACTIVATED


def _grant_problem(
    subject: Subject,
    user_grant: UserGrant,
    source: ProjectGrant | None,
    project: Project,
    owner: Organization,
    group: Group | None,
    now: datetime,
) -> AccessProblem | None:
    problems = {
        AccessProblem.ENDED: user_grant.has_ended(now),
        AccessProblem.DEACTIVATED: not user_grant.active,
        AccessProblem.GROUP_DEACTIVATED: group is not None and not group.active,
        AccessProblem.PROJECT_GRANT_ENDED: source is not None and source.has_ended(now),
        AccessProblem.PROJECT_GRANT_DEACTIVATED: source is not None and not source.active,
        AccessProblem.PROJECT_DEACTIVATED: not project.active,
        AccessProblem.OWNER_DEACTIVATED: not owner.active,
        AccessProblem.USER_DEACTIVATED: not subject.is_active,
        AccessProblem.NO_ROLES: not (user_grant.roles if source is None else user_grant.roles & source.roles),
    }
    return next((problem for problem, applies in problems.items() if applies), None)
