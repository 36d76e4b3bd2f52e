"""Projects and their roles in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Table, bindparam, delete, func, insert, or_, select, update

from identity.domain.expirations import NEVER
from identity.domain.projects import Project, ProjectRole
from identity.plugins.sql.column_codecs import parse_set, seconds_from_datetime, sorted_json_list
from identity.plugins.sql.entity_store import EntityTable, has_not_ended
from identity.plugins.sql.query_batching import BatchedInQuery
from identity.plugins.sql.row_mapping import MappedTable, Values, row_reader
from identity.plugins.sql.tables import (
    applications,
    group_grants,
    organizations,
    project_grants,
    project_resources,
    project_roles,
    project_search_terms,
    user_grants,
)
from identity.plugins.sql.tables import projects as table
from identity.plugins.sql.term_index import TermIndexedStore
from identity.storage.errors import RowNotFound, StaleRow
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.projects import ProjectStore

ENTITY_TABLE = EntityTable[Project](table)
_ROLE_TABLE = MappedTable[ProjectRole](project_roles)

_APPLICATION_COUNT = select(func.count()).where(applications.c.project_id == table.c.id).scalar_subquery()
_ROLE_COUNT = select(func.count()).where(project_roles.c.project_id == table.c.id).scalar_subquery()
_GRANTED_PROJECTS = (
    select(project_grants.c.id)
    .where(
        project_grants.c.project_id == table.c.id,
        project_grants.c.organization_id == bindparam("organization"),
        project_grants.c.active,
        project_grants.c.created_at <= bindparam("granted_by"),
        has_not_ended(project_grants),
    )
    .exists()
)
_LIST_AUDIENCE = BatchedInQuery(
    select(table.c.id)
    .select_from(table)
    .join(organizations, organizations.c.id == table.c.organization_id)
    .where(
        table.c.active,
        organizations.c.active,
        or_(table.c.organization_id == bindparam("organization"), _GRANTED_PROJECTS),
    ),
    table.c.id,
)
_SORT_COLUMNS = {"name": table.c.name_key, "created_at": table.c.created_at}


class SqlProjectStore(TermIndexedStore[Project], ProjectStore):
    """One row each; dependent rows are deleted by foreign keys."""

    entity_table = ENTITY_TABLE
    term_table = project_search_terms

    def add(self, value: Project) -> None:
        with self._savepoint():
            super().add(value)
            self._add_resources(value)

    def update(self, value: Project) -> None:
        super().update(value)
        self._execute(delete(project_resources).where(project_resources.c.project_id == value.id))
        self._add_resources(value)

    def _add_resources(self, project: Project) -> None:
        for uri in sorted(set(project.resource_uris)):
            self._execute(insert(project_resources).values(project_id=project.id, uri=uri))

    def list_by_resource_uri(self, uri: str) -> tuple[Project, ...]:
        ids = select(project_resources.c.project_id).where(project_resources.c.uri == uri)
        return self._fetch_values(
            ENTITY_TABLE.from_row, ENTITY_TABLE.select.where(table.c.id.in_(ids)).order_by(table.c.id)
        )

    def _term_scopes(self, value: Project) -> Values:
        return {"organization_id": value.organization_id}

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Project]:
        rows = ENTITY_TABLE.select.where(table.c.organization_id == organization_id)
        return self._page(ENTITY_TABLE, rows, request, _SORT_COLUMNS)

    def count_children(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        counts = select(table.c.id, _APPLICATION_COUNT, _ROLE_COUNT)
        return dict(self._fetch_values_by_id(counts, table.c.id, ids, lambda row: (row[0], (row[1], row[2]))))

    def list_audience(
        self, project_ids: frozenset[str], organization_id: str, now: datetime, granted_until: datetime = NEVER
    ) -> frozenset[str]:
        if not project_ids:
            return frozenset()
        statement, parameters = _LIST_AUDIENCE.statement_for(project_ids)
        parameters |= {
            "organization": organization_id,
            "granted_by": seconds_from_datetime(granted_until),
            "now": seconds_from_datetime(now),
        }
        return frozenset([row[0] for row in self._fetch_all(statement, parameters)])

    def add_role(self, role: ProjectRole) -> None:
        self._execute_in_savepoint(_ROLE_TABLE.insert, _ROLE_TABLE.to_row(role))

    def update_role(self, role: ProjectRole) -> None:
        this = _is_role(role.project_id, role.key)
        previous = update(project_roles).where(*this, project_roles.c.version == role.version - 1)
        if self._execute(previous.values(_ROLE_TABLE.to_row(role))):
            return
        raise RowNotFound if self._fetch_one(select(project_roles.c.version).where(*this)) is None else StaleRow

    def delete_role(self, project_id: str, key: str) -> None:
        self._execute_for_one(delete(project_roles).where(*_is_role(project_id, key)))
        self._remove_role_from_grants(project_grants, project_id, key)
        self._remove_role_from_grants(user_grants, project_id, key)
        self._remove_role_from_grants(group_grants, project_id, key)

    def list_roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        roles = _ROLE_TABLE.select.where(project_roles.c.project_id == project_id)
        return self._fetch_values(_ROLE_TABLE.from_row, roles.order_by(project_roles.c.key))

    def _remove_role_from_grants(self, grants: Table, project_id: str, key: str) -> None:
        """Remove the role from grants; their versions change, so that a caller who read them before cannot restore
        it."""
        locked = select(grants.c.id, grants.c.roles).where(grants.c.project_id == project_id)
        read_grant = row_reader(grants.c.id, grants.c.roles)(lambda id_, roles: (id_, parse_set(roles)))
        for row in self._fetch_all(locked.order_by(grants.c.id).with_for_update()):
            grant_id, roles = read_grant(row)
            if key in roles:
                narrowed = {"roles": sorted_json_list(roles - {key}), "version": grants.c.version + 1}
                self._execute(update(grants).where(grants.c.id == grant_id).values(narrowed))


def _is_role(project_id: str, key: str) -> tuple[ColumnElement[bool], ...]:
    return project_roles.c.project_id == project_id, project_roles.c.key == key
