"""Applications and their client secrets, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from identity.domain.applications import RESPONSE_ALGORITHM_FIELDS, Application, ApplicationClient, ClientSecret
from identity.storage.memory.entity_store import MemoryEntityStore, sort_oldest_first, update_last_used
from identity.storage.memory.tables import MemoryTables
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, search_in_memory
from identity.storage.stores.applications import APPLICATION_SORT_KEYS, ApplicationStore


class MemoryApplicationStore(MemoryEntityStore[Application], ApplicationStore):
    """Applications by id, secrets by application id and secret id."""

    def find_client(self, client_id: str) -> ApplicationClient | None:
        client = find_client(self._tables, client_id)
        return None if client is None else replace(client, secrets=self.list_secrets(client_id))

    def is_registered_origin(self, origin: str) -> bool:
        return any(row.active and origin in row.web_origins for row in self._rows)

    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[Application, ...]:
        listed = {None, *algorithms}
        chosen = ((row, {getattr(row, name) for name in RESPONSE_ALGORITHM_FIELDS}) for row in self._rows)
        found = [row for row, names in chosen if row.active and not names <= listed]
        return tuple(sorted(found, key=lambda row: row.id)[:limit])

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Application]:
        return search_in_memory(
            (row for row in self._rows if row.project_id == project_id), request, APPLICATION_SORT_KEYS
        )

    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        self._rows.get(application_id)
        self._tables.client_secrets.insert({(application_id, secret.id): secret})

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        self._tables.client_secrets.delete((application_id, secret_id))

    def list_secrets(self, application_id: str, *, locked: bool = False) -> tuple[ClientSecret, ...]:
        # Writers are exclusive, so no further lock is needed.
        secrets = self._tables.client_secrets.rows.items()
        return sort_oldest_first(secret for (owner, _), secret in secrets if owner == application_id)

    def count_secrets(self, ids: Collection[str]) -> Mapping[str, int]:
        counts = Counter(owner for owner, _ in self._tables.client_secrets.rows)
        return {id_: counts[id_] for id_ in ids if id_ in self._rows}

    def update_secrets_last_used(self, uses: Mapping[str, datetime]) -> None:
        update_last_used(self._tables.client_secrets, uses)


def find_client(tables: MemoryTables, client_id: str | None) -> ApplicationClient | None:
    """The application with project and organization, without its secrets."""
    application = tables.applications.find(client_id)
    if application is None:
        return None
    project = tables.projects.get(application.project_id)
    return ApplicationClient(application, (), project, tables.organizations.get(project.organization_id))
