"""What is demanded of the outbox."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.outbox import Backlog, OutgoingMessage
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, an_id, an_outgoing_message
from identity.storage.errors import Missing

SECOND = timedelta(seconds=1)


class OutboxContract(ContractBase):
    """A message waits until it is due, and stays until somebody removes it."""

    def test_outbox_what_waits_comes_back_as_it_was_added_until_it_expires(self, on: On) -> None:
        message = on.saved(
            an_outgoing_message(
                kind="logout", sealed=bytes(range(256)), created_at=NOW - SECOND, expires_at=NOW + SECOND, attempts=3
            )
        )
        assert on.read.outbox.waiting("logout", NOW, 10) == (message,)
        assert on.read.outbox.waiting("logout", NOW + SECOND, 10) == (), "to the second"

    def test_outbox_what_waits_is_ordered_by_the_moment_and_limited(self, on: On) -> None:
        messages = [an_outgoing_message(next_at=NOW + index * SECOND) for index in (-1, 0, 1, 2)]
        on.save(*reversed(messages))
        for limit in (1, 2, 3, 4, 10):
            assert on.read.outbox.waiting("mail", NOW, limit) == (*messages[:limit],)

    def test_outbox_organizations_take_turns_and_bulk_comes_last(self, on: On) -> None:
        def sent(number: int, organization_id: str | None, *, bulk: bool = False) -> OutgoingMessage:
            return an_outgoing_message(
                next_at=NOW - timedelta(seconds=100 - number), organization_id=organization_id, bulk=bulk
            )

        flood = [sent(number, "acme", bulk=True) for number in range(5)]
        early, late = sent(6, "bolt", bulk=True), sent(7, None, bulk=True)
        reset, second, other = sent(8, "acme"), sent(9, "acme"), sent(10, "bolt")
        to_come = an_outgoing_message(next_at=NOW + SECOND)
        on.save(*flood, early, late, reset, second, other, to_come, an_outgoing_message(kind="logout"))
        in_turn = (reset, other, second, flood[0], early, late, *flood[1:])
        for limit in (1, 4, 20):
            assert on.read.outbox.due("mail", NOW, limit) == in_turn[:limit]

    def test_outbox_what_is_due_is_not_expired(self, on: On) -> None:
        message = on.saved(an_outgoing_message(next_at=NOW, expires_at=NOW + SECOND))
        assert on.read.outbox.due("mail", NOW - SECOND, 10) == ()
        assert on.read.outbox.due("mail", NOW, 10) == (message,)
        assert on.read.outbox.due("mail", NOW + SECOND, 10) == ()

    def test_outbox_each_kind_is_by_itself(self, on: On) -> None:
        mail, logout = an_outgoing_message(), an_outgoing_message(kind="logout", next_at=NOW - SECOND)
        on.save(mail, logout)
        found = [on.read.outbox.waiting(kind, NOW, 10) for kind in ("mail", "logout", "mai")]
        assert found == [(mail,), (logout,), ()]

    def test_outbox_backlog_counts_what_fails_and_what_was_given_up(self, on: On) -> None:
        on.save(
            an_outgoing_message(created_at=NOW - 9 * SECOND),
            an_outgoing_message(created_at=NOW - 3 * SECOND, attempts=1, next_at=NOW + SECOND),
            an_outgoing_message(created_at=NOW - 2 * SECOND, attempts=7),
            an_outgoing_message(created_at=NOW - 4 * SECOND, attempts=1, expires_at=NOW),
            an_outgoing_message(created_at=NOW - 9 * SECOND, attempts=1, kind="logout"),
        )
        backlog = on.read.outbox.backlog("mail", NOW)
        assert backlog == Backlog(failing=2, given_up=1, since=NOW - 4 * SECOND)
        assert on.read.outbox.backlog("letter", NOW) == Backlog()

    def test_outbox_oldest_is_the_first_made_of_those_that_are_tried_first(self, on: On) -> None:
        on.save(
            an_outgoing_message(created_at=NOW - 3 * SECOND, next_at=NOW - 2 * SECOND),
            an_outgoing_message(created_at=NOW - 7 * SECOND, next_at=NOW + 9 * SECOND, attempts=3),
            an_outgoing_message(created_at=NOW - 5 * SECOND, next_at=NOW - SECOND),
            an_outgoing_message(created_at=NOW - 9 * SECOND, expires_at=NOW),
            an_outgoing_message(created_at=NOW - 8 * SECOND, kind="logout"),
        )
        found = [on.read.outbox.oldest("mail", NOW, limit) for limit in (1, 2, 3, 100)]
        assert found == [NOW - seconds * SECOND for seconds in (3, 5, 7, 7)]
        assert on.read.outbox.oldest("logout", NOW, 100) == NOW - 8 * SECOND
        assert on.read.outbox.oldest("letter", NOW, 100) is None

    def test_outbox_postpone_moves_the_moment_and_counts(self, on: On) -> None:
        message, other = an_outgoing_message(), an_outgoing_message(next_at=NOW + 5 * SECOND)
        on.save(message, other)
        for seconds in (1, 3):
            on.write.outbox.postpone(message.id, NOW + seconds * SECOND)
        postponed = replace(message, next_at=NOW + 3 * SECOND, attempts=2)
        assert on.read.outbox.waiting("mail", NOW, 10) == (postponed, other)

    def test_outbox_remove_deletes_one(self, on: On) -> None:
        message, other = an_outgoing_message(), an_outgoing_message()
        on.save(message, other)
        on.write.outbox.remove(message.id)
        assert on.read.outbox.waiting("mail", NOW, 10) == (other,)

    def test_outbox_what_is_not_there_can_neither_be_postponed_nor_removed(self, on: On) -> None:
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.outbox.postpone(an_id(), NOW)
            with pytest.raises(Missing):
                storage.outbox.remove(an_id())
