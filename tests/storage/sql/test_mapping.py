"""Each table has one mapping, derived from the fields of a dataclass."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, Table, create_engine

from identity.domain.organizations import Organization
from identity.plugins.sql.column_codecs import CodePointText
from identity.plugins.sql.entity_store import EntityTable
from identity.plugins.sql.row_mapping import MappedTable, TableLayout, row_slices
from identity.plugins.sql.tables import organizations
from identity.storage.contract import factories as make
from identity.storage.errors import UnreadableRow


class ColourEnum(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    street: str = ""
    known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    nickname: str = ""
    inner: Inner = field(default_factory=Inner)


@dataclass(frozen=True, slots=True)
class LocationRow:
    level: ColourEnum
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    id: str
    colour: ColourEnum
    location: LocationRow
    outer: Outer
    at: datetime
    span: timedelta
    digest: bytes
    number: int
    flag: bool
    names: tuple[str, ...]
    scope: tuple[str, ...]
    roles: frozenset[str]
    parameters: Mapping[str, str]
    detail: Mapping[str, object]
    later: datetime | None = None
    colour_or_none: ColourEnum | None = None

    @property
    def search_text(self) -> str:
        return f"{self.id}!"


ITEM = ItemRow(
    id="one",
    colour=ColourEnum.BLUE,
    location=LocationRow(ColourEnum.RED, None),
    outer=Outer(nickname="Ada", inner=Inner(street="Ä 1", known=True)),
    at=datetime(2026, 1, 2, tzinfo=UTC),
    span=timedelta(minutes=5),
    digest=b"\x00\xff",
    number=7,
    flag=True,
    names=("b", "a a"),
    scope=("openid", "email"),
    roles=frozenset({"writer", "reader"}),
    parameters={"state": "ü"},
    detail={"count": 1, "names": ["a"]},
)


def _mapped(*columns: Column[Any], kinds: Any = ItemRow) -> MappedTable[Any]:
    spread = {"location": ("level", "location_id")} if hasattr(kinds, "location") else {}
    layout = TableLayout(kinds, value_lists=("scope",), flattened=spread)
    table = Table("things", MetaData(), *layout.columns(), *columns, info={"layout": layout})
    table.c.id.primary_key = True
    return MappedTable(table)


def _stored(mapped: MappedTable[Any], value: object, **changes: object) -> Any:
    """The row as read back from SQLite."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        mapped.table.create(connection)
        connection.execute(mapped.insert, mapped.to_row(value) | changes)
        return connection.execute(mapped.select).one()


@pytest.mark.parametrize("later", [None, datetime(2027, 1, 1, tzinfo=UTC)])
def test_values_of_every_type_round_trip(later: datetime | None) -> None:
    mapped = _mapped()
    item_row = replace(ITEM, later=later)
    assert mapped.from_row(_stored(mapped, item_row)) == item_row


def test_stored_representation_of_each_type() -> None:
    values = _mapped().to_row(ITEM)
    assert values["at"] == int(ITEM.at.timestamp())
    assert values["span"] == 300
    assert (values["names"], values["scope"]) == ('["b", "a a"]', "openid email")
    assert values["roles"] == '["reader", "writer"]'
    assert (values["level"], values["location_id"]) == ("red", None)
    assert values["outer"] == '{"nickname": "Ada", "inner": {"street": "Ä 1", "known": true}}'
    assert type(values["colour"]) is str


def test_column_without_field_is_filled_from_property_or_function() -> None:
    shouted = Column("shouted", CodePointText, info={"of": lambda item: item.id.upper()})
    values = _mapped(Column("search_text", CodePointText), shouted, Column("owner", CodePointText)).to_row(ITEM)
    assert (values["search_text"], values["shouted"]) == ("one!", "ONE")
    assert "owner" not in values, "the caller gives it"


def test_new_field_maps_to_a_new_column() -> None:
    fresh = [("fresh", bool, field(default=False))]
    wider = make_dataclass("Wider", fresh, bases=(ItemRow,), frozen=True, slots=True, kw_only=True)
    value = wider(**{field.name: getattr(ITEM, field.name) for field in fields(ITEM)}, fresh=True)
    mapped = _mapped(kinds=wider)
    assert mapped.from_row(_stored(mapped, value)).fresh is True


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotRow:
    id: str
    colour: ColourEnum = ColourEnum.RED


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    id: str
    outer: Outer
    active: bool = True


def test_classes_sharing_a_table_are_read_as_themselves() -> None:
    mapped = _mapped(kinds={"robot": RobotRow, "person": PersonRow})
    robot, person = (
        RobotRow(id="r", colour=ColourEnum.BLUE),
        PersonRow(id="p", outer=Outer(nickname="Ada"), active=False),
    )
    assert [mapped.from_row(_stored(mapped, item)) for item in (robot, person)] == [robot, person]
    assert mapped.to_row(person)["colour"] == "red", "what only the other class has is stored as it is by default"
    for damage in ({"kind": "ghost"}, {"kind": "person"}):
        with pytest.raises(UnreadableRow):
            mapped.from_row(_stored(mapped, robot, **damage))


@pytest.mark.parametrize(
    ("column", "damage"),
    [
        ("colour", "green"),
        ("names", '["a", 1]'),
        ("roles", "{}"),
        ("parameters", '{"a": 1}'),
        ("detail", "[]"),
        ("outer", '{"inner": {"known": "yes"}}'),
        ("outer", '{"unknown": 1}'),
        ("outer", '{"inner": 7}'),
        ("flag", 2),
    ],
)
def test_unreadable_row_error_names_its_key(column: str, damage: object) -> None:
    mapped = _mapped()
    position = [column.name for column in mapped.columns].index(column)
    row = list(_stored(mapped, ITEM))
    row[position] = damage
    with pytest.raises(UnreadableRow, match="the row one of things"):
        mapped.from_row(row)


@pytest.mark.parametrize("damage", [1.0, True])
def test_equal_rows_are_read_separately(damage: object) -> None:
    rows = EntityTable[Organization](organizations)
    organization = make.organization(version=1)
    stored = _stored(rows, organization)
    assert rows.from_row(stored) == rows.from_row(tuple(stored)) == organization
    damaged = [
        damage if column.name == "version" else value for column, value in zip(rows.columns, stored, strict=True)
    ]
    assert damaged == list(stored)
    with pytest.raises(UnreadableRow):
        rows.from_row(damaged)


def test_joined_row_is_cut_where_its_parts_end() -> None:
    first, second, rest = row_slices("ab", 1, (1, 2, 3))
    assert [tuple(range(6))[part] for part in (first, second, rest)] == [(0, 1), (2,), (3, 4, 5)]
