"""Storage "memory": everything in the memory of one process, for trying out and for tests."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity.api.plugins import hookimpl
from identity.api.storage import Backend, MemoryBackend


class MemoryPlugin:
    """In-memory storage, for tests."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """There is nothing to set."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_storage_backends(self) -> Iterable[Backend]:
        """Offer the backend."""
        return [MemoryBackend()]
