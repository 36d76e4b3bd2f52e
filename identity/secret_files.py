"""Writes files that hold secrets: atomically, with mode 0600, and removed again if the surrounding work fails."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from identity.domain.errors import Invalid


@contextmanager
def secret_file_transaction() -> Iterator["SecretFileWriter"]:
    """Files that stay only if the block succeeds: a rolled-back transaction leaves no key behind."""
    files = SecretFileWriter()
    try:
        yield files
    except BaseException:
        files.roll_back()
        raise


class SecretFileWriter:
    """Writes secret files, whatever the umask; ``written_paths`` lists them."""

    def __init__(self) -> None:
        self.written_paths: list[Path] = []
        self._previous_contents: dict[Path, str | None] = {}

    def __call__(self, path: Path, text: str) -> None:
        """Write the file, creating its folder if necessary. Raises Invalid with the reason."""
        try:
            self._previous_contents.setdefault(path, path.read_text("utf-8") if path.exists() else None)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(path, text + "\n")
        except OSError as problem:
            raise Invalid({"file": f"{path} cannot be written: {problem.strerror}."}) from None
        self.written_paths.append(path)

    def roll_back(self) -> None:
        """Restore the previous state of all files."""
        for path in self.written_paths:
            before = self._previous_contents[path]
            if before is None:
                path.unlink(missing_ok=True)
            else:
                _replace(path, before)


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
