"""Authorization: roles add permissions, deny hooks remove them, the default is no."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, TypeVar

from identity.domain.applications import Application
from identity.domain.audit import AuditEvent
from identity.domain.errors import Denied, NotFound
from identity.domain.expirations import earliest
from identity.domain.groups import GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager, ManagerRole
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import (
    GRANTEE_PERMISSIONS,
    INSTANCE_KEY,
    INSTANCE_WRITE,
    OWN_ORGANIZATION_PERMISSIONS,
    ManagerLevel,
    Resource,
    ResourceKey,
    project_grant_resource,
    project_resource,
)
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import Agent, HumanUser, Subject, User
from identity.domain.webhooks import Webhook
from identity.services.agent_rules import WITHHELD_PERMISSIONS, find_owner
from identity.services.lookup import Lookup
from identity.storage.backend import Storage
from identity.storage.paging import PageRequest, ResultPage, single_page
from identity.storage.stores.organizations import ORGANIZATION_SORT_KEYS
from identity.storage.stores.search import SearchScope

#: Entities in lists, from which deny hooks can remove rows.
VisibleEntity = (
    Organization
    | Project
    | Application
    | ProjectGrant
    | UserGrant
    | Manager
    | GroupMember
    | GroupGrant
    | GroupManager
    | Subject
    | Webhook
    | AuditEvent
)
VisibleEntityT = TypeVar("VisibleEntityT", bound=VisibleEntity)

#: A plugin's veto: principal, permission, resource, lookup → the reason, or None.
DenyHook = Callable[["Principal", str, Resource, Lookup], str | None]


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a user with all of their manager roles, read at request time. ``subject`` is None for the operator on
    the machine, who has every permission."""

    #: The operator: can run the program with the ini file. HTTP never creates one.
    OPERATOR: ClassVar["Principal"]

    subject: Subject | None
    manager_entries: tuple[Manager, ...] = ()
    #: The manager who is signed in as the user. Such a principal has no roles.
    impersonator_id: str | None = None
    #: The owner of an agent, whose rights limit the agent's.
    owner: "Principal | None" = None

    @property
    def id(self) -> str | None:
        """The user's id; None for the operator."""
        return None if self.subject is None else self.subject.user.id

    def lasting(self, until: datetime | None) -> "Principal":
        """The principal with only the roles that do not end before this moment, or never for None."""
        lasting = (item for item in self.manager_entries if item.until is None or (until and until <= item.until))
        return replace(self, manager_entries=tuple(lasting))


Principal.OPERATOR = Principal(None)


def merge_roles(before: frozenset[str], roles: Mapping[str, bool]) -> frozenset[str]:
    """The roles after granting and revoking some."""
    return (before - roles.keys()) | {role for role, granted in roles.items() if granted}


