"""The audit trail: it can be appended to and read."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from identity.domain.audit import EVERYTHING, AuditEvent, AuditFilter
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class AuditStore(ABC):
    """There is no way to change or delete an event. Pages are newest first."""

    @abstractmethod
    def append(self, event: AuditEvent) -> bool:
        """Write the event and give it the next sequence number; False if its ``once`` is already there (compared over
        all nodes), and then nothing is written."""

    @abstractmethod
    def append_many(self, events: Sequence[AuditEvent]) -> None:
        """Write events that have no ``once``, in this order."""

    @abstractmethod
    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = EVERYTHING) -> Page[AuditEvent]:  # noqa: A002
        """Events that the filter lets through."""

    @abstractmethod
    def after(self, sequence: int, limit: int, filter: AuditFilter = EVERYTHING) -> tuple[AuditEvent, ...]:  # noqa: A002
        """Up to ``limit`` events with a greater sequence number that the filter lets through, oldest first.

        An event is held back while one with a lower number may still be committed: who asks again after the last one
        that was returned misses none.
        """
