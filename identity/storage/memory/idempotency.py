"""Idempotency keys and what was answered under them, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.idempotency import IdempotencyRecord
from identity.storage.memory.tables import Tables, purge
from identity.storage.stores.idempotency import IdempotencyStore


class MemoryIdempotencyStore(IdempotencyStore):
    """Rows by key."""

    def __init__(self, tables: Tables) -> None:
        self._records = tables.idempotency_records

    def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        holder = self._records.find(record.key)
        if holder is not None and record.created_at < holder.expires_at:
            return holder
        self._records.put(record.key, record)
        return None

    def complete(self, key: bytes, status: int, sealed: bytes) -> None:
        self._records.put(key, replace(self._records.get(key), status=status, sealed=sealed))

    def purge(self, before: datetime, limit: int) -> int:
        return purge(self._records, limit, lambda record: record.expires_at < before, self._records.delete)
