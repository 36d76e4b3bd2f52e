"""Authorization codes: issued, then redeemed once or expired."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.tokens import TokenFamily
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCode:
    """What a code stands for; only the SHA-256 of the code itself is stored. ``confirmation`` names the key with which
    its tokens must be requested."""

    digest: bytes
    family_id: str
    client_id: str
    user_id: str
    redirect_uri: str
    scope: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    authenticated_at: datetime
    session_id: str | None = None
    nonce: str | None = None
    code_challenge: str | None = None
    redeemed_at: datetime | None = None
    confirmation: str | None = None


@dataclass(frozen=True, slots=True)
class PresentedCode:
    """A code with its family and subject, and whether its session has ended."""

    code: AuthorizationCode
    family: TokenFamily
    subject: Subject | None
    session_ended: bool = False
