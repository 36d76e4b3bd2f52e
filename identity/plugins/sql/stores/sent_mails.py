"""The log of sent mails, in SQL."""

from datetime import datetime

from sqlalchemy import delete

from identity.domain.sent_mails import SentMail
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.paging import PagedSqlStore
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.tables import sent_mails as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.sent_mails import SentMailStore

_MAPPED_TABLE = MappedTable[SentMail](table)


class SqlSentMailStore(PagedSqlStore, SentMailStore):
    """One row each."""

    def add(self, mail: SentMail) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(mail))

    def page(self, user_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[SentMail]:
        statement = _MAPPED_TABLE.select
        if user_id is not None:
            statement = statement.where(table.c.user_id == user_id)
        return self._page_newest_first(_MAPPED_TABLE, statement, request)

    def delete_before(self, moment: datetime) -> int:
        return self._execute(delete(table).where(table.c.created_at < seconds_from_datetime(moment)))
