"""Password hashes in SQL."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, update

from identity.domain.users import PasswordHash
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.rows import SqlStore, upsert
from identity.plugins.sql.tables import passwords as table
from identity.storage.stores.passwords import PasswordStore

_ROWS = Mapped[PasswordHash](table)
_FIND = _ROWS.select.where(table.c.user_id == bindparam("user"))
_IS_STILL = (
    update(table)
    .where(table.c.user_id == bindparam("user"), table.c.hash == bindparam("known"))
    .values(hash=table.c.hash)
)
_MUST_CHANGE = _ROWS.select.where(table.c.user_id.in_(bindparam("ids", expanding=True)))
_SET = upsert(table, by=table.c.user_id, replacing=(table.c.hash, table.c.changed_at, table.c.must_change))


class SqlPasswordStore(SqlStore, PasswordStore):
    """At most one row per user."""

    def find(self, user_id: str) -> PasswordHash | None:
        return self._find(_ROWS.of, _FIND, {"user": user_id})

    def set(self, password: PasswordHash) -> None:
        self._try(_SET, _ROWS.values(password))

    def is_still(self, user_id: str, hash: str) -> bool:  # noqa: A002
        # The row is locked by being written as it is.
        return self._change(_IS_STILL, {"user": user_id, "known": hash}) == 1

    def must_change(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        return {one.user_id: one.must_change for one in self._many(_MUST_CHANGE, user_ids, _ROWS.of)}
