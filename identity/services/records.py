"""What a plugin keeps: records in a name space of its own."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import token_digest
from identity.domain.records import Record, RecordNamespace
from identity.services.base import Service, TransactionState, translate_storage_errors
from identity.storage.errors import AlreadyUsed, RowNotFound, UnreadableRow

log = logging.getLogger(__name__)

#: The most bytes of one value, as JSON.
MAX_VALUE_BYTES = 64 * 1024

_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


class RecordService(Service):
    """JSON objects by kind and key, of one plugin.

    A key is any text; its digest alone is stored. What has expired is gone. A kind is a word of small letters, digits
    and underscores; another one, and a value that is no JSON object or larger than 64 KiB, raises ValueError.
    """

    def __init__(self, state: TransactionState, sealer: Sealer, name_space: RecordNamespace) -> None:
        super().__init__(state)
        self._sealer, self._plugin = sealer, name_space.plugin

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
        """Keep the value under a key that is free: None if it is kept, else the record that holds the key.

        The record goes with the user and the application that it names. With ``seal`` the database holds the value
        encrypted. Of racing callers one succeeds, and the others see what it kept. Raises NotFound if there is no such
        user or application.
        """
        new = self._filled(
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
        return None if holder is None else self._opened(holder)

    def find(self, kind: str, key: str) -> Record | None:
        """The record, unless it was taken or has expired."""
        with self._look() as storage:
            record = storage.records.find(self._plugin, _checked(kind), token_digest(key))
        return self._opened(record) if record is not None and record.is_live(self._now) else None

    def replace(self, record: Record, value: Mapping[str, Any]) -> Record:
        """The record with another value, which is sealed if the one before was.

        Raises Conflict if somebody else changed it meanwhile, NotFound if it is gone.
        """
        following = self._filled(replace(record, version=record.version + 1), value, seal=bool(record.sealed))
        if record.plugin != self._plugin:
            raise ValueError("a record of another plugin")
        with translate_storage_errors("record", record.kind):
            self._storage.records.replace(following)
        return self._opened(following)

    def consume(self, kind: str, key: str) -> Record | None:
        """The record, which nobody gets again: of racing callers exactly one does.

        None if there is none, it has expired or was taken before.
        """
        try:
            return self._opened(
                self._storage.records.consume(self._plugin, _checked(kind), token_digest(key), self._now)
            )
        except (AlreadyUsed, RowNotFound):
            return None

    def list_by_owner(
        self, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        """The records of the user, of the application or of both together that can still be found, newest first."""
        with self._look() as storage:
            records = storage.records.list_for_owner(
                self._plugin, _checked(kind), user_id=user_id, application_id=application_id
            )
        return tuple(self._opened(record) for record in records if record.is_live(self._now))

    def delete(self, kind: str, key: str) -> bool:
        """Forget the record; False if there was none."""
        return self._storage.records.delete(self._plugin, _checked(kind), token_digest(key))

    def delete_by_owner(self, kind: str, *, user_id: str | None = None, application_id: str | None = None) -> int:
        """Forget all records of the user, of the application or of both together; returns how many went."""
        return self._storage.records.delete_for_owner(
            self._plugin, _checked(kind), user_id=user_id, application_id=application_id
        )

    def _filled(self, record: Record, value: Mapping[str, Any], *, seal: bool) -> Record:
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

    def _opened(self, record: Record) -> Record:
        """The record with its value readable. Raises UnreadableRow."""
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
    """With what the value of a plugin's record is sealed."""
    return f"record\n{plugin}\n{kind}\n{key.hex()}"
