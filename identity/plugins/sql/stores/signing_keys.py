"""Signing keys in SQL."""

from datetime import datetime

from sqlalchemy import delete, update

from identity.domain.signing_keys import SigningKey
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import signing_keys as table
from identity.storage.stores.signing_keys import SigningKeyStore

_MAPPED_TABLE = MappedTable[SigningKey](table)


class SqlSigningKeyStore(SqlStore, SigningKeyStore):
    def add(self, key: SigningKey) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(key))

    def list_all(self) -> tuple[SigningKey, ...]:
        return self._fetch_values(_MAPPED_TABLE.from_row, _MAPPED_TABLE.select.order_by(table.c.generation))

    def update_sealed_private_key(self, key_id: str, sealed_private_key: bytes) -> None:
        self._execute_for_one(update(table).where(table.c.id == key_id).values(sealed_private_key=sealed_private_key))

    def retire(self, key_id: str, at: datetime) -> bool:
        is_signing = (table.c.id == key_id, table.c.retired_at.is_(None))
        statement = update(table).where(*is_signing).values(retired_at=seconds_from_datetime(at))
        return self._execute(statement) == 1

    def delete(self, key_id: str) -> None:
        self._execute_for_one(delete(table).where(table.c.id == key_id))
