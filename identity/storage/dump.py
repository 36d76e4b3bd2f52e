"""Everything that a storage holds, as rows: what a backup is made of, whichever database it comes from or goes to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: What a column of a row can hold.
Cell = str | int | bool | bytes | None


@dataclass(frozen=True)
class TableRows:
    """The rows of one table. They can be gone through once, and are read meanwhile."""

    table: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True)
class StorageDump:
    """All tables of one moment, in an order in which no row refers to one of a later table.

    ``schema_revision`` is the revision that they fit. ``sequence_numbers`` are those that were given last, by table,
    where no number may be given twice.
    """

    schema_revision: str
    sequence_numbers: Mapping[str, int]
    tables: Iterable[TableRows]
