"""Webhooks in SQL."""

from sqlalchemy import bindparam, or_

from identity.domain.webhooks import Webhook
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import webhooks as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.webhooks import WebhookStore

ENTITY_TABLE = EntityTable[Webhook](table)

# Read with the first event of each transaction.
_RECEIVING = CompiledStatement(
    ENTITY_TABLE.select.where(
        table.c.active,
        or_(table.c.organization_id.is_(None), table.c.organization_id == bindparam("organization")),
    ).order_by(table.c.created_at, table.c.id)
)


class SqlWebhookStore(SqlEntityStore[Webhook], WebhookStore):
    entity_table = ENTITY_TABLE

    def page(self, organization_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[Webhook]:
        statement = ENTITY_TABLE.select.where(table.c.organization_id == organization_id)
        return self._page_newest_first(ENTITY_TABLE, statement, request)

    def list_receiving(self, organization_id: str | None) -> tuple[Webhook, ...]:
        return self._fetch_values(ENTITY_TABLE.from_row, _RECEIVING, {"organization": organization_id})
