"""Errors of the storage port."""


class StorageError(Exception):
    """Base class; a backend raises no other exceptions."""

    commits_transaction = False


class RowNotFound(StorageError):
    """There is no such row, or none that the caller may change."""


class DuplicateValue(StorageError):
    """A unique value is taken; ``field`` names it."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is taken")
        self.field = field


class AlreadyUsed(StorageError):
    """A single-use value was used before; ``value`` is the stored row if there is one."""

    def __init__(self, value: object = None) -> None:
        super().__init__("already used")
        self.value = value


class StorageUnavailable(StorageError):
    """The backend cannot respond now: down, full, overloaded, or its schema does not match."""


class UnreadableRow(StorageUnavailable):
    """A stored row cannot be read: damaged, or written by something else. ``table`` and ``id`` identify it for
    operators; its content is not disclosed."""

    def __init__(self, table: str, id: str) -> None:
        super().__init__(f"the row {id} of {table} cannot be read")
        self.table = table
        self.id = id


class StaleRow(StorageError):
    """The row was changed since the caller read it (its version differs)."""
