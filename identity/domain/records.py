"""Records: what the service's parts and plugins keep besides the entities, each in a name space of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

#: The name space of the service itself; no plugin is called so.
CORE_NAMESPACE = "identity"


@dataclass(frozen=True, slots=True)
class RecordNamespace:
    """Whose records: each plugin is handed its own at the start (``identity_record_namespace``), and no other."""

    plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A JSON object under the digest of a key, which is unique among the plugin's records of one kind.

    It goes with its owners, if it has any: a user, an application. ``sealed`` is what of it is encrypted under a master
    key. One that expires is deleted some time afterwards. A record can be taken once: ``taken_at``.
    """

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
        """True if it was neither taken nor has expired."""
        return self.taken_at is None and (self.expires_at is None or now < self.expires_at)
