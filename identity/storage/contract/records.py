"""Contract of the record store."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain.records import Record
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow


def record_key(record: Record) -> tuple[str, str, bytes]:
    return record.plugin, record.kind, record.key


class RecordContract(ContractBase):
    """A record is added once, consumed once, replaced only by its next version, and deleted with its owners."""

    @pytest.mark.parametrize("other", [{"plugin": "other"}, {"kind": "other"}, {"key": bytes(32)}])
    def test_records_name_spaces_and_kinds_know_nothing_of_each_other(
        self, on: StorageHarness, other: dict[str, Any]
    ) -> None:
        mine = on.store_value(make.record(on.human_user, on.application))
        record = replace(mine, **other, value={"theirs": True})
        with on.transaction() as storage:
            assert storage.records.find(*record_key(record)) is None
            assert not storage.records.delete(*record_key(record))
            with pytest.raises(RowNotFound):
                storage.records.consume(*record_key(record), NOW)
            with pytest.raises(RowNotFound):
                storage.records.replace(replace(record, version=2))
            assert storage.records.add(record) is None
        owned = (record,) if "key" not in other else (record, mine) if record.key > mine.key else (mine, record)
        with on.transaction() as storage:
            assert storage.records.list_for_owner(record.plugin, record.kind, user_id=record.user_id) == owned
            assert storage.records.delete_for_owner(record.plugin, record.kind, user_id=record.user_id) == len(owned)
            assert storage.records.find(*record_key(mine)) == (None if "key" in other else mine)

    @pytest.mark.parametrize("owned", [False, True])
    def test_records_one_added_as_the_last_write_holds_the_key(self, on: StorageHarness, owned: bool) -> None:
        first = make.record(on.human_user) if owned else make.record()
        later = replace(first, value={"other": 1})
        with on.transaction() as storage:
            assert storage.records.add(first, is_last_write=True) is None
        for _ in range(2):
            with on.transaction() as storage:
                assert storage.records.add(later, is_last_write=True) == first
        assert on.read.records.find(*record_key(first)) == first

    def test_records_the_first_one_holds_the_key(self, on: StorageHarness) -> None:
        first = make.record(expires_at=NOW + SECOND)
        later = replace(first, value={"other": 1}, created_at=NOW + timedelta(days=1), expires_at=None)
        with on.transaction() as storage:
            assert storage.records.add(first) is None
            assert storage.records.add(later) == first, "also for the transaction that stored it, and if it has expired"
        with on.transaction() as storage:
            assert storage.records.add(later) == first
            assert storage.records.add(replace(later, key=make_digest())) is None
        assert on.read.records.find(*record_key(first)) == first

    def test_records_many_are_found_by_their_keys(self, on: StorageHarness) -> None:
        first, second = on.store_value(make.record(on.human_user)), on.store_value(make.record())
        other = on.store_value(make.record(kind="other"))
        keys = [first.key, second.key, other.key, make_digest()]
        found = on.read.records.find_many(first.plugin, first.kind, keys)
        assert found == {first.key: first, second.key: second}
        assert on.read.records.find_many(first.plugin, first.kind, []) == {}

    def test_records_one_that_was_rolled_back_holds_nothing(self, on: StorageHarness) -> None:
        record = make.record()
        with on.aborted_transaction() as storage:
            assert storage.records.add(record) is None
        assert on.write.records.add(record) is None

    def test_records_an_expired_one_is_replaced_to_the_second_where_asked(self, on: StorageHarness) -> None:
        old = on.store_value(make.record(sealed=b"old", taken_at=NOW, version=3, expires_at=NOW + 9 * SECOND))
        early = replace(old, created_at=NOW + 8 * SECOND, value={}, sealed=b"", taken_at=None, version=1)
        late = replace(early, created_at=NOW + 9 * SECOND, expires_at=NOW + timedelta(days=1))
        lasting = on.store_value(make.record(expires_at=None))
        with on.transaction() as storage:
            assert storage.records.add(early, replacing_expired=True) == old
            assert storage.records.add(late, replacing_expired=True) is None
            assert storage.records.add(late, replacing_expired=True) == late, "nothing of the old one is left"
            assert storage.records.add(replace(lasting, value={}), replacing_expired=True) == lasting

    @pytest.mark.parametrize("owner", [{"user_id": make_id()}, {"application_id": make_id()}])
    def test_records_need_those_to_whom_they_belong(self, on: StorageHarness, owner: dict[str, Any]) -> None:
        stored = on.store_value(make.record())
        with on.transaction() as storage:
            for replacing_expired in (False, True):
                with pytest.raises(RowNotFound):
                    storage.records.add(make.record(**owner), replacing_expired=replacing_expired)
            with pytest.raises(RowNotFound):
                storage.records.replace(replace(stored, **owner, version=2))
            assert storage.records.add(make.record()) is None, "the transaction goes on"
            assert storage.records.find(*record_key(stored)) == stored

    def test_records_replace_puts_the_next_version_in_its_place(self, on: StorageHarness) -> None:
        first, record = on.store_value(make.record(value={"a": 1}, sealed=b"old")), on.store_value(make.record())
        second = replace(
            first,
            user_id=on.human_user.id,
            application_id=on.application.id,
            value={"b": [2]},
            sealed=b"new",
            created_at=NOW + SECOND,
            expires_at=None,
            taken_at=NOW,
            version=2,
        )
        on.write.records.replace(second)
        assert on.read.records.find(*record_key(first)) == second
        assert on.read.records.find(*record_key(record)) == record

    def test_records_replace_of_another_version_is_stale(self, on: StorageHarness) -> None:
        record = on.store_value(make.record())
        with on.transaction() as storage:
            for version in (0, 1, 3):
                with pytest.raises(StaleRow):
                    storage.records.replace(replace(record, value={"lost": True}, version=version))
            with pytest.raises(RowNotFound):
                storage.records.replace(make.record(version=2))
        assert on.read.records.find(*record_key(record)) == record

    def test_records_take_returns_the_record_as_it_was_and_counts_as_a_change(self, on: StorageHarness) -> None:
        for record in (on.store_value(make.record(sealed=b"sealed")), on.store_value(make.record(expires_at=None))):
            assert on.write.records.consume(*record_key(record), NOW) == record
            with on.transaction() as storage:
                assert storage.records.find(*record_key(record)) == replace(record, taken_at=NOW, version=2)
                with pytest.raises(StaleRow):
                    storage.records.replace(replace(record, version=2))

    def test_records_second_consume_reports_record_even_if_expired(self, on: StorageHarness) -> None:
        record = on.store_value(make.record())
        on.write.records.consume(*record_key(record), NOW)
        consumed = replace(record, taken_at=NOW, version=2)
        for at in (NOW + SECOND, NOW + timedelta(days=9)):
            with on.transaction() as storage:
                with pytest.raises(AlreadyUsed) as refusal:
                    storage.records.consume(*record_key(record), at)
                storage.records.add(make.record())
            assert refusal.value.value == consumed
        assert on.read.records.find(*record_key(record)) == consumed

    def test_records_expire_for_takers_to_the_second(self, on: StorageHarness) -> None:
        good, late = (on.store_value(make.record(expires_at=NOW + 9 * SECOND)) for _ in range(2))
        with on.transaction() as storage:
            storage.records.consume(*record_key(good), NOW + 8 * SECOND)
            with pytest.raises(RowNotFound):
                storage.records.consume(*record_key(late), NOW + 9 * SECOND)
        assert on.read.records.find(*record_key(late)) == late

    def test_records_of_owner_are_newest_first(self, on: StorageHarness) -> None:
        user, application = on.human_user, on.application
        stranger = on.store_value(make.human_user(on.organization))
        other = on.store_value(make.application(on.project))
        keys = [bytes([number]) * 32 for number in range(4)]
        old = make.record(user, application, key=keys[3], created_at=NOW - SECOND)
        same, twin = make.record(user, other, key=keys[0]), make.record(user, key=keys[1])
        new = make.record(user, application, key=keys[2], created_at=NOW + SECOND, taken_at=NOW)
        foreign = make.record(stranger, application)
        on.store(
            same,
            new,
            old,
            twin,
            foreign,
            make.record(user, kind="other"),
            make.record(user, plugin="other"),
            make.record(),
        )
        space = (old.plugin, old.kind)
        of_owner = on.read.records.list_for_owner
        assert of_owner(*space, user_id=user.id) == (new, twin, same, old)
        assert of_owner(*space, user_id=user.id, application_id=application.id) == (new, old)
        assert {record.key for record in of_owner(*space, application_id=application.id)} == {
            new.key,
            old.key,
            foreign.key,
        }
        assert of_owner(*space, user_id=make_id()) == ()
        assert of_owner(*space) == (), "what belongs to nobody is nobody's"

    def test_records_drop_of_owner_deletes_those_of_one_kind(self, on: StorageHarness) -> None:
        user, application = on.human_user, on.application
        records = [make.record(user, application), make.record(user, application, taken_at=NOW)]
        remaining = [
            make.record(user),
            make.record(user, application, kind="other"),
            make.record(None, application),
            make.record(),
        ]
        on.store(*records, *remaining)
        space = (records[0].plugin, records[0].kind)
        with on.transaction() as storage:
            assert storage.records.delete_for_owner(*space) == 0
            assert storage.records.delete_for_owner(*space, user_id=make_id()) == 0
            assert storage.records.delete_for_owner(*space, user_id=user.id, application_id=application.id) == 2
            assert storage.records.delete_for_owner(*space, user_id=user.id, application_id=application.id) == 0
        with on.transaction() as storage:
            assert [storage.records.find(*record_key(record)) for record in records] == [None, None]
            assert [storage.records.find(*record_key(record)) for record in remaining] == remaining
            assert storage.records.delete_for_owner(*space, application_id=application.id) == 1
            assert storage.records.delete_for_owner(*space, user_id=user.id) == 1

    def test_records_drop(self, on: StorageHarness) -> None:
        record, remaining = on.store_value(make.record()), on.store_value(make.record())
        with on.transaction() as storage:
            assert storage.records.delete(*record_key(record))
            assert not storage.records.delete(*record_key(record))
            assert storage.records.find(*record_key(remaining)) == remaining
            assert storage.records.add(record) is None, "the key is free"

    def test_records_races_one_is_taken_once(self, on: StorageHarness) -> None:
        record = on.store_value(make.record(expires_at=NOW + timedelta(days=1)))
        winner = on.race(partial(consume, record=record), 100).single_winner(losers="AlreadyUsed")
        assert winner.value == record
        found = on.read.records.find(*record_key(record))
        assert found == replace(record, taken_at=NOW + winner.number * SECOND, version=2)

    @pytest.mark.parametrize("expired", [False, True])
    def test_records_races_a_key_is_taken_once_and_the_others_see_by_whom(
        self, on: StorageHarness, expired: bool
    ) -> None:
        record = make.record(on.human_user)
        if expired:
            on.store(replace(record, created_at=NOW - 2 * SECOND, expires_at=NOW, value={"old": 1}, version=7))
        outcomes = on.race(partial(add_and_replace, record=record), 50)
        assert outcomes.errors == {}
        winners = [outcome.number for outcome in outcomes.committed if outcome.value is None]
        assert len(winners) == 1, "exactly one does the work"
        answer = replace(record, value={"by": winners[0]}, version=2)
        written = [value for value in outcomes.values if value is not None]
        assert written == [answer] * 49, "all others see all of what the one did"

    def test_records_races_one_of_them_is_added_as_the_last_write(self, on: StorageHarness) -> None:
        """Each of several keys is added once; the others get the record that holds it."""
        records = [make.record() for _ in range(4)]
        outcomes = on.race(partial(add_one_last, records=records), 48)
        assert outcomes.errors == {}
        assert outcomes.values.count(None) == len(records)
        assert [on.read.records.find(*record_key(record)) for record in records] == records

    def test_records_races_a_version_is_replaced_once(self, on: StorageHarness) -> None:
        record = on.store_value(make.record())
        winner = on.race(partial(replace_once, record=record), 50).single_winner(losers="StaleRow")
        assert on.read.records.find(*record_key(record)) == winner.value, "no change is lost"


# Race attempts run in other processes, too: they must be module-level functions.


def consume(storage: Storage, number: int, *, record: Record) -> Record:
    """Consume the record at a different time per attempt."""
    return storage.records.consume(*record_key(record), NOW + number * SECOND)


def add_and_replace(storage: Storage, number: int, *, record: Record) -> Record | None:
    """Add a record and store the number of the attempt in it, unless the key is taken."""
    existing = storage.records.add(record, replacing_expired=True)
    if existing is None:
        storage.records.replace(replace(record, value={"by": number}, version=2))
    return existing


def add_one_last(storage: Storage, number: int, *, records: list[Record]) -> Record | None:
    record = records[number // 3 % len(records)]
    holder = storage.records.add(record, is_last_write=True)
    assert holder in (None, record)
    return holder


def replace_once(storage: Storage, number: int, *, record: Record) -> Record:
    """Replace it with a second version, different per attempt."""
    mine = replace(record, value={"by": number}, version=2)
    storage.records.replace(mine)
    return mine
