"""Applications and their client secrets."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.applications import Application, ApplicationClient, ClientSecret
from identity.domain.names import name_key
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: Sort keys of the list, the default first.
APPLICATION_SORT_KEYS: SortKeys[Application] = {
    "name": lambda application: name_key(application.name),
    "created_at": lambda application: sortable_timestamp(application.created_at),
}


class ApplicationStore(EntityStore[Application]):
    """Client secrets are deleted with their application."""

    @abstractmethod
    def find_client(self, client_id: str) -> ApplicationClient | None:
        """The application with secrets, project and organization, in one query."""

    @abstractmethod
    def is_registered_origin(self, origin: str) -> bool:
        """True if an active application has a redirect URI of this web origin (RFC 6454); uses an index."""

    @abstractmethod
    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[Application, ...]:
        """Active applications that chose a signing algorithm other than these, oldest id first, in one query."""

    @abstractmethod
    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Application]:
        """The project's applications, by name by default."""

    @abstractmethod
    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        """Add a secret. Raises RowNotFound if there is no such application."""

    @abstractmethod
    def remove_secret(self, application_id: str, secret_id: str) -> None:
        """Raises RowNotFound."""

    @abstractmethod
    def list_secrets(self, application_id: str, *, locked: bool = False) -> tuple[ClientSecret, ...]:
        """The application's secrets, oldest first. ``locked`` makes their count reliable: others that lock them wait
        for the end of the transaction."""

    @abstractmethod
    def count_secrets(self, ids: Collection[str]) -> Mapping[str, int]:
        """Number of secrets of each of these applications, in one query; unknown ids are left out."""

    @abstractmethod
    def update_secrets_last_used(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the secrets with these ids forward, never back; unknown ids are ignored."""
