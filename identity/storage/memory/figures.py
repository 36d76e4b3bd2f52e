"""Figures, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date, datetime

from identity.domain.enrolments import FACTOR_RECORD_KIND
from identity.domain.figures import FigureKey, FigureKind, PeopleCount
from identity.domain.records import CORE_NAMESPACE
from identity.domain.users import HumanUser
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.stores.figures import FigureStore


class MemoryFigureStore(MemoryStore, FigureStore):
    """Numbers by key."""

    def add(self, counts: Mapping[FigureKey, int]) -> None:
        for key, count in counts.items():
            self._tables.figures.replace_unchecked(key, (self._tables.figures.find(key) or 0) + count)

    def put(self, levels: Mapping[FigureKey, int]) -> None:
        for key, level in levels.items():
            self._tables.figures.replace_unchecked(key, level)

    def list_daily(
        self, organization_id: str, kinds: Collection[FigureKind], *, since: date
    ) -> Mapping[tuple[FigureKind, date], int]:
        found: Counter[tuple[FigureKind, date]] = Counter()
        for key, count in self._tables.figures.rows.items():
            if key.organization_id == organization_id and key.kind in kinds and key.day >= since:
                found[key.kind, key.day] += count
        return dict(found)

    def list_on(self, day: date, kinds: Collection[FigureKind]) -> Mapping[FigureKey, int]:
        return {
            key: number for key, number in self._tables.figures.rows.items() if key.day == day and key.kind in kinds
        }

    def list_by_object(
        self, organization_id: str, kind: FigureKind, *, since: date, limit: int
    ) -> tuple[tuple[str, int], ...]:
        found: Counter[str] = Counter()
        for key, count in self._tables.figures.rows.items():
            if key.organization_id == organization_id and key.kind is kind and key.day >= since:
                found[key.object_id] += count
        return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def count_people(self, *, active_since: datetime) -> tuple[PeopleCount, ...]:
        protected = {
            record.user_id
            for record in self._tables.records
            if record.plugin == CORE_NAMESPACE and record.kind == FACTOR_RECORD_KIND
        }
        people, active, covered = Counter[str](), Counter[str](), Counter[str]()
        for user in self._tables.users:
            if isinstance(user, HumanUser) and user.active:
                people[user.organization_id] += 1
                active[user.organization_id] += (
                    user.last_sign_in_at is not None and user.last_sign_in_at >= active_since
                )
                covered[user.organization_id] += user.id in protected
        return tuple(
            PeopleCount(organization_id=id_, people=people[id_], active=active[id_], protected=covered[id_])
            for id_ in sorted(people)
        )

    def delete_before(self, day: date) -> int:
        return self._tables.figures.delete_where(lambda key, _: key.day < day)
