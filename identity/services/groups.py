"""Groups: their members, and the roles that these have through them.

A group gives no more than its organization has: roles of its projects and of those granted to it, and manager roles
there. Who changes a group changes the roles of its members, so they need the rights to give or take each of these
roles, besides ``group.write``. A manager who controls an identity provider that fills the group decides who has the
roles, so who adds a role needs the rights over these providers, too. The same holds for directories.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from identity.domain.directories import OrganizationDirectory
from identity.domain.errors import Invalid, NotFound
from identity.domain.expirations import earliest
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import ManagerLevel, Resource, ResourceKey
from identity.domain.projects import ProjectGrant
from identity.services.access_control import AccessControl, Principal
from identity.services.base import refuse_until
from identity.services.commands.groups import (
    AddGroup,
    AddGroupGrant,
    AddGroupManager,
    AddGroupMember,
    ChangeGroup,
    ChangeGroupGrant,
    ChangeGroupManager,
    ChangeGroupMember,
)
from identity.services.crud import DeactivatableEntityService, EntityService
from identity.services.directories import DirectoryService
from identity.services.managers import ManagerService
from identity.services.project_grant_audit import GrantAuditedService
from identity.services.upstream_providers import UpstreamProviderService
from identity.services.user_grants import UserGrantService
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, iterate_rows

GROUP_WRITE = "group.write"
_NO_RESOURCE = gettext_lazy(
    "Choose the organization of the group, one of its projects, or a project grant that it holds."
)


@dataclass(eq=False, repr=False)
class GroupService(DeactivatableEntityService[Group]):
    """Deactivating or removing a group takes its roles from all members, reactivating it gives them."""

    kind = "group"
    store = "groups"
    duplicate_messages: ClassVar = {"name": gettext_lazy("The organization already has a group with this name.")}

    _access: AccessControl
    _managers: ManagerService
    _providers: UpstreamProviderService
    _directories: DirectoryService

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Group]:
        """The organization's groups, usually by name."""
        return self._storage.groups.page(organization_id, request)

    def list_of_user(self, user_id: str) -> tuple[tuple[Group, GroupMember], ...]:
        """The user's memberships with their groups, also those that have ended."""
        return self._storage.groups.list_of_user(user_id)

    def add(self, organization_id: str, command: AddGroup, *, principal: Principal, id: str | None = None) -> Group:
        """An empty group. Raises NotFound, Denied; Invalid for a name that is taken."""
        group = self._new_entity(Group, command, id=id, organization_id=organization_id)
        self._authorize(group, principal)
        self._add("group.added", group, organization_id, parent=("organization", organization_id))
        return group

    def change(
        self, group_id: str, command: ChangeGroup, *, principal: Principal, expected_version: int | None = None
    ) -> Group:
        """Raises NotFound, Denied, Conflict, Invalid."""
        before = self._get_authorized(group_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        return self._update("group.changed", before, after)

    def deactivate(self, id: str, *, principal: Principal) -> Group:
        self._require_taking_from_all(self.get(id), principal)
        return super().deactivate(id, principal=principal)

    def reactivate(self, id: str, *, principal: Principal) -> Group:
        group = self.get(id)
        self.require_giving(group, principal, until=None)
        self.require_filling(group, principal)
        return super().reactivate(id, principal=principal)

    def remove(self, id: str, *, principal: Principal) -> None:
        self._require_taking_from_all(self.get(id), principal)
        super().remove(id, principal=principal)

    def require_giving(self, group: Group, principal: Principal, until: datetime | None) -> None:
        """Raise Denied unless the principal may give all roles of the group, until this moment or the end of the
        roles."""
        for manager, resource in self._require_writing_roles(group, principal):
            self._managers.require_grantable_roles(resource, manager.roles, principal, earliest((manager.until, until)))

    def require_filling(self, group: Group, principal: Principal) -> None:
        """Raise Denied unless the principal controls every identity provider and directory whose claims fill the
        group. A directory that the ini file does not set up any more counts: it may come back."""
        mappings = self._storage.group_mappings.list_of_group(group.id)
        for provider_id in {mapping.provider_id for mapping in mappings if mapping.provider_id is not None}:
            self._providers.require_control(self._providers.get(provider_id), principal)
        for name in {mapping.directory for mapping in mappings if mapping.directory is not None}:
            self._directories.require_control(OrganizationDirectory(name, group.organization_id), principal)

    def require_taking(self, group: Group, principal: Principal, user_ids: Iterable[str]) -> None:
        """Raise Denied unless the principal may take all roles of the group from these members."""
        if tuple(self._require_writing_roles(group, principal)):
            self.require_no_more_privileged(group, principal, user_ids)

    def require_no_more_privileged(self, group: Group, principal: Principal, user_ids: Iterable[str]) -> None:
        """Raise Denied if one of these members has manager roles beyond those of the principal, who changes them."""
        self._access.require_no_more_privileged_roles(principal, group.organization_id, frozenset(user_ids))

    def member_ids(self, group: Group) -> Iterator[str]:
        return (member.user_id for member in iterate_rows(partial(self._storage.group_members.page, group.id)))

    def _require_taking_from_all(self, group: Group, principal: Principal) -> None:
        self.require_taking(group, principal, self.member_ids(group))

    def _require_writing_roles(self, group: Group, principal: Principal) -> Iterator[tuple[GroupManager, Resource]]:
        """Raise Denied unless the principal may change roles wherever the group has some. Yields its manager roles,
        with their resources; iterate to the end."""
        self._authorize(group, principal)
        for grant in iterate_rows(partial(self._storage.group_grants.page, group.id)):
            self._access.require(principal, UserGrantService.WRITE, self.grant_resource(grant))
        for manager in iterate_rows(partial(self._storage.group_managers.page, group.id)):
            resource = self._access.get_resource(manager.resource)
            self._access.require(principal, f"{resource.key.level}_manager.write", resource)
            yield manager, resource

    def grant_resource(self, grant: GroupGrant) -> Resource:
        """Where the permission to change these roles is checked: the project, or the project grant."""
        at_project = ResourceKey(ManagerLevel.PROJECT, grant.project_id)
        if grant.project_grant_id is None:
            return self._access.get_resource(at_project)
        return self._access.get_resource(ResourceKey(ManagerLevel.PROJECT_GRANT, grant.project_grant_id))

    def require_write(self, group: Group, principal: Principal) -> None:
        """Raise Denied without group.write."""
        self._access.require(principal, GROUP_WRITE, Resource.of_organization(group.organization_id))

    def _authorize(self, group: Group, principal: Principal) -> None:
        self.require_write(group, principal)


@dataclass(eq=False, repr=False)
class GroupMemberService(EntityService[GroupMember]):
    """A member has all roles of the group."""

    kind = "group_member"
    store = "group_members"
    duplicate_messages: ClassVar = {"user_id": gettext_lazy("This user is already a member of the group.")}

    _groups: GroupService

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupMember]:
        """The group's members, newest first; a search matches the users."""
        return self._storage.group_members.page(group_id, request)

    def add(self, group_id: str, command: AddGroupMember, *, principal: Principal) -> GroupMember:
        """Raises NotFound; Invalid for a user of another organization or a member; Denied unless the principal may give
        every role of the group."""
        group = self._groups.get(group_id)
        self._groups.require_giving(group, principal, command.until)
        refuse_until(command.until, self._now)
        user = self._storage.users.find(command.user_id)
        if user is None or user.organization_id != group.organization_id:
            raise Invalid({"user_id": gettext_lazy("There is no such user in the organization of the group.")})
        return self._add_member(group, command)

    def add_mapped(self, mapping: GroupMapping, group: Group, user_id: str) -> GroupMember:
        """Add a member for a mapping, whose rights the caller has checked. Raises NotFound; Invalid for a member."""
        return self._add_member(group, AddGroupMember(user_id=user_id), mapping_id=mapping.id)

    def remove_mapped(self, member: GroupMember) -> None:
        """Remove a member whom a mapping added. Raises NotFound."""
        self._remove(member)

    def _add_member(self, group: Group, command: AddGroupMember, **values: Any) -> GroupMember:
        member = self._new_entity(
            GroupMember, command, group_id=group.id, organization_id=group.organization_id, **values
        )
        self._add("group_member.added", member, group.organization_id, parent=("user", command.user_id))
        return member

    def change(
        self, member_id: str, command: ChangeGroupMember, *, principal: Principal, expected_version: int | None = None
    ) -> GroupMember:
        """Change the end of a membership. Raises NotFound, Invalid, Denied, Conflict."""
        before = self._get_authorized(member_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        if after.until != before.until:
            refuse_until(after.until, self._now)
            self._groups.require_giving(self._groups.get(before.group_id), principal, after.until)
        return self._update("group_member.changed", before, after)

    def remove_user(self, group_id: str, user_id: str, *, principal: Principal) -> bool:
        """Remove the user's membership; False if there is none. Raises NotFound, Denied."""
        group = self._groups.get(group_id)
        self._groups.require_write(group, principal)
        memberships = self._groups.list_of_user(user_id)
        ids = [member.id for of_user, member in memberships if of_user.id == group.id]
        for member_id in ids:
            self.remove(member_id, principal=principal)
        return bool(ids)

    def _authorize(self, member: GroupMember, principal: Principal) -> None:
        self._groups.require_taking(self._groups.get(member.group_id), principal, [member.user_id])


@dataclass(eq=False, repr=False)
class GroupGrantService(GrantAuditedService[GroupGrant]):
    """Project roles of the members: of projects of the organization, or of those granted to it."""

    kind = "group_grant"
    store = "group_grants"
    duplicate_messages: ClassVar = {
        "project_id": gettext_lazy("The group already has roles of this project. Change these.")
    }
    personal_fields = frozenset({"group_id"})

    _groups: GroupService
    _user_grants: UserGrantService

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupGrant]:
        """The group's project roles, newest first; a search matches the projects."""
        return self._storage.group_grants.page(group_id, request)

    def add(self, group_id: str, command: AddGroupGrant, *, principal: Principal) -> GroupGrant:
        """Raises NotFound; Invalid for unknown projects and roles; Denied without user_grant.write there."""
        group = self._groups.get(group_id)
        self._groups.require_write(group, principal)
        self._groups.require_filling(group, principal)
        project_grant = self._user_grants.find_source(
            group.organization_id,
            command.project_id,
            command.roles,
            principal,
            no_grant={"project_id": gettext_lazy("The organization of the group has no grant of the project.")},
        )
        refuse_until(command.until, self._now)
        grant = self._new_entity(
            GroupGrant,
            command,
            group_id=group.id,
            organization_id=group.organization_id,
            project_grant_id=None if project_grant is None else project_grant.id,
        )
        self._add("group_grant.added", grant, group.organization_id, parent=("group", group.id))
        if project_grant is not None:
            self._user_grants.accept(project_grant, principal=principal)
        return grant

    def change(
        self, grant_id: str, command: ChangeGroupGrant, *, principal: Principal, expected_version: int | None = None
    ) -> GroupGrant:
        """Change the roles or their end. Raises NotFound, Invalid, Denied, Conflict."""
        before = self._get_authorized(grant_id, principal)
        if command.roles is not None:
            self._user_grants.check_roles(before.project_id, self._project_grant(before), command.roles)
        after = self._next_version(before, command, expected_version=expected_version)
        if after.until != before.until:
            refuse_until(after.until, self._now)
        if gives_more(before, after):
            self._groups.require_filling(self._groups.get(before.group_id), principal)
        return self._update("group_grant.changed", before, after)

    def _authorize(self, grant: GroupGrant, principal: Principal) -> None:
        self._groups.require_write(self._groups.get(grant.group_id), principal)
        self._access.require(principal, UserGrantService.WRITE, self._groups.grant_resource(grant))

    def _project_grant(self, grant: GroupGrant) -> ProjectGrant | None:
        if grant.project_grant_id is None:
            return None
        return self._storage.project_grants.find(grant.project_grant_id)


