"""Upstream providers, in memory."""

from identity.domain.search import matches_query
from identity.domain.upstream_providers import UpstreamProvider
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first, sort_oldest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.upstream_providers import UpstreamProviderStore


class MemoryUpstreamProviderStore(MemoryEntityStore[UpstreamProvider], UpstreamProviderStore):
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[UpstreamProvider]:
        providers = (row for row in self._rows if row.organization_id == organization_id)
        return page_newest_first((row for row in providers if matches_query(request.query, row)), request)

    def list_asserting(self, client_id: str) -> tuple[UpstreamProvider, ...]:
        active = (provider for provider in self._rows if provider.active)
        return sort_oldest_first(row for row in active if client_id in row.asserting_client_ids)

    def list_available(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        active = (provider for provider in self._rows if provider.active)
        return sort_oldest_first(row for row in active if row.everywhere or row.organization_id == organization_id)
