"""Attributes that organizations define, and the values of their people."""

from abc import abstractmethod
from collections.abc import Collection, Mapping

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.storage.stores.entity_store import EntityStore

#: Stored values by the id of the definition.
StoredValues = Mapping[str, str]


class AttributeStore(EntityStore[AttributeDefinition]):
    """Keys are unique in an organization (DuplicateValue("key")). Values are deleted with their definition and with
    their user."""

    @abstractmethod
    def list_definitions(self, organization_id: str, *, locked: bool = False) -> tuple[AttributeDefinition, ...]:
        """The organization's definitions by key. ``locked`` makes their count reliable: others that lock them wait for
        the end of the transaction."""

    @abstractmethod
    def list_user_attributes(self, user_id: str) -> tuple[tuple[AttributeDefinition, str], ...]:
        """Each value of the user with its definition, by key and in one query."""

    @abstractmethod
    def find_values(self, user_ids: Collection[str]) -> Mapping[str, StoredValues]:
        """The values of these users by user id, in one query; users without any are left out."""

    @abstractmethod
    def set_values(self, changes: Mapping[str, StoredValues]) -> None:
        """Replace these values, by user id; empty ones are deleted. Raises RowNotFound if a user or a definition is
        gone."""

    @abstractmethod
    def count_values(self, definition_id: str, values: Collection[str] | None = None) -> int:
        """The number of users with a value, or with one of these."""

    @abstractmethod
    def list_distinct_values(self, definition_id: str, limit: int) -> tuple[str, ...]:
        """The first of the different values, in order."""


class AttributeMappingStore(EntityStore[AttributeMapping]):
    """Unique: one mapping per attribute and identity provider or directory (DuplicateValue("attribute_id"))."""

    @abstractmethod
    def list_of_provider(self, provider_id: str) -> tuple[AttributeMapping, ...]:
        """The mappings of the identity provider, oldest first."""

    @abstractmethod
    def list_of_directory(self, organization_id: str, name: str) -> tuple[AttributeMapping, ...]:
        """The mappings of the directory in this organization, oldest first."""
