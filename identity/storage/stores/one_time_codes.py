"""One-time codes."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.one_time_codes import CodeKind, OneTimeCode


class OneTimeCodeStore(ABC):
    """Known by digest alone (unique: Duplicate("digest")); they go with their user."""

    @abstractmethod
    def add(self, code: OneTimeCode) -> None:
        """Store a new code. Raises Missing if its user does not exist."""

    @abstractmethod
    def find(self, digest: bytes) -> OneTimeCode | None:
        """The code, used and expired ones included; looking uses nothing up."""

    @abstractmethod
    def consume(self, digest: bytes, kind: CodeKind, at: datetime) -> OneTimeCode:
        """Use the code by one conditional write: of racing callers exactly one gets it; returns it as it was.

        Raises AlreadyUsed if it was used before, Missing if there is none of this kind or it has expired. The
        transaction can go on.
        """

    @abstractmethod
    def drop(self, user_id: str, kind: CodeKind) -> int:
        """Delete the user's codes of this kind; returns how many went."""

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` codes that expired before; returns how many went."""
