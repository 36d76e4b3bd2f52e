"""Records, in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from identity.domain.records import Record
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.users import organization_user_ids
from identity.storage.stores.records import RecordStore


class MemoryRecordStore(MemoryStore, RecordStore):
    """Rows by plugin, kind and key."""

    def add(self, record: Record, *, replacing_expired: bool = False, is_last_write: bool = False) -> Record | None:
        holder = self.find(record.plugin, record.kind, record.key)
        if holder is not None:
            expired = holder.expires_at is not None and holder.expires_at <= record.created_at
            if not (expired and replacing_expired):
                return holder
        self._store(record)
        return None

    def find(self, plugin: str, kind: str, key: bytes, *, locked: bool = False) -> Record | None:
        # Writers are exclusive, so no further lock is needed.
        return self._tables.records.find((plugin, kind, key))

    def find_many(self, plugin: str, kind: str, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        found = {key: self.find(plugin, kind, key) for key in keys}
        return {key: record for key, record in found.items() if record is not None}

    def replace(self, record: Record) -> None:
        if record.version != self._tables.records.get((record.plugin, record.kind, record.key)).version + 1:
            raise StaleRow
        self._store(record)

    def consume(self, plugin: str, kind: str, key: bytes, consumed_at: datetime) -> Record:
        record = self._tables.records.get((plugin, kind, key))
        if record.taken_at is not None:
            raise AlreadyUsed(record)
        if not record.is_live(consumed_at):
            raise RowNotFound
        self._store(replace(record, taken_at=consumed_at, version=record.version + 1))
        return record

    def list_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        if user_id is None and application_id is None:
            return ()
        records = [
            record
            for record in self._tables.records
            if (record.plugin, record.kind) == (plugin, kind)
            and user_id in (None, record.user_id)
            and application_id in (None, record.application_id)
        ]
        return tuple(sorted(records, key=lambda record: (record.created_at, record.key), reverse=True))

    def delete(self, plugin: str, kind: str, key: bytes) -> bool:
        found = (plugin, kind, key) in self._tables.records
        if found:
            self._tables.records.delete((plugin, kind, key))
        return found

    def delete_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> int:
        doomed = self.list_for_owner(plugin, kind, user_id=user_id, application_id=application_id)
        return sum(self.delete(plugin, kind, record.key) for record in doomed)

    def delete_for_organization(
        self, plugin: str, kind: str, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        users = organization_user_ids(self._tables, organization_id, except_user_ids)
        return sum(self.delete_for_owner(plugin, kind, user_id=user_id) for user_id in users)

    def _store(self, record: Record) -> None:
        self._tables.records.replace((record.plugin, record.kind, record.key), record)
