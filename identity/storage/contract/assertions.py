"""What is demanded of the assertion store."""

from datetime import timedelta

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_service_user, an_id
from identity.storage.errors import AlreadyUsed


class AssertionContract(ContractBase):
    """A jti is used once per user, compared to the letter."""

    def test_assertions_a_second_use_is_refused(self, on: On) -> None:
        service_user = on.service_user
        with on.writing() as storage:
            storage.assertions.use(service_user.id, "jti", NOW)
        with pytest.raises(AlreadyUsed), on.writing() as storage:
            storage.assertions.use(service_user.id, "jti", NOW + timedelta(hours=1))

    def test_assertions_a_second_use_in_the_same_transaction_is_refused(self, on: On) -> None:
        service_user = on.service_user
        with on.aborted() as storage:
            storage.assertions.use(service_user.id, "jti", NOW)
            with pytest.raises(AlreadyUsed):
                storage.assertions.use(service_user.id, "jti", NOW)

    def test_assertions_each_user_has_identifiers_of_its_own(self, on: On) -> None:
        service_user = on.service_user
        other = a_service_user(on.organization)
        on.save(other)
        with on.writing() as storage:
            storage.assertions.use(service_user.id, "jti", NOW)
            storage.assertions.use(other.id, "jti", NOW)

    def test_assertions_identifiers_are_compared_to_the_letter(self, on: On) -> None:
        service_user = on.service_user
        spellings = ("JTI", "jti", " jti", "jti ", "ｊti", "é", "e\u0301", "😀" * 256, "😀" * 255 + "😁")
        with on.writing() as storage:
            for jti in spellings:
                storage.assertions.use(service_user.id, jti, NOW)
        for jti in spellings:
            with pytest.raises(AlreadyUsed), on.writing() as storage:
                storage.assertions.use(service_user.id, jti, NOW)

    def test_assertions_purge_deletes_what_lies_before(self, on: On) -> None:
        service_user = on.service_user
        second = timedelta(seconds=1)
        with on.writing() as storage:
            storage.assertions.use(service_user.id, "before", NOW - second)
            storage.assertions.use(service_user.id, "at", NOW)
            storage.assertions.use(service_user.id, "after", NOW + second)
        with on.writing() as storage:
            assert storage.assertions.purge(NOW, 10) == 1
        for kept in ("at", "after"):
            with pytest.raises(AlreadyUsed), on.writing() as storage:
                storage.assertions.use(service_user.id, kept, NOW)

    def test_assertions_purge_deletes_no_more_than_the_limit(self, on: On) -> None:
        service_user = on.service_user
        with on.writing() as storage:
            for _ in range(5):
                storage.assertions.use(service_user.id, an_id(), NOW)
        later = NOW + timedelta(days=1)
        counts = []
        for _ in range(4):
            with on.writing() as storage:
                counts.append(storage.assertions.purge(later, 2))
        assert counts == [2, 2, 1, 0]
