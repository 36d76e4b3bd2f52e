"""Deliveries to webhooks in SQL."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, func, select, update

from identity.domain.webhooks import DeliveryState, WebhookDelivery
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.paging import PagedSqlStore
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.tables import webhook_deliveries as table
from identity.plugins.sql.tables import webhooks
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.webhook_deliveries import WebhookDeliveryStore

_MAPPED_TABLE = MappedTable[WebhookDelivery](table)
_IS_PENDING = table.c.state == DeliveryState.PENDING.value
# One step in the index for each webhook, however many deliveries are pending.
_FIRST_ATTEMPT = (
    select(func.min(table.c.next_at)).where(table.c.webhook_id == webhooks.c.id, _IS_PENDING).scalar_subquery()
)
_NEXT_ATTEMPTS = select(webhooks.c.id, _FIRST_ATTEMPT.label("first_at")).where(webhooks.c.active).subquery()
_DUE = (
    _MAPPED_TABLE.select.where(table.c.webhook_id == bindparam("webhook"), _IS_PENDING)
    .where(table.c.next_at <= bindparam("now"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
)


class SqlWebhookDeliveryStore(PagedSqlStore, WebhookDeliveryStore):
    def add(self, delivery: WebhookDelivery) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(delivery))

    def find(self, id: str) -> WebhookDelivery | None:
        return self._fetch_value(_MAPPED_TABLE.from_row, _MAPPED_TABLE.select.where(table.c.id == id))

    def page(self, webhook_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[WebhookDelivery]:
        statement = _MAPPED_TABLE.select.where(table.c.webhook_id == webhook_id)
        return self._page_newest_first(_MAPPED_TABLE, statement, request)

    def list_next_attempts(self, limit: int, *, without: Collection[str] = ()) -> tuple[tuple[str, datetime], ...]:
        id_, first_at = _NEXT_ATTEMPTS.c.id, _NEXT_ATTEMPTS.c.first_at
        statement = select(_NEXT_ATTEMPTS).where(first_at.is_not(None)).order_by(first_at, id_)
        if without:
            statement = statement.where(id_.not_in(list(without)))
        return tuple((id_, datetime_from_seconds(at)) for id_, at in self._fetch_all(statement.limit(limit)))

    def list_due(self, webhook_id: str, now: datetime, limit: int) -> tuple[WebhookDelivery, ...]:
        parameters = {"webhook": webhook_id, "now": seconds_from_datetime(now), "limit": limit}
        return self._fetch_values(_MAPPED_TABLE.from_row, _DUE, parameters)

    def update(self, delivery: WebhookDelivery, *, attempts: int) -> bool:
        is_same = (table.c.id == delivery.id, table.c.attempts == attempts)
        return bool(self._execute(update(table).where(*is_same).values(_MAPPED_TABLE.to_row(delivery))))
