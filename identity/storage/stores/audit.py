"""The audit trail: it can be appended to and read."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.audit import AuditEvent
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class AuditStore(ABC):
    """There is no way to change or delete an event. Lists are newest first."""

    @abstractmethod
    def append(self, event: AuditEvent) -> bool:
        """Write the event and give it the next sequence number; False if its ``once`` is already there (compared over
        all nodes), and then nothing is written."""

    @abstractmethod
    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id."""

    @abstractmethod
    def page(
        self,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_id: str | None = None,
        event: str | None = None,
        actor_id: str | None = None,
        object_id: str | None = None,
        result: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[AuditEvent]:
        """Events that fit every filter given; ``since`` itself fits, ``until`` does not."""
