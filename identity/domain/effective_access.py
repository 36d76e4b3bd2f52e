"""Effective access: the roles that a user holds, where, and through what."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.expirations import TimeLimited
from identity.domain.groups import Group
from identity.domain.permissions import ResourceKey


class AccessKind(StrEnum):
    """Manager roles are used by this service, project roles by the applications of a project."""

    MANAGER_ROLES = "manager"
    PROJECT_ROLES = "user_grant"


class AccessProblem(StrEnum):
    """Why roles have no effect."""

    ENDED = "ended"
    DEACTIVATED = "deactivated"
    NO_ROLES = "no_roles"
    GROUP_DEACTIVATED = "group_deactivated"
    PROJECT_GRANT_ENDED = "project_grant_ended"
    PROJECT_GRANT_DEACTIVATED = "project_grant_deactivated"
    PROJECT_DEACTIVATED = "project_deactivated"
    OWNER_DEACTIVATED = "owner_deactivated"
    USER_DEACTIVATED = "user_deactivated"
    LIMITED_BY_OWNER = "limited_by_owner"


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role key, with the name that people read; empty for a role that no longer exists."""

    key: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntry(TimeLimited):
    """Roles of a user at one resource: the project of a user grant, or what a manager manages.

    ``id`` is that of the manager or user grant, or of the roles of the ``group`` through which they are held.
    ``withheld_roles`` are those that its project grant does not include, or that the owner of an agent does not have.
    ``until`` is the earliest end of all of these.
    ``owner_id`` is the organization of the resource, None for the instance."""

    kind: AccessKind
    id: str
    resource: ResourceKey
    resource_name: str
    owner_id: str | None
    owner_name: str
    roles: tuple[HeldRole, ...]
    withheld_roles: tuple[str, ...] = ()
    project_grant_id: str | None = None
    group: Group | None = None
    until: datetime | None = None
    created_at: datetime
    problem: AccessProblem | None = None

    @property
    def is_effective(self) -> bool:
        return self.problem is None
