"""Access tokens, refresh tokens and the family that ties those of one authorization together."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.applications import Client
from identity.domain.users import Subject, TokenFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFamily:
    """All that came from one authorization of one person for one client.

    A token is live only while its family is: revoking the family also kills members that are being written at
    that very moment.
    """

    id: str
    user_id: str
    client_id: str
    scope: tuple[str, ...]
    started_at: datetime
    ends_at: datetime
    session_id: str | None = None
    offline: bool = False
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token as it is recorded, known by the SHA-256 of what its bearer shows.

    ``user_id`` is None where a client acts for itself; ``key_id`` names the service user key that obtained it.
    """

    id: str
    digest: bytes
    format: TokenFormat
    subject: str
    client_id: str
    scope: tuple[str, ...]
    audience: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    user_id: str | None = None
    application_id: str | None = None
    key_id: str | None = None
    family_id: str | None = None
    session_id: str | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    """A refresh token as it is recorded; ``rotated_at`` is set once it has been exchanged for its successor."""

    id: str
    digest: bytes
    family_id: str
    user_id: str
    client_id: str
    scope: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    ends_at: datetime
    authenticated_at: datetime
    session_id: str | None = None
    nonce: str | None = None
    predecessor_id: str | None = None
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """An access token with all that decides whether it is live: its subject, its client, its family."""

    token: AccessToken
    subject: Subject | None
    client: Client | None
    family_revoked: bool = False

    def live(self, now: datetime) -> bool:
        """True if neither token, family, user, organization, application nor project stands against it."""
        token = self.token
        return (
            token.revoked_at is None
            and now < token.expires_at
            and not self.family_revoked
            and (token.user_id is None or (self.subject is not None and self.subject.active))
            and (token.application_id is None or (self.client is not None and self.client.active))
        )
