"""Roles and project grants that end by themselves: warn before, and remove afterwards.

The end itself is judged at each use, so nothing depends on when these run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.services.access_control import Principal
from identity.services.audit import to_json_value
from identity.services.base import Service
from identity.services.groups import GroupGrantService, GroupManagerService, GroupMemberService
from identity.services.managers import ManagerService
from identity.services.project_grants import ProjectGrantService
from identity.services.user_grants import UserGrantService

#: How long before the end the warning is recorded.
WARNING_TERM = timedelta(days=7)
#: Rows of each kind in one transaction.
_AT_ONCE = 100


@dataclass(eq=False, repr=False)
class EndOfRolesService(Service):
    """User grants, manager roles, project grants, and memberships and roles of groups, with an end."""

    _managers: ManagerService
    _user_grants: UserGrantService
    _project_grants: ProjectGrantService
    _group_members: GroupMemberService
    _group_grants: GroupGrantService
    _group_managers: GroupManagerService

    def record_ending(self) -> int:
        """Record an event for everything that ends within a week, once for each end. Returns the number of events."""
        storage, soon = self._storage, self._now + WARNING_TERM
        written = 0
        for manager in storage.managers.list_ending(self._now, soon, _AT_ONCE):
            detail = {"user_id": manager.user_id, "level": manager.resource.level, "resource_id": manager.resource.id}
            written += self._record("manager", manager, manager.organization_id, detail)
        for user_grant in storage.user_grants.list_ending(self._now, soon, _AT_ONCE):
            detail = {"user_id": user_grant.user_id, "project_id": user_grant.project_id}
            written += self._record("user_grant", user_grant, user_grant.organization_id, detail)
        for grant in storage.project_grants.list_ending(self._now, soon, _AT_ONCE):
            project = storage.projects.find(grant.project_id)
            for organization_id in (grant.organization_id, None if project is None else project.organization_id):
                if organization_id is not None:
                    written += self._record("project_grant", grant, organization_id, {"project_id": grant.project_id})
        for member in storage.group_members.list_ending(self._now, soon, _AT_ONCE):
            detail = {"group_id": member.group_id, "user_id": member.user_id}
            written += self._record("group_member", member, member.organization_id, detail)
        for group_grant in storage.group_grants.list_ending(self._now, soon, _AT_ONCE):
            detail = {"group_id": group_grant.group_id, "project_id": group_grant.project_id}
            written += self._record("group_grant", group_grant, group_grant.organization_id, detail)
        for group_manager in storage.group_managers.list_ending(self._now, soon, _AT_ONCE):
            resource = group_manager.resource
            detail = {"group_id": group_manager.group_id, "level": resource.level, "resource_id": resource.id}
            written += self._record("group_manager", group_manager, group_manager.organization_id, detail)
        return written

    def remove_ended(self) -> int:
        """Remove what has ended, up to a hundred of each kind. Returns the number removed."""
        storage, operator = self._storage, Principal.OPERATOR
        removed = 0
        for store, service in (
            (storage.managers, self._managers),
            (storage.user_grants, self._user_grants),
            (storage.group_members, self._group_members),
            (storage.group_grants, self._group_grants),
            (storage.group_managers, self._group_managers),
            # Last: what derives from a project grant is removed with it.
            (storage.project_grants, self._project_grants),
        ):
            ended: Sequence[Any] = store.list_ending(None, self._now, _AT_ONCE)
            for row in ended:
                service.remove(row.id, principal=operator)
            removed += len(ended)
        return removed

    def _record(self, kind: str, entity: Any, organization_id: str | None, detail: Mapping[str, object]) -> bool:
        until = to_json_value(entity.until)
        # A membership has the roles of its group.
        roles = {"roles": to_json_value(entity.roles)} if hasattr(entity, "roles") else {}
        return self._audit.record_once(
            f"{kind}.ending|{entity.id}|{until}|{organization_id or ''}",
            f"{kind}.ending",
            kind=kind,
            id=entity.id,
            organization_id=organization_id,
            detail={**detail, **roles, "until": until},
        )
