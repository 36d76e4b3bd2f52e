from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from identity.domain.signing_keys import KeySchedule, KeyState, SigningKey

START = datetime(2026, 1, 1, tzinfo=UTC)
PUBLISHED = timedelta(hours=1)


def make_signing_key(generation: int, active_at: datetime) -> SigningKey:
    return SigningKey(
        id=f"key-{generation}",
        generation=generation,
        algorithm="RS256",
        public_key=b"",
        sealed_private_key=b"",
        created_at=START,
        active_at=active_at,
    )


def states(schedule: KeySchedule, now: datetime) -> list[KeyState]:
    return [schedule.key_state(key, now) for key in schedule.keys]


def test_key_life_cycle() -> None:
    first, second = make_signing_key(1, START), make_signing_key(2, START + timedelta(days=1))
    schedule = KeySchedule.from_keys([second, first], PUBLISHED)
    assert states(schedule, START) == [KeyState.ACTIVE, KeyState.WAITING]
    before_take_over = START + timedelta(days=1, seconds=-1)
    assert states(schedule, before_take_over) == [KeyState.ACTIVE, KeyState.WAITING]
    take_over = START + timedelta(days=1)
    assert states(schedule, take_over) == [KeyState.RETIRED, KeyState.ACTIVE]
    assert schedule.published_until(first) == take_over + PUBLISHED
    assert states(schedule, take_over + PUBLISHED - timedelta(seconds=1)) == [KeyState.RETIRED, KeyState.ACTIVE]
    assert states(schedule, take_over + PUBLISHED) == [KeyState.REMOVED, KeyState.ACTIVE]


def test_emergency_key_overtakes_announced_key() -> None:
    waiting = make_signing_key(2, START + timedelta(minutes=6))
    emergency = make_signing_key(3, START + timedelta(seconds=30))
    schedule = KeySchedule.from_keys([make_signing_key(1, START), waiting, emergency], PUBLISHED)
    at = START + timedelta(minutes=10)
    active = schedule.active_key(at)
    assert active is not None
    assert active.id == emergency.id
    assert schedule.key_state(waiting, at) is KeyState.RETIRED


def test_before_the_first_key_the_oldest_signs() -> None:
    """The clock may have been set back."""
    schedule = KeySchedule.from_keys(
        [make_signing_key(1, START), make_signing_key(2, START + timedelta(days=1))], PUBLISHED
    )
    earlier = START - timedelta(days=1)
    assert states(schedule, earlier) == [KeyState.ACTIVE, KeyState.WAITING]
    assert schedule.has_no_started_key(earlier)
    assert not schedule.has_no_started_key(START)


def test_no_signing_key_without_keys() -> None:
    schedule = KeySchedule.from_keys([], PUBLISHED)
    assert schedule.active_key(START) is None
    assert schedule.next_key(START) is None
    assert schedule.published_keys(START) == ()


moments = st.integers(0, 10_000).map(lambda seconds: START + timedelta(seconds=seconds))


@given(st.lists(moments, min_size=1, max_size=6), moments, st.integers(0, 5000))
def test_signing_key_is_published_while_its_tokens_live(activations: list[datetime], now: datetime, age: int) -> None:
    """Whatever the rotations, a key that signed at ``now`` is in every key set until its tokens have expired."""
    schedule = KeySchedule.from_keys([make_signing_key(i, at) for i, at in enumerate(activations)], PUBLISHED)
    signer = schedule.active_key(now)
    later = now + min(timedelta(seconds=age), PUBLISHED - timedelta(seconds=1))
    if signer is not None:
        assert signer in schedule.published_keys(now)
        assert signer in schedule.published_keys(later)


@given(st.lists(moments, min_size=1, max_size=6), moments)
def test_at_most_one_key_is_active(activations: list[datetime], now: datetime) -> None:
    schedule = KeySchedule.from_keys([make_signing_key(i, at) for i, at in enumerate(activations)], PUBLISHED)
    assert states(schedule, now).count(KeyState.ACTIVE) == (1 if schedule.active_key(now) else 0)
