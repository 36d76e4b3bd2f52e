"""A storage in one file: the reference backend, which stores its state at each commit."""

import os
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from identity.api.plugins import InvalidSetting, hookimpl, setting
from identity.api.storage import Backend, MemoryBackend


class FileBackend(MemoryBackend):
    """The backend "file". One process may write; others see what it commits."""

    name: ClassVar[str] = "file"
    is_durable: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._loaded: tuple[int, int] | None = None

    def publish(self, state: Mapping[str, dict[Any, Any]]) -> None:
        """The file is replaced as a whole, so that a crash leaves the old or the new one."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            pickle.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._loaded = self._version()
        super().publish(state)

    def refresh(self) -> None:
        version = self._version()
        if version is not None and version != self._loaded:
            super().publish(pickle.loads(self._path.read_bytes()))  # noqa: S301 - the service's own file
            self._loaded = version

    def _version(self) -> tuple[int, int] | None:
        """Changes with each replacement; None without a file."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


class FileStoragePlugin:
    """Offers the storage "file"."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """The keys ``identity.plugin.file_storage.*`` of the ini file."""

        path: str = setting("The file. Its folder must exist.", default="identity.state")

        def __post_init__(self) -> None:
            if not Path(self.path).absolute().parent.is_dir():
                raise InvalidSetting("path", "its folder must exist")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_storage_backends(self) -> Iterable[Backend]:
        return [FileBackend(Path(self.settings.path))]
