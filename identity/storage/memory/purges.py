"""What is deleted some time after it has served, in memory."""

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from identity.domain.attempts import NEVER
from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.tables import Table
from identity.storage.stores.purges import Purged, PurgeStore

#: The table of each, and when a row of it is over; None is never.
_OVER: Mapping[Purged, tuple[str, Callable[[Any], datetime | None]]] = {
    Purged.ACCESS_TOKENS: ("access_tokens", attrgetter("expires_at")),
    Purged.FAMILIES: ("families", attrgetter("ends_at")),
    Purged.CODES: ("authorization_codes", lambda code: code.expires_at if code.redeemed_at is None else None),
    Purged.SESSIONS: ("sessions", attrgetter("ends_at")),
    Purged.REQUESTS: ("authorization_requests", attrgetter("expires_at")),
    Purged.MESSAGES: ("outgoing_messages", attrgetter("expires_at")),
    Purged.ATTEMPTS: ("attempts", lambda count: count.counted_at if count.next_at < NEVER else None),
    Purged.RECORDS: ("records", attrgetter("expires_at")),
}


class MemoryPurgeStore(MemoryStore, PurgeStore):
    """Looks at one table at a time."""

    def of(self, purged: Purged, before: datetime, limit: int) -> int:
        name, over_at = _OVER[purged]
        table: Table[Any, Any] = getattr(self._tables, name)
        return table.delete_where(lambda _, row: (at := over_at(row)) is not None and at < before, limit)

    def over(self, purged: Purged, before: datetime, limit: int) -> int:
        name, over_at = _OVER[purged]
        ends = map(over_at, getattr(self._tables, name).rows.values())
        return min(limit, sum(at is not None and at < before for at in ends))

    def kept(self, purged: Purged, limit: int) -> int:
        return len(getattr(self._tables, _OVER[purged][0]).rows)
