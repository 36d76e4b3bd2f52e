"""Locks in a Galera cluster, whose nodes all accept writes, while a row lock is local to its node.

Two transactions on two nodes both commit unless they wrote the same row, whatever they locked. So a transaction that
relies on a read lock also writes a row that represents it: of several transactions with the same one only one
commits, and the others are retried.
"""

from hashlib import sha256

from identity.domain.records import CORE_NAMESPACE, Record
from identity.plugins.sql.column_codecs import datetime_from_seconds
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.errors import translating
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import records as table

_RECORD_TABLE = MappedTable[Record](table)
_LOCK_ROW = CompiledStatement(Upsert(table, list(table.primary_key), lambda _: {table.c.version: table.c.version + 1}))
_EPOCH = datetime_from_seconds(0)


def lock_names(connection: DatabaseConnection, *names: str) -> None:
    """Write the rows for these names; does nothing where locks are global. Raises StorageError."""
    if not connection.is_galera_node:
        return
    key = sha256("|".join(names).encode()).digest()
    with translating():
        _LOCK_ROW.execute(
            connection, _RECORD_TABLE.to_row(Record(plugin=CORE_NAMESPACE, kind="guard", key=key, created_at=_EPOCH))
        )
