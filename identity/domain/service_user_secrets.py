"""Service user secrets, as they are stored."""

from datetime import datetime

from identity.domain.entity import entity, internal, read_only, versioned


@entity
class ServiceUserSecret:
    """A service user's secret as it is stored: its SHA-256."""

    id: str = read_only()
    user_id: str = read_only()
    digest: bytes = internal()
    created_at: datetime = versioned()
    last_used_at: datetime | None = read_only(default=None)
