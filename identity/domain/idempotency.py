"""What was answered to a request that carries an idempotency key."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """One idempotency key in use, known by digest, with the digest of what was asked under it.

    ``status`` (HTTP) and ``sealed``, the answer's encrypted body, are set once it is answered; 0 and empty before.
    """

    key: bytes
    request: bytes
    created_at: datetime
    expires_at: datetime
    status: int = 0
    sealed: bytes = b""
