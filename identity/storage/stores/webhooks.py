"""Webhooks."""

from abc import abstractmethod

from identity.domain.webhooks import Webhook
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.entity_store import EntityStore


class WebhookStore(EntityStore[Webhook]):
    """Lists are newest first. None as an organization stands for the instance."""

    @abstractmethod
    def page(self, organization_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[Webhook]:
        """The webhooks of this organization or of the instance, newest first."""

    @abstractmethod
    def list_receiving(self, organization_id: str | None) -> tuple[Webhook, ...]:
        """The active webhooks of this organization, if given, and those of the instance; oldest first."""
