"""Base class of entity stores."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar


class VersionedEntity(Protocol):
    """A value with an id whose version grows with each change."""

    @property
    def id(self) -> str:
        pass

    @property
    def version(self) -> int:
        pass


EntityT = TypeVar("EntityT", bound=VersionedEntity)


class EntityStore(ABC, Generic[EntityT]):
    """Values by id. Dependent rows are deleted with them."""

    @abstractmethod
    def add(self, value: EntityT) -> None:
        pass

    @abstractmethod
    def find(self, id: str) -> EntityT | None:  # noqa: A002
        pass

    @abstractmethod
    def find_many(self, ids: Collection[str]) -> Mapping[str, EntityT]:
        """The values with these ids, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def update(self, value: EntityT) -> None:
        pass

    @abstractmethod
    def delete(self, id: str) -> None:  # noqa: A002
        """Delete it with its dependent rows."""
