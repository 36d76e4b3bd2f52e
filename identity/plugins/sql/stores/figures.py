"""Figures in SQL."""

from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta

from sqlalchemy import BigInteger, and_, case, cast, delete, exists, func, select

from identity.domain.enrolments import FACTOR_RECORD_KIND
from identity.domain.figures import FigureKey, FigureKind, PeopleCount
from identity.domain.records import CORE_NAMESPACE
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.row_mapping import Values, row_reader
from identity.plugins.sql.sql_store import SqlStore, upsert
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import figures as table
from identity.plugins.sql.tables import records, users
from identity.storage.stores.figures import FigureStore
from identity.storage.stores.users import UserKind

_EPOCH = date(1970, 1, 1)
_KEY = (table.c.organization_id, table.c.kind, table.c.day, table.c.object_id)
_ADD = CompiledStatement(Upsert(table, _KEY, lambda new: {table.c.number: table.c.number + new("number")}))
_PUT = upsert(table, index_elements=_KEY, update_columns=[table.c.number])
# Without the cast its type depends on the driver.
_TOTAL = cast(func.coalesce(func.sum(table.c.number), 0), BigInteger)
_HAS_FACTOR = exists().where(
    records.c.user_id == users.c.id, records.c.plugin == CORE_NAMESPACE, records.c.kind == FACTOR_RECORD_KIND
)
_PEOPLE = (
    select(users.c.organization_id, func.count())
    .where(and_(users.c.kind == UserKind.HUMAN.value, users.c.active))
    .group_by(users.c.organization_id)
    .order_by(users.c.organization_id)
)


class SqlFigureStore(SqlStore, FigureStore):
    """One row per key."""

    def add(self, counts: Mapping[FigureKey, int]) -> None:
        # Always in the same order, to avoid deadlocks.
        for key in sorted(counts):
            self._execute(_ADD, _row(key, counts[key]))

    def put(self, levels: Mapping[FigureKey, int]) -> None:
        for key in sorted(levels):
            self._execute(_PUT, _row(key, levels[key]))

    def list_daily(
        self, organization_id: str, kinds: Collection[FigureKind], *, since: date
    ) -> Mapping[tuple[FigureKind, date], int]:
        statement = (
            select(table.c.kind, table.c.day, _TOTAL)
            .where(table.c.organization_id == organization_id, table.c.kind.in_([kind.value for kind in kinds]))
            .where(table.c.day >= _day_number(since))
            .group_by(table.c.kind, table.c.day)
        )
        return dict(self._fetch_values(_read_daily, statement))

    def list_on(self, day: date, kinds: Collection[FigureKind]) -> Mapping[FigureKey, int]:
        statement = select(*_KEY, table.c.number).where(
            table.c.day == _day_number(day), table.c.kind.in_([kind.value for kind in kinds])
        )
        return dict(self._fetch_values(_read_figure, statement))

    def list_by_object(
        self, organization_id: str, kind: FigureKind, *, since: date, limit: int
    ) -> tuple[tuple[str, int], ...]:
        statement = (
            select(table.c.object_id, _TOTAL)
            .where(table.c.organization_id == organization_id, table.c.kind == kind.value)
            .where(table.c.day >= _day_number(since))
            .group_by(table.c.object_id)
            .order_by(_TOTAL.desc(), table.c.object_id)
            .limit(limit)
        )
        return self._fetch_values(_read_object, statement)

    def count_people(self, *, active_since: datetime) -> tuple[PeopleCount, ...]:
        signed_in = case((users.c.last_sign_in_at >= seconds_from_datetime(active_since), 1))
        statement = _PEOPLE.add_columns(func.count(signed_in), func.count(case((_HAS_FACTOR, 1))))
        return self._fetch_values(_read_people, statement)

    def delete_before(self, day: date) -> int:
        return self._execute(delete(table).where(table.c.day < _day_number(day)))


def _day_number(day: date) -> int:
    return (day - _EPOCH).days


def _row(key: FigureKey, number: int) -> Values:
    return {
        "organization_id": key.organization_id,
        "kind": key.kind.value,
        "day": _day_number(key.day),
        "object_id": key.object_id,
        "number": number,
    }


@row_reader(*_KEY, table.c.number)
def _read_figure(organization_id: str, kind: str, day: int, object_id: str, number: int) -> tuple[FigureKey, int]:
    key = FigureKey(
        organization_id=organization_id, kind=FigureKind(kind), day=_EPOCH + timedelta(days=day), object_id=object_id
    )
    return key, number


@row_reader(table.c.kind, table.c.day, _TOTAL)
def _read_daily(kind: str, day: int, number: int) -> tuple[tuple[FigureKind, date], int]:
    return (FigureKind(kind), _EPOCH + timedelta(days=day)), number


@row_reader(table.c.object_id, _TOTAL)
def _read_object(object_id: str, number: int) -> tuple[str, int]:
    return object_id, number


@row_reader(users.c.organization_id, *3 * [func.count()])
def _read_people(organization_id: str, people: int, active: int, protected: int) -> PeopleCount:
    return PeopleCount(organization_id=organization_id, people=people, active=active, protected=protected)
