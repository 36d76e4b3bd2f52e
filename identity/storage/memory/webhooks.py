"""Webhooks, in memory."""

from identity.domain.search import matches_query
from identity.domain.webhooks import Webhook
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first, sort_oldest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.webhooks import WebhookStore


class MemoryWebhookStore(MemoryEntityStore[Webhook], WebhookStore):
    def page(self, organization_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[Webhook]:
        webhooks = (row for row in self._rows if row.organization_id == organization_id)
        return page_newest_first((row for row in webhooks if matches_query(request.query, row)), request)

    def list_receiving(self, organization_id: str | None) -> tuple[Webhook, ...]:
        return sort_oldest_first(
            row for row in self._rows if row.active and row.organization_id in (None, organization_id)
        )
