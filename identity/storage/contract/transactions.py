"""Contract of backends and transactions."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.organizations import Organization
from identity.domain.records import Record
from identity.domain.tokens import AccessToken, RefreshToken
from identity.storage.backend import Backend, Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import AlreadyUsed, DuplicateValue, RowNotFound, StaleRow, StorageError
from identity.storage.paging import PageRequest
from identity.storage.stores.users import UserKind
from identity.storage.transaction_participant import TransactionParticipant


class RefusingParticipant(TransactionParticipant):
    """Votes against the commit, before all others."""

    def tpc_vote(self, transaction: object) -> None:
        raise ZeroDivisionError("no")

    def sortKey(self) -> str:  # noqa: N802
        return "!first"


class LateParticipant(TransactionParticipant):
    """Votes against the commit after all ordinary participants, and records what others see by then."""

    def __init__(self, on: StorageHarness, organization: Organization) -> None:
        super().__init__(on.transactions)
        self._on, self._organization = on, organization
        self.seen_organization: Organization | None = None

    def tpc_vote(self, transaction: object) -> None:
        with self._on.read_session() as storage:
            self.seen_organization = storage.organizations.find(self._organization.id)
        raise ZeroDivisionError("no")

    def sortKey(self) -> str:  # noqa: N802
        return "zzz:late"


class BackendContract(ContractBase):
    """A migrated backend needs no migration, responds, and can be closed and used again."""

    def test_backend_a_migrated_backend_has_nothing_to_migrate(self, on: StorageHarness) -> None:
        assert list(on.backend.migrate(dry_run=True)) == []
        assert list(on.backend.migrate()) == []

    def test_backend_check_is_content(self, on: StorageHarness) -> None:
        on.backend.check()

    def test_backend_a_closed_backend_can_be_used_again(self, on: StorageHarness) -> None:
        organization = on.organization
        on.backend.close()
        assert on.read.organizations.find(organization.id) == organization
        on.backend.close()
        on.store(make.project(organization))

    def test_backend_what_is_committed_is_there_when_it_is_opened_once_more(
        self, on: StorageHarness, request: pytest.FixtureRequest
    ) -> None:
        """By another backend object, without shared state; what that one writes is there for a third."""
        if not on.backend.is_durable:
            pytest.skip("it says that it is not durable")
        stored = [on.organization, on.human_user, on.application, on.session, on.family]
        event, once, added = make.audit_event(), make.record(on.human_user), make.organization()
        on.store(once)
        on.write.audit.append(event)
        on.backend.close()
        reopen: Callable[[], Backend] = request.getfixturevalue("reopen")
        second, third = StorageHarness(reopen(), request), StorageHarness(reopen(), request)
        try:
            second.backend.check()
            assert list(second.backend.migrate()) == []
            assert second.unchanged(*stored, once) == [*stored, once]
            assert second.read.audit.find(event.id) is not None
            second.store(added)
            second.backend.close()
            assert third.read.organizations.find(added.id) == added
        finally:
            second.backend.close()
            third.backend.close()

    def test_backend_it_has_a_name(self, on: StorageHarness) -> None:
        assert on.backend.name.isidentifier()


class TransactionContract(ContractBase):
    """A transaction sees its own changes; others see all of them after the commit, and none after an abort."""

    def test_transactions_own_changes_are_seen(self, on: StorageHarness) -> None:
        organization = make.organization()
        on.storage.organizations.add(organization)
        assert on.storage.organizations.find(organization.id) == organization
        assert organization in on.storage.organizations.page().items
        changed = replace(organization, name="Changed", version=2)
        on.storage.organizations.update(changed)
        assert on.storage.organizations.find(organization.id) == changed
        on.storage.organizations.delete(organization.id)
        assert on.storage.organizations.find(organization.id) is None

    def test_transactions_changes_of_others_are_seen_after_the_commit_alone(self, on: StorageHarness) -> None:
        organization = on.organization
        changed, added = replace(organization, name="Changed", version=2), make.organization()
        with on.transaction() as storage:
            storage.organizations.update(changed)
            storage.organizations.add(added)
            with on.read_session() as other_session:
                assert other_session.organizations.find(organization.id) == organization, "not committed yet"
                assert other_session.organizations.find(added.id) is None, "not committed yet"
        with on.read_session() as other_session:
            assert other_session.organizations.find(organization.id) == changed
            assert other_session.organizations.find(added.id) == added

    def test_transactions_a_snapshot_stays_as_it_began_and_keeps_nobody_from_writing(self, on: StorageHarness) -> None:
        organization = on.organization
        people = [make.human_user(organization, user_name=f"user-{number}") for number in range(6)]
        on.store(*people[:5])
        changed = replace(organization, name="Changed", version=2)
        first, rest = PageRequest(limit=2), PageRequest(limit=10)
        with on.backend.snapshot() as storage:
            begun = storage.users.page(organization.id, UserKind.HUMAN, first)
            with on.transaction() as other_session:
                other_session.organizations.update(changed)
                other_session.users.add(people[5])
                other_session.users.delete(people[4].id)
            after = storage.users.page(organization.id, UserKind.HUMAN, replace(rest, cursor=begun.next_cursor))
            assert [*begun, *after] == people[:5]
            assert storage.organizations.find(organization.id) == organization
        with on.backend.snapshot() as storage, on.backend.read_session() as reading:
            assert storage.organizations.find(organization.id) == changed
            assert [*storage.users.page(organization.id, UserKind.HUMAN, rest)] == [*people[:4], people[5]]
            assert reading.organizations.find(organization.id) == changed

    def test_transactions_a_snapshot_begins_when_it_is_opened(self, on: StorageHarness) -> None:
        organization = on.organization
        with on.backend.snapshot() as storage:
            with on.transaction() as other_session:
                other_session.organizations.delete(organization.id)
            assert storage.organizations.find(organization.id) == organization

    def test_transactions_a_reading_after_a_snapshot_sees_everything_again(self, on: StorageHarness) -> None:
        organization = on.organization
        with on.backend.snapshot() as storage:
            assert storage.organizations.find(organization.id) == organization
        with on.transaction() as other_session:
            other_session.organizations.delete(organization.id)
        with on.backend.read_session() as storage:
            assert storage.organizations.find(organization.id) is None

    def test_transactions_writing_through_a_snapshot_is_an_error(self, on: StorageHarness) -> None:
        with on.backend.snapshot() as storage, pytest.raises(StorageError):
            storage.organizations.add(make.organization())

    def test_transactions_an_abort_undoes_everything(self, on: StorageHarness) -> None:
        organization, human_user, application, family = on.organization, on.human_user, on.application, on.family
        code, refresh = make.authorization_code(family), make.refresh_token(family)
        access, key = make.access_token(human_user, application, family), make.signing_key(1)
        session, pending, once = make.session(human_user), make.pending_authorization(), make.record(human_user)
        on.store(code, refresh, access, key, session, pending, once)
        successor, added, event = make.refresh_token(family), make.organization(), make.audit_event()
        added_record, message = make.record(), make.outbox_message()
        with on.aborted_transaction() as storage:
            storage.organizations.add(added)
            storage.users.update(replace(human_user, active=False, version=2))
            storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
            storage.tokens.rotate_refresh_token(refresh.digest, successor, NOW)
            storage.tokens.revoke_access_token(access.digest, NOW)
            storage.tokens.revoke_family(family.id, NOW)
            storage.records.add(added_record)
            storage.audit.append(event)
            storage.signing_keys.delete(key.id)
            storage.sessions.end(session.id, NOW)
            storage.authorization_requests.finish(pending.id, NOW, version=1)
            storage.records.consume(once.plugin, once.kind, once.key, NOW)
            storage.attempts.reserve("ada", reserved_at=NOW)
            storage.outbox.add(message)
            storage.applications.delete(application.id)
            storage.organizations.delete(organization.id)
        stored = [organization, human_user, application, family, code, refresh, access, key, session, pending, once]
        assert on.unchanged(*stored, added, successor, added_record, message) == stored
        assert on.read.audit.find(event.id) is None
        with on.transaction() as storage:
            assert storage.attempts.reserve("ada", reserved_at=NOW).failures == 1
            storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
            assert storage.records.add(added_record) is None

    def test_transactions_a_last_change_is_not_the_first_one_s_commit(self, on: StorageHarness) -> None:
        """A change marked as last was not the first one: an abort undoes both."""
        code, refresh = make.authorization_code(on.family), make.refresh_token(on.family)
        access, added = make.access_token(on.service_user), make.organization()
        added_record = make.record()
        on.store(code, refresh)
        for change in _last_changes(on, access, refresh, code, added_record):
            with on.aborted_transaction() as storage:
                storage.organizations.add(added)
                change(storage)
        assert on.unchanged(added, added_record, code, refresh, access) == [code, refresh]

    def test_transactions_after_a_last_change_there_can_be_others(self, on: StorageHarness) -> None:
        access, added = make.access_token(on.service_user), make.organization()
        with on.transaction() as storage:
            storage.tokens.add_access_token(access, is_last_write=True)
            storage.organizations.add(added)
        assert on.unchanged(access, added) == [access, added]

    def test_transactions_a_refusal_by_another_participant_undoes_everything(self, on: StorageHarness) -> None:
        organization = make.organization()
        on.transactions.begin()
        on.transactions.get().join(RefusingParticipant(on.transactions))
        on.backend.join_transaction(on.transactions).organizations.add(organization)
        with pytest.raises(ZeroDivisionError):
            on.transactions.commit()
        on.transactions.abort()
        assert on.read.organizations.find(organization.id) is None

    def test_transactions_refusal_by_another_participant_undoes_last_changes(self, on: StorageHarness) -> None:
        """They may commit early only if no other participant votes, whether it joined before or after."""
        refresh, access = make.refresh_token(on.family), make.access_token(on.service_user)
        used, added_record = make.record(on.human_user), make.record()
        code = make.authorization_code(on.family)
        on.store(refresh, code)
        changes = _last_changes(on, access, refresh, code, added_record)
        changes.append(
            lambda storage: storage.tokens.add_access_token(access, consumed_record=used, is_last_write=True)
        )
        for change in changes:
            for joins_first in (True, False):
                on.transactions.begin()
                refusing_participant = RefusingParticipant(on.transactions)
                if joins_first:
                    on.transactions.get().join(refusing_participant)
                storage = on.backend.join_transaction(on.transactions)
                if not joins_first:
                    on.transactions.get().join(refusing_participant)
                change(storage)
                with pytest.raises(ZeroDivisionError):
                    on.transactions.commit()
                on.transactions.abort()
        assert on.unchanged(refresh, code) == [refresh, code]
        assert on.unchanged(access, used, added_record) == []

    def test_transactions_nothing_is_seen_before_all_others_have_voted(self, on: StorageHarness) -> None:
        """A backend that commits in its vote votes last, so that any other participant can still refuse."""
        organization, changed = make.organization(), replace(on.organization, name="Changed", version=2)
        on.transactions.begin()
        late = LateParticipant(on, organization)
        on.transactions.get().join(late)
        storage = on.backend.join_transaction(on.transactions)
        storage.organizations.add(organization)
        storage.organizations.update(changed)
        with pytest.raises(ZeroDivisionError):
            on.transactions.commit()
        on.transactions.abort()
        assert late.seen_organization is None
        assert on.read.organizations.find(organization.id) is None
        assert on.read.organizations.find(changed.id) == on.organization
        # The next writer does not wait for the refused transaction.
        on.store(organization)

    def test_transactions_the_next_transaction_begins_anew(self, on: StorageHarness) -> None:
        organization = on.organization
        with pytest.raises(RowNotFound), on.transaction() as storage:
            _remove_and_fail(storage, organization)
        added = make.organization()
        with on.transaction() as storage:
            assert storage.organizations.find(organization.id) == organization
            storage.organizations.add(added)
        assert on.read.organizations.find(organization.id) == organization
        assert on.read.organizations.find(added.id) == added

    def test_transactions_a_refusal_by_a_store_leaves_the_transaction_usable(self, on: StorageHarness) -> None:
        organization = make.organization(primary_domain=on.organization.primary_domain)
        family = make.token_family(on.human_user, on.application)
        code = make.authorization_code(family)
        later = make.signing_key(generation=8)
        other = make.organization()
        with on.transaction() as storage:
            storage.tokens.add_family(family)
            storage.tokens.add_authorization_code(code)
            storage.signing_keys.add(make.signing_key(generation=7))
            storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
            with pytest.raises(DuplicateValue):
                storage.organizations.add(organization)
            with pytest.raises(StaleRow):
                storage.organizations.update(on.organization)
            with pytest.raises(RowNotFound):
                storage.projects.add(make.project(make.organization()))
            with pytest.raises(DuplicateValue):
                storage.signing_keys.add(make.signing_key(generation=7))
            with pytest.raises(AlreadyUsed):
                storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
            storage.signing_keys.add(later)
            storage.organizations.add(other)
        assert on.read.organizations.find(organization.id) is None
        assert on.read.organizations.find(other.id) == other
        assert later in on.read.signing_keys.list_all()

    def test_transactions_writing_twice_in_a_transaction_is_writing_to_one_state(self, on: StorageHarness) -> None:
        first, second = make.organization(), make.organization()
        on.transactions.begin()
        on.backend.join_transaction(on.transactions).organizations.add(first)
        storage = on.backend.join_transaction(on.transactions)
        assert storage.organizations.find(first.id) == first
        storage.organizations.add(second)
        on.transactions.commit()
        with on.read_session() as other_session:
            assert other_session.organizations.find(first.id) == first
            assert other_session.organizations.find(second.id) == second

    def test_transactions_a_transaction_without_changes_leaves_all_as_it_was(self, on: StorageHarness) -> None:
        assert on.write.organizations.find(on.organization.id) == on.organization
        with on.transaction():
            pass
        assert on.read.organizations.find(on.organization.id) == on.organization

    def test_transactions_separate_one_commits_at_its_end(self, on: StorageHarness) -> None:
        added, record = make.organization(), make.record()
        with on.backend.separate_transaction(on.transactions) as storage:
            storage.organizations.add(added)
            assert storage.records.add(record) is None
        with pytest.raises(RowNotFound), on.backend.separate_transaction(on.transactions) as storage:
            _remove_and_fail(storage, added)
        with on.backend.separate_transaction(on.transactions) as storage:
            assert storage.records.add(record, is_last_write=True) == record
        assert on.unchanged(added, record) == [added, record]

    def test_transactions_writing_through_a_reading_storage_is_an_error(self, on: StorageHarness) -> None:
        organization, family = on.organization, on.family
        added = make.organization()
        with pytest.raises(Exception), on.read_session() as storage:  # noqa: B017, PT011 - any kind will do
            storage.organizations.add(added)
        with pytest.raises(Exception), on.read_session() as storage:  # noqa: B017, PT011
            storage.organizations.update(replace(organization, name="Changed", version=2))
        with pytest.raises(Exception), on.read_session() as storage:  # noqa: B017, PT011
            storage.tokens.revoke_family(family.id, NOW)
        assert on.read.organizations.find(added.id) is None
        assert on.read.organizations.find(organization.id) == organization
        assert on.find_stored(family) == family


def _last_changes(
    on: StorageHarness, access: AccessToken, refresh: RefreshToken, code: AuthorizationCode, record: Record
) -> list[Callable[[Storage], object]]:
    """Changes that may be committed at once."""
    return [
        lambda storage: storage.tokens.add_access_token(access, is_last_write=True),
        lambda storage: storage.tokens.rotate_refresh_token(
            refresh.digest, make.refresh_token(on.family), NOW, is_last_write=True
        ),
        lambda storage: storage.tokens.redeem_authorization_code(
            code.digest, client_id=code.client_id, redeemed_at=NOW, is_last_write=True
        ),
        lambda storage: storage.records.add(record, is_last_write=True),
    ]


def _remove_and_fail(storage: Storage, organization: Organization) -> None:
    storage.organizations.delete(organization.id)
    storage.organizations.delete(organization.id)
