"""The audit trail: append-only, except that personal data of deleted people is erased."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from identity.domain.audit import UNFILTERED, AuditEvent, AuditFilter
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage


class AuditStore(ABC):
    """No method deletes an event, and only ``erase_personal_details`` changes one. Pages are newest first."""

    @abstractmethod
    def append(self, event: AuditEvent) -> bool:
        """Write the event with the next sequence number; False, and nothing is written, if its ``once`` exists already
        (on any node)."""

    @abstractmethod
    def append_many(self, events: Sequence[AuditEvent]) -> None:
        """Write events without ``once``, in this order."""

    @abstractmethod
    def erase_personal_details(self, deleted_ids: str) -> int:
        """Replace each detail by ERASED in events about this person, or about people of this organization, and leave
        the rest of the events unchanged; returns the number of events changed. Call it after deleting them: events
        about existing people keep their details."""

    @abstractmethod
    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id; None if there is none."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = UNFILTERED) -> ResultPage[AuditEvent]:
        """Events that match the filter."""

    @abstractmethod
    def list_after(self, sequence: int, limit: int, filter: AuditFilter = UNFILTERED) -> tuple[AuditEvent, ...]:
        """Up to ``limit`` events that match the filter and have a greater sequence number, oldest first. An event is
        withheld while one with a lower number may still be committed: a caller that continues after the last event
        returned misses none."""
