"""What is demanded of the outbox."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.outbox import Backlog
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
            assert storage.outbox.due("logout", now, 10) == (message,)
            assert storage.outbox.due("logout", now - SECOND, 10) == ()

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
            assert storage.outbox.due("mail", now, 10) == (message,)
            assert storage.organizations.find(organization.id) == organization

    def test_outbox_due_is_ordered_by_the_moment_and_limited(self, save: Save, reading: Reading, now: datetime) -> None:
        messages = [an_outgoing_message(next_at=now + index * SECOND) for index in range(4)]
        save(*reversed(messages))
        with reading() as storage:
            assert storage.outbox.due("mail", now + 2 * SECOND, 10) == (*messages[:3],), "to the second"
            assert storage.outbox.due("mail", now + 2 * SECOND, 2) == (*messages[:2],)

    def test_outbox_each_kind_is_by_itself(self, save: Save, reading: Reading, now: datetime) -> None:
        mail, logout = an_outgoing_message(), an_outgoing_message(kind="logout", next_at=now - SECOND)
        save(mail, logout)
        with reading() as storage:
            assert storage.outbox.due("mail", now, 10) == (mail,)
            assert storage.outbox.next_at("mail", now) == mail.next_at
            assert storage.outbox.next_at("logout", now) == logout.next_at
            assert storage.outbox.due("mai", now, 10) == ()
            assert storage.outbox.next_at("mai", now) is None

    def test_outbox_what_is_expired_is_neither_due_nor_waited_for(
        self, save: Save, reading: Reading, now: datetime
    ) -> None:
        message = an_outgoing_message(next_at=now - 2 * SECOND, expires_at=now)
        save(message)
        with reading() as storage:
            assert storage.outbox.due("mail", now - SECOND, 10) == (message,)
            assert storage.outbox.next_at("mail", now - SECOND) == message.next_at
            assert storage.outbox.due("mail", now, 10) == ()
            assert storage.outbox.next_at("mail", now) is None

    def test_outbox_backlog_counts_what_fails_and_what_was_given_up(
        self, save: Save, reading: Reading, now: datetime
    ) -> None:
        save(
            an_outgoing_message(created_at=now - 9 * SECOND),
            an_outgoing_message(created_at=now - 3 * SECOND, attempts=1, next_at=now + SECOND),
            an_outgoing_message(created_at=now - 2 * SECOND, attempts=7),
            an_outgoing_message(created_at=now - 4 * SECOND, attempts=1, expires_at=now),
            an_outgoing_message(created_at=now - 9 * SECOND, attempts=1, kind="logout"),
        )
        with reading() as storage:
            backlog = storage.outbox.backlog("mail", now)
            assert backlog == Backlog(failing=2, given_up=1, since=now - 4 * SECOND)
            assert storage.outbox.backlog("letter", now) == Backlog()

    def test_outbox_purge_deletes_what_expired_before_whatever_kind(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        old = [an_outgoing_message(kind=kind, expires_at=now - SECOND) for kind in ("mail", "logout", "letter")]
        kept = an_outgoing_message(expires_at=now)
        save(*old, kept)
        with in_transaction() as storage:
            assert storage.outbox.purge(now, 2) == 2
            assert storage.outbox.purge(now, 2) == 1
            assert storage.outbox.purge(now, 2) == 0
        with reading() as storage:
            assert storage.outbox.backlog("logout", now) == Backlog()
            assert storage.outbox.backlog("mail", now).given_up == 1

    def test_outbox_tells_when_the_next_one_is_due(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        with reading() as storage:
            assert storage.outbox.next_at("mail", now) is None
        late, soon = an_outgoing_message(next_at=now + SECOND), an_outgoing_message(next_at=now - SECOND)
        save(late, soon)
        with reading() as storage:
            assert storage.outbox.next_at("mail", now) == now - SECOND
        with in_transaction() as storage:
            storage.outbox.remove(soon.id)
        with reading() as storage:
            assert storage.outbox.next_at("mail", now) == now + SECOND

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
            assert storage.outbox.due("mail", now + 5 * SECOND, 10) == (postponed, other)

    def test_outbox_remove_deletes_one(
        self, save: Save, in_transaction: InTransaction, reading: Reading, now: datetime
    ) -> None:
        message, other = an_outgoing_message(), an_outgoing_message()
        save(message, other)
        with in_transaction() as storage:
            storage.outbox.remove(message.id)
        with reading() as storage:
            assert storage.outbox.due("mail", now, 10) == (other,)

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
            assert len(storage.outbox.due("mail", now, 10)) == 1
        with reading() as storage:
            assert storage.outbox.due("mail", now, 10) == ()
            assert storage.outbox.next_at("mail", now) is None
