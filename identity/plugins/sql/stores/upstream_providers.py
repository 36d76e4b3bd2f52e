"""Upstream providers in SQL."""

from sqlalchemy import bindparam, delete, insert, or_, select

from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.tables import upstream_provider_clients as clients
from identity.plugins.sql.tables import upstream_providers as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.upstream_providers import UpstreamProviderStore

ENTITY_TABLE = EntityTable[UpstreamProvider](table)

_AVAILABLE = ENTITY_TABLE.select.where(
    table.c.active, or_(table.c.everywhere, table.c.organization_id == bindparam("organization"))
).order_by(table.c.created_at, table.c.id)

_ASSERTING = ENTITY_TABLE.select.where(
    table.c.active, table.c.id.in_(select(clients.c.provider_id).where(clients.c.client_id == bindparam("client")))
).order_by(table.c.created_at, table.c.id)


class SqlUpstreamProviderStore(SqlEntityStore[UpstreamProvider], UpstreamProviderStore):
    entity_table = ENTITY_TABLE

    def add(self, value: UpstreamProvider) -> None:
        with self._savepoint():
            super().add(value)
            self._add_clients(value)

    def update(self, value: UpstreamProvider) -> None:
        super().update(value)
        self._execute(delete(clients).where(clients.c.provider_id == value.id))
        self._add_clients(value)

    def _add_clients(self, provider: UpstreamProvider) -> None:
        for client_id in sorted(provider.asserting_client_ids):
            self._execute(insert(clients).values(provider_id=provider.id, client_id=client_id))

    def list_asserting(self, client_id: str) -> tuple[UpstreamProvider, ...]:
        return self._fetch_values(ENTITY_TABLE.from_row, _ASSERTING, {"client": client_id})

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[UpstreamProvider]:
        statement = ENTITY_TABLE.select.where(table.c.organization_id == organization_id)
        return self._page_newest_first(ENTITY_TABLE, statement, request)

    def list_available(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        return self._fetch_values(ENTITY_TABLE.from_row, _AVAILABLE, {"organization": organization_id})
