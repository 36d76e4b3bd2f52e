"""Password hashes of human users."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from identity.domain.users import PasswordHash


class PasswordStore(ABC):
    """At most one row per user."""

    @abstractmethod
    def find(self, user_id: str) -> PasswordHash | None:
        """The user's password hash."""

    @abstractmethod
    def set(self, password: PasswordHash) -> None:
        """Store or replace the user's password hash. Raises Missing if there is no such user."""

    @abstractmethod
    def is_still(self, user_id: str, hash: str) -> bool:  # noqa: A002
        """True if this is the user's hash, by one conditional write: until the transaction ends nobody replaces it."""

    @abstractmethod
    def must_change(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        """Which of these users must change their password, in one query; users without a password are left out."""
