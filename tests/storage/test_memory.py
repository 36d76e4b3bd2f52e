"""The reference backend passes the contract."""

import pytest

from identity.storage.contract import StorageContract
from identity.storage.memory import MemoryBackend


class TestMemory(StorageContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
