"""Authorization codes."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode


class AuthorizationCodeStore(ABC):
    """Known by digest alone."""

    @abstractmethod
    def add(self, code: AuthorizationCode) -> None:
        """Store a new code. Its family must exist (TokenStore.start_family)."""

    @abstractmethod
    def find(self, digest: bytes) -> PresentedCode | None:
        """The code, redeemed and expired ones included, with all that decides over it, in one query."""

    @abstractmethod
    def redeem(self, digest: bytes, *, client_id: str, at: datetime) -> AuthorizationCode:
        """Consume the code by one conditional write: of racing callers exactly one gets it.

        Raises AlreadyUsed (with the code as value) if this client redeemed it before, expired or not; else Missing if
        there is none, it has expired, or it is another client's: then it stays as it was. The transaction can go on.
        """

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` codes that expired before and are unused, or whose family has ended before."""
