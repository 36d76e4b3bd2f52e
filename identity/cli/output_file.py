"""New files that a command writes completely or not at all, readable by their owner only."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from identity.cli.command_context import CommandError


@contextmanager
def open_output_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file, mode 0600, which is removed if the block fails.

    Raises CommandError if the file exists.
    """
    if os.path.lexists(path):
        raise _already_exists_error(path)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise _already_exists_error(path) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _already_exists_error(path: Path) -> CommandError:
    return CommandError(f"{path} exists already; move it away, or choose another file.")
