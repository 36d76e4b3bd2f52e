"""Search over all organizations, in memory."""

from collections.abc import Iterator
from typing import Any

from identity.domain.search import PrefixQuery
from identity.domain.users import HumanUser
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.stores.search import SearchedKind, SearchScope, SearchStore


class MemorySearchStore(MemoryStore, SearchStore):
    """Compares every entity."""

    def find_ids(self, kind: SearchedKind, query: PrefixQuery, scope: SearchScope, limit: int) -> tuple[str, ...]:
        matches = ((query.first_match(entity.search_text), entity.id) for entity in self._entities(kind, scope))
        return tuple(id_ for _, id_ in sorted((term, id_) for term, id_ in matches if term is not None)[:limit])

    def find_ids_by_start(self, kind: SearchedKind, start: str, scope: SearchScope, limit: int) -> tuple[str, ...]:
        ids = sorted(entity.id for entity in self._entities(kind, scope))
        return tuple([id_ for id_ in ids if id_.startswith(start)][:limit])

    def _entities(self, kind: SearchedKind, scope: SearchScope) -> Iterator[Any]:
        for entity, organization_id, project_id in self._with_parents(kind):
            organization_ids = scope.organization_ids
            if organization_ids is None or organization_id in organization_ids or project_id in scope.project_ids:
                yield entity

    def _with_parents(self, kind: SearchedKind) -> Iterator[tuple[Any, str, str | None]]:
        """The entities with the ids of their organization and project."""
        tables = self._tables
        match kind:
            case SearchedKind.ORGANIZATION:
                yield from ((row, row.id, None) for row in tables.organizations)
            case SearchedKind.PROJECT:
                yield from ((row, row.organization_id, row.id) for row in tables.projects)
            case SearchedKind.GROUP:
                yield from ((row, row.organization_id, None) for row in tables.groups)
            case SearchedKind.APPLICATION:
                for row in tables.applications:
                    yield row, tables.projects.get(row.project_id).organization_id, row.project_id
            case _:
                is_human = kind is SearchedKind.USER
                users = (row for row in tables.users if isinstance(row, HumanUser) == is_human)
                yield from ((row, row.organization_id, None) for row in users)
