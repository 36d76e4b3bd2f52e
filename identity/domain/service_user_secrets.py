"""Service user secrets, as they are stored."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUserSecret:
    """A service user's secret as it is stored: its SHA-256."""

    id: str
    user_id: str
    digest: bytes
    created_at: datetime
    last_used_at: datetime | None = None
