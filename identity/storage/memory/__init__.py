"""The reference backend: keeps everything in the memory of one process."""

from identity.storage.memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
