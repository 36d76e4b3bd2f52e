"""StorageDump: everything in a storage as rows, for backups that any backend can write and restore."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: The value of a column.
Cell = str | int | bool | bytes | None


@dataclass(frozen=True)
class TableRows:
    """The rows of one table. They are read lazily and can be iterated once."""

    table: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True)
class StorageDump:
    """All tables of one moment, ordered so that no row refers to a later table. ``schema_revision`` is the revision
    that the rows fit. ``sequence_numbers`` are the last numbers assigned, by table, where a number must not be
    reused."""

    schema_revision: str
    sequence_numbers: Mapping[str, int]
    tables: Iterable[TableRows]
