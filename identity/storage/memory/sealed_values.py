"""Sealed values, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.tables import MemoryTable
from identity.storage.stores.sealed_values import (
    PrimaryKey,
    SealedValue,
    SealedValueBatch,
    SealedValueKind,
    SealedValueStore,
)

#: Table and field of each kind.
_TABLE_FIELDS: Mapping[SealedValueKind, tuple[str, str]] = {
    SealedValueKind.UPSTREAM_SECRETS: ("upstream_providers", "secret"),
    SealedValueKind.WEBHOOK_SECRETS: ("webhooks", "secret"),
    SealedValueKind.MESSAGES: ("outgoing_messages", "sealed"),
    SealedValueKind.RECORDS: ("records", "sealed"),
}


class MemorySealedValueStore(MemoryStore, SealedValueStore):
    def list_with_other_prefix(
        self, kind: SealedValueKind, active_prefix: bytes, limit: int, *, cursor: PrimaryKey | None = None
    ) -> SealedValueBatch:
        table, name = self._table_field(kind)
        stored = sorted((_key_tuple(key), getattr(row, name)) for key, row in table.rows.items())
        batch = [(key, sealed) for key, sealed in stored if cursor is None or key > cursor][:limit]
        values = [SealedValue(key, sealed) for key, sealed in batch if sealed and not sealed.startswith(active_prefix)]
        return SealedValueBatch(values, batch[-1][0] if len(batch) == limit else None)

    def replace(self, kind: SealedValueKind, value: SealedValue, sealed: bytes) -> bool:
        table, name = self._table_field(kind)
        key = value.key if kind is SealedValueKind.RECORDS else value.key[0]
        row = table.find(key)
        if row is None or getattr(row, name) != value.sealed:
            return False
        table.replace_unchecked(key, replace(row, **{name: sealed}))
        return True

    def _table_field(self, kind: SealedValueKind) -> tuple[MemoryTable[Any, Any], str]:
        table, name = _TABLE_FIELDS[kind]
        return getattr(self._tables, table), name


def _key_tuple(key: Any) -> PrimaryKey:
    return key if isinstance(key, tuple) else (key,)
