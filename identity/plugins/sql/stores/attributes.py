"""Attributes in SQL."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, delete, func, select, tuple_

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, StoredAttribute
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores.organizations import ENTITY_TABLE as ORGANIZATION_TABLE
from identity.plugins.sql.tables import attribute_definitions as table
from identity.plugins.sql.tables import attribute_mappings
from identity.plugins.sql.tables import attribute_values as values_table
from identity.storage.stores.attributes import AttributeMappingStore, AttributeStore, StoredValues

ENTITY_TABLE = EntityTable[AttributeDefinition](table)
_VALUES = MappedTable[StoredAttribute](values_table)
_MAPPING_TABLE = EntityTable[AttributeMapping](attribute_mappings)
_MAPPINGS = _MAPPING_TABLE.select.order_by(attribute_mappings.c.created_at, attribute_mappings.c.id)
_MAPPINGS_OF_PROVIDER = _MAPPINGS.where(attribute_mappings.c.provider_id == bindparam("provider"))
_MAPPINGS_OF_DIRECTORY = _MAPPINGS.where(
    attribute_mappings.c.directory == bindparam("directory"),
    attribute_mappings.c.organization_id == bindparam("organization"),
)
#: Rows deleted by one statement.
_AT_ONCE = 400

_LIST_DEFINITIONS = ENTITY_TABLE.select.where(table.c.organization_id == bindparam("organization")).order_by(
    table.c.key
)
_LIST_USER_ATTRIBUTES = CompiledStatement(
    select(*ENTITY_TABLE.columns, values_table.c.value)
    .join(values_table, values_table.c.definition_id == table.c.id)
    .where(values_table.c.user_id == bindparam("user"))
    .order_by(table.c.key)
)


class SqlAttributeStore(SqlEntityStore[AttributeDefinition], AttributeStore):
    entity_table = ENTITY_TABLE

    def list_definitions(self, organization_id: str, *, locked: bool = False) -> tuple[AttributeDefinition, ...]:
        if locked:
            lock_names(self._connection, "attributes", organization_id)
            self._fetch_one(ORGANIZATION_TABLE.lock(organization_id))
        return self._fetch_values(ENTITY_TABLE.from_row, _LIST_DEFINITIONS, {"organization": organization_id})

    def list_user_attributes(self, user_id: str) -> tuple[tuple[AttributeDefinition, str], ...]:
        return self._fetch_values(
            lambda row: (ENTITY_TABLE.from_row(row[:-1]), row[-1]), _LIST_USER_ATTRIBUTES, {"user": user_id}
        )

    def find_values(self, user_ids: Collection[str]) -> Mapping[str, StoredValues]:
        found: dict[str, dict[str, str]] = {}
        for row in self._fetch_values_by_id(_VALUES.select, values_table.c.user_id, user_ids, _VALUES.from_row):
            found.setdefault(row.user_id, {})[row.definition_id] = row.value
        return found

    def set_values(self, changes: Mapping[str, StoredValues]) -> None:
        items = [(user_id, id_, value) for user_id, values in changes.items() for id_, value in values.items()]
        keys = [item[:2] for item in items]
        for start in range(0, len(keys), _AT_ONCE):
            key = tuple_(values_table.c.user_id, values_table.c.definition_id)
            self._execute(delete(values_table).where(key.in_(keys[start : start + _AT_ONCE])))
        rows = (
            StoredAttribute(user_id=user_id, definition_id=id_, value=value) for user_id, id_, value in items if value
        )
        self._insert_all(_VALUES.insert, [_VALUES.to_row(row) for row in rows])

    def count_values(self, definition_id: str, values: Collection[str] | None = None) -> int:
        count = select(func.count()).select_from(values_table).where(values_table.c.definition_id == definition_id)
        row = self._fetch_one(count if values is None else count.where(values_table.c.value.in_(list(values))))
        return 0 if row is None else int(row[0])

    def list_distinct_values(self, definition_id: str, limit: int) -> tuple[str, ...]:
        column = values_table.c.value
        rows = select(column).where(values_table.c.definition_id == definition_id).distinct().order_by(column)
        return tuple(row[0] for row in self._fetch_all(rows.limit(limit)))


class SqlAttributeMappingStore(SqlEntityStore[AttributeMapping], AttributeMappingStore):
    entity_table = _MAPPING_TABLE

    def list_of_provider(self, provider_id: str) -> tuple[AttributeMapping, ...]:
        return self._fetch_values(_MAPPING_TABLE.from_row, _MAPPINGS_OF_PROVIDER, {"provider": provider_id})

    def list_of_directory(self, organization_id: str, name: str) -> tuple[AttributeMapping, ...]:
        parameters = {"directory": name, "organization": organization_id}
        return self._fetch_values(_MAPPING_TABLE.from_row, _MAPPINGS_OF_DIRECTORY, parameters)
