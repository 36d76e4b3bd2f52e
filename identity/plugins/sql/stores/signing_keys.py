"""Signing keys of the service in SQL."""

from sqlalchemy import bindparam, delete, update

from identity.domain.signing_keys import SigningKey
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.tables import signing_keys as table
from identity.storage.stores.signing_keys import SigningKeyStore

_ROWS = Mapped[SigningKey](table)
_ALL = _ROWS.select.order_by(table.c.generation)
_RESEAL = update(table).where(table.c.id == bindparam("key"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))


class SqlSigningKeyStore(SqlStore, SigningKeyStore):
    """One row each."""

    def add(self, key: SigningKey) -> None:
        self._try(_ROWS.insert, _ROWS.values(key))

    def all(self) -> tuple[SigningKey, ...]:
        return self._list(_ROWS.of, _ALL)

    def reseal(self, key_id: str, sealed_private_key: bytes) -> None:
        self._touch_one(_RESEAL, {"key": key_id, "sealed_private_key": sealed_private_key})

    def remove(self, key_id: str) -> None:
        self._touch_one(_REMOVE, {"key": key_id})
