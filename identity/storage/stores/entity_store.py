"""What all stores of entities do alike."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar


class VersionedEntity(Protocol):
    """A value with an id, of which each change is a new version."""

    @property
    def id(self) -> str:
        """Its key."""

    @property
    def version(self) -> int:
        """Counts its changes."""


EntityT = TypeVar("EntityT", bound=VersionedEntity)


class EntityStore(ABC, Generic[EntityT]):
    """Values by id. What belongs to one goes with it."""

    @abstractmethod
    def add(self, value: EntityT) -> None:
        """Store a new value."""

    @abstractmethod
    def find(self, id: str) -> EntityT | None:  # noqa: A002
        """The value with this id."""

    @abstractmethod
    def find_many(self, ids: Collection[str]) -> Mapping[str, EntityT]:
        """The values with these ids, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def update(self, value: EntityT) -> None:
        """Replace the stored value by its next version."""

    @abstractmethod
    def delete(self, id: str) -> None:  # noqa: A002
        """Delete it with all that belongs to it."""
