"""Where the instance's fixed identifiers are kept."""

from abc import ABC, abstractmethod

from identity.domain.instance import Instance


class InstanceStore(ABC):
    """Holds one row at most."""

    @abstractmethod
    def find(self) -> Instance | None:
        """The instance, or None before bootstrap."""

    @abstractmethod
    def add(self, instance: Instance) -> None:
        """Store it. Raises Duplicate("instance") if there is one: of two racing bootstraps one wins."""
