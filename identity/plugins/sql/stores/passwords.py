"""Password hashes in SQL."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, select, update

from identity.domain.users import PasswordHash
from identity.plugins.sql.rows import SqlStore, moment, row_of, seconds, upsert
from identity.plugins.sql.tables import passwords as table
from identity.storage.stores.passwords import PasswordStore

_COLUMNS = (table.c.user_id, table.c.hash, table.c.changed_at, table.c.must_change)
_FIND = select(*_COLUMNS).where(table.c.user_id == bindparam("user"))
_IS_STILL = (
    update(table)
    .where(table.c.user_id == bindparam("user"), table.c.hash == bindparam("known"))
    .values(hash=table.c.hash)
)
_MUST_CHANGE = select(*_COLUMNS).where(table.c.user_id.in_(bindparam("ids", expanding=True)))
_SET = upsert(table, by=table.c.user_id, replacing=(table.c.hash, table.c.changed_at, table.c.must_change))


class SqlPasswordStore(SqlStore, PasswordStore):
    """At most one row per user."""

    def find(self, user_id: str) -> PasswordHash | None:
        """The user's password hash."""
        row = self._one(_FIND, {"user": user_id})
        return None if row is None else _password_of(*row)

    def set(self, password: PasswordHash) -> None:
        """Store or replace the user's password hash."""
        values = {
            "user_id": password.user_id,
            "hash": password.hash,
            "changed_at": seconds(password.changed_at),
            "must_change": password.must_change,
        }
        self._try(_SET, values)

    def is_still(self, user_id: str, hash: str) -> bool:  # noqa: A002
        """True if this is the user's hash; the row is locked by being written as it is."""
        return self._change(_IS_STILL, {"user": user_id, "known": hash}) == 1

    def must_change(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        """Which of these users must change their password."""
        return {one.user_id: one.must_change for one in self._many(_MUST_CHANGE, user_ids, _password_of)}


@row_of(*_COLUMNS)
def _password_of(user_id: str, hash_: str, changed_at: int, must_change: bool) -> PasswordHash:
    return PasswordHash(user_id=user_id, hash=hash_, changed_at=moment(changed_at), must_change=must_change)
