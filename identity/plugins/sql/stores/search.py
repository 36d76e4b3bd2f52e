"""Search over all organizations in SQL: ranges of the indexes of terms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, false, or_, select, true

from identity.domain.search import PrefixQuery
from identity.plugins.sql import tables
from identity.plugins.sql.paging import merge_first_rows, starts_with
from identity.plugins.sql.sql_store import SqlStore
from identity.storage.stores.search import MAX_CANDIDATES, SearchedKind, SearchScope, SearchStore
from identity.storage.stores.users import UserKind

_TABLES: Mapping[SearchedKind, Table] = {
    SearchedKind.USER: tables.user_search_terms,
    SearchedKind.SERVICE_USER: tables.user_search_terms,
    SearchedKind.APPLICATION: tables.application_search_terms,
    SearchedKind.PROJECT: tables.project_search_terms,
    SearchedKind.ORGANIZATION: tables.organization_search_terms,
    SearchedKind.GROUP: tables.group_search_terms,
}
_USER_KINDS = {SearchedKind.USER: UserKind.HUMAN, SearchedKind.SERVICE_USER: UserKind.SERVICE}
#: An entity can match by several terms.
_ROWS_PER_ENTITY = 4


class SqlSearchStore(SqlStore, SearchStore):
    def find_ids(self, kind: SearchedKind, query: PrefixQuery, scope: SearchScope, limit: int) -> tuple[str, ...]:
        if not query.terms or scope.is_empty:
            return ()
        table = _TABLES[kind]
        (key, term), (longest, *further_terms) = table.primary_key.columns, query.terms
        arms = [
            select(term, key).where(starts_with(term, spelling), *conditions)
            for spelling in longest
            for conditions in _scope_conditions(kind, table, scope)
        ]
        if not arms:
            # Users and groups belong to no project.
            return ()
        rows = _ROWS_PER_ENTITY * limit
        found = merge_first_rows(arms, (term, key), MAX_CANDIDATES if further_terms else rows)
        if further_terms:
            found = _filter_by_terms(found, table, further_terms).limit(rows)
        return tuple(dict.fromkeys(row[1] for row in self._fetch_all(found)))[:limit]

    def find_ids_by_start(self, kind: SearchedKind, start: str, scope: SearchScope, limit: int) -> tuple[str, ...]:
        if scope.is_empty:
            return ()
        table = _TABLES[kind]
        key, _ = table.primary_key.columns
        within = or_(false(), *(and_(true(), *conditions) for conditions in _scope_conditions(kind, table, scope)))
        found = select(key).distinct().where(starts_with(key, start), within).order_by(key).limit(limit)
        return tuple(row[0] for row in self._fetch_all(found))


def _scope_conditions(kind: SearchedKind, table: Table, scope: SearchScope) -> Iterator[Sequence[ColumnElement[bool]]]:
    """The parts of the scope, each with an index of its own."""
    kinds = [table.c.kind == _USER_KINDS[kind].value] if kind in _USER_KINDS else []
    organizations = table.c.organization_id
    if scope.organization_ids is None:
        yield kinds
        return
    if scope.organization_ids:
        yield [organizations.in_(sorted(scope.organization_ids)), *kinds]
    if scope.project_ids and "project_id" in table.c:
        yield [table.c.project_id.in_(sorted(scope.project_ids))]


def _filter_by_terms(candidates: Select[Any], table: Table, terms: Sequence[Sequence[str]]) -> Select[Any]:
    """Those of the candidates that match the other terms as well."""
    found = candidates.subquery()
    indexed, id_ = found.columns
    other = table.alias()
    key, other_term = (other.c[column.name] for column in table.primary_key.columns)
    conditions = [
        select(key)
        .where(key == id_, or_(false(), *(starts_with(other_term, spelling) for spelling in spellings)))
        .exists()
        for spellings in terms
    ]
    return select(indexed, id_).where(*conditions).order_by(indexed, id_)
