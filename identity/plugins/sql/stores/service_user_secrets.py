"""Secrets of service users in SQL."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.plugins.sql.mapping import Mapped, readable, slices
from identity.plugins.sql.rows import Prepared, SqlStore, move_forward
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import service_user_secrets as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.stores.service_user_secrets import ServiceUserSecretStore
from identity.storage.stores.users import UserKind

_ROWS = Mapped[ServiceUserSecret](table)
_SECRET, _SUBJECT = slices(_ROWS, users.SUBJECT)
_OLDEST_FIRST = (table.c.created_at, table.c.id)

#: One row per secret.
_FIND_HOLDER = Prepared(
    select(*_ROWS.columns, *users.SUBJECT)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(table.c.user_id == bindparam("user"), users_table.c.kind == UserKind.SERVICE.value)
    .order_by(*_OLDEST_FIRST)
)
_OF_USER = _ROWS.select.where(table.c.user_id == bindparam("user")).order_by(*_OLDEST_FIRST)
#: Tokens may be issued meanwhile: their reference to the row does not wait for this.
_LOCK = select(users_table.c.id).where(users_table.c.id == bindparam("key")).with_for_update(key_share=True)
_TOUCH = move_forward(table.c.last_used_at)
_REMOVE = delete(table).where(table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))


class SqlServiceUserSecretStore(SqlStore, ServiceUserSecretStore):
    """One row each; the access tokens that it obtained go by foreign keys."""

    def add(self, secret: ServiceUserSecret) -> None:
        self._try(_ROWS.insert, _ROWS.values(secret))

    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        rows = self._all(_FIND_HOLDER, {"user": user_id})
        if not rows:
            return None
        return users.subject_of(rows[0][_SUBJECT]), tuple(readable(_ROWS.of, (row[_SECRET] for row in rows)))

    def of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        return self._list(_ROWS.of, _OF_USER, {"user": user_id})

    def lock_of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        self._one(_LOCK, {"key": user_id})
        return self.of_user(user_id)

    def remove(self, user_id: str, secret_id: str) -> None:
        self._touch_one(_REMOVE, {"key": secret_id, "user": user_id})

    def touch(self, uses: Mapping[str, datetime]) -> None:
        self._move_forward(_TOUCH, uses)
