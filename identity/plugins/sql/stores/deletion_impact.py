"""Deletion impact in SQL: follows each foreign key as a deletion would."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, Table, and_, bindparam, func, select, true, union

from identity.domain.deletion_impact import MAX_COUNTED_OBJECTS, DeletionImpact, DeletionTarget
from identity.plugins.sql.column_codecs import parse_set, seconds_from_datetime
from identity.plugins.sql.row_mapping import row_reader, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import (
    access_tokens,
    applications,
    client_secrets,
    federated_credentials,
    group_grants,
    groups,
    managers,
    organizations,
    personal_access_tokens,
    project_grants,
    project_roles,
    projects,
    service_user_keys,
    service_user_secrets,
    sessions,
    token_families,
    user_grants,
    users,
)
from identity.storage.stores.deletion_impact import DeletionImpactStore
from identity.storage.stores.users import UserKind

_ID_PARAM: BindParameter[str] = bindparam("key")
_NOW_PARAM: BindParameter[int] = bindparam("at")

_TABLES_BY_TARGET = {
    DeletionTarget.ORGANIZATION: organizations,
    DeletionTarget.PROJECT: projects,
    DeletionTarget.PROJECT_GRANT: project_grants,
    DeletionTarget.APPLICATION: applications,
    DeletionTarget.USER: users,
    DeletionTarget.KEY: service_user_keys,
    DeletionTarget.SECRET: service_user_secrets,
    DeletionTarget.FEDERATED_CREDENTIAL: federated_credentials,
}
_TABLES_BY_COUNT = {
    "users": (users,),
    "service_users": (users,),
    "projects": (projects,),
    "applications": (applications,),
    "roles": (project_roles,),
    "project_grants": (project_grants,),
    "user_grants": (user_grants,),
    "managers": (managers,),
    "groups": (groups,),
    "keys": (service_user_keys,),
    "secrets": (client_secrets, service_user_secrets),
    "personal_access_tokens": (personal_access_tokens,),
    "sessions": (sessions,),
    "live_tokens": (access_tokens,),
}
#: Conditions for the rows that are counted, where not all are.
_COUNT_CONDITIONS = {
    "users": users.c.kind == UserKind.HUMAN.value,
    "service_users": users.c.kind != UserKind.HUMAN.value,
    "sessions": and_(sessions.c.ended_at.is_(None), sessions.c.ends_at > _NOW_PARAM),
    "live_tokens": and_(
        access_tokens.c.revoked_at.is_(None),
        access_tokens.c.expires_at > _NOW_PARAM,
        ~select(token_families.c.id)
        .where(token_families.c.id == access_tokens.c.family_id, token_families.c.revoked_at.is_not(None))
        .exists(),
        ~select(sessions.c.id)
        .where(sessions.c.id == access_tokens.c.session_id, sessions.c.ended_at.is_not(None))
        .exists(),
    ),
}
#: A token obtained with one of these also refers to their user or application.
_CREDENTIALS = (
    service_user_keys,
    service_user_secrets,
    personal_access_tokens,
    federated_credentials,
    client_secrets,
)


def _first_rows(rows: Select[Any]) -> Select[Any]:
    """One more than is counted. A subquery, because MariaDB takes no limit inside of IN, nor SQLite inside of UNION."""
    return rows.limit(MAX_COUNTED_OBJECTS + 1).subquery().select()


def _cascade_conditions(table: Table, target: Table) -> Iterator[ColumnElement[bool]]:
    """Conditions for the rows of ``table`` that are deleted with the row of ``target``, one for each path of foreign
    keys between them: index lookups for a limited number of rows between them."""
    for column in table.c:
        for key in column.foreign_keys:
            parent = key.column.table
            if parent is target:
                yield column == _ID_PARAM
            elif parent not in _CREDENTIALS:
                for condition in _cascade_conditions(parent, target):
                    yield column.in_(_first_rows(select(key.column).where(condition)))


def _parent_tables(table: Table, target: Table) -> Iterator[Table]:
    """The tables between them, on any path."""
    for parent in {key.column.table for key in table.foreign_keys} - {target, *_CREDENTIALS}:
        if any(True for _ in _cascade_conditions(parent, target)):
            yield from (parent, *_parent_tables(parent, target))


def _deleted_rows(tables: Iterable[Table], target: Table, counted: ColumnElement[bool]) -> list[Select[Any]]:
    """Selects of the counted rows; rows found by several of them count once."""
    return [
        _first_rows(select(*table.primary_key).where(condition, counted))
        for table in tables
        for condition in _cascade_conditions(table, target)
    ]


def _users_of_kind(target: Table, kind: ColumnElement[bool]) -> list[Select[Any]]:
    """Those among the first users of both kinds: few of one kind are not looked for among many of the other."""
    found = [_first_rows(select(users.c.id).where(condition)) for condition in _cascade_conditions(users, target)]
    return [select(users.c.id).where(users.c.id.in_(rows), kind) for rows in found]


#: Where project roles of groups refer to what is deleted.
_PROJECT_COLUMNS = {
    DeletionTarget.PROJECT: group_grants.c.project_id,
    DeletionTarget.PROJECT_GRANT: group_grants.c.project_grant_id,
}


def _count_select(target: DeletionTarget) -> Select[Any]:
    """One row of counts. The last ones say whether rows between the target and what is counted were left out."""
    above = _TABLES_BY_TARGET[target]
    deleted = {
        name: _deleted_rows(tables, above, _COUNT_CONDITIONS.get(name, true()))
        for name, tables in _TABLES_BY_COUNT.items()
    }
    deleted |= {name: _users_of_kind(above, _COUNT_CONDITIONS[name]) for name in ("users", "service_users")}
    if target in _PROJECT_COLUMNS:
        deleted["groups"] = [select(group_grants.c.group_id).where(_PROJECT_COLUMNS[target] == _ID_PARAM).distinct()]
    if target is DeletionTarget.PROJECT_GRANT:
        holders = select(user_grants.c.user_id).where(user_grants.c.project_grant_id == _ID_PARAM)
        deleted["users"] = [holders.distinct()]
    counted_tables = chain.from_iterable(_TABLES_BY_COUNT.values())
    parents = {parent for table in counted_tables for parent in _parent_tables(table, above)}
    deleted |= {f"all_{parent.name}": _deleted_rows([parent], above, true()) for parent in parents}
    return select(
        *(
            select(func.count())
            .select_from((union(*selects) if len(selects) > 1 else selects[0]).subquery())
            .scalar_subquery()
            .label(name)
            for name, selects in deleted.items()
            if selects
        )
    )


_STATEMENTS_BY_TARGET = {target: _count_select(target) for target in DeletionTarget}


def _count_by_roles(grants: Table) -> Select[Any]:
    """Number of a project's grants with the same roles."""
    return select(grants.c.roles, func.count()).where(grants.c.project_id == _ID_PARAM).group_by(grants.c.roles)


