"""Contract of the attempt store."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from identity.domain.attempts import (
    FREE_ATTEMPTS,
    MAX_ATTEMPTS,
    MAX_DELAY,
    NO_NEXT_ATTEMPT,
    AttemptAllowance,
    AttemptLimits,
    delay_after,
    next_attempt_at,
)
from identity.storage.backend import Storage
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import RowNotFound
from identity.storage.stores.purges import PurgeKind

WINDOW = timedelta(minutes=10)


def failures(storage: Storage, key: str) -> int:
    return storage.attempts.count_failures([key]).get(key, 0)


def use(storage: Storage, at: datetime, limit: int, *, key: str = "address") -> datetime | None:
    """Count a use: None if it is within the limit, else the end of the window."""
    return storage.attempts.count_use(key, used_at=at, window=WINDOW, limit=limit)


class AttemptContract(ContractBase):
    """An attempt is counted before it is made, delays grow up to a limit, and races cannot exceed it."""

    def test_attempts_the_first_ones_are_free_then_each_waits_longer(self, on: StorageHarness) -> None:
        at = NOW
        for number in range(1, MAX_ATTEMPTS):
            with on.transaction() as storage:
                next_at = next_attempt_at(number, at)
                assert storage.attempts.reserve("ada", reserved_at=at) == AttemptAllowance(True, number, next_at)
            if next_at > at:
                too_early = on.write.attempts.reserve("ada", reserved_at=next_at - SECOND)
                assert too_early == AttemptAllowance(False, number, next_at), "refused ones are not counted"
            at = next_at
        assert at - NOW == sum((delay_after(number) for number in range(1, MAX_ATTEMPTS)), timedelta())
        for allowed in (True, False):
            last = on.write.attempts.reserve("ada", reserved_at=at + 10 * MAX_DELAY)
            assert last == AttemptAllowance(allowed, MAX_ATTEMPTS, NO_NEXT_ATTEMPT)
            assert last.is_exhausted

    def test_attempts_at_one_moment_are_as_many_as_are_free(self, on: StorageHarness) -> None:
        answers = [on.write.attempts.reserve("ada", reserved_at=NOW).allowed for _ in range(FREE_ATTEMPTS + 2)]
        assert answers == [True] * FREE_ATTEMPTS + [False] * 2

    def test_attempts_by_other_limits(self, on: StorageHarness) -> None:
        limits = AttemptLimits(free=2, max=4)
        at = NOW
        for number in range(1, 5):
            with on.transaction() as storage:
                next_at = next_attempt_at(number, at, limits)
                assert storage.attempts.reserve("ada", reserved_at=at, limits=limits) == AttemptAllowance(
                    True, number, next_at
                )
            if number < 4:
                assert next_at - at == (timedelta(), SECOND, 2 * SECOND)[number - 1]
                at = next_at
        last = on.write.attempts.reserve("ada", reserved_at=at + 10 * MAX_DELAY, limits=limits)
        assert last == AttemptAllowance(False, 4, NO_NEXT_ATTEMPT)
        assert last.is_exhausted

    def test_attempts_are_over_once_there_can_be_fewer(self, on: StorageHarness) -> None:
        for _ in range(FREE_ATTEMPTS):
            standing = on.write.attempts.reserve("ada", reserved_at=NOW)
        refused = on.write.attempts.reserve("ada", reserved_at=NOW + MAX_DELAY, limits=AttemptLimits(max=FREE_ATTEMPTS))
        assert refused == AttemptAllowance(False, standing.failures, NO_NEXT_ATTEMPT)
        assert on.write.attempts.reserve("ada", reserved_at=NOW + MAX_DELAY).allowed

    def test_attempts_each_key_has_a_count_of_its_own(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            for key in ("ada", "ADA", " ada", "株" * 200, ""):
                assert storage.attempts.reserve(key, reserved_at=NOW) == AttemptAllowance(True, 1, NOW)

    def test_attempts_all_of_a_user_are_cleared_at_once(self, on: StorageHarness) -> None:
        human_user = on.human_user
        with on.transaction() as storage:
            for key in ("account", "browser", "browser"):
                storage.attempts.reserve(key, reserved_at=NOW, user_id=human_user.id)
            storage.attempts.reserve("name", reserved_at=NOW)
            assert [failures(storage, key) for key in ("account", "browser", "name")] == [1, 2, 1]
            storage.attempts.clear_for_user(human_user.id, except_prefix="acc")
            assert [failures(storage, key) for key in ("account", "browser", "name")] == [1, 0, 1]
            storage.attempts.clear_for_user(human_user.id)
            storage.attempts.clear_for_user(make_id())
        with on.transaction() as storage:
            assert [failures(storage, key) for key in ("account", "browser", "name")] == [0, 0, 1]
            assert storage.attempts.reserve("account", reserved_at=NOW) == AttemptAllowance(True, 1, NOW)

    def test_attempts_one_that_is_given_back_was_none(self, on: StorageHarness) -> None:
        at = NOW
        for number in range(1, MAX_ATTEMPTS + 1):
            with on.transaction() as storage:
                storage.attempts.release("ada", storage.attempts.reserve("ada", reserved_at=at), released_at=at)
                assert failures(storage, "ada") == number - 1
            again = on.write.attempts.reserve("ada", reserved_at=at)
            assert again == AttemptAllowance(True, number, next_attempt_at(number, at))
            at = again.next_attempt_at
        with on.transaction() as storage:
            storage.attempts.release("ada", again, released_at=NOW)
            assert storage.attempts.reserve("ada", reserved_at=NOW) == again, "the last one too"

    def test_attempts_giving_one_back_leaves_what_was_counted_since(self, on: StorageHarness) -> None:
        human_user = on.human_user

        def reserve(storage: Storage) -> AttemptAllowance:
            return storage.attempts.reserve("ada", reserved_at=NOW, user_id=human_user.id)

        with on.transaction() as storage:
            reserved = [reserve(storage) for _ in range(FREE_ATTEMPTS)]
            storage.attempts.release("ada", reserved[0], released_at=NOW)
        with on.transaction() as storage:
            standing = reserve(storage)
        assert standing == AttemptAllowance(False, FREE_ATTEMPTS - 1, NOW + delay_after(FREE_ATTEMPTS))
        with on.transaction() as storage:
            storage.attempts.clear_for_user(human_user.id)
            storage.attempts.release("ada", reserved[1], released_at=NOW)
            storage.attempts.release("nobody", reserved[1], released_at=NOW)
            reserve(storage)
            storage.attempts.release("ada", reserved[1], released_at=NOW)
        with on.transaction() as storage:
            assert failures(storage, "ada") == 1, "cleared meanwhile"
            assert failures(storage, "nobody") == 0

    def test_attempts_go_with_their_user(self, on: StorageHarness) -> None:
        human_user = on.human_user
        with on.transaction() as storage:
            storage.attempts.reserve("account", reserved_at=NOW, user_id=human_user.id)
            storage.attempts.reserve("account", reserved_at=NOW, user_id=human_user.id)
            storage.attempts.reserve("name", reserved_at=NOW)
        on.write.users.delete(human_user.id)
        with on.transaction() as storage:
            assert storage.attempts.reserve("account", reserved_at=NOW).failures == 1
            assert storage.attempts.reserve("name", reserved_at=NOW).failures == 2

    def test_attempts_of_one_key_can_be_forgotten(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            for key in ("ada", "ada@acme.example"):
                storage.attempts.reserve(key, reserved_at=NOW)
            storage.attempts.clear("ada")
            storage.attempts.clear("nobody")
            assert failures(storage, "ada@acme.example") == 1
            assert failures(storage, "ada") == 0

    def test_attempts_of_an_unknown_user_are_refused_and_the_transaction_can_go_on(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.attempts.reserve("account", reserved_at=NOW, user_id=make_id())
            assert storage.attempts.reserve("account", reserved_at=NOW) == AttemptAllowance(True, 1, NOW)

    def test_attempts_uses_are_counted_up_to_the_most(self, on: StorageHarness) -> None:
        over_at = NOW + WINDOW
        for at in (NOW, NOW, over_at - SECOND):
            assert use(on.write, at, 3) is None
        for at in (NOW, over_at - SECOND):
            assert use(on.write, at, 3) == over_at
        assert use(on.write, NOW, 1, key="other") is None

    def test_attempts_a_span_begins_with_the_first_use_after_the_last_was_over(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            assert use(storage, NOW, 2) is None
            assert use(storage, NOW, 2) is None
            assert use(storage, NOW, 2) == NOW + WINDOW
        later = NOW + WINDOW
        with on.transaction() as storage:
            assert use(storage, later, 2) is None
            assert use(storage, later + SECOND, 2) is None
            assert use(storage, later + SECOND, 2) == later + WINDOW
        much_later = later + 3 * WINDOW
        with on.transaction() as storage:
            assert use(storage, much_later, 1) is None
            assert use(storage, much_later, 1) == much_later + WINDOW

    def test_attempts_a_use_is_taken_back_within_its_span_alone(self, on: StorageHarness) -> None:
        later = NOW + WINDOW
        with on.transaction() as storage:
            for _ in range(3):
                assert use(storage, NOW, 1) is None
                storage.attempts.release_use("address", released_at=NOW, window=WINDOW)
            storage.attempts.release_use("address", released_at=NOW, window=WINDOW)
            storage.attempts.release_use("other", released_at=NOW, window=WINDOW)
            assert use(storage, NOW, 1) is None
            assert use(storage, later, 1) is None
            storage.attempts.release_use("address", released_at=NOW, window=WINDOW)
        with on.transaction() as storage:
            assert use(storage, later, 1) == later + WINDOW
            storage.attempts.release_use("address", released_at=later + WINDOW - SECOND, window=WINDOW)
        assert use(on.write, later, 1) is None

    def test_attempts_purge_forgets_known_and_unknown_alike_but_not_who_has_no_next_attempt(
        self, on: StorageHarness
    ) -> None:
        before = NOW - SECOND
        keys = {"account": on.human_user.id, "name": None}
        with on.transaction() as storage:
            use(storage, before, 2, key="old address")
            for at in (before, NOW):
                use(storage, at, 2)
            for key, user_id in keys.items():
                storage.attempts.reserve(f"old {key}", reserved_at=before, user_id=user_id)
                for at in (before, NOW):
                    storage.attempts.reserve(key, reserved_at=at, user_id=user_id)
                for number in range(MAX_ATTEMPTS, 0, -1):
                    storage.attempts.reserve(f"spent {key}", reserved_at=before - number * MAX_DELAY, user_id=user_id)
        assert on.purge(PurgeKind.ATTEMPTS, NOW, 10) == 3
        with on.transaction() as storage:
            for key in keys:
                assert [failures(storage, f"{prefix}{key}") for prefix in ("old ", "", "spent ")] == [0, 2, 100]
            assert use(storage, NOW, 2) is not None
            assert use(storage, NOW, 1, key="old address") is None

    def test_attempts_purge_deletes_no_more_than_the_limit(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            for _ in range(5):
                storage.attempts.reserve(make_id(), reserved_at=NOW)
        counts = [on.purge(PurgeKind.ATTEMPTS, NOW + SECOND, 2) for _ in range(4)]
        assert counts == [2, 2, 1, 0]

    def test_attempts_races_no_more_are_allowed_than_are_free(self, on: StorageHarness) -> None:
        for user_id in (on.human_user.id, None):
            outcomes = on.race(partial(reserve, key=f"key of {user_id}", at=NOW, user_id=user_id), 100)
            assert outcomes.errors == {}
            allowed = [answer for answer in outcomes.values if answer.allowed]
            assert sorted(answer.failures for answer in allowed) == list(range(1, FREE_ATTEMPTS + 1))
            standing = AttemptAllowance(False, FREE_ATTEMPTS, NOW + delay_after(FREE_ATTEMPTS))
            refused = [answer for answer in outcomes.values if not answer.allowed]
            assert refused == [standing] * (100 - FREE_ATTEMPTS), "each is told what refused it"
            assert on.write.attempts.reserve(f"key of {user_id}", reserved_at=NOW) == standing

    def test_attempts_races_one_is_allowed_when_the_delay_is_over(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            for _ in range(FREE_ATTEMPTS):
                storage.attempts.reserve("ada", reserved_at=NOW)
        later = NOW + delay_after(FREE_ATTEMPTS)
        outcomes = on.race(partial(reserve, key="ada", at=later, user_id=None), 50)
        assert outcomes.errors == {}
        assert [answer.allowed for answer in outcomes.values].count(True) == 1

    def test_attempts_races_those_that_come_to_nothing_never_make_room_for_more(self, on: StorageHarness) -> None:
        outcomes = on.race(reserve_and_release_half, 100)
        assert outcomes.errors == {}
        looked_at = outcomes.values.count(True)
        with on.transaction() as storage:
            assert looked_at == failures(storage, "ada") <= FREE_ATTEMPTS
            # Every second attempt was released, so some may be free; never more than were released.
            more = [storage.attempts.reserve("ada", reserved_at=NOW).allowed for _ in range(FREE_ATTEMPTS + 1)].count(
                True
            )
        assert looked_at + more <= FREE_ATTEMPTS

    def test_attempts_races_successes_never_use_an_address_up(self, on: StorageHarness) -> None:
        outcomes = on.race(count_and_release, 100)
        assert outcomes.errors == {}
        assert set(outcomes.values) == {None}
        with on.transaction() as storage:
            answers = [use(storage, NOW, 3) for _ in range(4)]
        assert answers == [None, None, None, NOW + WINDOW], "none is left over, and none too many taken back"

    def test_attempts_races_no_more_uses_are_counted_than_the_most(self, on: StorageHarness) -> None:
        for at in (NOW, NOW + WINDOW):
            outcomes = on.race(partial(use_up_to_20, at=at), 100)
            assert outcomes.errors == {}
            assert outcomes.values.count(None) == 20
            assert outcomes.values.count(at + WINDOW) == 80


# Race attempts run in other processes, too: they must be module-level functions.


def reserve(storage: Storage, number: int, *, key: str, at: datetime, user_id: str | None) -> AttemptAllowance:
    return storage.attempts.reserve(key, reserved_at=at, user_id=user_id)


def use_up_to_20(storage: Storage, number: int, *, at: datetime) -> datetime | None:
    return use(storage, at, 20)


def reserve_and_release_half(storage: Storage, number: int) -> bool:
    """Reserve an attempt, and release every second one; True if it counts."""
    attempt = storage.attempts.reserve("ada", reserved_at=NOW)
    if attempt.allowed and number % 2:
        storage.attempts.release("ada", attempt, released_at=NOW)
    return attempt.allowed and not number % 2


def count_and_release(storage: Storage, number: int) -> datetime | None:
    over_at = use(storage, NOW, 1000)
    if over_at is None:
        storage.attempts.release_use("address", released_at=NOW, window=WINDOW)
    return over_at
