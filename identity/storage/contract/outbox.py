"""Contract of the outbox."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import RowNotFound


class OutboxContract(ContractBase):
    """A message waits until it is due, and stays until it is deleted."""

    def test_outbox_what_waits_comes_back_as_it_was_added_until_it_expires(self, on: StorageHarness) -> None:
        message = on.store_value(
            make.outbox_message(
                kind="logout", sealed=bytes(range(256)), created_at=NOW - SECOND, expires_at=NOW + SECOND, attempts=3
            )
        )
        assert on.read.outbox.list_pending("logout", NOW, 10) == (message,)
        assert on.read.outbox.list_pending("logout", NOW + SECOND, 10) == (), "to the second"

    def test_outbox_what_waits_is_ordered_by_the_moment_and_limited(self, on: StorageHarness) -> None:
        messages = [make.outbox_message(next_at=NOW + index * SECOND) for index in (-1, 0, 1, 2)]
        on.store(*reversed(messages))
        for limit in (1, 2, 3, 4, 10):
            assert on.read.outbox.list_pending("mail", NOW, limit) == (*messages[:limit],)

    def test_outbox_organizations_take_turns_and_bulk_comes_last(self, on: StorageHarness) -> None:
        def sent(number: int, organization_id: str | None, *, bulk: bool = False) -> OutboxMessage:
            return make.outbox_message(
                next_at=NOW - timedelta(seconds=100 - number), organization_id=organization_id, bulk=bulk
            )

        flood = [sent(number, "acme", bulk=True) for number in range(5)]
        early, late = sent(6, "bolt", bulk=True), sent(7, None, bulk=True)
        reset, second, message = sent(8, "acme"), sent(9, "acme"), sent(10, "bolt")
        to_come = make.outbox_message(next_at=NOW + SECOND)
        on.store(*flood, early, late, reset, second, message, to_come, make.outbox_message(kind="logout"))
        in_turn = (reset, message, second, flood[0], early, late, *flood[1:])
        for limit in (1, 4, 20):
            assert on.read.outbox.list_due("mail", NOW, limit) == in_turn[:limit]

    def test_outbox_what_is_due_is_not_expired(self, on: StorageHarness) -> None:
        message = on.store_value(make.outbox_message(next_at=NOW, expires_at=NOW + SECOND))
        assert on.read.outbox.list_due("mail", NOW - SECOND, 10) == ()
        assert on.read.outbox.list_due("mail", NOW, 10) == (message,)
        assert on.read.outbox.list_due("mail", NOW + SECOND, 10) == ()

    def test_outbox_each_kind_is_by_itself(self, on: StorageHarness) -> None:
        mail, logout = make.outbox_message(), make.outbox_message(kind="logout", next_at=NOW - SECOND)
        on.store(mail, logout)
        messageses = [on.read.outbox.list_pending(kind, NOW, 10) for kind in ("mail", "logout", "mai")]
        assert messageses == [(mail,), (logout,), ()]

    def test_outbox_backlog_counts_what_fails_and_what_was_given_up(self, on: StorageHarness) -> None:
        on.store(
            make.outbox_message(created_at=NOW - 9 * SECOND),
            make.outbox_message(created_at=NOW - 3 * SECOND, attempts=1, next_at=NOW + SECOND),
            make.outbox_message(created_at=NOW - 2 * SECOND, attempts=7),
            make.outbox_message(created_at=NOW - 4 * SECOND, attempts=1, expires_at=NOW),
            make.outbox_message(created_at=NOW - 9 * SECOND, attempts=1, kind="logout"),
        )
        backlog = on.read.outbox.get_backlog("mail", NOW)
        assert backlog == OutboxBacklog(failing=2, abandoned=1, oldest_at=NOW - 4 * SECOND)
        assert on.read.outbox.get_backlog("letter", NOW) == OutboxBacklog()

    def test_outbox_oldest_is_the_first_made_of_those_that_are_tried_first(self, on: StorageHarness) -> None:
        on.store(
            make.outbox_message(created_at=NOW - 3 * SECOND, next_at=NOW - 2 * SECOND),
            make.outbox_message(created_at=NOW - 7 * SECOND, next_at=NOW + 9 * SECOND, attempts=3),
            make.outbox_message(created_at=NOW - 5 * SECOND, next_at=NOW - SECOND),
            make.outbox_message(created_at=NOW - 9 * SECOND, expires_at=NOW),
            make.outbox_message(created_at=NOW - 8 * SECOND, kind="logout"),
        )
        found = [on.read.outbox.oldest_created_at("mail", NOW, limit) for limit in (1, 2, 3, 100)]
        assert found == [NOW - seconds * SECOND for seconds in (3, 5, 7, 7)]
        assert on.read.outbox.oldest_created_at("logout", NOW, 100) == NOW - 8 * SECOND
        assert on.read.outbox.oldest_created_at("letter", NOW, 100) is None

    def test_outbox_postpone_moves_the_moment_and_counts(self, on: StorageHarness) -> None:
        message, outbox_message = make.outbox_message(), make.outbox_message(next_at=NOW + 5 * SECOND)
        on.store(message, outbox_message)
        for seconds in (1, 3):
            on.write.outbox.postpone(message.id, NOW + seconds * SECOND)
        postponed = replace(message, next_at=NOW + 3 * SECOND, attempts=2)
        assert on.read.outbox.list_pending("mail", NOW, 10) == (postponed, outbox_message)

    def test_outbox_remove_deletes_one(self, on: StorageHarness) -> None:
        message, outbox_message = make.outbox_message(), make.outbox_message()
        on.store(message, outbox_message)
        on.write.outbox.delete(message.id)
        assert on.read.outbox.list_pending("mail", NOW, 10) == (outbox_message,)

    def test_outbox_what_is_not_there_can_neither_be_postponed_nor_removed(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.outbox.postpone(make_id(), NOW)
            with pytest.raises(RowNotFound):
                storage.outbox.delete(make_id())

    def test_outbox_remembers_why_the_last_attempt_failed(self, on: StorageHarness) -> None:
        message = on.store_value(make.outbox_message())
        on.write.outbox.postpone(message.id, NOW + SECOND, "451 later")
        assert on.read.outbox.find(message.id) == replace(
            message, next_at=NOW + SECOND, attempts=1, last_answer="451 later"
        )
        on.write.outbox.postpone(message.id, NOW + SECOND)
        assert on.read.outbox.list_pending("mail", NOW, 1)[0].last_answer is None

    def test_outbox_newest_messages_come_first_and_expired_ones_too(self, on: StorageHarness) -> None:
        messages = [make.outbox_message(created_at=NOW - index * SECOND, expires_at=NOW) for index in range(4)]
        on.store(*reversed(messages), make.outbox_message(kind="logout"))
        assert on.read.outbox.list_newest("mail", 3) == (*messages[:3],)
        assert on.read.outbox.find(messages[3].id) == messages[3]
        assert on.read.outbox.find(make_id()) is None

    def test_outbox_expired_message_is_due_again_once_rescheduled(self, on: StorageHarness) -> None:
        message = on.store_value(make.outbox_message(next_at=NOW - SECOND, expires_at=NOW, attempts=3))
        on.write.outbox.reschedule(message.id, NOW, NOW + 9 * SECOND)
        assert on.read.outbox.list_due("mail", NOW, 10) == (replace(message, next_at=NOW, expires_at=NOW + 9 * SECOND),)
        with on.transaction() as storage, pytest.raises(RowNotFound):
            storage.outbox.reschedule(make_id(), NOW, NOW)
