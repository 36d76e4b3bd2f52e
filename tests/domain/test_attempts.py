"""How often a password may be tried."""

from datetime import timedelta

import pytest

from identity.domain.attempts import MAX_ATTEMPTS, NO_NEXT_ATTEMPT, AttemptAllowance, delay_after, next_attempt_at
from identity.storage.contract.factories import NOW


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 0), (4, 0), (5, 1), (6, 2), (7, 4), (14, 512), (15, 900), (16, 900), (100, 900), (10**9, 900)],
)
def test_delay_doubles_up_to_a_quarter_of_an_hour(failures: int, seconds: int) -> None:
    assert delay_after(failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("failures", "exhausted"), [(99, False), (100, True), (101, True)])
def test_after_a_hundred_failures_only_a_reset_helps(failures: int, exhausted: bool) -> None:
    assert MAX_ATTEMPTS == 100
    assert AttemptAllowance(False, failures, next_attempt_at(failures, NOW)).is_exhausted is exhausted


def test_locked_account_has_no_next_attempt() -> None:
    assert next_attempt_at(MAX_ATTEMPTS - 1, NOW) == NOW + timedelta(seconds=900)
    assert next_attempt_at(MAX_ATTEMPTS, NOW) == NO_NEXT_ATTEMPT
