"""The audit trail, in memory."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime

from identity.domain.audit import AuditEvent
from identity.storage.memory.paging import page_descending
from identity.storage.memory.tables import Tables
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.audit import AuditStore


class MemoryAuditStore(AuditStore):
    """Rows by id, in the order of appending."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def append(self, event: AuditEvent) -> bool:
        events = self._tables.audit_events
        if event.once is not None and any(other.once == event.once for other in events):
            return False
        # Copied, since the caller may go on changing what it gave as detail.
        stored = replace(event, detail=deepcopy(dict(event.detail)), sequence=len(events.rows) + 1)
        events.insert(event.id, stored)
        return True

    def find(self, event_id: str) -> AuditEvent | None:
        return self._tables.audit_events.find(event_id)

    def page(
        self,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_id: str | None = None,
        event: str | None = None,
        actor_id: str | None = None,
        object_id: str | None = None,
        result: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[AuditEvent]:
        rows = (
            row
            for row in self._tables.audit_events
            if organization_id in (None, row.organization_id)
            and event in (None, row.event)
            and actor_id in (None, row.actor.id)
            and object_id in (None, row.object_id)
            and result in (None, row.result)
            and (since is None or since <= row.at)
            and (until is None or row.at < until)
        )
        return page_descending(rows, request, lambda row: f"{row.sequence:020}")
