"""Applications and their client secrets in SQL."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, literal, select

from identity.domain.applications import Application, Client, ClientSecret
from identity.plugins.sql.batching import Lookup
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.galera_locks import guard
from identity.plugins.sql.mapping import Mapped, Row, readable, slices
from identity.plugins.sql.rows import find_many_by_id, move_forward
from identity.plugins.sql.stores import organizations, projects
from identity.plugins.sql.tables import application_origins as origins
from identity.plugins.sql.tables import applications as table
from identity.plugins.sql.tables import client_secrets
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import projects as projects_table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.applications import ApplicationStore

ROWS = Entities[Application](table)
_SECRET_ROWS = Mapped[ClientSecret](client_secrets)
#: What a client is made of.
CLIENT = (*ROWS.columns, *projects.ROWS.columns, *organizations.ROWS.columns)
_APPLICATION, _PROJECT, _ORGANIZATION, _SECRET = slices(ROWS, projects.ROWS, organizations.ROWS, _SECRET_ROWS)
_OLDEST_SECRET_FIRST = (client_secrets.c.created_at, client_secrets.c.id)
#: One row per secret, or one without.
_FIND_CLIENT = Lookup(
    select(*CLIENT, *_SECRET_ROWS.columns)
    .select_from(table)
    .join(projects_table, projects_table.c.id == table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .outerjoin(client_secrets, client_secrets.c.application_id == table.c.id)
    .order_by(*_OLDEST_SECRET_FIRST),
    {"key": table.c.id},
)
_IS_ORIGIN = (
    select(literal(1))
    .select_from(origins)
    .join(table, table.c.id == origins.c.application_id)
    .where(origins.c.origin == bindparam("origin"), table.c.active)
    .limit(1)
)
_ADD_ORIGINS = insert(origins)
_REMOVE_ORIGINS = delete(origins).where(origins.c.application_id == bindparam("key"))
_PAGE = ROWS.select.where(table.c.project_id == bindparam("project"))
_REMOVE_SECRET = delete(client_secrets).where(
    client_secrets.c.application_id == bindparam("application"), client_secrets.c.id == bindparam("secret")
)
_NUMBER_OF_SECRETS = select(func.count()).where(client_secrets.c.application_id == table.c.id).scalar_subquery()
_SECRET_COUNTS = find_many_by_id(table, (table.c.id, _NUMBER_OF_SECRETS))
_TOUCH_SECRET = move_forward(client_secrets.c.last_used_at)
_SECRETS = _SECRET_ROWS.select.where(client_secrets.c.application_id == bindparam("application")).order_by(
    *_OLDEST_SECRET_FIRST
)
_ORDERS = {
    "name": table.c.name_key,
    "created_at": table.c.created_at,
}


class SqlApplicationStore(SqlEntityStore[Application], ApplicationStore):
    """One row each, and one per origin; these, secrets, families, codes and tokens go by foreign keys."""

    rows = ROWS

    def add(self, value: Application) -> None:
        with self._guarded():
            self._change(ROWS.insert, ROWS.values(value))
            self._add_origins(value)

    def find_client(self, client_id: str) -> Client | None:
        rows = self._all(_FIND_CLIENT, {"key": client_id})
        return client_of(rows[0], _secrets_of(row[_SECRET] for row in rows)) if rows else None

    def is_origin(self, origin: str) -> bool:
        return self._one(_IS_ORIGIN, {"origin": origin}) is not None

    def update(self, value: Application) -> None:
        super().update(value)
        self._change(_REMOVE_ORIGINS, {"key": value.id})
        self._add_origins(value)

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[Application]:
        return self._page(ROWS, _PAGE.params(project=project_id), request, _ORDERS)

    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        self._try(_SECRET_ROWS.insert, _SECRET_ROWS.values(secret) | {"application_id": application_id})

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        self._touch_one(_REMOVE_SECRET, {"application": application_id, "secret": secret_id})

    def secrets(self, application_id: str, *, locked: bool = False) -> tuple[ClientSecret, ...]:
        if locked:
            guard(self._connection, "secrets", application_id)
            self._one(ROWS.lock, {"key": application_id})
        return _secrets_of(self._all(_SECRETS, {"application": application_id}))

    def secret_counts(self, ids: Collection[str]) -> Mapping[str, int]:
        return dict(self._many(_SECRET_COUNTS, ids, lambda row: (row[0], row[1])))

    def touch_secrets(self, uses: Mapping[str, datetime]) -> None:
        self._move_forward(_TOUCH_SECRET, uses)

    def _add_origins(self, application: Application) -> None:
        for origin in sorted(application.origins):
            self._change(_ADD_ORIGINS, {"application_id": application.id, "origin": origin})


def client_of(row: Row, secrets: tuple[ClientSecret, ...] = ()) -> Client:
    """The client in a row that starts with the columns of ``CLIENT``."""
    return Client(
        ROWS.of(row[_APPLICATION]),
        secrets,
        projects.ROWS.of(row[_PROJECT]),
        organizations.ROWS.of(row[_ORGANIZATION]),
    )


def _secrets_of(rows: Iterable[Row]) -> tuple[ClientSecret, ...]:
    """The readable secrets, if there are any: one that is damaged opens nothing."""
    return tuple(readable(_SECRET_ROWS.of, filter(any, rows)))
