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

from drawing import LINE, Broken, Picture, wrapped

import identity

_ROOT = Path(identity.__file__).parent.parent
#: How wide a table is, the room around it, and how far apart lines are.
_WIDE, _ROOM, _APART = 212, 26, 9


@dataclass(frozen=True)
class Entity:
    """A table in its place: its key and references, a row each, then what else it holds."""

    name: str
    row: int
    column: int
    shown: bool
    keys: tuple[str, ...] = ()
    #: Column, table that it refers to, whether it may be empty.
    references: tuple[tuple[str, str, bool], ...] = ()
    others: tuple[str, ...] = ()

    @property
    def rest(self) -> list[str]:
        """The other columns, in lines."""
        return wrapped(", ".join(self.others), _WIDE) if self.others else []

    @property
    def told(self) -> str:
        """The table in words."""
        references = (f"{name} refers to {to}" for name, to, _ in self.references)
        return f"{self.name}: {', '.join([*self.keys, *references, *self.others])}."

    @property
    def high(self) -> float:
        """How high its box is."""
        return 30 + LINE * (len(self.keys) + len(self.references) + len(self.rest)) + 8 * self.shown


def tables(lines: Sequence[str]) -> tuple[Picture, str]:
    """The tables that are named, with lines from each reference to what it refers to. Raises Broken."""
    entities = _entities(lines)
    picture = Picture()
    told = " ".join(item.told for item in entities.values() if item.shown)
    grid = _Grid(entities)
    for item in entities.values():
        for number, (_, to, optional) in enumerate(item.references):
            at = grid.top(item) + 38 + LINE * (len(item.keys) + number)
            picture.line(grid.way(item, at, entities[to]), "optional" if optional else "line", head=True)
    for item in entities.values():
        _entity(picture, item, grid)
    return picture, told


def _entities(lines: Sequence[str]) -> dict[str, Entity]:
    from identity.plugins.sql.tables import metadata

    found: dict[str, Entity] = {}
    for row, line in enumerate(lines):
        for column, word in enumerate(line.split()):
            name = word.strip("()")
            if word == "-":
                continue
            if name not in metadata.tables:
                raise Broken(f"there is no table {name}", row)
            if name in found:
                raise Broken(f"{name} stands there already", row)
            if word != name:
                found[name] = Entity(name, row, column, shown=False)
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
            others = tuple(column.name for column in columns if column.name not in refer and column.name not in keys)
            found[name] = Entity(name, row, column, True, keys, references, others)
    for item in found.values():
        for _, to, _ in item.references:
            if to not in found:
                raise Broken(f"{item.name} refers to {to}, which is missing here", item.row)
            if abs(item.column - found[to].column) > 1:
                raise Broken(f"{item.name} refers to {to}, which is no neighbour of its column", item.row)
    return found


class _Grid:
    """Where tables and lines lie: columns of their own heights, and beside them lanes, one for all lines to a table."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
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

    def top(self, entity: Entity) -> float:
        """Where the box of a table begins: columns are centred."""
        above = self._columns[entity.column][: self._columns[entity.column].index(entity)]
        highs = [sum(item.high + _ROOM for item in column) for column in self._columns]
        return (max(highs) - highs[entity.column]) / 2 + sum(item.high + _ROOM for item in above)

    def _room(self, lane: int) -> float:
        lines = len(self._lanes.get(lane, ()))
        return (_APART * lines + 10 if lines else 0) if lane == 0 else _ROOM + _APART * lines

    def way(self, one: Entity, at: float, to: Entity) -> list[tuple[float, float]]:
        """The points of the line from a reference to its table."""
        lane = max(one.column, to.column)
        along = 16 + _APART * self._lanes[lane].index(to.name)
        x = self.left(lane) - (self._room(lane) - along if lane in self._from_left else along)
        start = self.left(one.column) + (_WIDE if lane > one.column else 0)
        # What comes from the right arrives higher, so that lines between neighbours do not meet.
        goal, end = (self.left(to.column) + _WIDE + 1, 10) if lane > to.column else (self.left(to.column) - 1, 20)
        return [(start, at), (x, at), (x, self.top(to) + end), (goal, self.top(to) + end)]


def _entity(picture: Picture, one: Entity, grid: _Grid) -> None:
    x, y = grid.left(one.column), grid.top(one)
    picture.box(x, y, _WIDE, one.high, "table" if one.shown else "elsewhere")
    picture.words(x + 10, y + 20, [one.name], "name")
    for number, key in enumerate([*one.keys, *(name for name, _, _ in one.references)]):
        picture.words(x + 10, y + 42 + LINE * number, [key], "small key" if number < len(one.keys) else "small")
    picture.words(x + 10, y + 42 + LINE * (len(one.keys) + len(one.references)), one.rest, "small quiet")


def house(_: Sequence[str]) -> tuple[Picture, str]:
    """The floors from top to bottom: what stands above imports what stands below, strangers stand side by side."""
    picture, told = Picture(), []
    wide, y = 660.0, 0.0
    for floor in floors():
        rooms = [(name, _sentence(name)) for name in floor]
        each = (wide - 10 * (len(rooms) - 1)) / len(rooms)
        lines = [wrapped(says, each - (8 if len(rooms) > 1 else 100)) for _, says in rooms]
        above = LINE if len(rooms) > 1 else 0
        high = LINE * max(len(line) for line in lines) + above + 16
        for number, (name, says) in enumerate(rooms):
            x = number * (each + 10)
            picture.box(x, y, each, high, "table")
            picture.words(x + 12, y + 22, [f"`{name.removeprefix('identity.')}`"], "name")
            picture.words(x + (12 if above else 130), y + 22 + above, lines[number], "small")
            told.append(f"{name}: {says}")
        y += high + 10
    picture.line([(-22, 0), (-22, y - 12)], head=True)
    picture.reach(-30)
    return picture, "Each may import what stands below it. " + " ".join(told)


def floors() -> Iterator[list[str]]:
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
