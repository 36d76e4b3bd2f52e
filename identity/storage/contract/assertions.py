"""What is demanded of the assertion store."""

from datetime import datetime, timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import ServiceUser
from identity.storage.contract.base import ContractBase, InTransaction, Save
from identity.storage.contract.factories import a_service_user, an_id
from identity.storage.errors import AlreadyUsed


class AssertionContract(ContractBase):
    """A jti is used once per user, compared to the letter."""

    def test_assertions_a_second_use_is_refused(
        self, in_transaction: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.assertions.use(service_user.id, "jti", now)
        with pytest.raises(AlreadyUsed), in_transaction() as storage:
            storage.assertions.use(service_user.id, "jti", now + timedelta(hours=1))

    def test_assertions_a_second_use_in_the_same_transaction_is_refused(
        self, in_aborted: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        with in_aborted() as storage:
            storage.assertions.use(service_user.id, "jti", now)
            with pytest.raises(AlreadyUsed):
                storage.assertions.use(service_user.id, "jti", now)

    def test_assertions_each_user_has_identifiers_of_its_own(
        self,
        save: Save,
        in_transaction: InTransaction,
        organization: Organization,
        service_user: ServiceUser,
        now: datetime,
    ) -> None:
        other = a_service_user(organization)
        save(other)
        with in_transaction() as storage:
            storage.assertions.use(service_user.id, "jti", now)
            storage.assertions.use(other.id, "jti", now)

    def test_assertions_identifiers_are_compared_to_the_letter(
        self, in_transaction: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        spellings = ("JTI", "jti", " jti", "jti ", "ｊti", "é", "e\u0301", "😀" * 256, "😀" * 255 + "😁")
        with in_transaction() as storage:
            for jti in spellings:
                storage.assertions.use(service_user.id, jti, now)
        for jti in spellings:
            with pytest.raises(AlreadyUsed), in_transaction() as storage:
                storage.assertions.use(service_user.id, jti, now)

    def test_assertions_purge_deletes_what_lies_before(
        self, in_transaction: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        second = timedelta(seconds=1)
        with in_transaction() as storage:
            storage.assertions.use(service_user.id, "before", now - second)
            storage.assertions.use(service_user.id, "at", now)
            storage.assertions.use(service_user.id, "after", now + second)
        with in_transaction() as storage:
            assert storage.assertions.purge(now, 10) == 1
        for kept in ("at", "after"):
            with pytest.raises(AlreadyUsed), in_transaction() as storage:
                storage.assertions.use(service_user.id, kept, now)

    def test_assertions_purge_deletes_no_more_than_the_limit(
        self, in_transaction: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        with in_transaction() as storage:
            for _ in range(5):
                storage.assertions.use(service_user.id, an_id(), now)
        later = now + timedelta(days=1)
        counts = []
        for _ in range(4):
            with in_transaction() as storage:
                counts.append(storage.assertions.purge(later, 2))
        assert counts == [2, 2, 1, 0]
