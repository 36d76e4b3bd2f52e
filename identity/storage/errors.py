"""The answers, besides values, that a store can give."""


class StorageError(Exception):
    """Base of them all; nothing else leaves a backend."""

    commits_transaction = False


class RowNotFound(StorageError):
    """There is no such row (or none that the caller may touch)."""


class DuplicateValue(StorageError):
    """A unique value is taken; ``field`` names it."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is taken")
        self.field = field


class AlreadyUsed(StorageError):
    """A one-time thing was used before; ``value`` is the stored row where one exists."""

    def __init__(self, value: object = None) -> None:
        super().__init__("already used")
        self.value = value


class StorageUnavailable(StorageError):
    """The backend cannot answer now: down, full, overloaded, or its schema does not fit."""


class UnreadableRow(StorageUnavailable):
    """A stored row cannot be understood: damaged, or written by something else.

    ``table`` and ``id`` tell operators which; nothing that stands in it is told.
    """

    def __init__(self, table: str, id: str) -> None:  # noqa: A002
        super().__init__(f"the row {id} of {table} cannot be read")
        self.table = table
        self.id = id


class StaleRow(StorageError):
    """The row changed since the caller read it (its version differs)."""
