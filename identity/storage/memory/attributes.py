"""Attributes, in memory."""

from collections.abc import Collection, Mapping

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, StoredAttribute
from identity.storage.memory.entity_store import MemoryEntityStore, sort_oldest_first
from identity.storage.stores.attributes import AttributeMappingStore, AttributeStore, StoredValues


class MemoryAttributeStore(MemoryEntityStore[AttributeDefinition], AttributeStore):
    """Definitions by id, values by user id and definition id."""

    def list_definitions(self, organization_id: str, *, locked: bool = False) -> tuple[AttributeDefinition, ...]:
        rows = (row for row in self._rows if row.organization_id == organization_id)
        return tuple(sorted(rows, key=lambda row: row.key))

    def list_user_attributes(self, user_id: str) -> tuple[tuple[AttributeDefinition, str], ...]:
        values = (row for row in self._tables.attribute_values if row.user_id == user_id)
        found = ((self._rows.get(row.definition_id), row.value) for row in values)
        return tuple(sorted(found, key=lambda item: item[0].key))

    def find_values(self, user_ids: Collection[str]) -> Mapping[str, StoredValues]:
        found: dict[str, dict[str, str]] = {}
        for row in self._tables.attribute_values:
            if row.user_id in user_ids:
                found.setdefault(row.user_id, {})[row.definition_id] = row.value
        return found

    def set_values(self, changes: Mapping[str, StoredValues]) -> None:
        table = self._tables.attribute_values
        for user_id, values in changes.items():
            for definition_id, value in values.items():
                key = user_id, definition_id
                if value:
                    table.replace(key, StoredAttribute(user_id=user_id, definition_id=definition_id, value=value))
                elif key in table:
                    table.delete(key)

    def count_values(self, definition_id: str, values: Collection[str] | None = None) -> int:
        return sum(values is None or value in values for value in self._values(definition_id))

    def list_distinct_values(self, definition_id: str, limit: int) -> tuple[str, ...]:
        return tuple(sorted(set(self._values(definition_id)))[:limit])

    def _values(self, definition_id: str) -> list[str]:
        return [row.value for row in self._tables.attribute_values if row.definition_id == definition_id]


class MemoryAttributeMappingStore(MemoryEntityStore[AttributeMapping], AttributeMappingStore):
    def list_of_provider(self, provider_id: str) -> tuple[AttributeMapping, ...]:
        return sort_oldest_first(row for row in self._rows if row.provider_id == provider_id)

    def list_of_directory(self, organization_id: str, name: str) -> tuple[AttributeMapping, ...]:
        rows = (row for row in self._rows if row.organization_id == organization_id)
        return sort_oldest_first(row for row in rows if row.directory == name)
