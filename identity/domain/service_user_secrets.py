"""Service user secrets, as they are stored."""

from datetime import datetime

from identity.domain.entity import entity, inner, made, stamp


@entity
class ServiceUserSecret:
    """A service user's secret as it is stored: its SHA-256."""

    id: str = made()
    user_id: str = made()
    digest: bytes = inner()
    created_at: datetime = stamp()
    last_used_at: datetime | None = made(default=None)
