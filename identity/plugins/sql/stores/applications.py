"""Applications and their client secrets in SQL."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from sqlalchemy import delete, false, func, insert, literal, or_, select

from identity.domain.applications import RESPONSE_ALGORITHM_FIELDS, Application, ApplicationClient, ClientSecret
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.plugins.sql.entity_store import EntityTable
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.query_batching import BatchedLookup
from identity.plugins.sql.row_mapping import MappedTable, Row, Values, row_slices, skip_unreadable
from identity.plugins.sql.sql_store import advance_timestamp
from identity.plugins.sql.stores import organizations, projects
from identity.plugins.sql.tables import application_origins as origins
from identity.plugins.sql.tables import application_search_terms, client_secrets
from identity.plugins.sql.tables import applications as table
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import projects as projects_table
from identity.plugins.sql.term_index import TermIndexedStore
from identity.storage.errors import RowNotFound
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.applications import ApplicationStore

ENTITY_TABLE = EntityTable[Application](table)
_SECRET_TABLE = MappedTable[ClientSecret](client_secrets)
#: Columns of a client.
CLIENT_COLUMNS = (*ENTITY_TABLE.columns, *projects.ENTITY_TABLE.columns, *organizations.ENTITY_TABLE.columns)
_APPLICATION, _PROJECT, _ORGANIZATION, _SECRET = row_slices(
    ENTITY_TABLE, projects.ENTITY_TABLE, organizations.ENTITY_TABLE, _SECRET_TABLE
)
_OLDEST_SECRET_FIRST = (client_secrets.c.created_at, client_secrets.c.id)
#: One row per secret, or one without.
_FIND_CLIENT = BatchedLookup(
    select(*CLIENT_COLUMNS, *_SECRET_TABLE.columns)
    .select_from(table)
    .join(projects_table, projects_table.c.id == table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .outerjoin(client_secrets, client_secrets.c.application_id == table.c.id)
    .order_by(*_OLDEST_SECRET_FIRST),
    {"key": table.c.id},
)
_ORIGINS_IN_USE = (
    select(literal(1)).select_from(origins).join(table, table.c.id == origins.c.application_id).where(table.c.active)
)
_SECRET_COUNT = select(func.count()).where(client_secrets.c.application_id == table.c.id).scalar_subquery()
_UPDATE_SECRET_LAST_USED = advance_timestamp(client_secrets.c.last_used_at)
_SORT_COLUMNS = {"name": table.c.name_key, "created_at": table.c.created_at}


class SqlApplicationStore(TermIndexedStore[Application], ApplicationStore):
    """One row each, and one per origin; origins, secrets, families, codes and tokens are deleted by foreign keys."""

    entity_table = ENTITY_TABLE
    term_table = application_search_terms

    def add(self, value: Application) -> None:
        with self._savepoint():
            super().add(value)
            self._add_origins(value)

    def find_client(self, client_id: str) -> ApplicationClient | None:
        rows = self._fetch_all(_FIND_CLIENT, {"key": client_id})
        return read_client(rows[0], _read_secrets(row[_SECRET] for row in rows)) if rows else None

    def is_registered_origin(self, origin: str) -> bool:
        return self._fetch_one(_ORIGINS_IN_USE.where(origins.c.origin == origin).limit(1)) is not None

    def update(self, value: Application) -> None:
        super().update(value)
        self._execute(delete(origins).where(origins.c.application_id == value.id))
        self._add_origins(value)

    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[Application, ...]:
        unlisted = sorted(set(SignatureAlgorithm) - set(algorithms))
        # Members as ``json.dumps`` writes them; within a text their quotation marks are escaped.
        members = [f'"{name}": "{algorithm}"' for name in RESPONSE_ALGORITHM_FIELDS for algorithm in unlisted]
        chosen = or_(false(), *(table.c.settings.contains(member, autoescape=True) for member in members))
        found = ENTITY_TABLE.select.where(table.c.active, chosen).order_by(table.c.id).limit(limit)
        return tuple(skip_unreadable(ENTITY_TABLE.from_row, self._fetch_all(found)))

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Application]:
        rows = ENTITY_TABLE.select.where(table.c.project_id == project_id)
        return self._page(ENTITY_TABLE, rows, request, _SORT_COLUMNS)

    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        self._execute_in_savepoint(
            _SECRET_TABLE.insert, _SECRET_TABLE.to_row(secret) | {"application_id": application_id}
        )

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        columns = client_secrets.c
        this = (columns.application_id == application_id, columns.id == secret_id)
        self._execute_for_one(delete(client_secrets).where(*this))

    def list_secrets(self, application_id: str, *, locked: bool = False) -> tuple[ClientSecret, ...]:
        if locked:
            lock_names(self._connection, "secrets", application_id)
            self._fetch_one(ENTITY_TABLE.lock(application_id))
        secrets = _SECRET_TABLE.select.where(client_secrets.c.application_id == application_id)
        return _read_secrets(self._fetch_all(secrets.order_by(*_OLDEST_SECRET_FIRST)))

    def count_secrets(self, ids: Collection[str]) -> Mapping[str, int]:
        counts = select(table.c.id, _SECRET_COUNT)
        return dict(self._fetch_values_by_id(counts, table.c.id, ids, lambda row: (row[0], row[1])))

    def update_secrets_last_used(self, uses: Mapping[str, datetime]) -> None:
        self._advance_timestamps(_UPDATE_SECRET_LAST_USED, uses)

    def _term_scopes(self, value: Application) -> Values:
        project = projects_table.c
        owner = self._fetch_one(select(project.organization_id).where(project.id == value.project_id))
        if owner is None:
            raise RowNotFound(value.project_id)
        return {"project_id": value.project_id, "organization_id": owner[0]}

    def _add_origins(self, application: Application) -> None:
        for origin in sorted(application.web_origins):
            self._execute(insert(origins).values(application_id=application.id, origin=origin))


def read_client(row: Row, secrets: tuple[ClientSecret, ...] = ()) -> ApplicationClient:
    """The client in a row that starts with ``CLIENT_COLUMNS``."""
    return ApplicationClient(
        ENTITY_TABLE.from_row(row[_APPLICATION]),
        secrets,
        projects.ENTITY_TABLE.from_row(row[_PROJECT]),
        organizations.ENTITY_TABLE.from_row(row[_ORGANIZATION]),
    )


def _read_secrets(rows: Iterable[Row]) -> tuple[ClientSecret, ...]:
    """The readable secrets: a damaged one is ignored."""
    return tuple(skip_unreadable(_SECRET_TABLE.from_row, filter(any, rows)))
