"""The storage port that a backend implements. Its contract is in identity.api.testing."""

from identity.storage.backend import Backend, Storage
from identity.storage.errors import AlreadyUsed, StorageError, StorageUnavailable
from identity.storage.memory import MemoryBackend

__all__ = [
    "AlreadyUsed",
    "Backend",
    "MemoryBackend",
    "Storage",
    "StorageError",
    "StorageUnavailable",
]
