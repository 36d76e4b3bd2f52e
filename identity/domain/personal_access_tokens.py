"""Personal access tokens: what a program of a service user may use as it is."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.expirations import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalAccessToken:
    """A service user's token that its program shows as it is, without asking the token endpoint first.

    Its live form is an AccessToken that names it, and goes with it.
    """

    id: str
    user_id: str
    name: str
    scope: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = None

    def live(self, now: datetime) -> bool:
        """True until the expiration date; from that second on the token is refused."""
        return now < self.expires_at

    @property
    def for_ever(self) -> bool:
        """True if it never expires."""
        return self.expires_at == NEVER
