"""Pictures made from the code: tables from ``identity.plugins.sql.tables``, the house from ``pyproject.toml``.

The content of ``tables`` says what stands in which column, one of each a line. ``-`` stands for nothing, and a name in
parentheses for a table that another picture shows.
"""

import inspect
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from svg_diagram import LINE_HEIGHT, DiagramError, SvgDiagram, wrap_text

import identity

_ROOT = Path(identity.__file__).parent.parent
#: How wide a table is, the room around it, and how far apart lines are.
_WIDE, _ROOM, _APART = 212, 26, 9


@dataclass(frozen=True)
class TableBox:
    """A table in its place: its key and references, a row each, then what else it holds."""

    name: str
    row: int
    column: int
    is_detailed: bool
    keys: tuple[str, ...] = ()
    #: Column, table that it refers to, whether it may be empty.
    references: tuple[tuple[str, str, bool], ...] = ()
    other_columns: tuple[str, ...] = ()

    @property
    def other_column_lines(self) -> list[str]:
        """The other columns, in lines."""
        return wrap_text(", ".join(self.other_columns), _WIDE) if self.other_columns else []

    @property
    def description(self) -> str:
        """The table in words."""
        references = (f"{name} refers to {to}" for name, to, _ in self.references)
        return f"{self.name}: {', '.join([*self.keys, *references, *self.other_columns])}."

    @property
    def height(self) -> float:
        """How high its box is."""
        return (
            30
            + LINE_HEIGHT * (len(self.keys) + len(self.references) + len(self.other_column_lines))
            + 8 * self.is_detailed
        )


def table_diagram(lines: Sequence[str]) -> tuple[SvgDiagram, str]:
    """The tables that are named, with lines from each reference to what it refers to. Raises DiagramError."""
    entities = _entities(lines)
    picture = SvgDiagram()
    description = " ".join(item.description for item in entities.values() if item.is_detailed)
    grid = _Grid(entities)
    for item in entities.values():
        for number, (_, to, optional) in enumerate(item.references):
            at = grid.top(item) + 38 + LINE_HEIGHT * (len(item.keys) + number)
            picture.add_line(
                grid.connector_points(item, at, entities[to]), "optional" if optional else "line", has_arrowhead=True
            )
    for item in entities.values():
        _entity(picture, item, grid)
    return picture, description


def _entities(lines: Sequence[str]) -> dict[str, TableBox]:
    from identity.plugins.sql.tables import metadata

    found: dict[str, TableBox] = {}
    for row, line in enumerate(lines):
        for column, word in enumerate(line.split()):
            name = word.strip("()")
            if word == "-":
                continue
            if name not in metadata.tables:
                raise DiagramError(f"there is no table {name}", row)
            if name in found:
                raise DiagramError(f"{name} stands there already", row)
            if word != name:
                found[name] = TableBox(name, row, column, is_detailed=False)
                continue
            refer = {
                foreign_key.parent.name: foreign_key.column.table.name
                for foreign_key in metadata.tables[name].foreign_keys
            }
            columns = list(metadata.tables[name].columns)
            keys = tuple(column.name for column in columns if column.primary_key and column.name not in refer)
            references = tuple(
                (column.name, refer[column.name], bool(column.nullable)) for column in columns if column.name in refer
            )
            other_columns = tuple(
                column.name for column in columns if column.name not in refer and column.name not in keys
            )
            found[name] = TableBox(name, row, column, True, keys, references, other_columns)
    for item in found.values():
        for _, to, _ in item.references:
            if to not in found:
                raise DiagramError(f"{item.name} refers to {to}, which is missing here", item.row)
            if abs(item.column - found[to].column) > 1:
                raise DiagramError(f"{item.name} refers to {to}, which is no neighbour of its column", item.row)
    return found


