"""Applications and their client secrets, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.applications import Application, ApplicationClient, ClientSecret
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, sort_oldest_first, update_last_used
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, page_in_memory
from identity.storage.stores.applications import APPLICATION_SORT_KEYS, ApplicationStore


class MemoryApplicationStore(MemoryEntityStore[Application], ApplicationStore):
    """Applications by id, secrets by application id and secret id."""

    table = "applications"

    def find_client(self, client_id: str) -> ApplicationClient | None:
        application = self._tables.applications.find(client_id)
        if application is None:
            return None
        project = self._tables.projects.get(application.project_id)
        organization = self._tables.organizations.get(project.organization_id)
        return ApplicationClient(application, self.list_secrets(client_id), project, organization)

    def is_registered_origin(self, origin: str) -> bool:
        return any(row.active and origin in row.web_origins for row in self._tables.applications)

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Application]:
        rows = (
            application
            for application in self._tables.applications
            if application.project_id == project_id and matches_query(request.query, application)
        )
        return page_in_memory(rows, request, APPLICATION_SORT_KEYS)

    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        self._tables.applications.get(application_id)
        self._tables.client_secrets.insert({(application_id, secret.id): secret})

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        self._tables.client_secrets.delete((application_id, secret_id))

    def list_secrets(self, application_id: str, *, locked: bool = False) -> tuple[ClientSecret, ...]:
        # Writers are exclusive, so no further lock is needed.
        secrets = self._tables.client_secrets.rows.items()
        return sort_oldest_first(secret for (owner, _), secret in secrets if owner == application_id)

    def count_secrets(self, ids: Collection[str]) -> Mapping[str, int]:
        counts = Counter(owner for owner, _ in self._tables.client_secrets.rows)
        return {id_: counts[id_] for id_ in ids if id_ in self._tables.applications}

    def update_secrets_last_used(self, uses: Mapping[str, datetime]) -> None:
        update_last_used(self._tables.client_secrets, uses)
