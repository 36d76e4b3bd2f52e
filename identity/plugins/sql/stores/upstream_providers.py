"""Upstream providers in SQL."""

from sqlalchemy import bindparam, or_

from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.tables import upstream_providers as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.upstream_providers import UpstreamProviderStore

ROWS = Entities[UpstreamProvider](table)

_OFFERED = ROWS.select.where(
    table.c.active, or_(table.c.everywhere, table.c.organization_id == bindparam("organization"))
).order_by(table.c.created_at, table.c.id)


class SqlUpstreamProviderStore(SqlEntityStore[UpstreamProvider], UpstreamProviderStore):
    """One row each."""

    rows = ROWS

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[UpstreamProvider]:
        statement = ROWS.select.where(table.c.organization_id == organization_id)
        return self._page_newest_first(ROWS, statement, request)

    def offered(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        return self._list(ROWS.of, _OFFERED, {"organization": organization_id})
