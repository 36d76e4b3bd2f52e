"""The log of each application, in SQL."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Column, bindparam, case, delete, func, insert, select

from identity.domain.application_requests import MAX_LOGGED_REQUESTS, ApplicationRequest
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import application_requests as table
from identity.plugins.sql.tables import applications, users
from identity.storage.stores.application_requests import ApplicationRequestStore

_MAPPED_TABLE = MappedTable[ApplicationRequest](table)
_LATEST_FIRST = (table.c.at.desc(), table.c.id.desc())
_LIST_FOR_APPLICATION = _MAPPED_TABLE.select.where(table.c.application_id == bindparam("application")).order_by(
    *_LATEST_FIRST
)
_LIST_FOR_USER = _MAPPED_TABLE.select.where(table.c.user_id == bindparam("user")).order_by(*_LATEST_FIRST)


class SqlApplicationRequestStore(SqlStore, ApplicationRequestStore):
    """One row per request."""

    def add(self, requests: Collection[ApplicationRequest]) -> None:
        known = self._find_ids(applications.c.id, {request.application_id for request in requests})
        known_users = self._find_ids(users.c.id, {request.user_id for request in requests if request.user_id})
        stored = [
            request if request.user_id in known_users else replace(request, user_id=None)
            for request in requests
            if request.application_id in known
        ]
        if not stored:
            return
        self._insert_all(insert(table), [_MAPPED_TABLE.to_row(request) for request in stored])
        ranked = (
            select(
                table.c.id,
                func.row_number()
                .over(
                    partition_by=(table.c.application_id, case((table.c.error == "", 0), else_=1)),
                    order_by=_LATEST_FIRST,
                )
                .label("rank"),
            )
            .where(table.c.application_id.in_(sorted(known)))
            .subquery()
        )
        # A derived table: MariaDB does not delete from a table that it selects from otherwise.
        surplus = select(ranked.c.id).where(ranked.c.rank > MAX_LOGGED_REQUESTS).subquery()
        self._execute(delete(table).where(table.c.id.in_(select(surplus.c.id))))

    def list_for_application(self, application_id: str) -> tuple[ApplicationRequest, ...]:
        return self._fetch_values(_MAPPED_TABLE.from_row, _LIST_FOR_APPLICATION, {"application": application_id})

    def list_for_user(self, user_id: str) -> tuple[ApplicationRequest, ...]:
        return self._fetch_values(_MAPPED_TABLE.from_row, _LIST_FOR_USER, {"user": user_id})

    def delete_before(self, moment: datetime) -> int:
        return self._execute(delete(table).where(table.c.at < seconds_from_datetime(moment)))

    def _find_ids(self, column: Column[str], ids: Collection[str]) -> set[str]:
        found = self._fetch_all(select(column).where(column.in_(sorted(ids)))) if ids else ()
        return {str(id_) for (id_,) in found}
