"""Webhooks: receivers of audit events, and the deliveries to them."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import ClassVar

from identity.domain.audit import AuditEvent
from identity.domain.entity import entity, internal, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error
from identity.domain.search import search_text
from identity.domain.validators import is_https_url

_LONGEST_URL = 2000
_MOST_PATTERNS = 50
_PATTERN = re.compile(r"[a-z_.*]{1,100}\Z")


def webhook_url_error(text: str) -> str | None:
    """A receiver: https, without credentials and fragment; http on this machine only."""
    if is_https_url(text, max_length=_LONGEST_URL, forbidden=" #@\\"):
        return None
    return gettext_lazy("Enter an address such as https://example.com/events, without a password.")


def event_pattern_error(pattern: str) -> str | None:
    """A name of an event, or a pattern that fits at least one: ``user.created``, ``user.*``, ``*.removed``."""
    if _PATTERN.match(pattern) and any(fnmatchcase(name, pattern) for name in AuditEvent.NAMES):
        return None
    return gettext_lazy("No event has this name. Enter names such as user.created, or patterns such as user.*")


def _event_patterns_error(patterns: tuple[str, ...]) -> str | None:
    if not patterns:
        return gettext_lazy("Name an event or a pattern; * stands for all events.")
    if len(patterns) > _MOST_PATTERNS:
        return gettext_lazy("Use at most {number} lines.", number=_MOST_PATTERNS)
    return None


@entity
class Webhook:
    """A receiver of audit events: those of its organization, or without one those of the whole instance. ``events``
    are names or patterns. ``secret`` is sealed: the signing secrets, newest first; it is never displayed again. Until
    ``previous_secret_expires_at`` messages are also signed with the one before."""

    #: Recorded when a test message is requested; only the tested webhook gets it.
    TEST_EVENT: ClassVar[str] = "webhook.tested"

    id: str = read_only()
    name: str = mutable(validator=display_name_error)
    url: str = mutable(validator=webhook_url_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    organization_id: str | None = read_only(default=None)
    events: tuple[str, ...] = mutable(
        default=("*",), validator=_event_patterns_error, item_validator=event_pattern_error
    )
    secret: bytes = internal(default=b"")
    secret_changed_at: datetime | None = read_only(default=None)
    previous_secret_expires_at: datetime | None = read_only(default=None)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name)

    @property
    def is_usable(self) -> bool:
        """True if it is active and messages can be signed; an imported one has no secret."""
        return self.active and bool(self.secret)

    def matches(self, event: AuditEvent) -> bool:
        """True if it gets a message about the event."""
        if event.event == self.TEST_EVENT:
            return event.object_id == self.id
        return self.organization_id in (None, event.organization_id) and any(
            fnmatchcase(event.event, pattern) for pattern in self.events
        )


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    #: Given up; it can be sent again.
    FAILED = "failed"


class DeliveryProblem(StrEnum):
    """Why the last attempt failed without an HTTP status, or what its status means."""

    #: No connection: unknown name, closed port, or an address that requests may not go to.
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    CERTIFICATE = "certificate"
    #: A status other than 2xx.
    STATUS = "status"
    #: The status 410: the webhook was deactivated.
    DISCONTINUED = "discontinued"
    #: The audit event or the signing secret is not there any more.
    NOT_SENDABLE = "not_sendable"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """A message about an event to a webhook, and the result of its last attempt. The message itself is made from the
    audit trail for each attempt. ``attempts`` only grows. ``answer`` is the beginning of the response as text."""

    #: Characters of a response that are stored.
    MAX_ANSWER_LENGTH: ClassVar[int] = 1024

    id: str
    webhook_id: str
    event_id: str
    event: str
    created_at: datetime
    next_at: datetime
    expires_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    attempted_at: datetime | None = None
    duration_ms: int | None = None
    status: int | None = None
    problem: DeliveryProblem | None = None
    answer: str = ""

    def state_at(self, now: datetime) -> DeliveryState:
        """The state; a delivery whose time has passed while its webhook was deactivated has failed."""
        if self.state is DeliveryState.PENDING and self.expires_at <= now:
            return DeliveryState.FAILED
        return self.state
