"""The audit trail: it can be appended to and read, and forgets what it told of people who are deleted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from identity.domain.audit import UNFILTERED, AuditEvent, AuditFilter
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage


class AuditStore(ABC):
    """There is no way to delete an event, and none to change one but ``erase_personal_details``. Pages are newest
    first.
    """

    @abstractmethod
    def append(self, event: AuditEvent) -> bool:
        """Write the event and give it the next sequence number; False if its ``once`` is already there (compared over
        all nodes), and then nothing is written."""

    @abstractmethod
    def append_many(self, events: Sequence[AuditEvent]) -> None:
        """Write events that have no ``once``, in this order."""

    @abstractmethod
    def erase_personal_details(self, deleted_ids: str) -> int:
        """Put ERASED in the place of each detail that there is in events about this person, or about people of this
        organization, and leave the rest of the events as it is; returns how many events that were.

        Events about people who are there keep what they tell: whoever deletes one calls this afterwards.
        """

    @abstractmethod
    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = UNFILTERED) -> ResultPage[AuditEvent]:  # noqa: A002
        """Events that the filter lets through."""

    @abstractmethod
    def list_after(self, sequence: int, limit: int, filter: AuditFilter = UNFILTERED) -> tuple[AuditEvent, ...]:  # noqa: A002
        """Up to ``limit`` events with a greater sequence number that the filter lets through, oldest first.

        An event is held back while one with a lower number may still be committed: who asks again after the last one
        that was returned misses none.
        """
