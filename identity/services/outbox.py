"""The outbox: messages sealed and stored in the transaction that causes them, sent after its commit."""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from identity.crypto.secrets import new_id
from identity.domain.audit import AuditEvent
from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.services.base import Service
from identity.storage.errors import RowNotFound

if TYPE_CHECKING:
    from identity.services.container import Services

log = logging.getLogger(__name__)

#: Batch size. A message that arrives meanwhile and is not bulk waits for at most one batch.
_AT_ONCE = 10
#: Delays are shortened by up to a fifth, so that messages that failed together are not retried together.
_JITTER = 0.2


class DeliveryFailed(Exception):
    """The receiver did not accept a message this time. The text is logged: put no address and no secret in it."""


class DeliveryRejected(Exception):
    """The receiver will never accept this message; it is not retried."""


class Delivery(ABC):
    """A delivery channel and its retry policy. One object per process; one thread sends with it. Channels do not wait
    for each other: each has its own messages, thread and lease, so that one node at a time sends."""

    #: Name of the channel in the database, in logs and for operators; not secret.
    kind: str
    #: For channels that an operator set up for events: the receiver, without secrets, and the events it gets.
    receiver: str = ""
    event_patterns: tuple[str, ...] = ()
    #: Older messages are dropped.
    message_lifetime: timedelta = timedelta(days=7)
    #: Delay after the first failure. Each further failure doubles it …
    initial_delay: timedelta = timedelta(seconds=10)
    #: … up to this.
    max_delay: timedelta = timedelta(days=1)
    #: Must exceed the longest time one message takes.
    lease_duration: timedelta = timedelta(minutes=1)

    #: How many messages are sent at a time. With more than one, a slow receiver delays only its own.
    max_concurrent: int = 1

    @property
    def is_enabled(self) -> bool:
        """False while this process sends nothing on this channel; queued messages stay."""
        return True

    def event_content(self, event: AuditEvent) -> bytes | None:
        """The message to send about an audit event; None for no message. Called in the transaction that writes the
        event. If it raises, the exception is logged and nothing is sent."""
        return None

    def queue_event(self, event: AuditEvent, services: "Services") -> None:
        """Queue the messages about an event, in the transaction that writes it: by default the one of
        ``event_content``. Override it for several, or for those that need a look at the storage. If it raises, the
        transaction fails."""
        try:
            content = self.event_content(event)
        except Exception:
            log.exception("%s: no message could be made about %s", self.kind, event.event)
            return
        if content is not None:
            services.outbox.queue(self.kind, content, organization_id=event.organization_id)

    def prepare(self, content: bytes, services: "Services") -> bytes | Sequence[tuple[bytes, str | None]] | None:
        """What to send for a queued content, made before each attempt on a read connection: what has to be fresh, such
        as a signature. By default the content itself; None drops the message. A message that stands for many returns
        contents that replace it in the queue, each with its organization: some of them, and one that stands for the
        rest."""
        return content

    @abstractmethod
    def send(self, content: bytes) -> None:
        """Send a message. It may arrive twice if the process ended before it recorded the first delivery. Called while
        no transaction is open. DeliveryRejected discards the message; after any other exception it is retried later.
        Only the text of DeliveryFailed is logged; of other exceptions, only the class name."""

    def record(self, services: "Services", message: OutboxMessage, given_up: str = "") -> None:  # noqa: B027
        """Record what became of a message, in a transaction of its own: it was sent, refused, or given up for the
        reason. Called by the thread that called ``send``; if it raises, the exception is logged. Does nothing unless
        overridden."""

    def record_failure(self, services: "Services", message: OutboxMessage, reason: str) -> None:  # noqa: B027
        """Record that an attempt failed, in the transaction that schedules the next one. Does nothing unless
        overridden."""

    def describe_failure(self, problem: Exception) -> str:
        """Why an attempt failed, for the log and for managers: no address and no secret."""
        return str(problem) if isinstance(problem, DeliveryFailed) else type(problem).__name__

    def retry_delay(self, attempts: int) -> timedelta:
        """Delay before the next attempt after this many earlier failures; in whole seconds."""
        longest = min(self.initial_delay * 2.0 ** min(attempts, 30), self.max_delay)
        share = random.uniform(1 - _JITTER, 1)  # noqa: S311 - nothing depends on its being unpredictable
        return timedelta(seconds=round(longest.total_seconds() * share))


