"""The sample file storage passes the contract, and keeps the data of a service over a restart."""

from collections.abc import Callable
from pathlib import Path

import pytest

from identity.api.testing import StorageContract, WorldFactory
from identity.storage.backend import Backend
from tests.house.plugin_fixtures import SamplePlugins
from tests.house.sample_plugins.file_storage import FileBackend


class TestFileBackend(StorageContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> FileBackend:
        return FileBackend(tmp_path / "state")

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], Backend]:
        return lambda: FileBackend(tmp_path / "state")


def test_service_finds_its_users_after_a_restart(
    make_world: WorldFactory, sample_plugins: SamplePlugins, tmp_path: Path
) -> None:
    settings = {
        "identity.storage": "file",
        "identity.plugins": sample_plugins("file_storage"),
        "identity.plugin.file_storage.path": str(tmp_path / "state"),
    }
    world = make_world(**settings)
    user = world.make_human_user()
    with world.identity.read_session() as services:
        stored = services.users.get(user.id)
    backend = FileBackend(tmp_path / "state")
    with backend.read_session() as storage:
        assert storage.users.find(user.id) == stored
