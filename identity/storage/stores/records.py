"""Records of the service's parts and of plugins."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.records import Record


class RecordStore(ABC):
    """Known by plugin, kind and key; a record goes with the user and with the application that it names."""

    @abstractmethod
    def add(self, record: Record, *, replacing_expired: bool = False) -> Record | None:
        """Store the record by one conditional write: None if it is stored, else the one that holds the key.

        One that has expired when ``record`` is created holds the key too, unless ``replacing_expired``. Of racing
        transactions one stores its record; the others wait for its end and then see it, or store theirs if it was
        aborted. Raises RowNotFound if there is no such user or application; the transaction can go on.
        """

    @abstractmethod
    def find(self, plugin: str, kind: str, key: bytes, *, locked: bool = False) -> Record | None:
        """The record, also if it was taken or has expired.

        ``locked`` so that it stays as it is: whoever wants to change it waits for the end of the transaction. Any
        number of transactions can have it locked at a time; none of them is to change it itself.
        """

    @abstractmethod
    def replace(self, record: Record) -> None:
        """Put the record in the place of the one with its key.

        Its ``version`` must be one more than the stored one, otherwise StaleRow. Raises RowNotFound, also if there is
        no such user or application; the transaction can go on.
        """

    @abstractmethod
    def consume(self, plugin: str, kind: str, key: bytes, consumed_at: datetime) -> Record:
        """Take the record by one conditional write: of racing callers exactly one gets it; returns it as it was.

        Raises AlreadyUsed if it was taken before, RowNotFound if there is none or it has expired. The transaction can
        go on. Taking counts as a change: ``version`` grows.
        """

    @abstractmethod
    def list_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        """The records of this user, of this application, or of both together; newest first, then by key, descending.

        Without an owner there are none.
        """

    @abstractmethod
    def delete(self, plugin: str, kind: str, key: bytes) -> bool:
        """Delete the record; False if there was none."""

    @abstractmethod
    def delete_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> int:
        """Delete what ``list_for_owner`` would return; returns how many went."""
