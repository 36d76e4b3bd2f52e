"""What is demanded of the service user key store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import ServiceUser, Subject
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_key, a_service_user, an_access_token, an_id
from identity.storage.contract.paging import (
    Fetch,
    check_insertion,
    check_order,
    check_removal,
    check_ties,
    fetching,
)
from identity.storage.errors import Duplicate, Missing


class ServiceUserKeyContract(ContractBase):
    """A key is found together with its user alone, and with all that decides whether the user may act."""

    @pytest.fixture
    def key(self, save: Save, service_user: ServiceUser) -> ServiceUserKey:
        """A stored key of ``service_user``."""
        key = a_key(service_user)
        save(key)
        return key

    @pytest.fixture
    def stranger(self, save: Save, other_organization: Organization) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        user = a_service_user(other_organization)
        save(user)
        return user

    @pytest.fixture
    def keys(self, reading: Reading, service_user: ServiceUser) -> Fetch[ServiceUserKey]:
        """The list of the keys of ``service_user``."""
        return fetching(reading, lambda storage, request: storage.service_user_keys.page(service_user.id, request))

    def test_keys_find_returns_what_was_added(self, save: Save, reading: Reading, service_user: ServiceUser) -> None:
        key = a_key(
            service_user,
            public_key=bytes(range(256)),
            expires_at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
            last_used_at=datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC),
        )
        save(key)
        with reading() as storage:
            assert storage.service_user_keys.find(key.id, service_user.id) == key

    def test_keys_find_is_bound_to_the_user(
        self, reading: Reading, key: ServiceUserKey, service_user: ServiceUser, stranger: ServiceUser
    ) -> None:
        with reading() as storage:
            assert storage.service_user_keys.find(key.id, stranger.id) is None
            assert storage.service_user_keys.find(an_id(), service_user.id) is None

    def test_keys_a_taken_id_is_refused(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        key: ServiceUserKey,
        service_user: ServiceUser,
        stranger: ServiceUser,
    ) -> None:
        with pytest.raises(Duplicate), in_transaction() as storage:
            storage.service_user_keys.add(a_key(stranger, id=key.id))
        with reading() as storage:
            assert storage.service_user_keys.find(key.id, service_user.id) == key

    def test_keys_a_key_needs_its_user(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.service_user_keys.add(a_key())

    def test_keys_find_signer_returns_key_user_and_organization(
        self, reading: Reading, key: ServiceUserKey, service_user: ServiceUser, organization: Organization
    ) -> None:
        with reading() as storage:
            signer = storage.service_user_keys.find_signer(key.id, service_user.id)
        assert signer == (key, Subject(service_user, organization))

    def test_keys_find_signer_is_bound_to_the_user(
        self, reading: Reading, key: ServiceUserKey, service_user: ServiceUser, stranger: ServiceUser
    ) -> None:
        with reading() as storage:
            assert storage.service_user_keys.find_signer(key.id, stranger.id) is None
            assert storage.service_user_keys.find_signer(an_id(), service_user.id) is None
            assert storage.service_user_keys.find_signer(key.id, an_id()) is None

    def test_keys_find_signer_shows_what_is_deactivated(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        key: ServiceUserKey,
        service_user: ServiceUser,
        organization: Organization,
    ) -> None:
        idle = replace(service_user, active=False, version=2)
        closed = replace(organization, active=False, version=2)
        with in_transaction() as storage:
            storage.users.update(idle)
        with reading() as storage:
            signer = storage.service_user_keys.find_signer(key.id, service_user.id)
        assert signer == (key, Subject(idle, organization))
        with in_transaction() as storage:
            storage.organizations.update(closed)
        with reading() as storage:
            signer = storage.service_user_keys.find_signer(key.id, service_user.id)
        assert signer == (key, Subject(idle, closed))

    def test_keys_find_signer_of_a_removed_key(
        self, in_transaction: InTransaction, reading: Reading, key: ServiceUserKey, service_user: ServiceUser
    ) -> None:
        with in_transaction() as storage:
            storage.service_user_keys.remove(key.id)
        with reading() as storage:
            assert storage.service_user_keys.find_signer(key.id, service_user.id) is None

    def test_keys_touch(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        key: ServiceUserKey,
        service_user: ServiceUser,
        now: datetime,
    ) -> None:
        other = a_key(service_user)
        save(other)
        later = now + timedelta(hours=1)
        with in_transaction() as storage:
            storage.service_user_keys.touch(key.id, later)
        with reading() as storage:
            assert storage.service_user_keys.find(key.id, service_user.id) == replace(key, last_used_at=later)
            assert storage.service_user_keys.find(other.id, service_user.id) == other

    def test_keys_touch_of_a_key_that_is_gone(self, in_transaction: InTransaction, now: datetime) -> None:
        with in_transaction() as storage:
            storage.service_user_keys.touch(an_id(), now)

    def test_keys_remove(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        key: ServiceUserKey,
        service_user: ServiceUser,
    ) -> None:
        other = a_key(service_user)
        tokens = [an_access_token(service_user, key_id=one.id) for one in (key, other)]
        save(other, *tokens)
        with in_transaction() as storage:
            storage.service_user_keys.remove(key.id)
        with reading() as storage:
            assert storage.tokens.find_access(tokens[0].digest) is None
            assert storage.tokens.find_access(tokens[1].digest) == tokens[1]
            assert storage.service_user_keys.find(key.id, service_user.id) is None
            assert storage.service_user_keys.find(other.id, service_user.id) == other

    def test_keys_remove_of_an_unknown_key(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.service_user_keys.remove(an_id())

    def test_keys_page_is_newest_first(
        self,
        save: Save,
        keys: Fetch[ServiceUserKey],
        service_user: ServiceUser,
        stranger: ServiceUser,
        now: datetime,
    ) -> None:
        ordered = [a_key(service_user, created_at=now - timedelta(days=age)) for age in range(5)]
        save(*reversed(ordered), a_key(stranger))
        check_order(keys, ordered)

    def test_keys_page_in_the_same_second(
        self, save: Save, keys: Fetch[ServiceUserKey], service_user: ServiceUser
    ) -> None:
        rows = [a_key(service_user) for _ in range(5)]
        save(*rows)
        check_ties(keys, rows)

    def test_keys_page_while_rows_come(
        self, save: Save, keys: Fetch[ServiceUserKey], service_user: ServiceUser, now: datetime
    ) -> None:
        rows = [a_key(service_user, created_at=now - timedelta(seconds=age)) for age in range(7)]
        save(*rows[::2])
        check_insertion(keys, lambda: save(*rows[1::2]), rows[::2])

    def test_keys_page_while_rows_go(
        self,
        save: Save,
        in_transaction: InTransaction,
        keys: Fetch[ServiceUserKey],
        service_user: ServiceUser,
        now: datetime,
    ) -> None:
        rows = [a_key(service_user, created_at=now - timedelta(seconds=age)) for age in range(5)]
        save(*rows)

        def remove(key: ServiceUserKey) -> None:
            with in_transaction() as storage:
                storage.service_user_keys.remove(key.id)

        check_removal(keys, remove, rows)

    def test_keys_expiring_is_exact_to_the_second_and_soonest_first(
        self, save: Save, reading: Reading, service_user: ServiceUser, stranger: ServiceUser, now: datetime
    ) -> None:
        after, until, second = now + timedelta(days=1), now + timedelta(days=2), timedelta(seconds=1)
        at_after, at_until = a_key(service_user, expires_at=after), a_key(service_user, expires_at=until)
        first, last = a_key(stranger, expires_at=after + second), a_key(service_user, expires_at=until + second)
        save(last, at_until, first, at_after)
        with reading() as storage:
            assert storage.service_user_keys.expiring(after, until, 10) == (first, at_until)
            assert storage.service_user_keys.expiring(after, until, 1) == (first,), "never more than the limit"
            assert storage.service_user_keys.expiring(until + second, until + 2 * second, 10) == ()

    def test_keys_expiring_of_an_organization(
        self, save: Save, reading: Reading, service_user: ServiceUser, stranger: ServiceUser, now: datetime
    ) -> None:
        own, foreign = a_key(service_user), a_key(stranger)
        save(foreign, own)
        until = own.expires_at
        with reading() as storage:
            expiring = storage.service_user_keys.expiring
            assert expiring(now, until, 10, organization_id=service_user.organization_id) == (own,)
            assert expiring(now, until, 1, organization_id=stranger.organization_id) == (foreign,)
            assert expiring(now, until, 10, organization_id=an_id()) == ()
            assert expiring(now, until, 10, organization_id="") == ()

    def test_keys_summaries(
        self, save: Save, reading: Reading, service_user: ServiceUser, stranger: ServiceUser, now: datetime
    ) -> None:
        idle, day = a_service_user(id=an_id(), organization_id=service_user.organization_id), timedelta(days=1)
        save(
            idle,
            a_key(service_user, expires_at=now, last_used_at=now - day),
            a_key(service_user, expires_at=now + 2 * day, last_used_at=now - 2 * day),
            a_key(service_user, expires_at=now + day),
            a_key(stranger, expires_at=now - day),
            a_key(stranger, expires_at=now),
        )
        with reading() as storage:
            found = storage.service_user_keys.summaries([service_user.id, stranger.id, idle.id, an_id()], now)
            assert storage.service_user_keys.summaries((), now) == {}
        assert found == {
            service_user.id: KeySummary(live=2, next_expiry=now + day, last_used_at=now - day),
            stranger.id: KeySummary(live=0, next_expiry=now, last_used_at=None),
        }
