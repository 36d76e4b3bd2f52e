"""One-time codes: links that prove that somebody reads the mail of an address, or was handed the link."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CodeKind(StrEnum):
    """What a code is good for."""

    PASSWORD_RESET = "password_reset"  # noqa: S105 - a kind
    EMAIL_CHANGE = "email_change"
    REGISTRATION = "registration"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeCode:
    """A code is known by its SHA-256 alone and used once.

    ``sealed`` holds what it carries along, encrypted under a master key; ``user_id`` is None where the account is only
    to be made.
    """

    digest: bytes
    kind: CodeKind
    created_at: datetime
    expires_at: datetime
    user_id: str | None = None
    sealed: bytes = b""
    used_at: datetime | None = None

    def live(self, now: datetime) -> bool:
        """True if it can still be used."""
        return self.used_at is None and now < self.expires_at
