"""What is demanded of the password store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_human_user, a_password
from identity.storage.errors import Missing


class PasswordContract(ContractBase):
    """A user has one password hash at most."""

    def test_passwords_find_before_any_was_set(self, reading: Reading, human_user: HumanUser) -> None:
        with reading() as storage:
            assert storage.passwords.find(human_user.id) is None

    def test_passwords_find_returns_what_was_set(
        self, save: Save, reading: Reading, organization: Organization, human_user: HumanUser
    ) -> None:
        other = a_human_user(organization)
        password, other_password = a_password(human_user, must_change=True), a_password(other, hash="$argon2id$other")
        save(other, password, other_password)
        with reading() as storage:
            assert storage.passwords.find(human_user.id) == password
            assert storage.passwords.find(other.id) == other_password

    def test_passwords_set_replaces_the_one_before(self, save: Save, reading: Reading, human_user: HumanUser) -> None:
        first = a_password(human_user, must_change=True)
        second = replace(
            first, hash="$argon2id$new", changed_at=first.changed_at + timedelta(seconds=1), must_change=False
        )
        save(first)
        save(second)
        with reading() as storage:
            assert storage.passwords.find(human_user.id) == second

    def test_passwords_a_password_needs_its_user(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.passwords.set(a_password())

    def test_passwords_is_still(
        self, save: Save, in_transaction: InTransaction, organization: Organization, human_user: HumanUser
    ) -> None:
        without = a_human_user(organization)
        password = a_password(human_user)
        save(without, password)
        with in_transaction() as storage:
            assert storage.passwords.is_still(human_user.id, password.hash)
            assert not storage.passwords.is_still(human_user.id, "$argon2id$other")
            assert not storage.passwords.is_still(without.id, password.hash)
        with in_transaction() as storage:
            storage.passwords.set(replace(password, hash="$argon2id$new"))
            assert not storage.passwords.is_still(human_user.id, password.hash)

    def test_passwords_must_change(
        self, save: Save, reading: Reading, organization: Organization, human_user: HumanUser
    ) -> None:
        free, without = a_human_user(organization), a_human_user(organization)
        save(free, without, a_password(human_user, must_change=True), a_password(free))
        with reading() as storage:
            found = storage.passwords.must_change([human_user.id, free.id, without.id])
            assert found == {human_user.id: True, free.id: False}
            assert storage.passwords.must_change({free.id}) == {free.id: False}
            assert storage.passwords.must_change(()) == {}
