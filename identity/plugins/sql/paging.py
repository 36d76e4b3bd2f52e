"""Pages of lists in SQL: sort keys, keyset pagination without offsets, searches and totals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Table, and_, literal, or_, select, tuple_, union

from identity.domain.search import id_prefix, search_terms, split_login_name_term
from identity.plugins.sql.row_mapping import MappedTable, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import organizations
from identity.storage.paging import MAX_COUNTED_ROWS, PageCursor, PageRequest, ResultPage, RowTotal, SortOrder

ValueT = TypeVar("ValueT")
SortColumns = Mapping[str, ColumnElement[Any]]

#: Matches of a search that are sorted after they are found. Sorting this many costs less than looking for frequent ones
#: in the order of the list, if they come late in it.
_MAX_SORTED_MATCHES = 2 * MAX_COUNTED_ROWS

_LAST_CODE_POINT = "\U0010ffff"


class PagedSqlStore(SqlStore):
    """A store with lists."""

    __slots__ = ()

    def _page(
        self,
        rows: MappedTable[ValueT],
        statement: Select[Any],
        request: PageRequest,
        orders: SortColumns,
        *,
        usual: SortOrder | None = None,
        search_column: ColumnElement[Any] | None = None,
    ) -> ResultPage[ValueT]:
        """A page of the selected rows in one of the orders, by default the first one, and then by id. ``search_column``
        refers to the searched rows if these are not the listed ones."""
        table = rows.table
        sort = request.sort or usual or SortOrder(next(iter(orders)))
        if request.active is not None and "active" in table.c:
            statement = statement.where(table.c.active.is_(request.active))
        total = None
        if request.query and (search_column is not None or "search_text" in table.c):
            statement, total = self._filter_by_search(
                rows, statement, table.c.id if search_column is None else search_column, request.query
            )
        elif request.with_total:
            ids = self._first_ids(statement, table, MAX_COUNTED_ROWS)
            total = RowTotal.from_count(len(ids))
            if len(ids) <= request.limit:
                # They may be few among many that the same index has, such as service users among people.
                statement = rows.select.where(table.c.id.in_(ids))
        order = (orders[sort.key], table.c.id)
        if request.cursor is not None:
            after_cursor = _cursor_condition(order, request.cursor)
            statement = statement.where(
                tuple_(*order) < after_cursor if sort.descending else tuple_(*order) > after_cursor
            )
        directed = [column.desc() if sort.descending else column for column in order]
        found = self._fetch_all(statement.add_columns(*order).order_by(*directed).limit(request.limit + 1))
        page_rows = found[: request.limit]
        # An unreadable row cannot be a cursor; the one before it can.
        positions = ((row[-2], row[-1]) for row in reversed(page_rows) if type(row[-1]) is str)
        kind = order[0].type.python_type
        last = next((PageCursor(str(value), id_) for value, id_ in positions if type(value) is kind), None)
        items = tuple(skip_unreadable(rows.from_row, (row[:-2] for row in page_rows)))
        return ResultPage(items, last if len(found) > request.limit else None, total)

    def _page_newest_first(
        self,
        rows: MappedTable[ValueT],
        statement: Select[Any],
        request: PageRequest,
        *,
        search_column: ColumnElement[Any] | None = None,
    ) -> ResultPage[ValueT]:
        orders, newest_first = {"created_at": rows.table.c.created_at}, SortOrder("created_at", descending=True)
        return self._page(rows, statement, request, orders, usual=newest_first, search_column=search_column)

    def _filter_by_search(
        self, rows: MappedTable[ValueT], statement: Select[Any], search_column: ColumnElement[Any], query: str
    ) -> tuple[Select[Any], RowTotal]:
        """The statement filtered by the query, and the number of matches. Rare matches come from the index with the
        texts. Frequent ones turn up soon enough in the index of the sort key."""
        searched = statement.where(_matches_referenced_search(search_column, query))
        ids = self._first_ids(searched, rows.table, _MAX_SORTED_MATCHES)
        total = RowTotal.from_count(len(ids))
        if len(ids) > _MAX_SORTED_MATCHES:
            return searched, total
        # Only by id: with the other conditions, SQLite would read all rows that they select, in the list's order.
        return rows.select.where(rows.table.c.id.in_(ids)), total

    def _first_ids(self, statement: Select[Any], table: Table, limit: int) -> Sequence[str]:
        """One more than the limit if there are more."""
        return [row[0] for row in self._fetch_all(statement.with_only_columns(table.c.id).limit(limit + 1))]


def _matches_referenced_search(column: ColumnElement[Any], query: str) -> ColumnElement[bool]:
    """Condition for rows that refer to a match, or are one."""
    for key in column.foreign_keys:
        target = key.column.table
        return column.in_(select(target.c.id).where(_matches_search(target, query)))
    return _matches_search(column.table, query)


def _matches_search(table: Table, query: str) -> ColumnElement[bool]:
    """Condition for rows that a search matches, equivalent to ``identity.domain.search.matches_query``."""
    text = table.c.search_text
    found = and_(
        *(or_(text.contains(term, autoescape=True), *_matches_login_name(table, term)) for term in search_terms(query))
    )
    start = id_prefix(query)
    return found if start is None else or_(found, starts_with(table.c.id, start))


def _matches_login_name(table: Table, term: str) -> Sequence[ColumnElement[bool]]:
    parts = split_login_name_term(term) if table.name == "users" else None
    if parts is None:
        return ()
    of_domain = select(organizations.c.id).where(starts_with(organizations.c.primary_domain, parts[1]))
    named = table.c.search_text.contains(parts[0], autoescape=True)
    return (and_(named, table.c.organization_id.in_(of_domain)),)


def _cursor_condition(order: Sequence[ColumnElement[Any]], cursor: PageCursor) -> ColumnElement[Any]:
    value = order[0].type.python_type(cursor.value)
    return tuple_(literal(value, order[0].type), literal(cursor.id, order[1].type))


def merge_first_rows(
    selects: Sequence[Select[Any]], order: Sequence[ColumnElement[Any]], limit: int, *, descending: bool = False
) -> Select[Any]:
    """The first rows of the union of several selects, without duplicates: each select gets its first rows from an
    index. The selects must include the sort columns."""

    def ordered(statement: Select[Any], columns: Iterable[ColumnElement[Any]]) -> Select[Any]:
        return statement.order_by(*(column.desc() if descending else column for column in columns)).limit(limit)

    first = [ordered(arm, order) for arm in selects]
    if len(first) == 1:
        return first[0]
    together = union(*(arm.subquery().select() for arm in first)).subquery()
    return ordered(together.select(), (together.c[str(column.key)] for column in order))


def starts_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Prefix condition as a range, which an index supports and in which no character is special."""
    end = prefix_end(prefix)
    return column >= prefix if end is None else and_(column >= prefix, column < end)


def prefix_end(prefix: str) -> str | None:
    """The least text, by code points, that is greater than all with this prefix; None if there is none."""
    rest = prefix.rstrip(_LAST_CODE_POINT)
    if not rest:
        return None
    # Surrogates are not characters: UTF-8 cannot encode them.
    following = 0xE000 if rest[-1] == "\ud7ff" else ord(rest[-1]) + 1
    return rest[:-1] + chr(following)
