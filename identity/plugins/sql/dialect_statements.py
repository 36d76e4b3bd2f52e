"""Changes that PostgreSQL and SQLite make in one statement, and MariaDB in several of one transaction.

MariaDB has neither UPDATE … RETURNING nor an upsert with a condition. There the row is held by the first statement
until the transaction ends, so that what the others find and do is about the same state of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Dialect,
    PrimaryKeyConstraint,
    Select,
    Table,
    UniqueConstraint,
    Update,
    and_,
    bindparam,
    literal,
    select,
    update,
)
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression

from identity.plugins.sql.batching import Key, batched, by_rows, execute_by_rows, given_rows, types_of
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.mapping import Row, Values
from identity.plugins.sql.mariadb import MARIADB, duplicate_key
from identity.plugins.sql.settings import POSTGRESQL
from identity.plugins.sql.statements import DialectStatement, Statement, Statements, StatementText
from identity.storage.errors import Unavailable

#: Gives what the new row would hold in a column.
New = Callable[[str], ColumnElement[Any]]

#: How often a row is looked for that took the key and is gone when it is to be changed.
_TRIES = 3


class UpdateReturning(DialectStatement):
    """An update of one row, found by its key and conditions, that gives the changed row."""

    def __init__(self, change: Update, *columns: ColumnElement[Any]) -> None:
        self._change = change
        self._columns = columns

    def for_dialect(self, dialect: Dialect) -> Statements:
        """What this kind of database is sent."""
        if dialect.name != MARIADB:
            return StatementText.of(self._change.returning(*self._columns), dialect)
        conditions: Any = self._change.whereclause
        key = [one for one in conditions.clauses if _is_key(one)]
        return _ChangeAndRead(
            StatementText.of(self._change, dialect), StatementText.of(select(*self._columns).where(*key), dialect)
        )


def _is_key(condition: ColumnElement[bool]) -> bool:
    return (
        isinstance(condition, BinaryExpression)
        and condition.operator is operators.eq
        and isinstance(condition.left, Column)
        and condition.left.primary_key
    )


class GuardedInsert(DialectStatement):
    """A change of one row, with rows that are added if it is made; without one they are added in any case.

    The change is an update, or an insert that does nothing where its key is taken. It gives ``returning``, or some row.
    Its parameters are those of the update and, by the name of each table, the values of the new row. On PostgreSQL all
    is one statement, which greenlets share that are ready at the same time (``batching``) and have different ``key``,
    one of the parameters.
    """

    def __init__(
        self,
        change: "Update | Upsert | None",
        *tables: Table,
        key: str,
        returning: Sequence[ColumnElement[Any]] = (),
    ) -> None:
        self._change = change
        self._tables = tables
        self._returning = tuple(returning)
        self._key = key
        self._returned = UpdateReturning(change, *returning) if isinstance(change, Update) and returning else None
        self._parameters = types_of(change) if isinstance(change, Update) else {}
        for table in (*((change.table,) if isinstance(change, Upsert) else ()), *tables):
            self._parameters |= {f"{table.name}_{name}": table.c[name].type for name in _names(table)}
        # Made here: once it was compiled, an update forgets what it returns.
        self._single, self._shared = self._statement(None), self._statement(given_rows(self._parameters))

    def for_dialect(self, dialect: Dialect) -> Statements:
        """What this kind of database is sent."""
        return self._one(dialect) if dialect.name == POSTGRESQL else self._several(dialect)

    def _one(self, dialect: Dialect) -> Statements:
        nested = tuple(table.name for table in self._tables)
        if isinstance(self._change, Upsert):
            nested += (self._change.table.name,)
        return _AddAlong(
            StatementText.of(self._single, dialect), StatementText.of(self._shared, dialect), nested, self._key
        )

    def _statement(self, new: CTE | None) -> Select[Any]:
        """The one statement: with parameters, or for each row of ``new``, whose number it then gives first."""

        def given(table: Table) -> list[ColumnElement[Any]]:
            names = [f"{table.name}_{name}" for name in _names(table)]
            return [bindparam(name, type_=self._parameters[name]) if new is None else new.c[name] for name in names]

        change: Any = self._change
        source: Any = new
        statement = select(literal(1).label("changed") if new is None else new.c.number)
        if isinstance(change, Upsert):
            added: Any = insert(change.table).from_select(_names(change.table), select(*given(change.table)), False)
            changed = added.on_conflict_do_nothing(index_elements=change.by).returning(*change.by).cte("changed")
            source = changed
            if new is not None:
                same = (new.c[f"{change.table.name}_{one.key}"] == changed.c[one.key] for one in change.by)
                source = changed.join(new, and_(*same))
        elif change is not None:
            if new is not None:
                change = by_rows(change, new)
            first = (literal(1).label("changed"),) if new is None else (new.c.number,)
            changed = change.returning(*first, *self._returning).cte("changed")
            source = changed if new is None else changed.join(new, new.c.number == changed.c.number)
            statement = select(
                *(one for one in changed.c if new is not None or one.key != "changed" or not self._returning)
            )
        if source is not None and (new is None or not isinstance(change, Update)):
            statement = statement.select_from(source)
        for table in self._tables:
            rows = select(*given(table))
            added = plain_insert(table).from_select(
                _names(table), rows if source is None else rows.select_from(source), include_defaults=False
            )
            statement = statement.add_cte(added.cte(f"new_{table.name}"))
        return statement

    def _several(self, dialect: Dialect) -> Statements:
        returned = None if self._returned is None else self._returned.for_dialect(dialect)
        added = {table.name: StatementText.of(plain_insert(table), dialect) for table in self._tables}
        change = self._change
        if isinstance(change, Upsert):
            return _AddAfter(change.for_dialect(dialect), None, added, change.table.name)
        return _AddAfter(None if change is None else StatementText.of(change, dialect), returned, added)


class Upsert(DialectStatement):
    """An insert, or else a change of the row that has the key already: ``changed`` tells to what, if it fits ``where``.

    Without ``changed`` the row stays as it is. With ``returning`` it gives what stands there afterwards.
    """

    def __init__(
        self,
        table: Table,
        by: Sequence[Column[Any]],
        changed: Callable[[New], Mapping[Column[Any], Any]] | None = None,
        *,
        where: ColumnElement[bool] | None = None,
        returning: Sequence[ColumnElement[Any]] = (),
    ) -> None:
        self.table = table
        self.by = tuple(by)
        self._changed = changed
        self._where = where
        self._returning = tuple(returning)

    def for_dialect(self, dialect: Dialect) -> Statements:
        """What this kind of database is sent."""
        return self._several(dialect) if dialect.name == MARIADB else self._one(dialect)

    def _one(self, dialect: Dialect) -> Statements:
        new = insert(self.table).inline()
        if self._changed is None:
            new = new.on_conflict_do_nothing(index_elements=self.by)
        else:
            changed = self._changed(lambda name: new.excluded[name])
            new = new.on_conflict_do_update(index_elements=self.by, set_=dict(changed), where=self._where)
        statement: Statement = new.returning(*self._returning) if self._returning else new
        return StatementText.of(statement, dialect, columns=_names(self.table))

    def _several(self, dialect: Dialect) -> Statements:
        added = StatementText.of(plain_insert(self.table).inline(), dialect, columns=_names(self.table))
        this = and_(*(column == _new(column) for column in self.by))
        rule = _name_of_rule(self.table, self.by)
        if self._changed is None:
            return _AddOrLeave(added, rule)
        change = update(self.table).where(this).values(self._changed(lambda name: _new(self.table.c[name])))
        return _HoldAndChange(
            added,
            rule,
            StatementText.of(select(literal(1)).select_from(self.table).where(this).with_for_update(), dialect),
            StatementText.of(change if self._where is None else change.where(self._where), dialect),
            StatementText.of(select(*self._returning).where(this), dialect) if self._returning else None,
        )


def _names(table: Table) -> list[str]:
    """The columns that a new row is given."""
    return [column.key for column in table.c if column.identity is None]


def _new(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return bindparam(f"new_{column.key}", type_=column.type)


def _name_of_rule(table: Table, columns: Sequence[Column[Any]]) -> str:
    """What MariaDB calls the unique rule of these columns."""
    for rule in table.constraints:
        if isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint)) and list(rule.columns) == list(columns):
            return "PRIMARY" if isinstance(rule, PrimaryKeyConstraint) else str(rule.name)
    raise LookupError(columns)


@dataclass(frozen=True, slots=True)
class _ChangeAndRead(Statements):
    """The row is ours once it was changed: nobody else can change it before it is read."""

    changed: StatementText
    read: StatementText

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self.read.first(connection, parameters) if self.changed.change(connection, parameters) else None

    def change(self, connection: DatabaseConnection, parameters: Values) -> int:
        return self.changed.change(connection, parameters)


@dataclass(frozen=True, slots=True)
class _AddAlong(Statements):
    """All in one statement, in which parameters for new rows begin with the names of their tables."""

    text: StatementText
    shared: StatementText
    tables: tuple[str, ...]
    key: str

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self.text.first(connection, self._flat(parameters))

    def last(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        flat = self._flat(parameters)
        shared, alone = partial(self._execute_shared, connection), partial(self._execute_alone, connection, flat)
        rows = batched(self.shared.sql, (flat[self.key],), flat, connection, shared, alone, writes=True)
        return rows[0] if rows else None

    def _execute_shared(
        self, connection: DatabaseConnection, asked: Mapping[Key, Values]
    ) -> Mapping[Key, Sequence[Row]]:
        with connection.at_once():
            return execute_by_rows(self.shared, connection, asked)

    def _execute_alone(self, connection: DatabaseConnection, flat: Values) -> Sequence[Row]:
        with connection.at_once():
            return self.text.all(connection, flat)

    def _flat(self, parameters: Values) -> Values:
        flat = dict(parameters)
        for table in self.tables:
            flat |= {f"{table}_{name}": value for name, value in flat.pop(table).items()}
        return flat


@dataclass(frozen=True, slots=True)
class _AddAfter(Statements):
    """The row is changed first, which says whether there is anything to add."""

    changed: Statements | None
    returned: Statements | None
    added: Mapping[str, StatementText]
    #: The table of the change, where its parameters are those of a new row.
    table: str = ""

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        row: Row | None = (1,)
        if self.returned is not None:
            row = self.returned.first(connection, self._own(parameters))
        elif self.changed is not None and not self.changed.change(connection, self._own(parameters)):
            row = None
        if row is not None:
            for table, text in self.added.items():
                text.change(connection, parameters[table])
        return row

    def _own(self, parameters: Values) -> Values:
        if self.table:
            return parameters[self.table]  # type: ignore[no-any-return]
        return {name: value for name, value in parameters.items() if name not in self.added}


@dataclass(frozen=True, slots=True)
class _AddOrLeave(Statements):
    """Waits for whoever is making the same row. INSERT IGNORE would pass over broken references as well."""

    added: StatementText
    rule: str

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        self.change(connection, parameters)
        return None

    def change(self, connection: DatabaseConnection, parameters: Values) -> int:
        return int(_is_added(connection, self.added, self.rule, parameters))


@dataclass(frozen=True, slots=True)
class _HoldAndChange(Statements):
    """Holds the row if it is there, then changes it; or adds it, unless somebody else was faster."""

    added: StatementText
    rule: str
    held: StatementText
    changed: StatementText
    read: StatementText | None

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        if not self.change(connection, parameters) or self.read is None:
            return None
        return self.read.first(connection, _with_new(parameters))

    def change(self, connection: DatabaseConnection, parameters: Values) -> int:
        given = _with_new(parameters)
        for _ in range(_TRIES):
            if self.held.first(connection, given) is not None:
                return self.changed.change(connection, given)
            if _is_added(connection, self.added, self.rule, parameters):
                return 1
        raise Unavailable("The row comes and goes.")


def _with_new(parameters: Values) -> Values:
    return {**parameters, **{f"new_{name}": value for name, value in parameters.items()}}


def _is_added(connection: DatabaseConnection, added: StatementText, rule: str, parameters: Values) -> bool:
    """False if there is such a row already, by this rule."""
    try:
        added.change(connection, parameters)
    except DBAPIError as error:
        if duplicate_key(error) != rule:
            raise
        return False
    return True
