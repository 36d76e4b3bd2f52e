"""Maps tables to frozen dataclasses: columns, and how rows are read and written, follow from the fields.

A column has the name of its field, and the column type of the field's type. A column without a field is filled from
the property of its name, or from the function ``of`` in its ``info``. Rows are read into the slots of the dataclass,
so it must have slots.

Fields that no query uses and most rows leave at their defaults can share the JSON column ``settings``: a column costs
each read 0.2 microseconds, a setting costs nothing, and a new one needs no revision.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache, wraps
from itertools import accumulate, pairwise
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

from sqlalchemy import Column, ColumnElement, FromClause, Table, insert, select

from identity.domain.entity import EntityField, entity_fields
from identity.plugins.sql.column_codecs import (
    SPACE_DELIMITED,
    CodePointText,
    ColumnCodec,
    RawBoolean,
    codec_for,
    settings_codec,
)
from identity.storage.errors import UnreadableRow

log = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")
Values = dict[str, Any]
#: A row, accessed by position.
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class _MappedColumn:
    """A column that stores a field, or a field of a nested dataclass."""

    name: str
    path: str
    codec: ColumnCodec
    nullable: bool
    default: Any = None

    @property
    def writer(self) -> Callable[[Any], Any]:
        """Converts a value to what the column stores."""
        get, write = attrgetter(self.path), self.codec.write
        if write is None:
            return get
        if not self.nullable:
            return lambda value: write(get(value))

        def written(value: Any) -> Any:
            attribute = get(value)
            return None if attribute is None else write(attribute)

        return written

    @property
    def stored_default(self) -> Any:
        write = self.codec.write
        return self.default if write is None or self.default is None else write(self.default)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The contents of a table: values of one class, or of several classes by the column ``kind``. ``value_lists`` names
    the fields stored as space-delimited values, ``flattened`` those with a column per nested field, ``settings`` those
    stored in the column ``settings``."""

    classes: type | Mapping[str, type]
    value_lists: tuple[str, ...] = ()
    flattened: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()

    @property
    def classes_by_kind(self) -> Mapping[str, Any]:
        return {"": self.classes} if isinstance(self.classes, type) else self.classes

    def mapped_columns(self, kind: Any) -> Iterator[_MappedColumn]:
        for item in fields(kind):
            if item.name in self.settings:
                continue
            type_, nullable = _split_optional(item.type)
            if item.name in self.flattened:
                for part, name in zip(fields(type_), self.flattened[item.name], strict=True):
                    part_type, nullable = _split_optional(part.type)
                    yield _MappedColumn(name, f"{item.name}.{part.name}", codec_for(part_type), nullable)
            else:
                codec = SPACE_DELIMITED if item.name in self.value_lists else codec_for(type_)
                yield _MappedColumn(
                    item.name, item.name, codec, nullable, None if item.default is MISSING else item.default
                )

    def settings_fields(self, kind: Any) -> list[EntityField]:
        """The fields of the class in the column ``settings``."""
        return [item for item in entity_fields(kind).values() if item.name in self.settings]

    def columns(self) -> list[Column[Any]]:
        """A column for each field. It is nullable if some class lacks a field that has no default."""
        columns = {} if isinstance(self.classes, type) else {"kind": Column("kind", CodePointText, nullable=False)}
        for kind in self.classes_by_kind.values():
            for mapped_column in self.mapped_columns(kind):
                lacking = any(
                    other is not kind and not hasattr(other, mapped_column.name)
                    for other in self.classes_by_kind.values()
                )
                nullable = mapped_column.nullable or (lacking and mapped_column.default is None)
                columns.setdefault(
                    mapped_column.name, Column(mapped_column.name, mapped_column.codec.column, nullable=nullable)
                )
        if self.settings:
            columns["settings"] = Column("settings", CodePointText, nullable=False)
        return list(columns.values())


def _split_optional(kind: Any) -> tuple[Any, bool]:
    kinds = get_args(kind)
    return (next(kind for kind in kinds if kind is not NoneType), True) if NoneType in kinds else (kind, False)


