"""Consents of people to applications."""

from abc import ABC, abstractmethod

from identity.domain.consents import Consent


class ConsentStore(ABC):
    """At most one row per user and application; it goes with either."""

    @abstractmethod
    def set(self, consent: Consent) -> None:
        """Store the consent, or replace the one before. Raises Missing if there is no such user or application."""

    @abstractmethod
    def find(self, user_id: str, application_id: str) -> Consent | None:
        """What the user has agreed to for the application."""

    @abstractmethod
    def of_user(self, user_id: str) -> tuple[Consent, ...]:
        """All consents of the user, last given first."""

    @abstractmethod
    def remove(self, user_id: str, application_id: str) -> None:
        """Forget the consent. Raises Missing."""
