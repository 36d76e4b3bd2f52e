"""User grants in SQL."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Table, bindparam, or_, union_all

from identity.domain.expirations import earliest
from identity.domain.projects import UserGrant
from identity.plugins.sql.column_codecs import datetime_from_seconds, parse_set, seconds_from_datetime
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore, has_not_ended
from identity.plugins.sql.row_mapping import Row, row_reader
from identity.plugins.sql.stores.groups import select_through_groups
from identity.plugins.sql.tables import group_grants, group_members, groups, project_grants
from identity.plugins.sql.tables import user_grants as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.user_grants import UserGrantFilterField, UserGrantStore

ENTITY_TABLE = EntityTable[UserGrant](table)


def _effective(grants: Select[Any], source: Table, user: Table) -> Select[Any]:
    """Those of the grants that are effective, with the roles and the end that the project grant allows, and the end of
    the membership: in a row of ``user`` who has them."""
    return (
        grants.add_columns(
            project_grants.c.roles.label("granted_roles"),
            project_grants.c.until.label("granted_until"),
            user.c.until.label("membership_until"),
        )
        .outerjoin(project_grants, project_grants.c.id == source.c.project_grant_id)
        .where(
            user.c.user_id == bindparam("user"),
            source.c.project_id.in_(bindparam("projects", expanding=True)),
            or_(source.c.project_grant_id.is_(None), project_grants.c.active),
            has_not_ended(project_grants),
        )
    )


_DIRECT = _effective(ENTITY_TABLE.select.where(table.c.active, has_not_ended(table)), table, table)
_THROUGH_GROUPS = _effective(
    select_through_groups(ENTITY_TABLE, group_grants, active=groups.c.active), group_grants, group_members
)
_LIST_EFFECTIVE = union_all(_DIRECT, _THROUGH_GROUPS).order_by(
    _DIRECT.selected_columns.created_at.desc(), _DIRECT.selected_columns.id.desc()
)


class SqlUserGrantStore(SqlEntityStore[UserGrant], UserGrantStore):
    entity_table = ENTITY_TABLE

    def page(
        self,
        filter_field: UserGrantFilterField,
        filter_id: str,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[UserGrant]:
        statement = ENTITY_TABLE.select.where(table.c[filter_field] == filter_id)
        if request.query and organization_ids is not None:
            statement = statement.where(table.c.organization_id.in_(sorted(organization_ids)))
        searched = table.c.project_id if filter_field == "user_id" else table.c.user_id
        return self._page_newest_first(ENTITY_TABLE, statement, request, search_column=searched)

    def list_effective(self, user_id: str, project_ids: frozenset[str], now: datetime) -> tuple[UserGrant, ...]:
        if not project_ids:
            return ()
        parameters = {"user": user_id, "projects": list(project_ids), "now": seconds_from_datetime(now)}
        rows = self._fetch_all(_LIST_EFFECTIVE, parameters)
        return tuple(_limit(ENTITY_TABLE.from_row(row[:-3]), row[-3:]) for row in rows)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[UserGrant, ...]:
        scopes = () if organization_id is None else (table.c.organization_id == organization_id,)
        return self._list_ending(after, until, limit, *scopes)


def _limit(grant: UserGrant, limits: Row) -> UserGrant:
    """The grant with what project grant and membership leave of it."""
    roles, granted_until, membership_until = limits
    if roles is None and membership_until is None:
        return grant
    until = earliest((grant.until, *(map(_read_until, ([granted_until], [membership_until])))))
    return replace(grant, roles=grant.roles if roles is None else grant.roles & _read_roles([roles]), until=until)


_read_roles = row_reader(project_grants.c.roles)(parse_set)


@row_reader(project_grants.c.until)
def _read_until(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime_from_seconds(seconds)