class _Grid:
    """Where tables and lines lie: columns of their own heights, and beside them lanes, one for all lines to a table."""

    def __init__(self, entities: Mapping[str, TableBox]) -> None:
        columns = [item.column for item in entities.values()]
        self._columns = [
            [item for item in entities.values() if item.column == entry] for entry in range(max(columns) + 1)
        ]
        self._lanes: dict[int, list[str]] = {}
        #: Lanes whose first line comes from the left; lines are laid out from where they come.
        self._from_left: set[int] = set()
        for one, to in [(entry, entities[to]) for entry in entities.values() for _, to, _ in entry.references]:
            lane = max(one.column, to.column)
            if lane not in self._lanes and one.column < lane:
                self._from_left.add(lane)
            names = self._lanes.setdefault(lane, [])
            if to.name not in names:
                # Lines that go down are laid out the other way round, so that neighbours do not cross.
                names.insert(len(names) if self.top(to) < self.top(one) else 0, to.name)

    def left(self, column: int) -> float:
        """Where a column begins."""
        return column * _WIDE + sum(self._room(lane) for lane in range(column + 1))

    def top(self, entity: TableBox) -> float:
        """Where the box of a table begins: columns are centred."""
        above = self._columns[entity.column][: self._columns[entity.column].index(entity)]
        highs = [sum(item.height + _ROOM for item in column) for column in self._columns]
        return (max(highs) - highs[entity.column]) / 2 + sum(item.height + _ROOM for item in above)

    def _room(self, lane: int) -> float:
        lines = len(self._lanes.get(lane, ()))
        return (_APART * lines + 10 if lines else 0) if lane == 0 else _ROOM + _APART * lines

    def connector_points(self, one: TableBox, at: float, to: TableBox) -> list[tuple[float, float]]:
        """The points of the line from a reference to its table."""
        lane = max(one.column, to.column)
        along = 16 + _APART * self._lanes[lane].index(to.name)
        x = self.left(lane) - (self._room(lane) - along if lane in self._from_left else along)
        start = self.left(one.column) + (_WIDE if lane > one.column else 0)
        # What comes from the right arrives higher, so that lines between neighbours do not meet.
        goal, end = (self.left(to.column) + _WIDE + 1, 10) if lane > to.column else (self.left(to.column) - 1, 20)
        return [(start, at), (x, at), (x, self.top(to) + end), (goal, self.top(to) + end)]


def _entity(picture: SvgDiagram, one: TableBox, grid: _Grid) -> None:
    x, y = grid.left(one.column), grid.top(one)
    picture.add_box(x, y, _WIDE, one.height, "table" if one.is_detailed else "elsewhere")
    picture.add_text(x + 10, y + 20, [one.name], "name")
    for number, key in enumerate([*one.keys, *(name for name, _, _ in one.references)]):
        picture.add_text(
            x + 10, y + 42 + LINE_HEIGHT * number, [key], "small key" if number < len(one.keys) else "small"
        )
    picture.add_text(
        x + 10, y + 42 + LINE_HEIGHT * (len(one.keys) + len(one.references)), one.other_column_lines, "small quiet"
    )


def layer_diagram(_: Sequence[str]) -> tuple[SvgDiagram, str]:
    """The floors from top to bottom: what stands above imports what stands below, strangers stand side by side."""
    picture, descriptions = SvgDiagram(), []
    wide, y = 660.0, 0.0
    for layer in import_layers():
        rooms = [(name, _sentence(name)) for name in layer]
        each = (wide - 10 * (len(rooms) - 1)) / len(rooms)
        lines = [wrap_text(says, each - (8 if len(rooms) > 1 else 100)) for _, says in rooms]
        above = LINE_HEIGHT if len(rooms) > 1 else 0
        high = LINE_HEIGHT * max(len(line) for line in lines) + above + 16
        for number, (name, says) in enumerate(rooms):
            x = number * (each + 10)
            picture.add_box(x, y, each, high, "table")
            picture.add_text(x + 12, y + 22, [f"`{name.removeprefix('identity.')}`"], "name")
            picture.add_text(x + (12 if above else 130), y + 22 + above, lines[number], "small")
            descriptions.append(f"{name}: {says}")
        y += high + 10
    picture.add_line([(-22, 0), (-22, y - 12)], has_arrowhead=True)
    picture.include_point(-30)
    return picture, "Each may import what stands below it. " + " ".join(descriptions)


def import_layers() -> Iterator[list[str]]:
    """The layers of the contract in ``pyproject.toml``."""
    contracts = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    for layer in layers:
        yield [name.strip() for name in layer.split("|")]


def _sentence(name: str) -> str:
    """What a module says of itself first, without its name."""
    says = " ".join((inspect.getdoc(import_module(name)) or "").partition("\n\n")[0].split()).replace("``", "`")
    named, _, rest = says.partition(": ")
    return rest[0].upper() + rest[1:] if named.lower() == name.rpartition(".")[2] else says
