"""AuthorizationCode and its one-way life: issued, then redeemed once or expired."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.users import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCode:
    """What a code stands for; the code itself is known by its SHA-256 alone."""

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


@dataclass(frozen=True, slots=True)
class PresentedCode:
    """A code together with whom it is about, and whether family or session stand against it."""

    code: AuthorizationCode
    subject: Subject | None
    family_revoked: bool = False
    session_ended: bool = False