@dataclass(eq=False, repr=False)
class AccessControl:
    """Authorization checks of one transaction."""

    _storage: Storage
    _roles: Mapping[str, ManagerRole]
    _deny: DenyHook | None
    _lookup: Lookup
    _instance: Callable[[], Instance | None]
    _now: datetime

    def load_principal(self, subject: Subject) -> Principal:
        """The user as a principal, with their current roles. A role of an agent counts only while its owner has all of
        its permissions at the same resource, and for no longer than the owner."""
        entries = self._storage.managers.list_effective(subject.user.id, self._now)
        if not isinstance(subject.user, Agent):
            return Principal(subject, entries)
        found = find_owner(self._storage, subject.user)
        if found is None:
            return Principal(subject)
        owner = self.load_principal(found)
        ends_at = earliest(entry.until for entry in owner.manager_entries)
        limited = (self._limit(entry, owner, ends_at) for entry in entries)
        return Principal(subject, tuple(entry for entry in limited if entry is not None), owner=owner)

    def _limit(self, entry: Manager, owner: Principal, ends_at: datetime | None) -> Manager | None:
        """An agent's entry without the roles that its owner could not have there; None if that leaves none."""
        try:
            permissions = self.list_permissions(owner, self.get_resource(entry.resource))
        except NotFound:
            return None
        roles = frozenset(
            name for name in entry.roles if name in self._roles and self._roles[name].permissions <= permissions
        )
        return replace(entry, roles=roles, until=earliest((entry.until, ends_at))) if roles else None

    def list_permissions(self, principal: Principal, resource: Resource) -> frozenset[str]:
        """All permissions that the principal's roles grant at the resource, before deny hooks."""
        if principal.subject is None:
            return ManagerRole.PERMISSIONS
        if not principal.subject.is_active:
            return frozenset()
        allowed: set[str] = set()
        for manager in principal.manager_entries:
            if manager.resource in resource.lineage:
                allowed |= self._permissions_of(principal, manager)
            elif resource.grantee is not None and manager.resource == resource.grantee:
                allowed |= self._permissions_of(principal, manager) & GRANTEE_PERMISSIONS
        return frozenset(allowed)

    def permitted_scope(self, principal: Principal, permission: str) -> SearchScope:
        """The organizations and single projects for which the principal's roles hold the permission, before deny
        hooks."""
        if permission in self.list_permissions(principal, Resource.INSTANCE):
            return SearchScope()
        if principal.subject is None or not principal.subject.is_active:
            return SearchScope(frozenset())
        entries = principal.manager_entries
        keys = [item.resource for item in entries if permission in self._permissions_of(principal, item)]
        return SearchScope(
            frozenset(key.id for key in keys if key.level is ManagerLevel.ORGANIZATION),
            frozenset(key.id for key in keys if key.level is ManagerLevel.PROJECT),
        )

    def is_permitted(self, principal: Principal, permission: str, resource: Resource) -> bool:
        """True if roles allow it and no plugin denies it. A plugin that fails denies."""
        return self.denial_reason(principal, permission, resource) is None

    def denial_reason(self, principal: Principal, permission: str, resource: Resource) -> str | None:
        """Why the principal lacks the permission, as a sentence; None if it has it."""
        if permission not in self.list_permissions(principal, resource):
            return gettext_lazy("This requires the permission {permission}.", permission=permission)
        # Instance managers sign in at the instance's own organization.
        is_own = permission in OWN_ORGANIZATION_PERMISSIONS and self._is_own(resource)
        if is_own and INSTANCE_WRITE not in self.list_permissions(principal, Resource.INSTANCE):
            return gettext_lazy(
                "In the instance's own organization this requires {permission}.", permission=INSTANCE_WRITE
            )
        return self._veto(principal, permission, resource)

    def _veto(self, principal: Principal, permission: str, resource: Resource) -> str | None:
        """The reason of a deny hook, of an agent also of one that would deny it to its owner; None for no reason."""
        if self._deny is None or principal.subject is None:
            return None
        reason = self._deny(principal, permission, resource, self._lookup)
        return self._veto(principal.owner, permission, resource) if reason is None and principal.owner else reason

    def denial_reason_within(self, principal: Principal, permission: str, resource: Resource) -> str | None:
        """The same for an action on parts of the resource: None if it is permitted for at least one of them."""
        if self.permitted_children(principal, permission, resource) == frozenset():
            return gettext_lazy("This requires the permission {permission}.", permission=permission)
        return self._veto(principal, permission, resource)

    def permitted_children(
        self, principal: Principal, permission: str, resource: Resource
    ) -> frozenset[ResourceKey] | None:
        """The parts of an organization for which the principal's roles hold the permission; None for all of it."""
        if permission in self.list_permissions(principal, resource):
            return None
        if principal.subject is None or not principal.subject.is_active:
            return frozenset()
        managers = tuple(
            manager for manager in principal.manager_entries if permission in self._permissions_of(principal, manager)
        )
        return frozenset(
            manager.resource
            for manager, known in self._known_by(principal, managers)
            if resource.organization_id == known
        )

    def can_see_organization(self, principal: Principal, organization_id: str | None) -> bool:
        """True if the principal may know that the organization exists: it has a role at the instance, in the
        organization or at one of its projects, or it belongs to the organization and manages a project grant on
        either side. None stands for the instance.

        A project grant shows neither side to the other: its managers see the organization that they belong to."""
        if principal.subject is None:
            return True
        reaching = self._effective_manager_roles(principal)
        if any(manager.resource == INSTANCE_KEY for manager in reaching):
            return True
        return any(known == organization_id for _, known in self._known_by(principal, reaching))

    def can_see_resource(self, principal: Principal, resource: Resource) -> bool:
        """True if the principal may know that the resource exists: it sees its organization or the one that holds it,
        or has a role there or above."""
        if self.can_see_organization(principal, resource.organization_id):
            return True
        if resource.grantee is not None and self.can_see_organization(principal, resource.grantee.id):
            return True
        return any(manager.resource in resource.lineage for manager in self._effective_manager_roles(principal))

    def visible_manager_organizations(self, principal: Principal, resource: Resource) -> frozenset[str] | None:
        """The organizations whose users the principal may see among the managers of the resource; None for all. A
        project grant has two sides, and each sees only its own."""
        if resource.grantee is None or self.visible_organization_ids(principal) is None:
            return None
        return frozenset(
            side
            for side in (resource.organization_id, resource.grantee.id)
            if side is not None and self.can_see_organization(principal, side)
        )

    def page_organizations(self, principal: Principal, request: PageRequest) -> ResultPage[Organization]:
        """The organizations that the principal may see, usually by name. A short list is always one page."""
        stored, visible_ids = self._storage.organizations, self.visible_organization_ids(principal)
        page = (
            stored.page(request)
            if visible_ids is None
            else single_page(stored.find_many(visible_ids).values(), request, ORGANIZATION_SORT_KEYS)
        )
        return self.filter_page(principal, page)

    def filter_page(self, principal: Principal, page: ResultPage[VisibleEntityT]) -> ResultPage[VisibleEntityT]:
        """The page without rows that a plugin denies to the principal. With deny hooks it has no total."""
        if self._deny is None or principal.subject is None:
            return page
        return ResultPage(tuple(self.filter_visible(principal, page)), page.next_cursor)

    def filter_visible(self, principal: Principal, found: Iterable[VisibleEntityT]) -> Iterable[VisibleEntityT]:
        """The rows that no plugin denies to the principal. Each permission and resource is checked once."""
        if self._deny is None or principal.subject is None:
            return found
        denial_reasons: dict[tuple[str, Resource], str | None] = {}
        rows = []
        for row in found:
            question = self._read_permission(row)
            if question not in denial_reasons:
                denial_reasons[question] = self._veto(principal, *question)
            if denial_reasons[question] is None:
                rows.append(row)
        return rows

    def filter_permitted(self, principal: Principal, found: Iterable[VisibleEntityT]) -> Iterator[VisibleEntityT]:
        """The rows that the principal may read, by roles and deny hooks; not those of a resource that is gone."""
        permitted: dict[tuple[str, Resource], bool] = {}
        for row in found:
            try:
                question = self._read_permission(row)
            except NotFound:
                continue
            if question not in permitted:
                permitted[question] = self.is_permitted(principal, *question)
            if permitted[question]:
                yield row

    def _read_permission(self, row: VisibleEntity) -> tuple[str, Resource]:
        """The permission that reading the row needs, and the resource where it is checked."""
        match row:
            case Organization():
                return "organization.read", Resource.of_organization(row.id)
            case Project():
                return "project.read", project_resource(row)
            case Application():
                return "application.read", self.get_resource(ResourceKey(ManagerLevel.PROJECT, row.project_id))
            case ProjectGrant():
                return "project_grant.read", self.get_resource(ResourceKey(ManagerLevel.PROJECT_GRANT, row.id))
            case UserGrant():
                derived = row.project_grant_id is not None
                level = ManagerLevel.PROJECT_GRANT if derived else ManagerLevel.PROJECT
                return "user_grant.read", self.get_resource(ResourceKey(level, row.project_grant_id or row.project_id))
            case Manager():
                return f"{row.resource.level}_manager.read", self.get_resource(row.resource)
            case GroupMember() | GroupGrant() | GroupManager():
                return "group.read", Resource.of_organization(row.organization_id)
            case Webhook(organization_id=str(owner_id)):
                return "webhook.read", Resource.of_organization(owner_id)
            case Webhook():
                return "instance.read", Resource.INSTANCE
            case Subject():
                kind = "user" if isinstance(row.user, HumanUser) else "service_user"
                return f"{kind}.read", Resource.of_organization(row.organization.id)
        organization_id = row.organization_id
        return "audit_event.read", Resource.INSTANCE if organization_id is None else Resource.of_organization(
            organization_id
        )

    def visible_organization_ids(self, principal: Principal) -> frozenset[str] | None:
        """The organizations that the principal may see; None for all."""
        if principal.subject is None or "organization.read" in self.list_permissions(principal, Resource.INSTANCE):
            return None
        return frozenset(known for _, known in self._known_by(principal, self._effective_manager_roles(principal)))

    def find_role(self, name: str) -> ManagerRole | None:
        """None for a role that no plugin has any more."""
        return self._roles.get(name)

    def list_grantable_roles(self, principal: Principal, resource: Resource) -> tuple[ManagerRole, ...]:
        """The roles of the resource's level that the principal may grant there, in the order of the plugins."""
        permissions = self.list_permissions(principal, resource)
        roles = self._roles.values()
        return tuple(role for role in roles if role.level is resource.key.level and role.permissions <= permissions)

    def require(self, principal: Principal, permission: str, resource: Resource) -> None:
        """Raise Denied with the reason unless the principal has the permission."""
        reason = self.denial_reason(principal, permission, resource)
        if reason is not None:
            raise Denied(reason, permission=permission)

    def get_resource(self, key: ResourceKey) -> Resource:
        """The resource with its parents. Raises NotFound."""
        if key.level is ManagerLevel.INSTANCE:
            return Resource.INSTANCE
        if key.level is ManagerLevel.ORGANIZATION:
            if self._storage.organizations.find(key.id) is None:
                raise NotFound("organization", key.id)
            return Resource.of_organization(key.id)
        if key.level is ManagerLevel.PROJECT:
            project = self._storage.projects.find(key.id)
            if project is None:
                raise NotFound("project", key.id)
            return project_resource(project)
        grant = self._storage.project_grants.find(key.id)
        project = None if grant is None else self._storage.projects.find(grant.project_id)
        if grant is None or project is None:
            raise NotFound("project grant", key.id)
        return project_grant_resource(grant, project)

    def require_not_more_privileged(self, principal: Principal, user: User) -> None:
        """Raise Denied if the user has, at the instance or in their own organization, a permission that the principal
        lacks there.

        Otherwise the principal could gain rights by issuing a key for the user or changing their state. A role in
        another organization is not considered: it was granted in trust of the organization that manages the user."""
        if self._has_higher_manager(
            principal, lambda: self._storage.managers.list_effective(user.id, self._now), home=user.organization_id
        ):
            raise Denied(gettext_lazy("This user holds manager roles beyond your own."))

    def require_no_more_privileged_role(self, principal: Principal, user_id: str) -> None:
        """The same for roles at any resource. Use it to change a user's roles rather than the user."""
        if self._has_higher_manager(principal, lambda: self._storage.managers.list_effective(user_id, self._now)):
            raise Denied(gettext_lazy("This user holds manager roles beyond your own."))

    def require_no_more_privileged_user(
        self, principal: Principal, organization_id: str, *, except_instance_managers: bool = False
    ) -> None:
        """The same for every user of the organization, for changes that affect all of them.
        ``except_instance_managers`` leaves out users with a role at the instance, where the change does not affect
        them."""
        managers = self._storage.managers.list_for_users_of_organization(organization_id, self._now)
        spared = (
            {manager.user_id for manager in managers if manager.resource == INSTANCE_KEY}
            if except_instance_managers
            else frozenset[str]()
        )
        if self._has_higher_manager(
            principal, lambda: (manager for manager in managers if manager.user_id not in spared), home=organization_id
        ):
            raise Denied(gettext_lazy("A user of this organization holds manager roles beyond your own."))

    def list_more_privileged_users(self, principal: Principal, organization_id: str) -> frozenset[str]:
        """The ids of the organization's users for whom ``require_not_more_privileged`` raises Denied."""
        managers = self._storage.managers.list_for_users_of_organization(organization_id, self._now)
        by_user: dict[str, list[Manager]] = {}
        for manager in managers:
            by_user.setdefault(manager.user_id, []).append(manager)
        return frozenset(
            user_id
            for user_id, entries in by_user.items()
            if self._has_higher_manager(principal, entries.copy, home=organization_id)
        )

    def require_no_more_privileged_roles(
        self, principal: Principal, organization_id: str, user_ids: frozenset[str]
    ) -> None:
        """``require_no_more_privileged_role`` for several users of the organization."""

        def find() -> Iterator[Manager]:
            managers = self._storage.managers.list_for_users_of_organization(organization_id, self._now)
            return (manager for manager in managers if manager.user_id in user_ids)

        if self._has_higher_manager(principal, find):
            raise Denied(gettext_lazy("A member holds manager roles beyond your own."))

    def require_grantable(
        self, principal: Principal, role: ManagerRole, resource: Resource, until: datetime | None
    ) -> None:
        """Raise Denied if the role holds a permission that the principal lacks at the resource, now or at some time
        before the end of the grant."""
        missing = role.permissions - self.list_permissions(principal, resource)
        if not missing and role.permissions - self.list_permissions(principal.lasting(until), resource):
            raise Denied(gettext_lazy("You cannot grant {role} for longer than you have it.", role=role.name))
        if missing:
            raise Denied(
                gettext_lazy(
                    "You cannot grant {role}: it includes {permissions}, which you lack.",
                    role=role.name,
                    permissions=", ".join(sorted(missing)[:3]),
                ),
                permission=min(missing),
            )

    def _has_higher_manager(
        self, principal: Principal, find: Callable[[], Iterable[Manager]], *, home: str | None = None
    ) -> bool:
        """True if one of the managers has a permission that the principal lacks. With a ``home`` only managers of the
        instance, of that organization and of project grants to it count."""
        if principal.subject is None:
            return False
        for manager in find():
            resource = self.get_resource(manager.resource)
            concerned = (resource.organization_id, None if resource.grantee is None else resource.grantee.id)
            is_foreign = home is not None and resource.organization_id is not None and home not in concerned
            if not is_foreign and not self._of_roles(manager.roles) <= self.list_permissions(principal, resource):
                return True
        return False

    def _is_own(self, resource: Resource) -> bool:
        instance = self._instance()
        return instance is not None and instance.organization_id == resource.organization_id

    def _effective_manager_roles(self, principal: Principal) -> tuple[Manager, ...]:
        """The principal's manager roles that grant at least one permission."""
        if principal.subject is None or not principal.subject.is_active:
            return ()
        entries = principal.manager_entries
        return tuple(manager for manager in entries if self._permissions_of(principal, manager))

    def _known_by(self, principal: Principal, managers: tuple[Manager, ...]) -> Iterator[tuple[Manager, str]]:
        """Each manager with an organization that its role lets the principal see."""
        at_grants = {
            manager.resource.id for manager in managers if manager.resource.level is ManagerLevel.PROJECT_GRANT
        }
        grants = self._storage.project_grants.find_many(at_grants) if at_grants else {}
        home = None if principal.subject is None else principal.subject.organization.id
        for manager in managers:
            if manager.resource.level is not ManagerLevel.PROJECT_GRANT:
                if manager.organization_id is not None:
                    yield manager, manager.organization_id
            elif home is not None:
                grant = grants.get(manager.resource.id)
                if home == manager.organization_id or (grant is not None and home == grant.organization_id):
                    yield manager, home

    def _permissions_of(self, principal: Principal, manager: Manager) -> frozenset[str]:
        """What one of the principal's entries grants; never to create credentials, if the principal is an agent."""
        permissions = self._of_roles(manager.roles)
        is_agent = principal.subject is not None and isinstance(principal.subject.user, Agent)
        return permissions - WITHHELD_PERMISSIONS if is_agent else permissions

    def _of_roles(self, names: frozenset[str]) -> frozenset[str]:
        permissions: set[str] = set()
        for name in names:
            # A role whose plugin is no longer loaded grants nothing.
            role = self._roles.get(name)
            if role is not None:
                permissions |= role.permissions
        return frozenset(permissions)
