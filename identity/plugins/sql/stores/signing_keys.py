"""Signing keys in SQL."""

from sqlalchemy import bindparam, delete, update

from identity.domain.signing_keys import SigningKey
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import signing_keys as table
from identity.storage.stores.signing_keys import SigningKeyStore

_MAPPED_TABLE = MappedTable[SigningKey](table)
_LIST_ALL = _MAPPED_TABLE.select.order_by(table.c.generation)
_UPDATE_SEALED_PRIVATE_KEY = update(table).where(table.c.id == bindparam("key"))
_DELETE = delete(table).where(table.c.id == bindparam("key"))


class SqlSigningKeyStore(SqlStore, SigningKeyStore):
    def add(self, key: SigningKey) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(key))

    def list_all(self) -> tuple[SigningKey, ...]:
        return self._fetch_values(_MAPPED_TABLE.from_row, _LIST_ALL)

    def update_sealed_private_key(self, key_id: str, sealed_private_key: bytes) -> None:
        self._execute_for_one(_UPDATE_SEALED_PRIVATE_KEY, {"key": key_id, "sealed_private_key": sealed_private_key})

    def delete(self, key_id: str) -> None:
        self._execute_for_one(_DELETE, {"key": key_id})
