"""Deletion impact in SQL: follows each foreign key as a deletion would."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, Table, bindparam, func, select, union

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.plugins.sql.column_codecs import parse_set, seconds_from_datetime
from identity.plugins.sql.row_mapping import row_reader, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import (
    access_tokens,
    applications,
    client_secrets,
    managers,
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

#: Condition for the rows that a column refers to.
ReferenceCondition = Callable[[ColumnElement[Any]], ColumnElement[bool]]
#: Selects of the rows to be deleted, by name of the count; rows found by several of them count once.
DeletedRowSelects = Mapping[str, tuple[Select[Any], ...]]

_ID_PARAM: BindParameter[str] = bindparam("key")
_NOW_PARAM: BindParameter[int] = bindparam("at")


def _equals_id(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column == _ID_PARAM


def _id_in(ids: Select[Any]) -> ReferenceCondition:
    return lambda column: column.in_(ids)


def _select_ids(table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(table.c.id).where(*conditions)


_LIVE_TOKENS = select(access_tokens.c.digest).where(
    access_tokens.c.revoked_at.is_(None),
    access_tokens.c.expires_at > _NOW_PARAM,
    ~select(token_families.c.id)
    .where(token_families.c.id == access_tokens.c.family_id, token_families.c.revoked_at.is_not(None))
    .exists(),
    ~select(sessions.c.id)
    .where(sessions.c.id == access_tokens.c.session_id, sessions.c.ended_at.is_not(None))
    .exists(),
)


def _select_live_tokens(*families: ColumnElement[bool]) -> Select[Any]:
    return _LIVE_TOKENS.where(access_tokens.c.family_id.in_(_select_ids(token_families, *families)))


def _user_selects(condition: ReferenceCondition) -> DeletedRowSelects:
    return {
        "user_grants": (_select_ids(user_grants, condition(user_grants.c.user_id)),),
        "managers": (_select_ids(managers, condition(managers.c.user_id)),),
        "keys": (_select_ids(service_user_keys, condition(service_user_keys.c.user_id)),),
        "secrets": (_select_ids(service_user_secrets, condition(service_user_secrets.c.user_id)),),
        "personal_access_tokens": (_select_ids(personal_access_tokens, condition(personal_access_tokens.c.user_id)),),
        "sessions": (
            _select_ids(
                sessions, condition(sessions.c.user_id), sessions.c.ended_at.is_(None), sessions.c.ends_at > _NOW_PARAM
            ),
        ),
        "live_tokens": (
            _LIVE_TOKENS.where(condition(access_tokens.c.user_id)),
            _select_live_tokens(condition(token_families.c.user_id)),
        ),
    }


def _application_selects(condition: ReferenceCondition) -> DeletedRowSelects:
    return {
        "secrets": (_select_ids(client_secrets, condition(client_secrets.c.application_id)),),
        "live_tokens": (
            _LIVE_TOKENS.where(condition(access_tokens.c.application_id)),
            _select_live_tokens(condition(token_families.c.client_id)),
        ),
    }


def _project_grant_selects(condition: ReferenceCondition) -> DeletedRowSelects:
    return {
        "user_grants": (_select_ids(user_grants, condition(user_grants.c.project_grant_id)),),
        "managers": (_select_ids(managers, condition(managers.c.of_project_grant)),),
    }


def _project_selects(condition: ReferenceCondition) -> DeletedRowSelects:
    own_applications = _select_ids(applications, condition(applications.c.project_id))
    own_grants = _select_ids(project_grants, condition(project_grants.c.project_id))
    selects: DeletedRowSelects = {
        "applications": (own_applications,),
        "roles": (
            select(project_roles.c.project_id, project_roles.c.key).where(condition(project_roles.c.project_id)),
        ),
        "project_grants": (own_grants,),
        "user_grants": (_select_ids(user_grants, condition(user_grants.c.project_id)),),
        "managers": (_select_ids(managers, condition(managers.c.of_project)),),
    }
    return _merge_selects(
        selects, _application_selects(_id_in(own_applications)), _project_grant_selects(_id_in(own_grants))
    )


def _organization_selects() -> DeletedRowSelects:
    own_users = _select_ids(users, _equals_id(users.c.organization_id))
    own_projects = _select_ids(projects, _equals_id(projects.c.organization_id))
    held_grants = _select_ids(project_grants, _equals_id(project_grants.c.organization_id))
    selects: DeletedRowSelects = {
        "users": (own_users.where(users.c.kind == UserKind.HUMAN.value),),
        "service_users": (own_users.where(users.c.kind == UserKind.SERVICE.value),),
        "projects": (own_projects,),
        "project_grants": (held_grants,),
        "user_grants": (_select_ids(user_grants, _equals_id(user_grants.c.organization_id)),),
        "managers": (_select_ids(managers, _equals_id(managers.c.of_organization)),),
    }
    return _merge_selects(
        selects,
        _user_selects(_id_in(own_users)),
        _project_selects(_id_in(own_projects)),
        _project_grant_selects(_id_in(held_grants)),
    )


def _merge_selects(*mappings: DeletedRowSelects) -> DeletedRowSelects:
    names = {name for part in mappings for name in part}
    return {name: tuple(item for part in mappings for item in part.get(name, ())) for name in sorted(names)}


def _count_select(selects_by_name: DeletedRowSelects) -> Select[Any]:
    """One row of counts."""
    return select(
        *(
            select(func.count())
            .select_from((union(*selects) if len(selects) > 1 else selects[0]).subquery())
            .scalar_subquery()
            .label(name)
            for name, selects in selects_by_name.items()
        )
    )


_GRANTED_USERS = select(user_grants.c.user_id).where(_equals_id(user_grants.c.project_grant_id)).distinct()
_STATEMENTS_BY_TARGET = {
    DeletionTarget.ORGANIZATION: _count_select(_organization_selects()),
    DeletionTarget.PROJECT: _count_select(_project_selects(_equals_id)),
    DeletionTarget.PROJECT_GRANT: _count_select({**_project_grant_selects(_equals_id), "users": (_GRANTED_USERS,)}),
    DeletionTarget.APPLICATION: _count_select(_application_selects(_equals_id)),
    DeletionTarget.USER: _count_select(_user_selects(_equals_id)),
    DeletionTarget.KEY: _count_select({"live_tokens": (_LIVE_TOKENS.where(_equals_id(access_tokens.c.key_id)),)}),
    DeletionTarget.SECRET: _count_select({"live_tokens": (_LIVE_TOKENS.where(_equals_id(access_tokens.c.secret_id)),)}),
}


def _count_by_roles(grants: Table) -> Select[Any]:
    """Number of a project's grants with the same roles."""
    return select(grants.c.roles, func.count()).where(_equals_id(grants.c.project_id)).group_by(grants.c.roles)


