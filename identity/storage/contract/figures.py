"""Contract of figures: counts per organization and day."""

from datetime import date, timedelta
from functools import partial

from identity.domain.enrolments import FACTOR_RECORD_KIND
from identity.domain.figures import WHOLE_INSTANCE, FigureKey, FigureKind, PeopleCount
from identity.domain.records import CORE_NAMESPACE
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness

TODAY = date(2026, 3, 1)
SIGN_INS, TOKENS, REFUSED = FigureKind.SIGN_INS, FigureKind.TOKENS, FigureKind.REFUSED_SIGN_INS


def key(
    kind: FigureKind = SIGN_INS, day: date = TODAY, *, organization_id: str = "acme", object_id: str = ""
) -> FigureKey:
    return FigureKey(organization_id=organization_id, kind=kind, day=day, object_id=object_id)


class FigureContract(ContractBase):
    """Numbers are added up by organization, kind, day and object."""

    def test_figures_are_added_up_and_listed_by_day(self, on: StorageHarness) -> None:
        yesterday = TODAY - timedelta(days=1)
        on.write.figures.add({key(): 2, key(day=yesterday): 5, key(REFUSED): 1, key(organization_id="bolt"): 9})
        on.write.figures.add({key(): 3, key(day=TODAY - timedelta(days=2)): 7})
        found = on.read.figures.list_daily("acme", [SIGN_INS, REFUSED], since=yesterday)
        assert found == {(SIGN_INS, TODAY): 5, (SIGN_INS, yesterday): 5, (REFUSED, TODAY): 1}
        assert on.read.figures.list_daily("acme", [REFUSED], since=yesterday) == {(REFUSED, TODAY): 1}
        assert on.read.figures.list_daily("acm", [SIGN_INS], since=yesterday) == {}
        assert on.read.figures.list_daily("acme", [], since=yesterday) == {}

    def test_figures_of_the_instance_are_apart_from_those_of_organizations(self, on: StorageHarness) -> None:
        on.write.figures.add({key(organization_id=WHOLE_INSTANCE): 4, key(): 1})
        assert on.read.figures.list_daily(WHOLE_INSTANCE, [SIGN_INS], since=TODAY) == {(SIGN_INS, TODAY): 4}

    def test_figures_can_exceed_32_bits(self, on: StorageHarness) -> None:
        for _ in range(2):
            on.write.figures.add({key(TOKENS, object_id="portal"): 2**40})
        assert on.read.figures.list_by_object("acme", TOKENS, since=TODAY, limit=1) == (("portal", 2**41),)

    def test_figures_put_replaces_the_number(self, on: StorageHarness) -> None:
        for level in (7, 3):
            on.write.figures.put({key(FigureKind.PEOPLE): level})
        assert on.read.figures.list_daily("acme", [FigureKind.PEOPLE], since=TODAY) == {(FigureKind.PEOPLE, TODAY): 3}

    def test_figures_of_all_organizations_on_one_day(self, on: StorageHarness) -> None:
        today = {key(): 4, key(organization_id="bolt"): 2, key(TOKENS, object_id="portal"): 1}
        on.write.figures.add({**today, key(day=TODAY - timedelta(days=1)): 9, key(REFUSED): 9})
        assert on.read.figures.list_on(TODAY, [SIGN_INS, TOKENS]) == today
        assert on.read.figures.list_on(TODAY, []) == {}

    def test_figures_by_object_lists_the_largest_sums(self, on: StorageHarness) -> None:
        counts = {
            key(TOKENS, object_id="b"): 3,
            key(TOKENS, object_id="a"): 3,
            key(TOKENS, TODAY - timedelta(days=1), object_id="c"): 2,
            key(TOKENS, object_id="c"): 2,
            key(TOKENS, TODAY - timedelta(days=2), object_id="a"): 90,
            key(TOKENS, object_id="d"): 1,
            key(SIGN_INS): 50,
            key(TOKENS, organization_id="bolt", object_id="d"): 50,
        }
        on.write.figures.add(counts)
        found = on.read.figures.list_by_object("acme", TOKENS, since=TODAY - timedelta(days=1), limit=3)
        assert found == (("c", 4), ("a", 3), ("b", 3))
        daily = on.read.figures.list_daily("acme", [TOKENS], since=TODAY)
        assert daily == {(TOKENS, TODAY): 9}, "summed over objects"

    def test_figures_of_earlier_days_are_deleted(self, on: StorageHarness) -> None:
        days = [TODAY - timedelta(days=index) for index in range(4)]
        on.write.figures.add({key(day=day): 1 for day in days})
        assert on.write.figures.delete_before(days[1]) == 2
        assert set(on.read.figures.list_daily("acme", [SIGN_INS], since=days[3])) == {
            (SIGN_INS, day) for day in days[:2]
        }

    def test_figures_races_lose_no_count(self, on: StorageHarness) -> None:
        outcomes = on.race(count_two_kinds, 50)
        assert outcomes.errors == {}
        assert on.read.figures.list_daily("acme", [SIGN_INS, REFUSED], since=TODAY) == {
            (SIGN_INS, TODAY): 50,
            (REFUSED, TODAY): 100,
        }

    def test_figures_people_are_counted_by_organization(self, on: StorageHarness) -> None:
        organization, other = on.store_value(make.organization()), on.store_value(make.organization())
        lately, earlier = NOW - DAY, NOW - DAY - SECOND
        people = [
            make.human_user(organization, last_sign_in_at=at, active=active)
            for at, active in ((lately, True), (NOW, True), (earlier, True), (None, True), (NOW, False))
        ]
        on.store(*people, make.human_user(other), make.service_user(other))
        factor = partial(make.record, plugin=CORE_NAMESPACE, kind=FACTOR_RECORD_KIND)
        on.store(*(factor(people[index]) for index in (0, 0, 3, 4)), make.record(people[1]))
        counted = on.read.figures.count_people(active_since=lately)
        assert [count for count in counted if count.organization_id in (organization.id, other.id)] == sorted(
            [
                PeopleCount(organization_id=organization.id, people=4, active=2, protected=2),
                PeopleCount(organization_id=other.id, people=1, active=0, protected=0),
            ],
            key=lambda count: count.organization_id,
        )

    def test_figures_of_an_unknown_organization_can_be_added(self, on: StorageHarness) -> None:
        on.write.figures.add({key(organization_id=make_id()): 1})


# Race attempts run in other processes, too: they must be module-level functions.


def count_two_kinds(storage: Storage, number: int) -> None:
    counts = {key(): 1, key(REFUSED): 2}
    storage.figures.add(dict(reversed(counts.items())) if number % 2 else counts)
