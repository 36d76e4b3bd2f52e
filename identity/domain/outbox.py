"""What is to leave the service after a commit: mails, webhooks, and whatever else is sent to others."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A message that waits to be sent. ``sealed`` is its content, encrypted: it may hold a link that works once.

    ``kind`` says who sends it. It is tried at ``next_at``, and given up at ``expires_at`` if nobody took it until then.
    Organizations take turns; ``bulk`` is what nobody waits for, and comes after the rest.
    """

    id: str
    kind: str
    sealed: bytes
    created_at: datetime
    next_at: datetime
    expires_at: datetime
    attempts: int = 0
    organization_id: str | None = None
    bulk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxBacklog:
    """What could not be sent: how many messages are still tried, how many were given up, and since when they wait."""

    failing: int = 0
    abandoned: int = 0
    oldest_at: datetime | None = None
