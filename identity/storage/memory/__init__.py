"""The reference backend: everything in the memory of one process, gone when it ends."""

from identity.storage.memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