@dataclass(eq=False, repr=False)
class OutboxService(Service):
    """Queues messages, and gives senders what they need to deliver them."""

    _deliveries: Mapping[str, Delivery]
    _on_queue: Callable[[str], None]

    def queue(
        self,
        kind: str,
        content: bytes,
        *,
        lifetime: timedelta | None = None,
        organization_id: str | None = None,
        bulk: bool = False,
        purpose: str | None = None,
        user_id: str | None = None,
        language: str | None = None,
    ) -> None:
        """Send the content after this transaction commits. ``lifetime`` overrides the channel's ``message_lifetime``.
        Organizations take turns, and ``bulk`` messages come after all others. ``purpose``, ``user_id`` and ``language``
        are for the log and not secret. Raises ValueError if no delivery has this kind."""
        delivery = self._deliveries.get(kind)
        if delivery is None:
            raise ValueError(f"nobody sends messages of the kind {kind}")
        message_id = new_id()
        self._storage.outbox.add(
            OutboxMessage(
                id=message_id,
                kind=kind,
                sealed=self._sealer.seal(content, associated_data=sealing_context(message_id)),
                created_at=self._now,
                next_at=self._now,
                expires_at=self._now + (lifetime or delivery.message_lifetime),
                organization_id=organization_id,
                bulk=bulk,
                purpose=purpose,
                user_id=user_id,
                language=language,
            )
        )
        self._on_queue(kind)

    def queue_event(self, event: AuditEvent, services: "Services") -> None:
        """Queue the messages of each delivery about an event written in this transaction."""
        for delivery in self._deliveries.values():
            if delivery.is_enabled:
                delivery.queue_event(event, services)

    def list_due(self, kind: str) -> tuple[OutboxMessage, ...]:
        """The next batch of messages that are due."""
        return self._storage.outbox.list_due(kind, self._now, _AT_ONCE)

    def next_at(self, kind: str) -> datetime | None:
        """When the next message is due, possibly in the past; None if the queue is empty."""
        first = self._storage.outbox.list_pending(kind, self._now, 1)
        return first[0].next_at if first else None

    def backlog(self, kind: str) -> OutboxBacklog:
        """Counts of messages that failed so far or were dropped."""
        return self._storage.outbox.get_backlog(kind, self._now)

    def unseal(self, message: OutboxMessage) -> bytes:
        """The content of the message. Raises UnsealingError."""
        return self._sealer.open(message.sealed, associated_data=sealing_context(message.id))

    def postpone(self, message: OutboxMessage, answer: str | None = None) -> bool:
        """Schedule a retry, and store why this attempt failed; False if the message would have expired by then and is
        dropped."""
        next_at = self._now + self._deliveries[message.kind].retry_delay(message.attempts)
        with suppress(RowNotFound):
            self._storage.outbox.postpone(message.id, next_at, answer)
        return next_at < message.expires_at

    def retry(self, message: OutboxMessage, *, until: datetime) -> None:
        """Try it now, and give it up at ``until``. Does nothing if it has been sent meanwhile."""
        with suppress(RowNotFound):
            self._storage.outbox.reschedule(message.id, self._now, until)
        self._on_queue(message.kind)

    def replace(self, message: OutboxMessage, contents: Iterable[tuple[bytes, str | None]]) -> None:
        """Queue these contents, each with its organization, instead of the message. Does nothing if it is gone: then
        another process has replaced it."""
        with suppress(RowNotFound):
            self._storage.outbox.delete(message.id)
            for content, organization_id in contents:
                self.queue(message.kind, content, organization_id=organization_id)

    def remove(self, message: OutboxMessage) -> None:
        """Delete the message if it still exists."""
        with suppress(RowNotFound):
            self._storage.outbox.delete(message.id)


def sealing_context(message_id: str) -> str:
    """Sealing context of this message's content."""
    return f"outgoing message {message_id}"
