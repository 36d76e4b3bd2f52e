"""What falls with a thing, counted in SQL: each foreign key is followed as a removal would follow it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, Table, bindparam, func, select, union

from identity.domain.effects import Effects, Removed
from identity.plugins.sql.codecs import seconds, set_of
from identity.plugins.sql.mapping import readable, row_of
from identity.plugins.sql.rows import SqlStore
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
from identity.storage.stores.effects import EffectStore
from identity.storage.stores.users import UserKind

#: Tells which rows a column refers to.
Refers = Callable[[ColumnElement[Any]], ColumnElement[bool]]
#: Selects of what falls, by the name of the count; what several of them find is counted once.
Fallen = Mapping[str, tuple[Select[Any], ...]]

_KEY: BindParameter[str] = bindparam("key")
_AT: BindParameter[int] = bindparam("at")


def _this(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column == _KEY


def _any_of(ids: Select[Any]) -> Refers:
    return lambda column: column.in_(ids)


def _ids(table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(table.c.id).where(*conditions)


_LIVE_TOKENS = select(access_tokens.c.digest).where(
    access_tokens.c.revoked_at.is_(None),
    access_tokens.c.expires_at > _AT,
    ~select(token_families.c.id)
    .where(token_families.c.id == access_tokens.c.family_id, token_families.c.revoked_at.is_not(None))
    .exists(),
    ~select(sessions.c.id)
    .where(sessions.c.id == access_tokens.c.session_id, sessions.c.ended_at.is_not(None))
    .exists(),
)


def _live_tokens(*families: ColumnElement[bool]) -> Select[Any]:
    return _LIVE_TOKENS.where(access_tokens.c.family_id.in_(_ids(token_families, *families)))


def _of_users(these: Refers) -> Fallen:
    return {
        "user_grants": (_ids(user_grants, these(user_grants.c.user_id)),),
        "managers": (_ids(managers, these(managers.c.user_id)),),
        "keys": (_ids(service_user_keys, these(service_user_keys.c.user_id)),),
        "secrets": (_ids(service_user_secrets, these(service_user_secrets.c.user_id)),),
        "personal_access_tokens": (_ids(personal_access_tokens, these(personal_access_tokens.c.user_id)),),
        "sessions": (
            _ids(sessions, these(sessions.c.user_id), sessions.c.ended_at.is_(None), sessions.c.ends_at > _AT),
        ),
        "live_tokens": (
            _LIVE_TOKENS.where(these(access_tokens.c.user_id)),
            _live_tokens(these(token_families.c.user_id)),
        ),
    }


def _of_applications(these: Refers) -> Fallen:
    return {
        "secrets": (_ids(client_secrets, these(client_secrets.c.application_id)),),
        "live_tokens": (
            _LIVE_TOKENS.where(these(access_tokens.c.application_id)),
            _live_tokens(these(token_families.c.client_id)),
        ),
    }


def _of_project_grants(these: Refers) -> Fallen:
    return {
        "user_grants": (_ids(user_grants, these(user_grants.c.project_grant_id)),),
        "managers": (_ids(managers, these(managers.c.of_project_grant)),),
    }


def _of_projects(these: Refers) -> Fallen:
    own_applications = _ids(applications, these(applications.c.project_id))
    own_grants = _ids(project_grants, these(project_grants.c.project_id))
    own: Fallen = {
        "applications": (own_applications,),
        "roles": (select(project_roles.c.project_id, project_roles.c.key).where(these(project_roles.c.project_id)),),
        "project_grants": (own_grants,),
        "user_grants": (_ids(user_grants, these(user_grants.c.project_id)),),
        "managers": (_ids(managers, these(managers.c.of_project)),),
    }
    return _together(own, _of_applications(_any_of(own_applications)), _of_project_grants(_any_of(own_grants)))


def _of_organization() -> Fallen:
    own_users = _ids(users, _this(users.c.organization_id))
    own_projects = _ids(projects, _this(projects.c.organization_id))
    held_grants = _ids(project_grants, _this(project_grants.c.organization_id))
    own: Fallen = {
        "users": (own_users.where(users.c.kind == UserKind.HUMAN.value),),
        "service_users": (own_users.where(users.c.kind == UserKind.SERVICE.value),),
        "projects": (own_projects,),
        "project_grants": (held_grants,),
        "user_grants": (_ids(user_grants, _this(user_grants.c.organization_id)),),
        "managers": (_ids(managers, _this(managers.c.of_organization)),),
    }
    return _together(
        own,
        _of_users(_any_of(own_users)),
        _of_projects(_any_of(own_projects)),
        _of_project_grants(_any_of(held_grants)),
    )


def _together(*parts: Fallen) -> Fallen:
    names = {name for part in parts for name in part}
    return {name: tuple(each for part in parts for each in part.get(name, ())) for name in sorted(names)}


def _counted(fallen: Fallen) -> Select[Any]:
    """One row of counts."""
    return select(
        *(
            select(func.count())
            .select_from((union(*selects) if len(selects) > 1 else selects[0]).subquery())
            .scalar_subquery()
            .label(name)
            for name, selects in fallen.items()
        )
    )


_HOLDERS = select(user_grants.c.user_id).where(_this(user_grants.c.project_grant_id)).distinct()
_OF = {
    Removed.ORGANIZATION: _counted(_of_organization()),
    Removed.PROJECT: _counted(_of_projects(_this)),
    Removed.PROJECT_GRANT: _counted({**_of_project_grants(_this), "users": (_HOLDERS,)}),
    Removed.APPLICATION: _counted(_of_applications(_this)),
    Removed.USER: _counted(_of_users(_this)),
    Removed.KEY: _counted({"live_tokens": (_LIVE_TOKENS.where(_this(access_tokens.c.key_id)),)}),
    Removed.SECRET: _counted({"live_tokens": (_LIVE_TOKENS.where(_this(access_tokens.c.secret_id)),)}),
}


def _by_roles(grants: Table) -> Select[Any]:
    """How many grants of a project hold the same roles."""
    return select(grants.c.roles, func.count()).where(_this(grants.c.project_id)).group_by(grants.c.roles)


_USER_GRANTS_BY_ROLES = _by_roles(user_grants)
_PROJECT_GRANTS_BY_ROLES = _by_roles(project_grants)


class SqlEffectStore(SqlStore, EffectStore):
    """Counts by the indexes of the foreign keys."""

    def of(self, removed: Removed, id: str, at: datetime) -> Effects:  # noqa: A002
        counted, parameters = _OF[removed], {"key": id, "at": seconds(at)}
        row = self._one(counted, parameters)
        return Effects() if row is None else Effects(**dict(zip(counted.selected_columns.keys(), row, strict=True)))

    def of_role(self, project_id: str, key: str) -> Effects:
        return Effects(
            user_grants=self._count_holding(_USER_GRANTS_BY_ROLES, project_id, key),
            project_grants=self._count_holding(_PROJECT_GRANTS_BY_ROLES, project_id, key),
        )

    def _count_holding(self, by_roles: Select[Any], project_id: str, key: str) -> int:
        held = row_of(*by_roles.selected_columns)(lambda roles, count: (set_of(roles), count))
        found: Iterator[tuple[frozenset[str], int]] = readable(held, self._all(by_roles, {"key": project_id}))
        return sum(count for roles, count in found if key in roles)
