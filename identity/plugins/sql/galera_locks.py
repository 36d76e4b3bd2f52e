"""Locks in a Galera cluster, whose nodes all take writes, while a row lock holds at one node alone.

There two transactions at two nodes are both committed unless they have written the same row, whatever they have locked.
So whoever locks what it only reads writes a row that stands for it: of those who guard the same one is committed, and
the others are made again.
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
    """Guard what these names name; where the lock itself holds for all, nothing is done. Raises StorageError."""
    if not connection.is_galera_node:
        return
    key = sha256("|".join(names).encode()).digest()
    with translating():
        _LOCK_ROW.execute(
            connection, _RECORD_TABLE.to_row(Record(plugin=CORE_NAMESPACE, kind="guard", key=key, created_at=_EPOCH))
        )
