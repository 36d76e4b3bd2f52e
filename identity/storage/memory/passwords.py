"""Password hashes, in memory."""

from collections.abc import Collection, Mapping

from identity.domain.users import PasswordHash
from identity.storage.memory.entities import MemoryStore
from identity.storage.stores.passwords import PasswordStore


class MemoryPasswordStore(MemoryStore, PasswordStore):
    """Rows by user id."""

    def find(self, user_id: str) -> PasswordHash | None:
        return self._tables.passwords.find(user_id)

    def set(self, password: PasswordHash) -> None:
        self._tables.passwords.replace(password.user_id, password)

    def is_still(self, user_id: str, hash: str) -> bool:  # noqa: A002
        password = self._tables.passwords.find(user_id)
        return password is not None and password.hash == hash

    def must_change(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        passwords = self._tables.passwords.find_many(user_ids)
        return {user_id: password.must_change for user_id, password in passwords.items()}
