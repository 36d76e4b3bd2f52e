"""What is demanded of backends and of transactions."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.organizations import Organization
from identity.storage.backend import Backend, Storage
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_family,
    a_human_user,
    a_pending,
    a_project,
    a_record,
    a_refresh_token,
    a_session,
    a_signing_key,
    an_access_token,
    an_audit_event,
    an_organization,
    an_outgoing_message,
)
from identity.storage.errors import AlreadyUsed, Duplicate, Missing, Stale, StorageError
from identity.storage.paging import PageRequest
from identity.storage.participant import Participant
from identity.storage.stores.users import UserKind

SECOND = timedelta(seconds=1)


class RefusingParticipant(Participant):
    """Votes against the commit, before all others."""

    def tpc_vote(self, transaction: object) -> None:
        raise ZeroDivisionError("no")

    def sortKey(self) -> str:  # noqa: N802
        return "!first"


class LateParticipant(Participant):
    """Votes against the commit after all ordinary participants, having looked at what others see by then."""

    def __init__(self, on: On, organization: Organization) -> None:
        super().__init__(on.transactions)
        self._on, self._organization = on, organization
        self.seen: Organization | None = None

    def tpc_vote(self, transaction: object) -> None:
        with self._on.reading() as others:
            self.seen = others.organizations.find(self._organization.id)
        raise ZeroDivisionError("no")

    def sortKey(self) -> str:  # noqa: N802
        return "zzz:late"


class BackendContract(ContractBase):
    """A migrated backend is at rest, answers, and can be closed and used again."""

    def test_backend_a_migrated_backend_has_nothing_to_migrate(self, on: On) -> None:
        assert list(on.backend.migrate(dry_run=True)) == []
        assert list(on.backend.migrate()) == []

    def test_backend_check_is_content(self, on: On) -> None:
        on.backend.check()

    def test_backend_a_closed_backend_can_be_used_again(self, on: On) -> None:
        organization = on.organization
        on.backend.close()
        assert on.read.organizations.find(organization.id) == organization
        on.backend.close()
        on.save(a_project(organization))

    def test_backend_what_is_committed_is_there_when_it_is_opened_once_more(
        self, on: On, request: pytest.FixtureRequest
    ) -> None:
        """By another object, which knows nothing of this one; and what that writes is there for a third."""
        if not on.backend.durable:
            pytest.skip("it says that it is not durable")
        kept = [on.organization, on.human_user, on.application, on.session, on.family]
        event, once, added = an_audit_event(), a_record(on.human_user), an_organization()
        on.save(once)
        on.write.audit.append(event)
        on.backend.close()
        reopen: Callable[[], Backend] = request.getfixturevalue("reopen")
        second, third = On(reopen(), request), On(reopen(), request)
        try:
            second.backend.check()
            assert list(second.backend.migrate()) == []
            assert second.left(*kept, once) == [*kept, once]
            assert second.read.audit.find(event.id) is not None
            second.save(added)
            second.backend.close()
            assert third.read.organizations.find(added.id) == added
        finally:
            second.backend.close()
            third.backend.close()

    def test_backend_it_has_a_name(self, on: On) -> None:
        assert on.backend.name.isidentifier()


class TransactionContract(ContractBase):
    """A transaction sees its own changes; others see all of them after the commit, and none after an abort."""

    def test_transactions_own_changes_are_seen(self, on: On) -> None:
        organization = an_organization()
        on.storage.organizations.add(organization)
        assert on.storage.organizations.find(organization.id) == organization
        assert organization in on.storage.organizations.page().items
        changed = replace(organization, name="Changed", version=2)
        on.storage.organizations.update(changed)
        assert on.storage.organizations.find(organization.id) == changed
        on.storage.organizations.remove(organization.id)
        assert on.storage.organizations.find(organization.id) is None

    def test_transactions_changes_of_others_are_seen_after_the_commit_alone(self, on: On) -> None:
        organization = on.organization
        changed, added = replace(organization, name="Changed", version=2), an_organization()
        with on.writing() as storage:
            storage.organizations.update(changed)
            storage.organizations.add(added)
            with on.reading() as others:
                assert others.organizations.find(organization.id) == organization, "not committed yet"
                assert others.organizations.find(added.id) is None, "not committed yet"
        with on.reading() as others:
            assert others.organizations.find(organization.id) == changed
            assert others.organizations.find(added.id) == added

    def test_transactions_a_snapshot_stays_as_it_began_and_keeps_nobody_from_writing(self, on: On) -> None:
        organization = on.organization
        people = [a_human_user(organization, user_name=f"user-{number}") for number in range(6)]
        on.save(*people[:5])
        changed = replace(organization, name="Changed", version=2)
        first, rest = PageRequest(limit=2), PageRequest(limit=10)
        with on.backend.snapshot() as storage:
            begun = storage.users.page(organization.id, UserKind.HUMAN, first)
            with on.writing() as others:
                others.organizations.update(changed)
                others.users.add(people[5])
                others.users.remove(people[4].id)
            after = storage.users.page(organization.id, UserKind.HUMAN, replace(rest, cursor=begun.next))
            assert [*begun, *after] == people[:5]
            assert storage.organizations.find(organization.id) == organization
        with on.backend.snapshot() as storage, on.backend.reading() as reading:
            assert storage.organizations.find(organization.id) == changed
            assert [*storage.users.page(organization.id, UserKind.HUMAN, rest)] == [*people[:4], people[5]]
            assert reading.organizations.find(organization.id) == changed

    def test_transactions_a_snapshot_begins_when_it_is_opened(self, on: On) -> None:
        organization = on.organization
        with on.backend.snapshot() as storage:
            with on.writing() as others:
                others.organizations.remove(organization.id)
            assert storage.organizations.find(organization.id) == organization

    def test_transactions_a_reading_after_a_snapshot_sees_everything_again(self, on: On) -> None:
        organization = on.organization
        with on.backend.snapshot() as storage:
            assert storage.organizations.find(organization.id) == organization
        with on.writing() as others:
            others.organizations.remove(organization.id)
        with on.backend.reading() as storage:
            assert storage.organizations.find(organization.id) is None

    def test_transactions_writing_through_a_snapshot_is_an_error(self, on: On) -> None:
        with on.backend.snapshot() as storage, pytest.raises(StorageError):
            storage.organizations.add(an_organization())

    def test_transactions_an_abort_undoes_everything(self, on: On) -> None:
        organization, human_user, application, family = on.organization, on.human_user, on.application, on.family
        code, refresh = a_code(family), a_refresh_token(family)
        access, key = an_access_token(human_user, application, family), a_signing_key(1)
        session, pending, once = a_session(human_user), a_pending(), a_record(human_user)
        on.save(code, refresh, access, key, session, pending, once)
        successor, added, event = a_refresh_token(family), an_organization(), an_audit_event()
        added_record, message = a_record(), an_outgoing_message()
        with on.aborted() as storage:
            storage.organizations.add(added)
            storage.users.update(replace(human_user, active=False, version=2))
            storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            storage.tokens.rotate(refresh.digest, successor, NOW)
            storage.tokens.revoke_access(access.digest, NOW)
            storage.tokens.revoke_family(family.id, NOW)
            storage.records.add(added_record)
            storage.audit.append(event)
            storage.signing_keys.remove(key.id)
            storage.sessions.end(session.id, NOW)
            storage.authorization_requests.finish(pending.id, NOW, version=1)
            storage.records.take(once.plugin, once.kind, once.key, NOW)
            storage.attempts.reserve("ada", at=NOW)
            storage.outbox.add(message)
            storage.applications.remove(application.id)
            storage.organizations.remove(organization.id)
        kept = [organization, human_user, application, family, code, refresh, access, key, session, pending, once]
        assert on.left(*kept, added, successor, added_record, message) == kept
        assert on.read.audit.find(event.id) is None
        with on.writing() as storage:
            assert storage.attempts.reserve("ada", at=NOW).failures == 1
            storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            assert storage.records.add(added_record) is None

    def test_transactions_a_last_change_is_not_the_first_one_s_commit(self, on: On) -> None:
        """Who said that nothing else is changed has changed something before: an abort takes back both."""
        code, refresh = a_code(on.family), a_refresh_token(on.family)
        access, added = an_access_token(on.service_user), an_organization()
        on.save(code, refresh)
        changes: tuple[Callable[[Storage], object], ...] = (
            lambda storage: storage.tokens.add_access(access, last=True),
            lambda storage: storage.tokens.rotate(refresh.digest, a_refresh_token(on.family), NOW, last=True),
            lambda storage: storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW, last=True),
        )
        for change in changes:
            with on.aborted() as storage:
                storage.organizations.add(added)
                change(storage)
        assert on.left(added, code, refresh, access) == [code, refresh]

    def test_transactions_after_a_last_change_there_can_be_others(self, on: On) -> None:
        access, added = an_access_token(on.service_user), an_organization()
        with on.writing() as storage:
            storage.tokens.add_access(access, last=True)
            storage.organizations.add(added)
        assert on.left(access, added) == [access, added]

    def test_transactions_a_refusal_by_another_participant_undoes_everything(self, on: On) -> None:
        organization = an_organization()
        on.transactions.begin()
        on.transactions.get().join(RefusingParticipant(on.transactions))
        on.backend.writing(on.transactions).organizations.add(organization)
        with pytest.raises(ZeroDivisionError):
            on.transactions.commit()
        on.transactions.abort()
        assert on.read.organizations.find(organization.id) is None

    def test_transactions_refusal_by_another_participant_undoes_last_changes(self, on: On) -> None:
        """They may be committed at once only if no other participant votes, whether it joined before or after."""
        refresh, access, used = a_refresh_token(on.family), an_access_token(on.service_user), a_record(on.human_user)
        code = a_code(on.family)
        on.save(refresh, code)
        changes: list[Callable[[Storage], object]] = [
            lambda storage: storage.tokens.add_access(access, last=True),
            lambda storage: storage.tokens.add_access(access, used=used, last=True),
            lambda storage: storage.tokens.rotate(refresh.digest, a_refresh_token(on.family), NOW, last=True),
            lambda storage: storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW, last=True),
        ]
        for change in changes:
            for joins_first in (True, False):
                on.transactions.begin()
                other = RefusingParticipant(on.transactions)
                if joins_first:
                    on.transactions.get().join(other)
                storage = on.backend.writing(on.transactions)
                if not joins_first:
                    on.transactions.get().join(other)
                change(storage)
                with pytest.raises(ZeroDivisionError):
                    on.transactions.commit()
                on.transactions.abort()
        assert on.left(refresh, code) == [refresh, code]
        assert on.left(access, used) == []

    def test_transactions_nothing_is_seen_before_all_others_have_voted(self, on: On) -> None:
        """A backend that is done at the vote votes last; then whoever refuses late still undoes everything."""
        organization, changed = an_organization(), replace(on.organization, name="Changed", version=2)
        on.transactions.begin()
        late = LateParticipant(on, organization)
        on.transactions.get().join(late)
        storage = on.backend.writing(on.transactions)
        storage.organizations.add(organization)
        storage.organizations.update(changed)
        with pytest.raises(ZeroDivisionError):
            on.transactions.commit()
        on.transactions.abort()
        assert late.seen is None
        assert on.read.organizations.find(organization.id) is None
        assert on.read.organizations.find(changed.id) == on.organization
        # The next writer does not wait for what was refused.
        on.save(organization)

    def test_transactions_the_next_transaction_begins_anew(self, on: On) -> None:
        organization = on.organization
        with pytest.raises(Missing), on.writing() as storage:
            _remove_and_fail(storage, organization)
        added = an_organization()
        with on.writing() as storage:
            assert storage.organizations.find(organization.id) == organization
            storage.organizations.add(added)
        assert on.read.organizations.find(organization.id) == organization
        assert on.read.organizations.find(added.id) == added

    def test_transactions_a_refusal_by_a_store_leaves_the_transaction_usable(self, on: On) -> None:
        taken = an_organization(primary_domain=on.organization.primary_domain)
        family = a_family(on.human_user, on.application)
        code = a_code(family)
        later = a_signing_key(generation=8)
        other = an_organization()
        with on.writing() as storage:
            storage.tokens.start_family(family)
            storage.tokens.add_code(code)
            storage.signing_keys.add(a_signing_key(generation=7))
            storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            with pytest.raises(Duplicate):
                storage.organizations.add(taken)
            with pytest.raises(Stale):
                storage.organizations.update(on.organization)
            with pytest.raises(Missing):
                storage.projects.add(a_project(an_organization()))
            with pytest.raises(Duplicate):
                storage.signing_keys.add(a_signing_key(generation=7))
            with pytest.raises(AlreadyUsed):
                storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            storage.signing_keys.add(later)
            storage.organizations.add(other)
        assert on.read.organizations.find(taken.id) is None
        assert on.read.organizations.find(other.id) == other
        assert later in on.read.signing_keys.all()

    def test_transactions_writing_twice_in_a_transaction_is_writing_to_one_state(self, on: On) -> None:
        first, second = an_organization(), an_organization()
        on.transactions.begin()
        on.backend.writing(on.transactions).organizations.add(first)
        storage = on.backend.writing(on.transactions)
        assert storage.organizations.find(first.id) == first
        storage.organizations.add(second)
        on.transactions.commit()
        with on.reading() as others:
            assert others.organizations.find(first.id) == first
            assert others.organizations.find(second.id) == second

    def test_transactions_a_transaction_without_changes_leaves_all_as_it_was(self, on: On) -> None:
        assert on.write.organizations.find(on.organization.id) == on.organization
        with on.writing():
            pass
        assert on.read.organizations.find(on.organization.id) == on.organization

    def test_transactions_writing_through_a_reading_storage_is_an_error(self, on: On) -> None:
        organization, family = on.organization, on.family
        added = an_organization()
        with pytest.raises(Exception), on.reading() as storage:  # noqa: B017, PT011 - any kind will do
            storage.organizations.add(added)
        with pytest.raises(Exception), on.reading() as storage:  # noqa: B017, PT011
            storage.organizations.update(replace(organization, name="Changed", version=2))
        with pytest.raises(Exception), on.reading() as storage:  # noqa: B017, PT011
            storage.tokens.revoke_family(family.id, NOW)
        assert on.read.organizations.find(added.id) is None
        assert on.read.organizations.find(organization.id) == organization
        assert on.stored(family) == family


def _remove_and_fail(storage: Storage, organization: Organization) -> None:
    storage.organizations.remove(organization.id)
    storage.organizations.remove(organization.id)
