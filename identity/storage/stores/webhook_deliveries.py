"""Deliveries to webhooks: queue and log in one."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime

from identity.domain.webhooks import WebhookDelivery
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage


class WebhookDeliveryStore(ABC):
    """One row per event and webhook; deleted with the webhook. Unreadable rows are skipped in lists."""

    @abstractmethod
    def add(self, delivery: WebhookDelivery) -> None:
        """Raises DuplicateValue("id"), RowNotFound without the webhook."""

    @abstractmethod
    def find(self, id: str) -> WebhookDelivery | None:
        """The delivery with this id; None if there is none."""

    @abstractmethod
    def page(self, webhook_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[WebhookDelivery]:
        """The deliveries of the webhook, newest first."""

    @abstractmethod
    def list_next_attempts(self, limit: int, *, without: Collection[str] = ()) -> tuple[tuple[str, datetime], ...]:
        """Ids of up to ``limit`` active webhooks with pending deliveries, each with the ``next_at`` of its first one,
        soonest first; those in ``without`` are left out. The cost does not grow with the deliveries."""

    @abstractmethod
    def list_due(self, webhook_id: str, now: datetime, limit: int) -> tuple[WebhookDelivery, ...]:
        """Up to ``limit`` pending deliveries of the webhook whose ``next_at`` has come, soonest first."""

    @abstractmethod
    def update(self, delivery: WebhookDelivery, *, attempts: int) -> bool:
        """Replace the stored delivery if it still has this number of attempts; False if it has not, or is gone."""
