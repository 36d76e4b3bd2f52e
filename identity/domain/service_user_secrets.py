"""Client secrets of service users."""

from datetime import datetime

from identity.domain.entity import entity, internal, read_only, versioned


@entity
class ServiceUserSecret:
    """A stored secret of a service user: its SHA-256."""

    id: str = read_only()
    user_id: str = read_only()
    digest: bytes = internal()
    created_at: datetime = versioned()
    last_used_at: datetime | None = read_only(default=None)
