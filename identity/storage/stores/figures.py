"""Figures: counts per organization and day."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import date, datetime

from identity.domain.figures import FigureKey, FigureKind, PeopleCount


class FigureStore(ABC):
    """One number per key. Figures of a removed organization stay until they are too old."""

    @abstractmethod
    def add(self, counts: Mapping[FigureKey, int]) -> None:
        """Add to the numbers, each by one statement; a missing number is 0."""

    @abstractmethod
    def put(self, levels: Mapping[FigureKey, int]) -> None:
        """Replace the numbers."""

    @abstractmethod
    def list_daily(
        self, organization_id: str, kinds: Collection[FigureKind], *, since: date
    ) -> Mapping[tuple[FigureKind, date], int]:
        """The numbers of these kinds from the day on, summed over objects."""

    @abstractmethod
    def list_on(self, day: date, kinds: Collection[FigureKind]) -> Mapping[FigureKey, int]:
        """The numbers of these kinds on the day, of all organizations."""

    @abstractmethod
    def list_by_object(
        self, organization_id: str, kind: FigureKind, *, since: date, limit: int
    ) -> tuple[tuple[str, int], ...]:
        """The objects with the largest sums from the day on, with these; equal ones by id."""

    @abstractmethod
    def count_people(self, *, active_since: datetime) -> tuple[PeopleCount, ...]:
        """Active people of each organization that has any, by id: it reads all of them."""

    @abstractmethod
    def delete_before(self, day: date) -> int:
        """Delete figures of earlier days; returns their number."""
