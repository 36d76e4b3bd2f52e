"""Contract of passwords."""

from dataclasses import replace
from datetime import timedelta

from identity.storage.contract.factories import make_human_user, make_password_hash
from identity.storage.contract.harness import ContractBase, StorageHarness


class PasswordContract(ContractBase):
    """A user has at most one password hash."""

    def test_passwords_set_replaces_the_one_before(self, on: StorageHarness) -> None:
        first = make_password_hash(on.human_user, must_change=True)
        second = replace(
            first, hash="$argon2id$new", changed_at=first.changed_at + timedelta(seconds=1), must_change=False
        )
        on.store(first)
        on.store(second)
        assert on.read.users.find_password(on.human_user.id) == second

    def test_passwords_is_still(self, on: StorageHarness) -> None:
        human_user = on.human_user
        without = make_human_user(on.organization)
        password = make_password_hash(human_user)
        on.store(without, password)
        with on.transaction() as storage:
            assert storage.users.lock_password_hash(human_user.id, password.hash)
            assert not storage.users.lock_password_hash(human_user.id, "$argon2id$other")
            assert not storage.users.lock_password_hash(without.id, password.hash)
        with on.transaction() as storage:
            storage.users.set_password(replace(password, hash="$argon2id$new"))
            assert not storage.users.lock_password_hash(human_user.id, password.hash)

    def test_passwords_must_change(self, on: StorageHarness) -> None:
        free, without = make_human_user(on.organization), make_human_user(on.organization)
        on.store(free, without, make_password_hash(on.human_user, must_change=True), make_password_hash(free))
        found = on.read.users.list_must_change_password([on.human_user.id, free.id, without.id])
        assert found == {on.human_user.id: True, free.id: False}
        assert on.read.users.list_must_change_password({free.id}) == {free.id: False}
        assert on.read.users.list_must_change_password(()) == {}
