"""Records of plugins and of the service itself."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.records import Record


class RecordStore(ABC):
    """Identified by plugin, kind and key; a record is deleted with the user or application that it names."""

    @abstractmethod
    def add(self, record: Record, *, replacing_expired: bool = False, is_last_write: bool = False) -> Record | None:
        """Add the record by one conditional write: None if it was added, else the existing record. An expired record
        keeps the key, too, unless ``replacing_expired``. One of several racing transactions adds its record; the others
        wait for its end and then get it, or add theirs if it was aborted. ``is_last_write`` means that the transaction
        changes nothing else. Raises RowNotFound if there is no such user or application; the transaction can
        continue."""

    @abstractmethod
    def find(self, plugin: str, kind: str, key: bytes, *, locked: bool = False) -> Record | None:
        """The record, even if it was consumed or has expired. ``locked`` keeps it unchanged until the transaction ends.
        Any number of transactions can lock it at a time; none of them may change it."""

    @abstractmethod
    def find_many(self, plugin: str, kind: str, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        """The records with these keys, by key and in one query; unknown ones are left out."""

    @abstractmethod
    def replace(self, record: Record) -> None:
        """Replace the record with the same key. Its ``version`` must be one more than the stored one, otherwise
        StaleRow. Raises RowNotFound, also if there is no such user or application; the transaction can continue."""

    @abstractmethod
    def consume(self, plugin: str, kind: str, key: bytes, consumed_at: datetime) -> Record:
        """Consume the record by one conditional write: exactly one of several racing callers gets it. Returns it as it
        was. Raises AlreadyUsed if it was consumed before, RowNotFound if there is none or it has expired. The
        transaction can continue. Consuming is a change: ``version`` grows."""

    @abstractmethod
    def list_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        """The records of this user, of this application, or of both together; newest first, then by key, descending.
        Empty without an owner."""

    @abstractmethod
    def delete(self, plugin: str, kind: str, key: bytes) -> bool:
        """Delete the record; False if there was none."""

    @abstractmethod
    def delete_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> int:
        """Delete what ``list_for_owner`` would return; returns the number deleted."""

    @abstractmethod
    def delete_for_organization(
        self, plugin: str, kind: str, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        """Delete the records that users of the organization own, except these; returns the number deleted."""
