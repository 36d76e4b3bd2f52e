"""What is deleted some time after it has served, in memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from operator import attrgetter, itemgetter
from typing import Any

from identity.domain.attempts import NEVER
from identity.domain.audit import AuditEvent
from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.tables import Table
from identity.storage.stores.purges import HELD, Found, Purged, PurgeStore

#: The table of each, and when a row of it is over; None is never.
_OVER: Mapping[Purged, tuple[str, Callable[[Any], datetime | None]]] = {
    Purged.ACCESS_TOKENS: ("access_tokens", attrgetter("expires_at")),
    Purged.REFRESH_TOKENS: ("refresh_tokens", attrgetter("ends_at")),
    Purged.FAMILIES: ("families", attrgetter("ends_at")),
    Purged.CODES: ("authorization_codes", lambda code: code.expires_at if code.redeemed_at is None else None),
    Purged.SESSIONS: ("sessions", attrgetter("ends_at")),
    Purged.REQUESTS: ("authorization_requests", attrgetter("expires_at")),
    Purged.MESSAGES: ("outgoing_messages", attrgetter("expires_at")),
    Purged.ATTEMPTS: ("attempts", lambda count: count.counted_at if count.next_at < NEVER else None),
    Purged.RECORDS: ("records", attrgetter("expires_at")),
    Purged.AUDIT_EVENTS: ("audit_events", attrgetter("at")),
}


class MemoryPurgeStore(MemoryStore, PurgeStore):
    """Looks at one table at a time."""

    def find(
        self,
        purged: Purged,
        before: datetime,
        limit: int,
        *,
        held: Collection[str] = (),
        since: Any = None,
    ) -> Found:
        name, over_at = _OVER[purged]
        is_over = self._is_over(purged, before, held)
        rows = getattr(self._tables, name).rows.items()
        places = (((at, key), row) for key, row in rows if (at := over_at(row)) is not None and at < before)
        further = ((place, row) for place, row in places if since is None or place > since)
        seen = nsmallest(limit, further, key=itemgetter(0))
        keys = [key for (_, key), row in seen if is_over(key, row)]
        return Found(keys, seen[-1][0] if len(seen) == limit else None)

    def delete(self, purged: Purged, keys: Sequence[Any], before: datetime, *, held: Collection[str] = ()) -> int:
        table: Table[Any, Any] = getattr(self._tables, _OVER[purged][0])
        is_over, these = self._is_over(purged, before, held), set(keys)
        return table.delete_where(lambda key, row: key in these and is_over(key, row))

    def over(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        is_over = self._is_over(purged, before, held)
        return min(limit, sum(is_over(*item) for item in getattr(self._tables, _OVER[purged][0]).rows.items()))

    def kept(self, purged: Purged, limit: int) -> int:
        return len(getattr(self._tables, _OVER[purged][0]).rows)

    def _is_over(self, purged: Purged, before: datetime, held: Collection[str]) -> Callable[[Any, Any], bool]:
        name, over_at = _OVER[purged]
        # The number of the next event follows from the last one's.
        newest = next(reversed(getattr(self._tables, name).rows), None) if purged is Purged.AUDIT_EVENTS else None

        def is_over(key: Any, row: Any) -> bool:
            at = over_at(row)
            if at is None or at >= before or key == newest:
                return False
            return not (held and purged in HELD and self._whose(row).intersection(held))

        return is_over

    def _whose(self, row: Any) -> set[str | None]:
        if isinstance(row, AuditEvent):
            return {row.organization_id, row.actor.id, row.object_id}
        user = None if row.user_id is None else self._tables.users.find(row.user_id)
        return set() if user is None else {user.id, user.organization_id}