_USER_GRANTS_BY_ROLES = _count_by_roles(user_grants)
_PROJECT_GRANTS_BY_ROLES = _count_by_roles(project_grants)


class SqlDeletionImpactStore(SqlStore, DeletionImpactStore):
    """Counts by the indexes of the foreign keys."""

    def count(self, target: DeletionTarget, id: str, now: datetime) -> DeletionImpact:
        counted, parameters = _STATEMENTS_BY_TARGET[target], {"key": id, "at": seconds_from_datetime(now)}
        row = self._fetch_one(counted, parameters)
        return (
            DeletionImpact()
            if row is None
            else DeletionImpact(**dict(zip(counted.selected_columns.keys(), row, strict=True)))
        )

    def count_role_grants(self, project_id: str, key: str) -> DeletionImpact:
        return DeletionImpact(
            user_grants=self._count_by_role(_USER_GRANTS_BY_ROLES, project_id, key),
            project_grants=self._count_by_role(_PROJECT_GRANTS_BY_ROLES, project_id, key),
        )

    def _count_by_role(self, by_roles: Select[Any], project_id: str, key: str) -> int:
        read_roles = row_reader(*by_roles.selected_columns)(lambda roles, count: (parse_set(roles), count))
        found: Iterator[tuple[frozenset[str], int]] = skip_unreadable(
            read_roles, self._fetch_all(by_roles, {"key": project_id})
        )
        return sum(count for roles, count in found if key in roles)
