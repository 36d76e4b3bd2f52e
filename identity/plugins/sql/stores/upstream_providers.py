"""Upstream providers in SQL."""

from sqlalchemy import bindparam, or_

from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.tables import upstream_providers as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.upstream_providers import UpstreamProviderStore

ENTITY_TABLE = EntityTable[UpstreamProvider](table)

_AVAILABLE = ENTITY_TABLE.select.where(
    table.c.active, or_(table.c.everywhere, table.c.organization_id == bindparam("organization"))
).order_by(table.c.created_at, table.c.id)


class SqlUpstreamProviderStore(SqlEntityStore[UpstreamProvider], UpstreamProviderStore):
    entity_table = ENTITY_TABLE

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[UpstreamProvider]:
        statement = ENTITY_TABLE.select.where(table.c.organization_id == organization_id)
        return self._page_newest_first(ENTITY_TABLE, statement, request)

    def list_available(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        return self._fetch_values(ENTITY_TABLE.from_row, _AVAILABLE, {"organization": organization_id})
