"""Public keys of service users in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import bindparam, case, delete, func, insert, select, update

from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import Subject
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import Prepared, moment, moment_or_none, readable, row_of, seconds, seconds_or_none
from identity.plugins.sql.stores import organizations, users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import service_user_keys as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.service_user_keys import ServiceUserKeyStore
from identity.storage.stores.users import UserKind

COLUMNS = (
    table.c.id,
    table.c.user_id,
    table.c.public_key,
    table.c.created_at,
    table.c.expires_at,
    table.c.last_used_at,
)
_KEY_END = len(COLUMNS)
_USER_END = _KEY_END + len(users.COLUMNS)

_OF_USER = (table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))
_ADD = insert(table)
_FIND = select(*COLUMNS).where(*_OF_USER)
_FIND_SIGNER = Prepared(
    select(*COLUMNS, *users.COLUMNS, *organizations.COLUMNS)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(*_OF_USER, users_table.c.kind == UserKind.SERVICE.value)
)
_TOUCH = update(table).where(table.c.id == bindparam("key"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS).where(table.c.user_id == bindparam("user"))
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
        """Store a new key."""
        values = {
            "id": key.id,
            "user_id": key.user_id,
            "public_key": key.public_key,
            "created_at": seconds(key.created_at),
            "expires_at": seconds(key.expires_at),
            "last_used_at": seconds_or_none(key.last_used_at),
        }
        self._try(_ADD, values)

    def find(self, key_id: str, user_id: str) -> ServiceUserKey | None:
        """The key with this id, if it is this user's."""
        row = self._one(_FIND, {"key": key_id, "user": user_id})
        return None if row is None else _key_of(*row)

    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        """The key with its service user and organization, in one query."""
        row = self._one(_FIND_SIGNER, {"key": key_id, "user": user_id})
        if row is None:
            return None
        subject = Subject(
            users.user_of(*row[_KEY_END:_USER_END]),
            organizations.organization_of(*row[_USER_END:]),
        )
        return _key_of(*row[:_KEY_END]), subject

    def touch(self, key_id: str, at: datetime) -> None:
        """Set ``last_used_at``."""
        self._change(_TOUCH, {"key": key_id, "last_used_at": seconds(at)})

    def remove(self, key_id: str) -> None:
        """Delete it."""
        self._touch_one(_REMOVE, {"key": key_id})

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[ServiceUserKey]:
        """The user's keys."""
        return self._page_newest_first(_PAGE.params(user=user_id), table, request, _key_of)

    def summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        """The keys of each of these users taken together."""
        return dict(self._many(_SUMMARIES.params(at=seconds(at)), user_ids, _summary_of))

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ServiceUserKey, ...]:
        """Keys with ``after < expires_at <= until``, soonest first."""
        statement = users.expiring(table, COLUMNS, after, until, limit, organization_id)
        return tuple(readable(_key_of, self._all(statement)))


@row_of(*_SUMMARIES.selected_columns)
def _summary_of(user_id: str, live: int, next_expiry: int, last_used_at: int | None) -> tuple[str, KeySummary]:
    summary = KeySummary(live=live, next_expiry=moment(next_expiry), last_used_at=moment_or_none(last_used_at))
    return user_id, summary


@row_of(*COLUMNS)
def _key_of(
    id_: str, user_id: str, public_key: bytes, created_at: int, expires_at: int, last_used_at: int | None
) -> ServiceUserKey:
    return ServiceUserKey(
        id=id_,
        user_id=user_id,
        public_key=public_key,
        created_at=moment(created_at),
        expires_at=moment(expires_at),
        last_used_at=moment_or_none(last_used_at),
    )
