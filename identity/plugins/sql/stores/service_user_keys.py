"""Public keys of service users in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import bindparam, case, delete, func, select, update

from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import Subject
from identity.plugins.sql.codecs import moment, seconds
from identity.plugins.sql.mapping import Mapped, row_of, slices
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import Prepared
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import service_user_keys as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.service_user_keys import ServiceUserKeyStore
from identity.storage.stores.users import UserKind

_ROWS = Mapped[ServiceUserKey](table)
_KEY, _SUBJECT = slices(_ROWS, users.SUBJECT)

_OF_USER = (table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))
_FIND = _ROWS.select.where(*_OF_USER)
_FIND_SIGNER = Prepared(
    select(*_ROWS.columns, *users.SUBJECT)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(*_OF_USER, users_table.c.kind == UserKind.SERVICE.value)
)
_TOUCH = update(table).where(table.c.id == bindparam("key"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = _ROWS.select.where(table.c.user_id == bindparam("user"))
_LIVE = table.c.expires_at > bindparam("at")
_SUMMARIES = (
    select(
        table.c.user_id,
        func.count(case((_LIVE, 1))),
        func.coalesce(func.min(case((_LIVE, table.c.expires_at))), func.max(table.c.expires_at)),
        func.max(table.c.last_used_at),
    )
    .where(table.c.user_id.in_(bindparam("ids", expanding=True)))
    .group_by(table.c.user_id)
)


class SqlServiceUserKeyStore(PagedStore, ServiceUserKeyStore):
    """One row each."""

    def add(self, key: ServiceUserKey) -> None:
        self._try(_ROWS.insert, _ROWS.values(key))

    def find(self, key_id: str, user_id: str) -> ServiceUserKey | None:
        return self._find(_ROWS.of, _FIND, {"key": key_id, "user": user_id})

    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        row = self._one(_FIND_SIGNER, {"key": key_id, "user": user_id})
        return None if row is None else (_ROWS.of(row[_KEY]), users.subject_of(row[_SUBJECT]))

    def touch(self, key_id: str, at: datetime) -> None:
        self._change(_TOUCH, {"key": key_id, "last_used_at": seconds(at)})

    def remove(self, key_id: str) -> None:
        self._touch_one(_REMOVE, {"key": key_id})

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[ServiceUserKey]:
        return self._page_newest_first(_ROWS, _PAGE.params(user=user_id), request)

    def summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        return dict(self._many(_SUMMARIES.params(at=seconds(at)), user_ids, _summary_of))

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ServiceUserKey, ...]:
        return self._list(_ROWS.of, users.expiring(_ROWS, after, until, limit, organization_id))


@row_of(*_SUMMARIES.selected_columns)
def _summary_of(user_id: str, live: int, next_expiry: int, last_used_at: int | None) -> tuple[str, KeySummary]:
    last_used = None if last_used_at is None else moment(last_used_at)
    summary = KeySummary(live=live, next_expiry=moment(next_expiry), last_used_at=last_used)
    return user_id, summary
