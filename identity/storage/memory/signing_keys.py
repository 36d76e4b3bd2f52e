"""Signing keys, in memory."""

from dataclasses import replace

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

    def delete(self, key_id: str) -> None:
        self._tables.signing_keys.delete(key_id)
