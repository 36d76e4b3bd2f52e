"""What is demanded of the outbox."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.outbox import Backlog
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, an_id, an_organization, an_outgoing_message
from identity.storage.errors import Duplicate, Missing

SECOND = timedelta(seconds=1)


class OutboxContract(ContractBase):
    """A message waits until it is due, and stays until somebody removes it."""

    def test_outbox_due_returns_what_was_added(self, on: On) -> None:
        message = on.saved(
            an_outgoing_message(
                kind="logout", sealed=bytes(range(256)), created_at=NOW - SECOND, expires_at=NOW + SECOND, attempts=3
            )
        )
        assert on.read.outbox.due("logout", NOW, 10) == (message,)
        assert on.read.outbox.due("logout", NOW - SECOND, 10) == ()

    def test_outbox_a_taken_id_is_refused_and_the_transaction_can_go_on(self, on: On) -> None:
        message, organization = an_outgoing_message(), an_organization()
        on.save(message)
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.outbox.add(an_outgoing_message(id=message.id, sealed=b"other"))
            storage.organizations.add(organization)
        assert refusal.value.field == "id"
        assert on.read.outbox.due("mail", NOW, 10) == (message,)
        assert on.read.organizations.find(organization.id) == organization

    def test_outbox_due_is_ordered_by_the_moment_and_limited(self, on: On) -> None:
        messages = [an_outgoing_message(next_at=NOW + index * SECOND) for index in range(4)]
        on.save(*reversed(messages))
        assert on.read.outbox.due("mail", NOW + 2 * SECOND, 10) == (*messages[:3],), "to the second"
        assert on.read.outbox.due("mail", NOW + 2 * SECOND, 2) == (*messages[:2],)

    def test_outbox_each_kind_is_by_itself(self, on: On) -> None:
        mail, logout = an_outgoing_message(), an_outgoing_message(kind="logout", next_at=NOW - SECOND)
        on.save(mail, logout)
        assert on.read.outbox.due("mail", NOW, 10) == (mail,)
        assert on.read.outbox.next_at("mail", NOW) == mail.next_at
        assert on.read.outbox.next_at("logout", NOW) == logout.next_at
        assert on.read.outbox.due("mai", NOW, 10) == ()
        assert on.read.outbox.next_at("mai", NOW) is None

    def test_outbox_what_is_expired_is_neither_due_nor_waited_for(self, on: On) -> None:
        message = on.saved(an_outgoing_message(next_at=NOW - 2 * SECOND, expires_at=NOW))
        assert on.read.outbox.due("mail", NOW - SECOND, 10) == (message,)
        assert on.read.outbox.next_at("mail", NOW - SECOND) == message.next_at
        assert on.read.outbox.due("mail", NOW, 10) == ()
        assert on.read.outbox.next_at("mail", NOW) is None

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

    def test_outbox_purge_deletes_what_expired_before_whatever_kind(self, on: On) -> None:
        old = [an_outgoing_message(kind=kind, expires_at=NOW - SECOND) for kind in ("mail", "logout", "letter")]
        kept = an_outgoing_message(expires_at=NOW)
        on.save(*old, kept)
        with on.writing() as storage:
            assert storage.outbox.purge(NOW, 2) == 2
            assert storage.outbox.purge(NOW, 2) == 1
            assert storage.outbox.purge(NOW, 2) == 0
        assert on.read.outbox.backlog("logout", NOW) == Backlog()
        assert on.read.outbox.backlog("mail", NOW).given_up == 1

    def test_outbox_tells_when_the_next_one_is_due(self, on: On) -> None:
        assert on.read.outbox.next_at("mail", NOW) is None
        late, soon = an_outgoing_message(next_at=NOW + SECOND), an_outgoing_message(next_at=NOW - SECOND)
        on.save(late, soon)
        assert on.read.outbox.next_at("mail", NOW) == NOW - SECOND
        on.write.outbox.remove(soon.id)
        assert on.read.outbox.next_at("mail", NOW) == NOW + SECOND

    def test_outbox_postpone_moves_the_moment_and_counts(self, on: On) -> None:
        message, other = an_outgoing_message(), an_outgoing_message(next_at=NOW + 5 * SECOND)
        on.save(message, other)
        for seconds in (1, 3):
            on.write.outbox.postpone(message.id, NOW + seconds * SECOND)
        postponed = replace(message, next_at=NOW + 3 * SECOND, attempts=2)
        assert on.read.outbox.due("mail", NOW + 5 * SECOND, 10) == (postponed, other)

    def test_outbox_remove_deletes_one(self, on: On) -> None:
        message, other = an_outgoing_message(), an_outgoing_message()
        on.save(message, other)
        on.write.outbox.remove(message.id)
        assert on.read.outbox.due("mail", NOW, 10) == (other,)

    def test_outbox_what_is_not_there_can_neither_be_postponed_nor_removed(self, on: On) -> None:
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.outbox.postpone(an_id(), NOW)
            with pytest.raises(Missing):
                storage.outbox.remove(an_id())

    def test_outbox_a_message_of_an_aborted_change_is_never_due(self, on: On) -> None:
        with on.aborted() as storage:
            storage.outbox.add(an_outgoing_message())
            assert len(storage.outbox.due("mail", NOW, 10)) == 1
        assert on.read.outbox.due("mail", NOW, 10) == ()
        assert on.read.outbox.next_at("mail", NOW) is None
