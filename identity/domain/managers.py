"""Managers: users who may manage the service itself."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.entity import entity, made, setting, stamp
from identity.domain.permissions import Level, ResourceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A manager role: a name, the level at which it is held, and the permissions it brings there and below."""

    name: str
    level: Level
    permissions: frozenset[str]
    description: str = ""


@entity
class Manager:
    """The roles that one user holds at one resource."""

    id: str = made()
    user_id: str = made()
    resource: ResourceKey = made()
    roles: frozenset[str] = setting()
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    organization_id: str | None = made(default=None)
    version: int = stamp(default=1)
