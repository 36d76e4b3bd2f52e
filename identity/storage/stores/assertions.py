"""Which assertion identifiers (jti) have been used."""

from abc import ABC, abstractmethod
from datetime import datetime


class AssertionStore(ABC):
    """One row per user and jti; the unique index decides between racing nodes."""

    @abstractmethod
    def use(self, user_id: str, jti: str, until: datetime) -> None:
        """Record the use. Raises AlreadyUsed if it is recorded already, even if ``until`` has passed."""

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` rows whose ``until`` lies before; returns how many went."""
