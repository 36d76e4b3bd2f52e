"""Search over all organizations: entities by the starts of words of their names, or by the start of their id."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from identity.domain.search import PrefixQuery


class SearchedKind(StrEnum):
    USER = "user"
    SERVICE_USER = "service_user"
    APPLICATION = "application"
    PROJECT = "project"
    ORGANIZATION = "organization"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search covers: everything in these organizations, None for all, and these projects with their
    applications."""

    organization_ids: frozenset[str] | None = None
    project_ids: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        return self.organization_ids == frozenset() and not self.project_ids


#: Maximum number of entities that the longest term of a query with several terms selects.
MAX_CANDIDATES = 2000


class SearchStore(ABC):
    """Reads only the part of an index that the longest term selects, so the cost does not grow with the number of
    entities or organizations."""

    @abstractmethod
    def find_ids(self, kind: SearchedKind, query: PrefixQuery, scope: SearchScope, limit: int) -> tuple[str, ...]:
        """Up to ``limit`` ids, in the order of the first word that the query's longest term matches, then by id. If
        that term is frequent, matches of all terms beyond the first MAX_CANDIDATES are missed."""

    @abstractmethod
    def find_ids_by_start(self, kind: SearchedKind, start: str, scope: SearchScope, limit: int) -> tuple[str, ...]:
        """Up to ``limit`` ids that start with the text, in order."""
