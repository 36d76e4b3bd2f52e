"""The audit trail, in memory."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice

from identity.domain.audit import ERASED, UNFILTERED, AuditEvent, AuditFilter
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortOrder, page_in_memory
from identity.storage.stores.audit import AuditStore


class MemoryAuditStore(MemoryStore, AuditStore):
    """Rows by id, in the order of appending."""

    def append(self, event: AuditEvent) -> bool:
        events = self._tables.audit_events
        if event.once is not None and any(audit_event.once == event.once for audit_event in events):
            return False
        # Copied, since the caller may change the detail afterwards.
        stored = replace(event, detail=deepcopy(dict(event.detail)), sequence=_last_sequence(events.rows) + 1)
        events.insert({event.id: stored})
        return True

    def append_many(self, events: Sequence[AuditEvent]) -> None:
        for event in events:
            self.append(event)

    def erase_personal_details(self, deleted_ids: str) -> int:
        doomed = [
            (key, event)
            for key, event in self._tables.audit_events.rows.items()
            if deleted_ids in (event.object_id, event.organization_id)
            and event.object_kind == "user"
            and (event.object_id or "") not in self._tables.users
            and event.detail not in ({}, ERASED)
        ]
        for key, event in doomed:
            self._tables.audit_events.replace_unchecked(key, replace(event, detail=ERASED))
        return len(doomed)

    def find(self, event_id: str) -> AuditEvent | None:
        return self._tables.audit_events.find(event_id)

    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = UNFILTERED) -> ResultPage[AuditEvent]:
        rows = (row for row in self._tables.audit_events if filter.matches(row))
        orders = {"sequence": lambda row: f"{row.sequence:020}"}
        return page_in_memory(rows, request, orders, usual=SortOrder("sequence", descending=True))

    def list_after(self, sequence: int, limit: int, filter: AuditFilter = UNFILTERED) -> tuple[AuditEvent, ...]:
        later = (row for row in self._tables.audit_events.rows.values() if (row.sequence or 0) > sequence)
        return tuple(islice((row for row in later if filter.matches(row)), limit))


def _last_sequence(rows: dict[str, AuditEvent]) -> int:
    """Number of the event appended last; 0 for none."""
    return next((row.sequence or 0 for row in reversed(rows.values())), 0)
