"""What is demanded of the outbox."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import an_id, an_organization, an_outgoing_message
from identity.storage.errors import Duplicate, Missing

SECOND = timedelta(seconds=1)


class OutboxContract(ContractBase):
    """A message waits until it is due, and stays until somebody removes it."""

    def test_outbox_due_returns_what_was_added(self, save: Save, reading: Reading, now: datetime) -> None:
        message = an_outgoing_message(
            kind="logout", sealed=bytes(range(256)), created_at=now - SECOND, expires_at=now + SECOND, attempts=3
        )
        save(message)
        with reading() as storage:
            assert storage.outbox.due(now, 10) == (message,)
            assert storage.outbox.due(now - SECOND, 10) == ()

    def test_outbox_a_taken_id_is_refused_and_the_transaction_can_go_on(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        message, organization = an_outgoing_message(), an_organization()
        save(message)
        with in_transaction() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.outbox.add(an_outgoing_message(id=message.id, sealed=b"other"))
            storage.organizations.add(organization)
        assert refusal.value.field == "id"
        with reading() as storage:
            assert storage.outbox.due(now, 10) == (message,)
            assert storage.organizations.find(organization.id) == organization

    def test_outbox_due_is_ordered_by_the_moment_and_limited(self, save: Save, reading: Reading, now: datetime) -> None:
        messages = [an_outgoing_message(next_at=now + index * SECOND) for index in range(4)]
        expired = an_outgoing_message(next_at=now - SECOND, expires_at=now - SECOND)
        save(*reversed(messages), expired)
        with reading() as storage:
            assert storage.outbox.due(now + 2 * SECOND, 10) == (expired, *messages[:3]), "to the second"
            assert storage.outbox.due(now + 2 * SECOND, 2) == (expired, messages[0])

    def test_outbox_tells_when_the_next_one_is_due(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        with reading() as storage:
            assert storage.outbox.next_at() is None
        late, soon = an_outgoing_message(next_at=now + SECOND), an_outgoing_message(next_at=now - SECOND)
        save(late, soon)
        with reading() as storage:
            assert storage.outbox.next_at() == now - SECOND
        with in_transaction() as storage:
            storage.outbox.remove(soon.id)
        with reading() as storage:
            assert storage.outbox.next_at() == now + SECOND

    def test_outbox_postpone_moves_the_moment_and_counts(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        message, other = an_outgoing_message(), an_outgoing_message(next_at=now + 5 * SECOND)
        save(message, other)
        for seconds in (1, 3):
            with in_transaction() as storage:
                storage.outbox.postpone(message.id, now + seconds * SECOND)
        with reading() as storage:
            postponed = replace(message, next_at=now + 3 * SECOND, attempts=2)
            assert storage.outbox.due(now + 5 * SECOND, 10) == (postponed, other)

    def test_outbox_remove_deletes_one(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        message, other = an_outgoing_message(), an_outgoing_message()
        save(message, other)
        with in_transaction() as storage:
            storage.outbox.remove(message.id)
        with reading() as storage:
            assert storage.outbox.due(now, 10) == (other,)

    def test_outbox_what_is_not_there_can_neither_be_postponed_nor_removed(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            with pytest.raises(Missing):
                storage.outbox.postpone(an_id(), now)
            with pytest.raises(Missing):
                storage.outbox.remove(an_id())

    def test_outbox_a_message_of_an_aborted_change_is_never_due(
        self, in_aborted: InTransaction, reading: Reading, now: datetime
    ) -> None:
        with in_aborted() as storage:
            storage.outbox.add(an_outgoing_message())
            assert len(storage.outbox.due(now, 10)) == 1
        with reading() as storage:
            assert storage.outbox.due(now, 10) == ()
            assert storage.outbox.next_at() is None
