"""Secrets of service users in SQL."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.plugins.sql.rows import (
    Prepared,
    SqlStore,
    moment,
    moment_or_none,
    move_forward,
    readable,
    row_of,
    seconds,
    seconds_or_none,
)
from identity.plugins.sql.stores import organizations, users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import service_user_secrets as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.stores.service_user_secrets import ServiceUserSecretStore
from identity.storage.stores.users import UserKind

COLUMNS = (table.c.id, table.c.user_id, table.c.digest, table.c.created_at, table.c.last_used_at)
_END = len(COLUMNS)
_OLDEST_FIRST = (table.c.created_at, table.c.id)

_ADD = insert(table)
#: One row per secret.
_FIND_HOLDER = Prepared(
    select(*COLUMNS, *users.COLUMNS, *organizations.COLUMNS)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(table.c.user_id == bindparam("user"), users_table.c.kind == UserKind.SERVICE.value)
    .order_by(*_OLDEST_FIRST)
)
_OF_USER = select(*COLUMNS).where(table.c.user_id == bindparam("user")).order_by(*_OLDEST_FIRST)
#: Tokens may be issued meanwhile: their reference to the row does not wait for this.
_LOCK = select(users_table.c.id).where(users_table.c.id == bindparam("key")).with_for_update(key_share=True)
_TOUCH = move_forward(table.c.last_used_at)
_REMOVE = delete(table).where(table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))


class SqlServiceUserSecretStore(SqlStore, ServiceUserSecretStore):
    """One row each; the access tokens that it obtained go by foreign keys."""

    def add(self, secret: ServiceUserSecret) -> None:
        """Store a secret beside the others."""
        values = {
            "id": secret.id,
            "user_id": secret.user_id,
            "digest": secret.digest,
            "created_at": seconds(secret.created_at),
            "last_used_at": seconds_or_none(secret.last_used_at),
        }
        self._try(_ADD, values)

    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        """The service user with its organization and its secrets, in one query."""
        rows = self._all(_FIND_HOLDER, {"user": user_id})
        if not rows:
            return None
        return users.subject_of(rows[0][_END:]), tuple(readable(_secret_of, (row[:_END] for row in rows)))

    def of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        """The user's secrets, oldest first."""
        return tuple(readable(_secret_of, self._all(_OF_USER, {"user": user_id})))

    def lock_of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        """The same, locked by their user's row."""
        self._one(_LOCK, {"key": user_id})
        return self.of_user(user_id)

    def remove(self, user_id: str, secret_id: str) -> None:
        """Delete one secret of the user with the access tokens that it obtained."""
        self._touch_one(_REMOVE, {"key": secret_id, "user": user_id})

    def touch(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the secrets with these ids forward."""
        self._move_forward(_TOUCH, uses)


@row_of(*COLUMNS)
def _secret_of(id_: str, user_id: str, digest: bytes, created_at: int, last_used_at: int | None) -> ServiceUserSecret:
    return ServiceUserSecret(
        id=id_,
        user_id=user_id,
        digest=digest,
        created_at=moment(created_at),
        last_used_at=moment_or_none(last_used_at),
    )
