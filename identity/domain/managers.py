"""Managers: users with roles to manage the service."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from identity.domain.entity import entity, mutable, read_only, versioned
from identity.domain.expirations import TimeLimited
from identity.domain.permissions import PERMISSIONS, ManagerLevel, ResourceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerRole:
    """A manager role: its name, the level at which it is granted, and its permissions there and below. ``label`` is the
    name that people read.
    """

    #: Every permission, "resource.action". A role may name only these.
    PERMISSIONS: ClassVar[frozenset[str]] = PERMISSIONS

    name: str
    level: ManagerLevel
    permissions: frozenset[str]
    description: str = ""
    label: str = ""


@entity
class Manager(TimeLimited):
    """The roles of one user at one resource, possibly ``until`` a moment."""

    id: str = read_only()
    user_id: str = read_only()
    resource: ResourceKey = read_only()
    roles: frozenset[str] = mutable()
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    organization_id: str | None = read_only(default=None)
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)
