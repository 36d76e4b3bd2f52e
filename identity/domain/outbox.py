"""Messages to send after a commit: mails, webhooks and other deliveries."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A pending message. ``sealed`` is its encrypted content, which may contain a one-time link. ``kind`` names the
    delivery. It is attempted at ``next_at`` and dropped at ``expires_at``. Organizations take turns; ``bulk``
    messages, which no user waits for, come last. ``last_answer`` is why the last attempt failed. For the log,
    ``purpose`` says what the message is, ``user_id`` for whom, and ``language`` in which language."""

    id: str
    kind: str
    sealed: bytes
    created_at: datetime
    next_at: datetime
    expires_at: datetime
    attempts: int = 0
    organization_id: str | None = None
    bulk: bool = False
    last_answer: str | None = None
    purpose: str | None = None
    user_id: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxBacklog:
    """Messages that could not be sent: how many are retried, how many were dropped, and since when they wait."""

    failing: int = 0
    abandoned: int = 0
    oldest_at: datetime | None = None