class MappedTable(Generic[ValueT]):
    """Conversion between rows and values: ``from_row`` and ``to_row``. ``columns`` are those that a value is read from;
    ``from_row`` takes a row of them, and raises UnreadableRow. Columns besides fields and properties are left to the
    caller."""

    def __init__(self, table: Table) -> None:
        layout: TableLayout = table.info["layout"]
        stored = {kind_name: list(layout.mapped_columns(kind)) for kind_name, kind in layout.classes_by_kind.items()}
        names = {"kind"} if len(stored) > 1 else set()
        names |= {mapped_column.name for of_kind in stored.values() for mapped_column in of_kind}
        names |= {"settings"} if layout.settings else set()
        self.table = table
        self.columns = tuple(column for column in table.c if column.name in names)
        self.select = select(*self.columns)
        self.insert = insert(table)
        self.from_row: Callable[[Row], ValueT] = _checked_reader(self.columns, self._create_reader(layout, stored))
        writers = {
            kind: self._create_writer(kind_name, kind, layout, stored)
            for kind_name, kind in layout.classes_by_kind.items()
        }
        self.to_row: Callable[[ValueT], Values] = next(iter(writers.values()))
        if len(writers) > 1:
            self.to_row = lambda value: writers[type(value)](value)

    def __len__(self) -> int:
        return len(self.columns)

    def columns_in(self, alias: FromClause) -> list[ColumnElement[Any]]:
        """The columns in an alias of the table."""
        return [alias.c[column.name] for column in self.columns]

    def _create_reader(
        self, layout: TableLayout, stored: Mapping[str, Sequence[_MappedColumn]]
    ) -> Callable[[Row], ValueT]:
        positions = {column.name: at for at, column in enumerate(self.columns)}
        readers = {
            class_key: _create_row_reader(kind, layout, stored[class_key], positions)
            for class_key, kind in layout.classes_by_kind.items()
        }
        if len(readers) == 1:
            return next(iter(readers.values()))
        class_position = positions["kind"]
        return lambda row: readers[row[class_position]](row)

    def _create_writer(
        self, kind_name: str, kind: type, layout: TableLayout, stored: Mapping[str, Sequence[_MappedColumn]]
    ) -> Callable[[ValueT], Values]:
        own_columns = {mapped_column.name: mapped_column for mapped_column in stored[kind_name]}
        other_columns = {mapped_column.name: mapped_column for of_kind in stored.values() for mapped_column in of_kind}
        members: list[tuple[str, Callable[[ValueT], Any]]] = []
        constants: Values = {}
        for column in self.table.c:
            name = column.name
            if column.identity is not None:
                continue
            if name in own_columns:
                members.append((name, own_columns[name].writer))
            elif "of" in column.info:
                members.append((name, column.info["of"]))
            elif hasattr(kind, name):
                members.append((name, attrgetter(name)))
            elif name in other_columns:
                # Fields of other classes are stored with their defaults.
                constants[name] = other_columns[name].stored_default
            elif name == "kind" and kind_name:
                constants[name] = kind_name
            elif name == "settings" and layout.settings:
                members.append((name, settings_codec(layout.settings_fields(kind))[1]))
        return lambda value: {**constants, **{name: written(value) for name, written in members}}


def _create_row_reader(
    kind: Any, layout: TableLayout, stored: Sequence[_MappedColumn], positions: Mapping[str, int]
) -> Callable[[Row], Any]:
    """A function that creates a value of this class from a row."""
    converted = [
        (positions[item.name], item.codec.read, item.nullable) for item in stored if item.codec.read is not None
    ]
    required = [(at, convert) for at, convert, nullable in converted if not nullable]
    optional = [(at, convert) for at, convert, nullable in converted if nullable]
    member_columns = [(column.path, positions[column.name]) for column in stored if "." not in column.path]
    pick = itemgetter(*(at for _, at in member_columns))
    types = {field.name: field.type for field in fields(kind)}
    spread: list[tuple[Any, list[tuple[str, int]]]] = [
        (
            types[name],
            [
                (mapped_column.path.partition(".")[2], positions[mapped_column.name])
                for mapped_column in stored
                if mapped_column.path.startswith(f"{name}.")
            ],
        )
        for name in layout.flattened
    ]
    settings, settings_position = layout.settings_fields(kind), positions.get("settings", 0)
    read_settings, _ = settings_codec(settings)
    names = [*(name for name, _ in member_columns), *layout.flattened, *(item.name for item in settings)]
    construct = _create_constructor(kind, names)

    def read(row: Row) -> Any:
        values = list(row)
        for at, convert in required:
            values[at] = convert(values[at])
        for at, convert in optional:
            if values[at] is not None:
                values[at] = convert(values[at])
        arguments = pick(values)
        if spread:
            arguments += tuple(inner(**{part: values[at] for part, at in parts}) for inner, parts in spread)
        if settings:
            arguments += read_settings(values[settings_position])
        return construct(arguments)

    return read


