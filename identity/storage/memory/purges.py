"""Purges, in memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from operator import attrgetter, itemgetter
from typing import Any

from identity.domain.attempts import NO_NEXT_ATTEMPT
from identity.domain.audit import AuditEvent
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.tables import MemoryTable
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeCandidates, PurgeKind, PurgeStore

#: Table of each kind, and when a row expires; None for never.
_EXPIRY_RULES: Mapping[PurgeKind, tuple[str, Callable[[Any], datetime | None]]] = {
    PurgeKind.ACCESS_TOKENS: ("access_tokens", attrgetter("expires_at")),
    PurgeKind.REFRESH_TOKENS: ("refresh_tokens", attrgetter("ends_at")),
    PurgeKind.FAMILIES: ("families", attrgetter("ends_at")),
    PurgeKind.CODES: ("authorization_codes", lambda code: code.expires_at if code.redeemed_at is None else None),
    PurgeKind.SESSIONS: ("sessions", attrgetter("ends_at")),
    PurgeKind.REQUESTS: ("authorization_requests", attrgetter("expires_at")),
    PurgeKind.MESSAGES: ("outgoing_messages", attrgetter("expires_at")),
    PurgeKind.WEBHOOK_DELIVERIES: ("webhook_deliveries", attrgetter("expires_at")),
    PurgeKind.ATTEMPTS: ("attempts", lambda count: count.counted_at if count.next_at < NO_NEXT_ATTEMPT else None),
    PurgeKind.RECORDS: ("records", attrgetter("expires_at")),
    PurgeKind.AUDIT_EVENTS: ("audit_events", attrgetter("at")),
}


class MemoryPurgeStore(MemoryStore, PurgeStore):
    def find_candidates(
        self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = (), cursor: Any = None
    ) -> PurgeCandidates:
        name, over_at = _EXPIRY_RULES[kind]
        is_over = self._is_expired(kind, before, legal_holds)
        rows = getattr(self._tables, name).rows.items()
        due = (((at, key), row) for key, row in rows if (at := over_at(row)) is not None and at < before)
        further = ((position, row) for position, row in due if cursor is None or position > cursor)
        scanned = nsmallest(limit, further, key=itemgetter(0))
        keys = [key for (_, key), row in scanned if is_over(key, row)]
        return PurgeCandidates(keys, scanned[-1][0] if len(scanned) == limit else None)

    def delete(
        self, kind: PurgeKind, keys: Sequence[Any], before: datetime, *, legal_holds: Collection[str] = ()
    ) -> int:
        table: MemoryTable[Any, Any] = getattr(self._tables, _EXPIRY_RULES[kind][0])
        is_over, these = self._is_expired(kind, before, legal_holds), set(keys)
        return table.delete_where(lambda key, row: key in these and is_over(key, row))

    def count_expired(self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        is_over = self._is_expired(kind, before, legal_holds)
        return min(limit, sum(is_over(*item) for item in getattr(self._tables, _EXPIRY_RULES[kind][0]).rows.items()))

    def count_stored(self, kind: PurgeKind, limit: int) -> int:
        return len(getattr(self._tables, _EXPIRY_RULES[kind][0]).rows)

    def _is_expired(
        self, purged: PurgeKind, before: datetime, legal_holds: Collection[str]
    ) -> Callable[[Any, Any], bool]:
        name, over_at = _EXPIRY_RULES[purged]
        # The next event's number follows from the last event.
        newest = next(reversed(getattr(self._tables, name).rows), None) if purged is PurgeKind.AUDIT_EVENTS else None

        def is_over(key: Any, row: Any) -> bool:
            at = over_at(row)
            if at is None or at >= before or key == newest:
                return False
            return not (legal_holds and purged in LEGAL_HOLD_KINDS and self._owner_ids(row).intersection(legal_holds))

        return is_over

    def _owner_ids(self, row: Any) -> set[str | None]:
        if isinstance(row, AuditEvent):
            return {row.organization_id, row.actor.id, row.object_id}
        user = self._tables.users.find(row.user_id)
        return set() if user is None else {user.id, user.organization_id}
