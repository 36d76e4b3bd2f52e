"""What is demanded of the store of one-time codes."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from identity.domain.one_time_codes import CodeKind, OneTimeCode
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_digest, a_human_user, a_one_time_code, an_id
from identity.storage.errors import AlreadyUsed, Duplicate, Missing

SECOND = timedelta(seconds=1)


class OneTimeCodeContract(ContractBase):
    """A code is used once, for what it was made, before it expires."""

    @pytest.fixture
    def one_time_code(self, on: On) -> OneTimeCode:
        """A stored, unused code of ``human_user``."""
        code = a_one_time_code(on.human_user)
        on.save(code)
        return code

    @pytest.mark.parametrize("kind", CodeKind)
    def test_one_time_codes_find_returns_what_was_added(self, on: On, kind: CodeKind) -> None:
        used = a_one_time_code(
            on.human_user, digest=bytes(range(32)), kind=kind, sealed=bytes(range(256)), used_at=NOW + SECOND
        )
        bare = a_one_time_code(kind=kind, user_id=None, sealed=b"")
        on.save(used, bare)
        with on.reading() as storage:
            assert storage.one_time_codes.find(used.digest) == used
            assert storage.one_time_codes.find(bare.digest) == bare
            assert storage.one_time_codes.find(a_digest()) is None

    def test_one_time_codes_looking_uses_nothing_up(self, on: On, one_time_code: OneTimeCode) -> None:
        with on.writing() as storage:
            for _ in range(2):
                assert storage.one_time_codes.find(one_time_code.digest) == one_time_code
            storage.one_time_codes.consume(one_time_code.digest, one_time_code.kind, NOW)

    def test_one_time_codes_a_code_needs_its_user(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.one_time_codes.add(a_one_time_code())

    def test_one_time_codes_a_taken_digest_is_refused(self, on: On, one_time_code: OneTimeCode) -> None:
        other = a_one_time_code(on.human_user)
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.one_time_codes.add(a_one_time_code(on.human_user, digest=one_time_code.digest, sealed=b"other"))
            storage.one_time_codes.add(other)
        assert refusal.value.field == "digest"
        with on.reading() as storage:
            assert storage.one_time_codes.find(one_time_code.digest) == one_time_code
            assert storage.one_time_codes.find(other.digest) == other

    def test_one_time_codes_go_with_their_user(self, on: On, one_time_code: OneTimeCode) -> None:
        human_user = on.human_user
        nobody_s = a_one_time_code(user_id=None, kind=CodeKind.REGISTRATION)
        on.save(nobody_s)
        with on.writing() as storage:
            storage.users.remove(human_user.id)
        with on.reading() as storage:
            assert storage.one_time_codes.find(one_time_code.digest) is None
            assert storage.one_time_codes.find(nobody_s.digest) == nobody_s

    def test_one_time_codes_consume_returns_the_code_as_it_was(self, on: On, one_time_code: OneTimeCode) -> None:
        with on.writing() as storage:
            consumed = storage.one_time_codes.consume(one_time_code.digest, one_time_code.kind, NOW)
        assert consumed == one_time_code
        with on.reading() as storage:
            assert storage.one_time_codes.find(one_time_code.digest) == replace(one_time_code, used_at=NOW)

    def test_one_time_codes_a_second_use_is_told_with_the_code_even_after_it_expired(
        self, on: On, one_time_code: OneTimeCode
    ) -> None:
        with on.writing() as storage:
            storage.one_time_codes.consume(one_time_code.digest, one_time_code.kind, NOW)
        other = a_one_time_code(user_id=None)
        for at in (NOW + SECOND, one_time_code.expires_at):
            with on.writing() as storage:
                with pytest.raises(AlreadyUsed) as refusal:
                    storage.one_time_codes.consume(one_time_code.digest, one_time_code.kind, at)
                storage.one_time_codes.add(replace(other, digest=a_digest()))
            assert refusal.value.value == replace(one_time_code, used_at=NOW)
        with on.reading() as storage:
            assert storage.one_time_codes.find(one_time_code.digest) == replace(one_time_code, used_at=NOW)

    def test_one_time_codes_a_code_expires_to_the_second(self, on: On) -> None:
        code, late = a_one_time_code(on.human_user), a_one_time_code(on.human_user)
        on.save(code, late)
        with on.writing() as storage:
            storage.one_time_codes.consume(code.digest, code.kind, code.expires_at - SECOND)
            with pytest.raises(Missing):
                storage.one_time_codes.consume(late.digest, late.kind, late.expires_at)
        with on.reading() as storage:
            assert storage.one_time_codes.find(late.digest) == late

    def test_one_time_codes_a_code_is_good_for_nothing_else(self, on: On, one_time_code: OneTimeCode) -> None:
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.one_time_codes.consume(one_time_code.digest, CodeKind.EMAIL_CHANGE, NOW)
            with pytest.raises(Missing):
                storage.one_time_codes.consume(a_digest(), one_time_code.kind, NOW)
            storage.one_time_codes.consume(one_time_code.digest, one_time_code.kind, NOW)
            with pytest.raises(Missing):
                storage.one_time_codes.consume(one_time_code.digest, CodeKind.EMAIL_CHANGE, NOW)

    def test_one_time_codes_drop_deletes_the_user_s_codes_of_a_kind(self, on: On) -> None:
        human_user = on.human_user
        stranger = a_human_user(on.organization)
        dropped = [a_one_time_code(human_user), a_one_time_code(human_user, used_at=NOW)]
        kept = [
            a_one_time_code(human_user, kind=CodeKind.EMAIL_CHANGE),
            a_one_time_code(stranger),
            a_one_time_code(user_id=None),
        ]
        on.save(stranger, *dropped, *kept)
        with on.writing() as storage:
            assert storage.one_time_codes.drop(human_user.id, CodeKind.PASSWORD_RESET) == 2
            assert storage.one_time_codes.drop(human_user.id, CodeKind.PASSWORD_RESET) == 0
            assert storage.one_time_codes.drop(an_id(), CodeKind.PASSWORD_RESET) == 0
        with on.reading() as storage:
            assert [storage.one_time_codes.find(code.digest) for code in dropped] == [None, None]
            assert [storage.one_time_codes.find(code.digest) for code in kept] == kept

    def test_one_time_codes_purge_deletes_what_expired_before(self, on: On) -> None:
        expired, expiring, used = (
            a_one_time_code(on.human_user, expires_at=NOW - SECOND, used_at=NOW - 2 * SECOND),
            a_one_time_code(on.human_user, expires_at=NOW),
            a_one_time_code(on.human_user, used_at=NOW),
        )
        on.save(expired, expiring, used)
        with on.writing() as storage:
            assert storage.one_time_codes.purge(NOW, 10) == 1
        with on.reading() as storage:
            assert storage.one_time_codes.find(expired.digest) is None
            assert storage.one_time_codes.find(expiring.digest) == expiring
            assert storage.one_time_codes.find(used.digest) == used, "a second use is still told from a mere unknown"

    def test_one_time_codes_purge_deletes_no_more_than_the_limit(self, on: On) -> None:
        on.save(*(a_one_time_code(user_id=None, expires_at=NOW) for _ in range(5)))
        counts = []
        for _ in range(4):
            with on.writing() as storage:
                counts.append(storage.one_time_codes.purge(NOW + SECOND, 2))
        assert counts == [2, 2, 1, 0]

    def test_one_time_codes_races_a_code_is_used_once(self, on: On, one_time_code: OneTimeCode) -> None:
        outcomes = on.race(partial(consume, digest=one_time_code.digest, kind=one_time_code.kind, at=NOW), 100)
        winner = outcomes.only_winner(losers="AlreadyUsed")
        assert winner.value == one_time_code
        with on.reading() as storage:
            assert storage.one_time_codes.find(one_time_code.digest) == replace(
                one_time_code, used_at=NOW + winner.number * SECOND
            )


# The attempt, which also runs in other processes, so that it must be a function of the module.


def consume(storage: Storage, number: int, *, digest: bytes, kind: CodeKind, at: datetime) -> OneTimeCode:
    """Use the code at a moment of one's own."""
    return storage.one_time_codes.consume(digest, kind, at + number * SECOND)
