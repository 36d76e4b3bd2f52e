"""Managers: users who may manage the service itself."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.permissions import Level, ResourceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A manager role: a name, the level at which it is held, and the permissions it brings there and below."""

    name: str
    level: Level
    permissions: frozenset[str]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """The roles that one user holds at one resource."""

    id: str
    user_id: str
    resource: ResourceKey
    roles: frozenset[str]
    created_at: datetime
    changed_at: datetime
    organization_id: str | None = None
    version: int = 1
