"""What is demanded of the store of attempts."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from identity.domain.attempts import FREE_ATTEMPTS, LONGEST_DELAY, MOST_ATTEMPTS, Attempt, delay_after
from identity.domain.users import HumanUser
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, InTransaction
from identity.storage.contract.factories import an_id
from identity.storage.contract.racing import Race
from identity.storage.errors import Missing

SECOND = timedelta(seconds=1)
SPAN = timedelta(minutes=10)


class AttemptContract(ContractBase):
    """An attempt is counted before it is made, waits longer and longer, and ends for good, however many race."""

    def test_attempts_the_first_ones_are_free_then_each_waits_longer(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        at = now
        for number in range(1, MOST_ATTEMPTS + 1):
            with in_transaction() as storage:
                next_at = at + delay_after(number)
                assert storage.attempts.reserve("ada", at=at) == Attempt(True, number, next_at)
            if next_at > at:
                with in_transaction() as storage:
                    too_early = storage.attempts.reserve("ada", at=next_at - SECOND)
                assert too_early == Attempt(False, number, next_at), "refused ones are not counted"
            at = next_at
        assert at - now == sum((delay_after(number) for number in range(1, MOST_ATTEMPTS + 1)), timedelta())
        with in_transaction() as storage:
            last = storage.attempts.reserve("ada", at=at + 10 * LONGEST_DELAY)
        assert last == Attempt(False, MOST_ATTEMPTS, at)
        assert last.exhausted

    def test_attempts_at_one_moment_are_as_many_as_are_free(self, in_transaction: InTransaction, now: datetime) -> None:
        answers = []
        for _ in range(FREE_ATTEMPTS + 2):
            with in_transaction() as storage:
                answers.append(storage.attempts.reserve("ada", at=now).allowed)
        assert answers == [True] * FREE_ATTEMPTS + [False] * 2

    def test_attempts_each_key_has_a_count_of_its_own(self, in_transaction: InTransaction, now: datetime) -> None:
        with in_transaction() as storage:
            for key in ("ada", "ADA", " ada", "株" * 200, ""):
                assert storage.attempts.reserve(key, at=now) == Attempt(True, 1, now)

    def test_attempts_a_success_clears_the_count(self, in_transaction: InTransaction, now: datetime) -> None:
        with in_transaction() as storage:
            for _ in range(FREE_ATTEMPTS):
                storage.attempts.reserve("ada", at=now)
                storage.attempts.reserve("grace", at=now)
            storage.attempts.clear("ada")
            storage.attempts.clear("nobody")
        with in_transaction() as storage:
            assert storage.attempts.reserve("ada", at=now) == Attempt(True, 1, now)
            assert not storage.attempts.reserve("grace", at=now).allowed

    def test_attempts_go_with_their_user(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.attempts.reserve("account", at=now, user_id=human_user.id)
            storage.attempts.reserve("account", at=now, user_id=human_user.id)
            storage.attempts.reserve("name", at=now)
        with in_transaction() as storage:
            storage.users.remove(human_user.id)
        with in_transaction() as storage:
            assert storage.attempts.reserve("account", at=now).failures == 1
            assert storage.attempts.reserve("name", at=now).failures == 2

    def test_attempts_of_an_unknown_user_are_refused_and_the_transaction_can_go_on(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            with pytest.raises(Missing):
                storage.attempts.reserve("account", at=now, user_id=an_id())
            assert storage.attempts.reserve("account", at=now) == Attempt(True, 1, now)

    def test_attempts_uses_are_counted_up_to_the_most(self, in_transaction: InTransaction, now: datetime) -> None:
        over_at = now + SPAN
        for at in (now, now, over_at - SECOND):
            with in_transaction() as storage:
                assert storage.attempts.count("address", at=at, span=SPAN, most=3) is None
        for at in (now, over_at - SECOND):
            with in_transaction() as storage:
                assert storage.attempts.count("address", at=at, span=SPAN, most=3) == over_at
        with in_transaction() as storage:
            assert storage.attempts.count("other", at=now, span=SPAN, most=1) is None

    def test_attempts_a_span_begins_with_the_first_use_after_the_last_was_over(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            assert storage.attempts.count("address", at=now, span=SPAN, most=2) is None
            assert storage.attempts.count("address", at=now, span=SPAN, most=2) is None
            assert storage.attempts.count("address", at=now, span=SPAN, most=2) == now + SPAN
        later = now + SPAN
        with in_transaction() as storage:
            assert storage.attempts.count("address", at=later, span=SPAN, most=2) is None
            assert storage.attempts.count("address", at=later + SECOND, span=SPAN, most=2) is None
            assert storage.attempts.count("address", at=later + SECOND, span=SPAN, most=2) == later + SPAN
        much_later = later + 3 * SPAN
        with in_transaction() as storage:
            assert storage.attempts.count("address", at=much_later, span=SPAN, most=1) is None
            assert storage.attempts.count("address", at=much_later, span=SPAN, most=1) == much_later + SPAN

    def test_attempts_purge_deletes_what_was_last_counted_before_and_belongs_to_nobody(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        before = now - SECOND
        with in_transaction() as storage:
            storage.attempts.reserve("old name", at=before)
            storage.attempts.count("old address", at=before, span=SPAN, most=2)
            storage.attempts.reserve("name", at=before)
            storage.attempts.reserve("name", at=now)
            storage.attempts.count("address", at=before, span=SPAN, most=2)
            storage.attempts.count("address", at=now, span=SPAN, most=2)
            storage.attempts.reserve("account", at=before, user_id=human_user.id)
        with in_transaction() as storage:
            assert storage.attempts.purge(now, 10) == 2
        with in_transaction() as storage:
            assert storage.attempts.reserve("old name", at=now).failures == 1
            assert storage.attempts.reserve("name", at=now).failures == 3
            assert storage.attempts.reserve("account", at=now).failures == 2
            assert storage.attempts.count("address", at=now, span=SPAN, most=2) is not None
            assert storage.attempts.count("old address", at=now, span=SPAN, most=1) is None

    def test_attempts_purge_deletes_no_more_than_the_limit(self, in_transaction: InTransaction, now: datetime) -> None:
        with in_transaction() as storage:
            for _ in range(5):
                storage.attempts.reserve(an_id(), at=now)
        counts = []
        for _ in range(4):
            with in_transaction() as storage:
                counts.append(storage.attempts.purge(now + SECOND, 2))
        assert counts == [2, 2, 1, 0]

    def test_attempts_races_no_more_are_allowed_than_are_free(
        self, race: Race, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        for user_id in (human_user.id, None):
            outcomes = race(partial(reserve, key=f"key of {user_id}", at=now, user_id=user_id), 100)
            assert outcomes.errors == {}
            allowed = [answer for answer in outcomes.values if answer.allowed]
            assert sorted(answer.failures for answer in allowed) == list(range(1, FREE_ATTEMPTS + 1))
            standing = Attempt(False, FREE_ATTEMPTS, now + delay_after(FREE_ATTEMPTS))
            refused = [answer for answer in outcomes.values if not answer.allowed]
            assert refused == [standing] * (100 - FREE_ATTEMPTS), "each is told what refused it"
            with in_transaction() as storage:
                assert storage.attempts.reserve(f"key of {user_id}", at=now) == standing

    def test_attempts_races_one_is_allowed_when_the_delay_is_over(
        self, race: Race, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            for _ in range(FREE_ATTEMPTS):
                storage.attempts.reserve("ada", at=now)
        later = now + delay_after(FREE_ATTEMPTS)
        outcomes = race(partial(reserve, key="ada", at=later, user_id=None), 50)
        assert outcomes.errors == {}
        assert [answer.allowed for answer in outcomes.values].count(True) == 1

    def test_attempts_races_no_more_uses_are_counted_than_the_most(self, race: Race, now: datetime) -> None:
        for at in (now, now + SPAN):
            outcomes = race(partial(count, key="address", at=at, most=20), 100)
            assert outcomes.errors == {}
            assert outcomes.values.count(None) == 20
            assert outcomes.values.count(at + SPAN) == 80


# The attempts, which also run in other processes, so that they must be functions of the module.


def reserve(storage: Storage, number: int, *, key: str, at: datetime, user_id: str | None) -> Attempt:
    """Ask for one attempt."""
    return storage.attempts.reserve(key, at=at, user_id=user_id)


def count(storage: Storage, number: int, *, key: str, at: datetime, most: int) -> datetime | None:
    """Count one use."""
    return storage.attempts.count(key, at=at, span=SPAN, most=most)
