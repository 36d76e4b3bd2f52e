"""Base class of entity stores."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar


class VersionedEntity(Protocol):
    """A value with an id whose version grows with each change."""

    @property
    def id(self) -> str:
        """The primary key."""

    @property
    def version(self) -> int:
        """Grows by one with each change."""


EntityT = TypeVar("EntityT", bound=VersionedEntity)


class EntityStore(ABC, Generic[EntityT]):
    """Values by id. Dependent rows are deleted with them."""

    @abstractmethod
    def add(self, value: EntityT) -> None:
        """Store a new value. Raises DuplicateValue, RowNotFound."""

    @abstractmethod
    def find(self, id: str) -> EntityT | None:
        """The value with this id; None if there is none."""

    @abstractmethod
    def find_many(self, ids: Collection[str]) -> Mapping[str, EntityT]:
        """The values with these ids, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def update(self, value: EntityT) -> None:
        """Replace the stored value by its next version. Raises StaleRow, RowNotFound, DuplicateValue."""

    @abstractmethod
    def delete(self, id: str) -> None:
        """Delete it with its dependent rows."""
