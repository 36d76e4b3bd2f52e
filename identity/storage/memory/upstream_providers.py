"""Upstream providers, in memory."""

from identity.domain.search import is_found
from identity.domain.upstream_providers import UpstreamProvider
from identity.storage.memory.entities import MemoryEntityStore, oldest_first, page_newest_first
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.upstream_providers import UpstreamProviderStore


class MemoryUpstreamProviderStore(MemoryEntityStore[UpstreamProvider], UpstreamProviderStore):
    """Rows by id."""

    table = "upstream_providers"

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[UpstreamProvider]:
        own = (one for one in self._tables.upstream_providers if one.organization_id == organization_id)
        return page_newest_first((one for one in own if is_found(request.query, one)), request)

    def offered(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        active = (one for one in self._tables.upstream_providers if one.active)
        return oldest_first(one for one in active if one.everywhere or one.organization_id == organization_id)
