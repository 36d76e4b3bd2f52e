"""Records: JSON objects that parts of the service and plugins store beside entities, each in its namespace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

#: The namespace of the core; no plugin can have this name.
CORE_NAMESPACE = "identity"


@dataclass(frozen=True, slots=True)
class RecordNamespace:
    """Owner of records: each plugin gets its own namespace at start (``identity_record_namespace``)."""

    plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A JSON object under the digest of a key that is unique within its namespace and kind. It is deleted with its
    owners, if it has any: a user, an application. ``sealed`` is encrypted under a master key. Expired records are
    deleted later. A record can be consumed once: ``taken_at``."""

    plugin: str
    kind: str
    key: bytes
    created_at: datetime
    user_id: str | None = None
    application_id: str | None = None
    value: Mapping[str, Any] = field(default_factory=dict)
    sealed: bytes = b""
    expires_at: datetime | None = None
    taken_at: datetime | None = None
    version: int = 1

    def is_live(self, now: datetime) -> bool:
        """True if it is neither consumed nor expired."""
        return self.taken_at is None and (self.expires_at is None or now < self.expires_at)
