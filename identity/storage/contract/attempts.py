"""What is demanded of the store of attempts."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from identity.domain.attempts import (
    FREE_ATTEMPTS,
    LONGEST_DELAY,
    MOST_ATTEMPTS,
    NEVER,
    Attempt,
    delay_after,
    next_after,
)
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
        for number in range(1, MOST_ATTEMPTS):
            with in_transaction() as storage:
                next_at = next_after(number, at)
                assert storage.attempts.reserve("ada", at=at) == Attempt(True, number, next_at)
            if next_at > at:
                with in_transaction() as storage:
                    too_early = storage.attempts.reserve("ada", at=next_at - SECOND)
                assert too_early == Attempt(False, number, next_at), "refused ones are not counted"
            at = next_at
        assert at - now == sum((delay_after(number) for number in range(1, MOST_ATTEMPTS)), timedelta())
        for allowed in (True, False):
            with in_transaction() as storage:
                last = storage.attempts.reserve("ada", at=at + 10 * LONGEST_DELAY)
            assert last == Attempt(allowed, MOST_ATTEMPTS, NEVER)
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

    def test_attempts_a_success_clears_the_count(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        with in_transaction() as storage:
            for _ in range(FREE_ATTEMPTS):
                storage.attempts.reserve("ada", at=now, user_id=human_user.id)
                storage.attempts.reserve("grace", at=now)
            storage.attempts.clear_of_user(human_user.id)
        with in_transaction() as storage:
            assert storage.attempts.reserve("ada", at=now) == Attempt(True, 1, now)
            assert not storage.attempts.reserve("grace", at=now).allowed

    def test_attempts_all_of_a_user_are_cleared_at_once(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        with in_transaction() as storage:
            for key in ("account", "browser", "browser"):
                storage.attempts.reserve(key, at=now, user_id=human_user.id)
            storage.attempts.reserve("name", at=now)
            assert [storage.attempts.failures(key) for key in ("account", "browser", "name")] == [1, 2, 1]
            storage.attempts.clear_of_user(human_user.id)
            storage.attempts.clear_of_user(an_id())
        with in_transaction() as storage:
            assert [storage.attempts.failures(key) for key in ("account", "browser", "name")] == [0, 0, 1]

    def test_attempts_one_that_is_given_back_was_none(self, in_transaction: InTransaction, now: datetime) -> None:
        at = now
        for number in range(1, MOST_ATTEMPTS + 1):
            with in_transaction() as storage:
                storage.attempts.give_back("ada", storage.attempts.reserve("ada", at=at), at=at)
                assert storage.attempts.failures("ada") == number - 1
            with in_transaction() as storage:
                again = storage.attempts.reserve("ada", at=at)
            assert again == Attempt(True, number, next_after(number, at))
            at = again.next_at
        with in_transaction() as storage:
            storage.attempts.give_back("ada", again, at=now)
            assert storage.attempts.reserve("ada", at=now) == again, "the last one too"

    def test_attempts_giving_one_back_leaves_what_was_counted_since(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        def reserve(storage: Storage) -> Attempt:
            return storage.attempts.reserve("ada", at=now, user_id=human_user.id)

        with in_transaction() as storage:
            reserved = [reserve(storage) for _ in range(FREE_ATTEMPTS)]
            storage.attempts.give_back("ada", reserved[0], at=now)
        with in_transaction() as storage:
            standing = reserve(storage)
        assert standing == Attempt(False, FREE_ATTEMPTS - 1, now + delay_after(FREE_ATTEMPTS))
        with in_transaction() as storage:
            storage.attempts.clear_of_user(human_user.id)
            storage.attempts.give_back("ada", reserved[1], at=now)
            storage.attempts.give_back("nobody", reserved[1], at=now)
            reserve(storage)
            storage.attempts.give_back("ada", reserved[1], at=now)
        with in_transaction() as storage:
            assert storage.attempts.failures("ada") == 1, "cleared meanwhile"
            assert storage.attempts.failures("nobody") == 0

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

    def test_attempts_a_use_is_taken_back_within_its_span_alone(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        later = now + SPAN
        with in_transaction() as storage:
            for _ in range(3):
                assert storage.attempts.count("address", at=now, span=SPAN, most=1) is None
                storage.attempts.uncount("address", at=now, span=SPAN)
            storage.attempts.uncount("address", at=now, span=SPAN)
            storage.attempts.uncount("other", at=now, span=SPAN)
            assert storage.attempts.count("address", at=now, span=SPAN, most=1) is None
            assert storage.attempts.count("address", at=later, span=SPAN, most=1) is None
            storage.attempts.uncount("address", at=now, span=SPAN)
        with in_transaction() as storage:
            assert storage.attempts.count("address", at=later, span=SPAN, most=1) == later + SPAN
            storage.attempts.uncount("address", at=later + SPAN - SECOND, span=SPAN)
        with in_transaction() as storage:
            assert storage.attempts.count("address", at=later, span=SPAN, most=1) is None

    def test_attempts_purge_forgets_known_and_unknown_alike_but_not_who_has_no_next_attempt(
        self, in_transaction: InTransaction, human_user: HumanUser, now: datetime
    ) -> None:
        before = now - SECOND
        keys = {"account": human_user.id, "name": None}
        with in_transaction() as storage:
            storage.attempts.count("old address", at=before, span=SPAN, most=2)
            for at in (before, now):
                storage.attempts.count("address", at=at, span=SPAN, most=2)
            for key, user_id in keys.items():
                storage.attempts.reserve(f"old {key}", at=before, user_id=user_id)
                for at in (before, now):
                    storage.attempts.reserve(key, at=at, user_id=user_id)
                for number in range(MOST_ATTEMPTS, 0, -1):
                    storage.attempts.reserve(f"spent {key}", at=before - number * LONGEST_DELAY, user_id=user_id)
        with in_transaction() as storage:
            assert storage.attempts.purge(now, 10) == 3
        with in_transaction() as storage:
            for key in keys:
                assert [storage.attempts.failures(f"{word}{key}") for word in ("old ", "", "spent ")] == [0, 2, 100]
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

    def test_attempts_races_those_that_come_to_nothing_never_make_room_for_more(
        self, race: Race, in_transaction: InTransaction, now: datetime
    ) -> None:
        outcomes = race(partial(reserve_half, at=now), 100)
        assert outcomes.errors == {}
        looked_at = outcomes.values.count(True)
        with in_transaction() as storage:
            assert looked_at == storage.attempts.failures("ada") <= FREE_ATTEMPTS
            # Every second one was given back, so there may be room; never for more than were free.
            more = [storage.attempts.reserve("ada", at=now).allowed for _ in range(FREE_ATTEMPTS + 1)].count(True)
        assert looked_at + more <= FREE_ATTEMPTS

    def test_attempts_races_successes_never_use_an_address_up(
        self, race: Race, in_transaction: InTransaction, now: datetime
    ) -> None:
        outcomes = race(partial(count_and_take_back, at=now), 100)
        assert outcomes.errors == {}
        assert set(outcomes.values) == {None}
        with in_transaction() as storage:
            answers = [storage.attempts.count("address", at=now, span=SPAN, most=3) for _ in range(4)]
        assert answers == [None, None, None, now + SPAN], "none is left over, and none too many taken back"

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


def reserve_half(storage: Storage, number: int, *, at: datetime) -> bool:
    """Ask for one attempt, which comes to nothing for every second one; True if it stands."""
    attempt = storage.attempts.reserve("ada", at=at)
    if attempt.allowed and number % 2:
        storage.attempts.give_back("ada", attempt, at=at)
    return attempt.allowed and not number % 2


def count_and_take_back(storage: Storage, number: int, *, at: datetime) -> datetime | None:
    """Count one use, and take it back."""
    over_at = storage.attempts.count("address", at=at, span=SPAN, most=1000)
    if over_at is None:
        storage.attempts.uncount("address", at=at, span=SPAN)
    return over_at
