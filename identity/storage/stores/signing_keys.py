"""Signing keys of the service."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.signing_keys import SigningKey


class SigningKeyStore(ABC):
    """Unique: ``generation``, which decides between nodes that rotate concurrently."""

    @abstractmethod
    def add(self, key: SigningKey) -> None:
        """Store the next generation. Raises DuplicateValue("generation") if another node was first."""

    @abstractmethod
    def list_all(self) -> tuple[SigningKey, ...]:
        """Every stored key, oldest generation first."""

    @abstractmethod
    def update_sealed_private_key(self, key_id: str, sealed_private_key: bytes) -> None:
        """Replace the sealed private key after a change of master key. Raises RowNotFound."""

    @abstractmethod
    def retire(self, key_id: str, at: datetime) -> bool:
        """Set ``retired_at``; False if the key is gone or retired already."""

    @abstractmethod
    def delete(self, key_id: str) -> None:
        """Delete a key that is no longer published. Raises RowNotFound."""