_USER_GRANTS_BY_ROLES = _count_by_roles(user_grants)
_GROUP_GRANTS_BY_ROLES = _count_by_roles(group_grants)
_PROJECT_GRANTS_BY_ROLES = _count_by_roles(project_grants)


class SqlDeletionImpactStore(SqlStore, DeletionImpactStore):
    """Counts by the indexes of the foreign keys."""

    def count(self, target: DeletionTarget, id: str, now: datetime) -> DeletionImpact:
        counted, parameters = _STATEMENTS_BY_TARGET[target], {"key": id, "at": seconds_from_datetime(now)}
        row = self._fetch_one(counted, parameters)
        if row is None:
            return DeletionImpact()
        numbers = dict(zip(counted.selected_columns.keys(), row, strict=True))
        return DeletionImpact(
            **{name: min(numbers[name], MAX_COUNTED_OBJECTS) for name in _TABLES_BY_COUNT.keys() & numbers.keys()},
            is_exact=all(number <= MAX_COUNTED_OBJECTS for number in numbers.values()),
        )

    def count_role_grants(self, project_id: str, key: str) -> DeletionImpact:
        return DeletionImpact(
            user_grants=self._count_by_role(_USER_GRANTS_BY_ROLES, project_id, key),
            project_grants=self._count_by_role(_PROJECT_GRANTS_BY_ROLES, project_id, key),
            groups=self._count_by_role(_GROUP_GRANTS_BY_ROLES, project_id, key),
        )

    def _count_by_role(self, by_roles: Select[Any], project_id: str, key: str) -> int:
        read_roles = row_reader(*by_roles.selected_columns)(lambda roles, count: (parse_set(roles), count))
        found: Iterator[tuple[frozenset[str], int]] = skip_unreadable(
            read_roles, self._fetch_all(by_roles, {"key": project_id})
        )
        return sum(count for roles, count in found if key in roles)
