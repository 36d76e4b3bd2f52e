"""Secrets of service users."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject


class ServiceUserSecretStore(ABC):
    """Secrets belong to their service user and go with it. How many it may have is not decided here."""

    @abstractmethod
    def add(self, secret: ServiceUserSecret) -> None:
        """Store a secret beside the others. Raises Missing if there is no such user."""

    @abstractmethod
    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        """The service user with its organization and its secrets, oldest first, in one query.

        None if there is no such service user, or it has no secret.
        """

    @abstractmethod
    def of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        """The user's secrets, oldest first."""

    @abstractmethod
    def lock_of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        """The same, so that they can be counted: whoever else locks them waits for the end of the transaction."""

    @abstractmethod
    def remove(self, user_id: str, secret_id: str) -> None:
        """Delete one secret of the user with the access tokens that it obtained. Raises Missing."""

    @abstractmethod
    def touch(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the secrets with these ids forward, never back; unknown ids are ignored."""
