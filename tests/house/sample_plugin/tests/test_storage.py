"""The storage backend passes the contract."""

import pytest
from sample_plugin.storage import SampleBackend

from identity.api.testing import StorageContract


class TestSampleBackend(StorageContract):
    @pytest.fixture
    def backend(self) -> SampleBackend:
        return SampleBackend()