@dataclass(eq=False, repr=False)
class GroupManagerService(GrantAuditedService[GroupManager]):
    """Manager roles of the members: at the organization, its projects, and project grants that it holds. Never at the
    instance."""

    kind = "group_manager"
    store = "group_managers"
    duplicate_messages: ClassVar = {
        "resource_id": gettext_lazy("The group already has manager roles there. Change these.")
    }
    personal_fields = frozenset({"id", "group_id"})
    is_visible_to_both = False

    _groups: GroupService
    _managers: ManagerService

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupManager]:
        """The group's manager roles, newest first."""
        return self._storage.group_managers.page(group_id, request)

    def add(self, group_id: str, command: AddGroupManager, *, principal: Principal) -> GroupManager:
        """Raises NotFound; Invalid for a resource elsewhere and for unknown roles; Denied for roles beyond the
        principal's own."""
        group = self._groups.get(group_id)
        self._groups.require_write(group, principal)
        self._groups.require_filling(group, principal)
        resource = self._find_resource(group, ResourceKey(command.level, command.resource_id))
        self._require_manager_write(resource, principal)
        self._managers.require_grantable_roles(resource, command.roles, principal, command.until)
        refuse_until(command.until, self._now)
        manager = self._new_entity(
            GroupManager, command, group_id=group.id, organization_id=group.organization_id, resource=resource.key
        )
        self._add("group_manager.added", manager, group.organization_id, parent=("group", group.id))
        return manager

    def change(
        self, manager_id: str, command: ChangeGroupManager, *, principal: Principal, expected_version: int | None = None
    ) -> GroupManager:
        """Change the roles or their end. Raises NotFound, Invalid, Denied, Conflict."""
        before = self._get_authorized(manager_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        self._managers.require_grantable_change(before, after, principal)
        if gives_more(before, after):
            self._groups.require_filling(self._groups.get(before.group_id), principal)
        return self._update("group_manager.changed", before, after)

    def _find_resource(self, group: Group, key: ResourceKey) -> Resource:
        try:
            resource = self._access.get_resource(key)
        except NotFound:
            raise Invalid({"resource_id": _NO_RESOURCE}) from None
        if resource.holder_id != group.organization_id:
            raise Invalid({"resource_id": _NO_RESOURCE})
        return resource

    def _require_manager_write(self, resource: Resource, principal: Principal) -> None:
        self._access.require(principal, f"{resource.key.level}_manager.write", resource)

    def _authorize(self, manager: GroupManager, principal: Principal) -> None:
        group = self._groups.get(manager.group_id)
        self._groups.require_write(group, principal)
        self._require_manager_write(self._access.get_resource(manager.resource), principal)
        self._groups.require_no_more_privileged(group, principal, self._groups.member_ids(group))

    def _project_grant(self, manager: GroupManager) -> ProjectGrant | None:
        at_grant = manager.resource.level is ManagerLevel.PROJECT_GRANT
        return self._storage.project_grants.find(manager.resource.id) if at_grant else None


def gives_more(before: GroupGrant | GroupManager, after: GroupGrant | GroupManager) -> bool:
    """True if the members get a role, or have one for longer."""
    is_longer = before.until is not None and (after.until is None or after.until > before.until)
    return is_longer or not after.roles <= before.roles
