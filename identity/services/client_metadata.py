"""Metadata of clients whose id is its URL: fetched, cached, and read by plugins."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from identity.document_cache import DocumentCache, DocumentClient, DocumentTransport, DocumentUnavailable
from identity.domain.errors import Invalid
from identity.services.commands.applications import RegisterApplication


class ClientMetadataUnavailable(DocumentUnavailable):
    """The metadata of a client cannot be fetched or is refused; ``reason`` is for its developer."""


class ClientMetadataSource(ABC):
    """Reads the metadata of clients whose id is its URL."""

    name: ClassVar[str]

    @abstractmethod
    def accepts(self, client_id: str) -> bool:
        """True if metadata is to be fetched from this URL."""

    @abstractmethod
    def read(self, client_id: str, body: bytes) -> RegisterApplication:
        """The fields that the metadata sets. Raises Invalid with a sentence for each wrong member."""


class ClientMetadataCache(DocumentCache[RegisterApplication]):
    """Metadata of clients by URL."""

    subject = "client metadata"
    unavailable = ClientMetadataUnavailable


class ClientMetadataClient(DocumentClient[RegisterApplication]):
    """Finds the metadata of clients. They have no organization, so all of them share one bucket."""

    def __init__(self, transport: DocumentTransport, sources: Iterable[ClientMetadataSource]) -> None:
        super().__init__(transport, ClientMetadataCache())
        self._sources = tuple(sources)

    def accepts(self, client_id: str) -> bool:
        return any(source.accepts(client_id) for source in self._sources)

    def find(self, client_id: str) -> RegisterApplication | None:
        """The cached metadata; None if it must be fetched."""
        return self.cache.find_document(client_id)

    def fetch(self, client_id: str) -> RegisterApplication:
        """Raises ClientMetadataUnavailable."""
        return self.fetch_document(client_id, client_id, lambda: self._fetch(client_id))

    def _fetch(self, client_id: str) -> tuple[RegisterApplication, str]:
        source = next((item for item in self._sources if item.accepts(client_id)), None)
        if source is None:
            raise ClientMetadataUnavailable("no source reads the client metadata")
        answer = self.get(client_id)
        try:
            return source.read(client_id, answer.body), answer.cache_control
        except Invalid as refusal:
            raise ClientMetadataUnavailable(metadata_error(refusal)) from None


def metadata_error(refusal: Invalid) -> str:
    """The wrong members and what is wrong with them, in one line."""
    return "; ".join(f"{name}: {text}" for name, text in refusal.fields.items())
