"""Deliveries to webhooks, in memory."""

from collections.abc import Collection, Iterable
from datetime import datetime

from identity.domain.webhooks import DeliveryState, WebhookDelivery
from identity.storage.memory.entity_store import MemoryStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.webhook_deliveries import WebhookDeliveryStore


class MemoryWebhookDeliveryStore(MemoryStore, WebhookDeliveryStore):
    def add(self, delivery: WebhookDelivery) -> None:
        self._tables.webhook_deliveries.insert({delivery.id: delivery})

    def find(self, id: str) -> WebhookDelivery | None:
        return self._tables.webhook_deliveries.find(id)

    def page(self, webhook_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[WebhookDelivery]:
        rows = (row for row in self._tables.webhook_deliveries if row.webhook_id == webhook_id)
        return page_newest_first(rows, request)

    def list_next_attempts(self, limit: int, *, without: Collection[str] = ()) -> tuple[tuple[str, datetime], ...]:
        first: dict[str, datetime] = {}
        for row in self._pending():
            first.setdefault(row.webhook_id, row.next_at)
        active = [
            (id_, at) for id_, at in first.items() if id_ not in without and self._tables.webhooks.get(id_).active
        ]
        return tuple(active[:limit])

    def list_due(self, webhook_id: str, now: datetime, limit: int) -> tuple[WebhookDelivery, ...]:
        due = [row for row in self._pending() if row.webhook_id == webhook_id and row.next_at <= now]
        return tuple(due[:limit])

    def update(self, delivery: WebhookDelivery, *, attempts: int) -> bool:
        stored = self.find(delivery.id)
        if stored is None or stored.attempts != attempts:
            return False
        self._tables.webhook_deliveries.replace_unchecked(delivery.id, delivery)
        return True

    def _pending(self) -> Iterable[WebhookDelivery]:
        pending = (row for row in self._tables.webhook_deliveries if row.state is DeliveryState.PENDING)
        return sorted(pending, key=lambda row: (row.next_at, row.id))
