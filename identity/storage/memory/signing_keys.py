"""Signing keys, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.signing_keys import SigningKey
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.stores.signing_keys import SigningKeyStore


class MemorySigningKeyStore(MemoryStore, SigningKeyStore):
    def add(self, key: SigningKey) -> None:
        self._tables.signing_keys.insert({key.id: key})

    def list_all(self) -> tuple[SigningKey, ...]:
        return tuple(sorted(self._tables.signing_keys, key=lambda key: key.generation))

    def update_sealed_private_key(self, key_id: str, sealed_private_key: bytes) -> None:
        key = self._tables.signing_keys.get(key_id)
        self._tables.signing_keys.replace_unchecked(key_id, replace(key, sealed_private_key=sealed_private_key))

    def retire(self, key_id: str, at: datetime) -> bool:
        key = self._tables.signing_keys.find(key_id)
        if key is None or key.retired_at is not None:
            return False
        self._tables.signing_keys.replace_unchecked(key_id, replace(key, retired_at=at))
        return True

    def delete(self, key_id: str) -> None:
        self._tables.signing_keys.delete(key_id)