def _create_constructor(kind: Any, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """A function that creates a value of this frozen dataclass with slots from its field values in the order of
    ``names``. The dataclass's own ``__init__`` sets each field by ``object.__setattr__``, which takes most of the time
    of reading a row. Setting the slots directly takes half of that."""
    if set(names) != {field.name for field in fields(kind)}:
        raise TypeError(f"not all fields of {kind.__name__}")
    setters = [getattr(kind, name).__set__ for name in names]
    make, check = kind.__new__, getattr(kind, "__post_init__", None)

    def construct(values: Sequence[Any]) -> Any:
        instance = make(kind)
        for set_, value in zip(setters, values):  # noqa: B905 - of one length by construction
            set_(instance, value)
        if check is not None:
            check(instance)
        return instance

    return construct


def row_slices(*parts: Sized | int) -> tuple[slice, ...]:
    """Slices of the parts of a joined row, by their numbers of columns."""
    lengths = (part if isinstance(part, int) else len(part) for part in parts)
    return tuple(slice(*ends) for ends in pairwise(accumulate(lengths, initial=0)))


#: Exceptions raised by readers of damaged rows.
_DAMAGE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, OSError, RecursionError)


def row_reader(*columns: ColumnElement[Any]) -> Callable[[Callable[..., ValueT]], Callable[[Row], ValueT]]:
    """Decorator for a function of these columns' values, the first of which is a table's own; the result takes a row.
    Raises UnreadableRow like ``_checked_reader``."""
    return lambda of_values: wraps(of_values)(_checked_reader(columns, lambda row: of_values(*row)))


def _checked_reader(columns: Sequence[ColumnElement[Any]], of_row: Callable[[Row], ValueT]) -> Callable[[Row], ValueT]:
    """A reader for rows of these columns, the first of which is a table's own. An unreadable row (a type other than the
    column's, invalid JSON, an unknown value) raises UnreadableRow, logged once per row. The types of a row are checked
    together, in less than a microsecond."""
    table: Any = getattr(columns[0], "table", None)
    keys = [at for at, column in enumerate(columns) if getattr(column, "primary_key", False)]
    types = [_driver_types(column) for column in columns]
    shapes: set[tuple[type, ...]] = set()

    def fits(shape: tuple[type, ...]) -> bool:
        """True for types that the columns can have; cached, since there are few combinations."""
        if all(is_ in expected for is_, expected in zip(shape, types, strict=True)):
            shapes.add(shape)
            return True
        return False

    def read(row: Row) -> ValueT:
        shape = tuple(map(type, row))
        try:
            if shape in shapes or fits(shape):
                return of_row(row)
        except _DAMAGE_ERRORS:
            pass
        id_ = " ".join(row[at].hex() if isinstance(row[at], bytes) else str(row[at]) for at in keys)
        _log_unreadable_row(table.name, id_)
        raise UnreadableRow(table.name, id_)

    return read


def _driver_types(column: ColumnElement[Any]) -> set[type]:
    """Types that a driver can return for the column."""
    types: set[type] = {column.type.python_type}
    if isinstance(column.type, RawBoolean):
        types.add(int)
    if getattr(column, "nullable", True):
        types.add(NoneType)
    return types


def memoized(read: Callable[[Row], ValueT]) -> Callable[[Row], ValueT]:
    """The reader with a cache of recently read equal rows: for tables whose few rows are read again and again."""
    # By type, too: 1, 1.0 and True are equal, but not equally valid.
    cached = lru_cache(256, typed=True)(lambda *row: read(row))
    return lambda row: cached(*row)


@lru_cache(1024)
def _log_unreadable_row(table: str, id_: str) -> None:
    """Log it once per process."""
    log.error("a row cannot be read and is left out or refused: table %s, id %s", table, id_ or "unknown")


def skip_unreadable(read: Callable[[Row], ValueT], rows: Iterable[Row]) -> Iterator[ValueT]:
    """The readable values: in lists one damaged row must not hide the others."""
    for row in rows:
        try:
            value = read(row)
        except UnreadableRow:
            continue
        yield value
