"""Upstream providers."""

from abc import abstractmethod

from identity.domain.upstream_providers import UpstreamProvider
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.entity_store import EntityStore


class UpstreamProviderStore(EntityStore[UpstreamProvider]):
    """Lists are newest first."""

    @abstractmethod
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[UpstreamProvider]:
        """The providers of this organization, newest first."""

    @abstractmethod
    def list_asserting(self, client_id: str) -> tuple[UpstreamProvider, ...]:
        """The active providers whose identity assertions bring this application tokens; oldest first."""

    @abstractmethod
    def list_available(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        """The active providers of this organization, if given, and those for all; oldest first."""
