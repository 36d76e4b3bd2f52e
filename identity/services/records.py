"""Records of plugins, each plugin in its own namespace."""

import json
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import token_digest
from identity.domain.records import Record
from identity.services.base import Service, translate_storage_errors
from identity.storage.errors import AlreadyUsed, RowNotFound, UnreadableRow

log = logging.getLogger(__name__)

#: Maximum size of a value, as JSON.
MAX_VALUE_BYTES = 64 * 1024

_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(eq=False, repr=False)
class RecordService(Service):
    """JSON objects of one plugin, by kind and key. A key is any text; only its digest is stored. Expired records are
    not found. A kind consists of lower-case letters, digits and underscores. An invalid kind, and a value that is not a
    JSON object or exceeds 64 KiB, raises ValueError."""

    _plugin: str

    def add(
        self,
        kind: str,
        key: str,
        value: Mapping[str, Any],
        *,
        user_id: str | None = None,
        application_id: str | None = None,
        expires_at: datetime | None = None,
        seal: bool = False,
    ) -> Record | None:
        """Add a record unless the key exists: returns None if it was added, else the existing record.

        The record is deleted with the user or application it names. With ``seal`` the value is encrypted in the
        database. One of several racing callers succeeds, the others get its record. Raises NotFound if the user or
        application does not exist."""
        new = self._set_value(
            Record(
                plugin=self._plugin,
                kind=_checked(kind),
                key=token_digest(key),
                user_id=user_id,
                application_id=application_id,
                created_at=self._now,
                expires_at=expires_at,
            ),
            value,
            seal=seal,
        )
        with translate_storage_errors("owner", user_id or application_id or ""):
            holder = self._storage.records.add(new, replacing_expired=True)
        return None if holder is None else self._unseal_record(holder)

    def find(self, kind: str, key: str) -> Record | None:
        """The record; None if it was consumed or has expired."""
        with self._look() as storage:
            record = storage.records.find(self._plugin, _checked(kind), token_digest(key))
        return self._unseal_record(record) if record is not None and record.is_live(self._now) else None

    def find_many(self, kind: str, keys: Collection[str]) -> Mapping[str, Record]:
        """The live records with these keys, by key and in one query."""
        names = {token_digest(key): key for key in keys}
        with self._look() as storage:
            records = storage.records.find_many(self._plugin, _checked(kind), names.keys())
        return {
            names[digest]: self._unseal_record(record)
            for digest, record in records.items()
            if record.is_live(self._now)
        }

    def replace(self, record: Record, value: Mapping[str, Any]) -> Record:
        """Replace the value, which stays sealed if it was. Raises Conflict if the record was changed concurrently,
        NotFound if it is gone."""
        following = self._set_value(replace(record, version=record.version + 1), value, seal=bool(record.sealed))
        if record.plugin != self._plugin:
            raise ValueError("a record of another plugin")
        with translate_storage_errors("record", record.kind):
            self._storage.records.replace(following)
        return self._unseal_record(following)

    def consume(self, kind: str, key: str) -> Record | None:
        """Find and delete the record: exactly one of several racing callers gets it. None if it does not exist, has
        expired or was consumed before."""
        try:
            return self._unseal_record(
                self._storage.records.consume(self._plugin, _checked(kind), token_digest(key), self._now)
            )
        except (AlreadyUsed, RowNotFound):
            return None

    def list_by_owner(
        self, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        """The live records of the user, of the application or of both together, newest first."""
        with self._look() as storage:
            records = storage.records.list_for_owner(
                self._plugin, _checked(kind), user_id=user_id, application_id=application_id
            )
        return tuple(self._unseal_record(record) for record in records if record.is_live(self._now))

    def delete(self, kind: str, key: str) -> bool:
        """Delete the record; False if there was none."""
        return self._storage.records.delete(self._plugin, _checked(kind), token_digest(key))

    def delete_by_owner(self, kind: str, *, user_id: str | None = None, application_id: str | None = None) -> int:
        """Delete all records of the user, of the application or of both together; returns the number deleted."""
        return self._storage.records.delete_for_owner(
            self._plugin, _checked(kind), user_id=user_id, application_id=application_id
        )

    def _set_value(self, record: Record, value: Mapping[str, Any], *, seal: bool) -> Record:
        text = json.dumps(_object(value), allow_nan=False)
        if len(text) > MAX_VALUE_BYTES:
            raise ValueError(f"a value of more than {MAX_VALUE_BYTES} bytes")
        if not seal:
            return replace(record, value=json.loads(text))
        return replace(
            record,
            value={},
            sealed=self._sealer.seal(text.encode(), associated_data=_sealing_context(record)),
        )

    def _unseal_record(self, record: Record) -> Record:
        """The record with its value unsealed. Raises UnreadableRow."""
        if not record.sealed:
            return record
        try:
            value = json.loads(self._sealer.open(record.sealed, associated_data=_sealing_context(record)))
        except UnsealingError as damage:
            log.error("a record of the plugin %s cannot be opened: %s", record.plugin, damage)
            raise UnreadableRow("records", record.key.hex()) from None
        return replace(record, value=value)


def _checked(kind: str) -> str:
    if not _KIND.fullmatch(kind):
        raise ValueError(f"the kind {kind!r} is no word of small letters, digits and underscores")
    return kind


def _object(value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError("a value that is no JSON object")
    return dict(value)


def _sealing_context(record: Record) -> str:
    return sealing_context(record.plugin, record.kind, record.key)


def sealing_context(plugin: str, kind: str, key: bytes) -> str:
    """Sealing context of the value of a plugin's record."""
    return f"record\n{plugin}\n{kind}\n{key.hex()}"
