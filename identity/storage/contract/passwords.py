"""What is demanded of the password store."""

from dataclasses import replace
from datetime import timedelta

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_human_user, a_password


class PasswordContract(ContractBase):
    """A user has one password hash at most."""

    def test_passwords_set_replaces_the_one_before(self, on: On) -> None:
        first = a_password(on.human_user, must_change=True)
        second = replace(
            first, hash="$argon2id$new", changed_at=first.changed_at + timedelta(seconds=1), must_change=False
        )
        on.save(first)
        on.save(second)
        assert on.read.users.find_password(on.human_user.id) == second

    def test_passwords_is_still(self, on: On) -> None:
        human_user = on.human_user
        without = a_human_user(on.organization)
        password = a_password(human_user)
        on.save(without, password)
        with on.writing() as storage:
            assert storage.users.is_password_still(human_user.id, password.hash)
            assert not storage.users.is_password_still(human_user.id, "$argon2id$other")
            assert not storage.users.is_password_still(without.id, password.hash)
        with on.writing() as storage:
            storage.users.set_password(replace(password, hash="$argon2id$new"))
            assert not storage.users.is_password_still(human_user.id, password.hash)

    def test_passwords_must_change(self, on: On) -> None:
        free, without = a_human_user(on.organization), a_human_user(on.organization)
        on.save(free, without, a_password(on.human_user, must_change=True), a_password(free))
        found = on.read.users.must_change_password([on.human_user.id, free.id, without.id])
        assert found == {on.human_user.id: True, free.id: False}
        assert on.read.users.must_change_password({free.id}) == {free.id: False}
        assert on.read.users.must_change_password(()) == {}
