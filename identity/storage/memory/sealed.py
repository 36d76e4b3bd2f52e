"""What lies sealed, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.tables import Table
from identity.storage.stores.sealed import Key, Others, Sealed, SealedStore, SealedValue

#: The table of each, and the field.
_PLACES: Mapping[Sealed, tuple[str, str]] = {
    Sealed.UPSTREAM_SECRETS: ("upstream_providers", "secret"),
    Sealed.MESSAGES: ("outgoing_messages", "sealed"),
    Sealed.RECORDS: ("records", "sealed"),
}


class MemorySealedStore(MemoryStore, SealedStore):
    """Looks at one table at a time."""

    def others(self, kind: Sealed, beginning: bytes, limit: int, *, after: Key | None = None) -> Others:
        table, name = self._place(kind)
        held = sorted((_tuple(key), getattr(row, name)) for key, row in table.rows.items())
        seen = [(key, sealed) for key, sealed in held if after is None or key > after][:limit]
        values = [SealedValue(key, sealed) for key, sealed in seen if sealed and not sealed.startswith(beginning)]
        return Others(values, seen[-1][0] if len(seen) == limit else None)

    def replace(self, kind: Sealed, value: SealedValue, sealed: bytes) -> bool:
        table, name = self._place(kind)
        key = value.key if kind is Sealed.RECORDS else value.key[0]
        row = table.find(key)
        if row is None or getattr(row, name) != value.sealed:
            return False
        table.put(key, replace(row, **{name: sealed}))
        return True

    def _place(self, kind: Sealed) -> tuple[Table[Any, Any], str]:
        table, name = _PLACES[kind]
        return getattr(self._tables, table), name


def _tuple(key: Any) -> Key:
    return key if isinstance(key, tuple) else (key,)
