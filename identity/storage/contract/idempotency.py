"""What is demanded of the idempotency store."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from identity.domain.idempotency import IdempotencyRecord
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_digest, an_idempotency_record
from identity.storage.errors import Missing

SECOND = timedelta(seconds=1)


class IdempotencyContract(ContractBase):
    """A key is held by one transaction; all others see what that one stored."""

    def test_idempotency_a_key_is_claimed_once(self, on: On) -> None:
        record = an_idempotency_record(key=bytes(range(32)), sealed=bytes(range(256)))
        other = replace(record, request=a_digest(), created_at=record.created_at + SECOND)
        with on.writing() as storage:
            assert storage.idempotency.claim(record) is None
            assert storage.idempotency.claim(other) == record, "also for the transaction that holds it"
        with on.writing() as storage:
            assert storage.idempotency.claim(other) == record
            assert storage.idempotency.claim(replace(other, key=a_digest())) is None

    def test_idempotency_the_answer_is_kept(self, on: On) -> None:
        record, other = an_idempotency_record(), an_idempotency_record()
        with on.writing() as storage:
            storage.idempotency.claim(record)
            storage.idempotency.claim(other)
            storage.idempotency.complete(record.key, 201, b"sealed \x00\xff")
        with on.writing() as storage:
            assert storage.idempotency.claim(record) == replace(record, status=201, sealed=b"sealed \x00\xff")
            assert storage.idempotency.claim(other) == other

    def test_idempotency_complete_of_an_unknown_key(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.idempotency.complete(a_digest(), 201, b"")

    def test_idempotency_a_key_that_was_rolled_back_is_free(self, on: On) -> None:
        record = an_idempotency_record()
        with on.aborted() as storage:
            assert storage.idempotency.claim(record) is None
        with on.writing() as storage:
            assert storage.idempotency.claim(record) is None

    def test_idempotency_an_expired_key_is_free_to_the_second(self, on: On) -> None:
        old = an_idempotency_record(status=200, sealed=b"old")
        with on.writing() as storage:
            storage.idempotency.claim(old)
        early = replace(old, request=a_digest(), created_at=old.expires_at - SECOND, status=0, sealed=b"")
        late = replace(early, created_at=old.expires_at, expires_at=old.expires_at + timedelta(days=1))
        with on.writing() as storage:
            assert storage.idempotency.claim(early) == old
            assert storage.idempotency.claim(late) is None
            assert storage.idempotency.claim(late) == late, "nothing of the old answer is left"

    def test_idempotency_purge_spares_what_has_not_expired(self, on: On) -> None:
        gone, kept = an_idempotency_record(expires_at=NOW - SECOND), an_idempotency_record(expires_at=NOW)
        with on.writing() as storage:
            storage.idempotency.claim(gone)
            storage.idempotency.claim(kept)
        with on.writing() as storage:
            assert storage.idempotency.purge(NOW, 10) == 1
            assert storage.idempotency.purge(NOW, 10) == 0
            with pytest.raises(Missing):
                storage.idempotency.complete(gone.key, 200, b"")
            storage.idempotency.complete(kept.key, 200, b"")

    def test_idempotency_purge_is_limited(self, on: On) -> None:
        with on.writing() as storage:
            for _ in range(5):
                storage.idempotency.claim(an_idempotency_record(expires_at=NOW))
        counts = []
        for _ in range(4):
            with on.writing() as storage:
                counts.append(storage.idempotency.purge(NOW + SECOND, 2))
        assert counts == [2, 2, 1, 0]

    def test_races_an_idempotency_key_is_claimed_once(self, on: On) -> None:
        self.check_one_winner(on, an_idempotency_record())

    def test_races_an_expired_idempotency_key_is_claimed_once(self, on: On) -> None:
        old = an_idempotency_record(
            created_at=NOW - timedelta(days=2), expires_at=NOW, status=200, sealed=b"an answer of long ago"
        )
        with on.writing() as storage:
            storage.idempotency.claim(old)
        self.check_one_winner(on, an_idempotency_record(key=old.key))

    def check_one_winner(self, on: On, record: IdempotencyRecord) -> None:
        outcomes = on.race(partial(claim_and_answer, record=record), 50)
        assert outcomes.errors == {}
        winners = [outcome.number for outcome in outcomes.won if outcome.value is None]
        assert len(winners) == 1, "exactly one does the work"
        answer = replace(record, status=201, sealed=str(winners[0]).encode())
        seen = [value for value in outcomes.values if value is not None]
        assert seen == [answer] * 49, "all others see the whole answer of the one that did"


def claim_and_answer(storage: Storage, number: int, *, record: IdempotencyRecord) -> IdempotencyRecord | None:
    """Claim the key and answer with the number of the attempt, unless another has."""
    held = storage.idempotency.claim(record)
    if held is None:
        storage.idempotency.complete(record.key, 201, str(number).encode())
    return held
