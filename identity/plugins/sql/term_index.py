"""The words by which entities are found, written in the transaction that changes the entity."""

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import Table, delete, insert, select

from identity.domain.search import index_terms
from identity.plugins.sql.entity_store import SqlEntityStore
from identity.plugins.sql.row_mapping import Values
from identity.storage.stores.entity_store import EntityT


class TermIndexedStore(SqlEntityStore[EntityT]):
    """One row per word in ``term_table``; foreign keys delete them with the entity."""

    term_table: ClassVar[Table]

    def add(self, value: EntityT) -> None:
        with self._savepoint():
            self._execute(self.entity_table.insert, self.entity_table.to_row(value))
            self._insert_terms([value])

    def update(self, value: EntityT) -> None:
        super().update(value)
        self._update_terms(value)

    def _term_scopes(self, value: Any) -> Values:
        """The columns besides entity and term."""
        return {}

    def _insert_terms(self, values: Sequence[Any]) -> None:
        rows = [row for value in values for row in self._term_rows(value)]
        if rows:
            self._insert_rows(insert(self.term_table), rows)

    def _update_terms(self, value: Any) -> None:
        """Costs one query if the names are the same."""
        key, term = self.term_table.primary_key.columns
        stored = {row[0] for row in self._fetch_all(select(term).where(key == value.id))}
        if stored != set(index_terms(value.search_text)):
            self._execute(delete(self.term_table).where(key == value.id))
            self._insert_terms([value])

    def _term_rows(self, value: Any) -> list[Values]:
        key, _ = self.term_table.primary_key.columns
        shared = {key.name: value.id, **self._term_scopes(value)}
        return [{**shared, "term": term} for term in index_terms(value.search_text)]
