"""The outbox: messages kept sealed in the transaction of what they tell, and sent after its commit."""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from identity.crypto.sealing import Sealer
from identity.crypto.secrets import new_id
from identity.domain.audit import AuditEvent
from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.services.base import Service, TransactionState
from identity.storage.errors import RowNotFound

log = logging.getLogger(__name__)

#: As much is taken up at a time: what comes meanwhile and is not bulk waits for no more than that.
_AT_ONCE = 10
#: Delays are up to a fifth shorter than they could be: what failed together is not tried again together.
_JITTER = 0.2


class DeliveryFailed(Exception):
    """The other side did not take a message this time. The text is logged: it holds no address and no secret."""


class DeliveryRejected(Exception):
    """The other side will never take this message, however often it is tried."""


class Delivery(ABC):
    """One way out of the service, and how patient it is. One object serves a process; one thread sends with it.

    Ways do not wait for each other: each has its messages, its thread, and its lease, so that one node at a time sends.
    """

    #: Names the way, in the database, in logs and for operators: no secret is in it.
    kind: str
    #: How long a message is worth sending; then it is given up.
    message_lifetime: timedelta = timedelta(days=7)
    #: How long to wait after the first failure. Each further one doubles the wait …
    initial_delay: timedelta = timedelta(seconds=10)
    #: … up to this.
    max_delay: timedelta = timedelta(days=1)
    #: Longer than one message takes at worst.
    lease_duration: timedelta = timedelta(minutes=1)

    @property
    def is_enabled(self) -> bool:
        """False while nothing is to be told or sent in this process; what waits stays where it is."""
        return True

    def event_content(self, event: AuditEvent) -> bytes | None:
        """What to send about an audit event, None for nothing.

        Called in the transaction that writes the event: an exception is logged, and nothing is sent about it.
        """
        return None

    @abstractmethod
    def send(self, content: bytes) -> None:
        """Hand a message to the other side. It may come a second time, if the process ended before noting the first.

        Called while no transaction is open. DeliveryRejected ends it. After any other exception it is tried again
        later; what is logged is the text of DeliveryFailed, and of others the name alone.
        """

    def retry_delay(self, attempts: int) -> timedelta:
        """How long to wait after one more attempt failed, so many having failed before; in whole seconds."""
        longest = min(self.initial_delay * 2.0 ** min(attempts, 30), self.max_delay)
        share = random.uniform(1 - _JITTER, 1)  # noqa: S311 - nothing depends on its being unpredictable
        return timedelta(seconds=round(longest.total_seconds() * share))


class OutboxService(Service):
    """The way into the outbox, and what a sender needs to empty it."""

    def __init__(
        self,
        state: TransactionState,
        sealer: Sealer,
        deliveries: Mapping[str, Delivery],
        on_queue: Callable[[str], None],
    ) -> None:
        super().__init__(state)
        self._sealer, self._deliveries, self._on_queue = sealer, deliveries, on_queue

    def queue(
        self,
        kind: str,
        content: bytes,
        *,
        lifetime: timedelta | None = None,
        organization_id: str | None = None,
        bulk: bool = False,
    ) -> None:
        """Have it sent once this transaction is committed; ``lifetime`` is how long it is, if not as long as its kind.

        Organizations take turns, and ``bulk`` comes after what somebody waits for. Raises ValueError where nobody sends
        this kind.
        """
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
            )
        )
        self._on_queue(kind)

    def queue_event(self, event: AuditEvent) -> None:
        """Queue what each delivery has to tell of an event that is written in this transaction."""
        for kind, delivery in self._deliveries.items():
            try:
                content = delivery.event_content(event) if delivery.is_enabled else None
            except Exception:
                log.exception("%s: has nothing to tell of %s", kind, event.event)
                continue
            if content is not None:
                self.queue(kind, content, organization_id=event.organization_id)

    def list_due(self, kind: str) -> tuple[OutboxMessage, ...]:
        """What is to be sent now: as much as is taken up at a time."""
        return self._storage.outbox.list_due(kind, self._now, _AT_ONCE)

    def next_at(self, kind: str) -> datetime | None:
        """When the next message is due, past moments included; None if nothing waits."""
        first = self._storage.outbox.list_pending(kind, self._now, 1)
        return first[0].next_at if first else None

    def backlog(self, kind: str) -> OutboxBacklog:
        """What could not be sent until now, or at all."""
        return self._storage.outbox.get_backlog(kind, self._now)

    def unseal(self, message: OutboxMessage) -> bytes:
        """The content of a message. Raises UnsealingError."""
        return self._sealer.open(message.sealed, associated_data=sealing_context(message.id))

    def postpone(self, message: OutboxMessage) -> bool:
        """Try it again later; False if it will not be worth it then: it is given up."""
        next_at = self._now + self._deliveries[message.kind].retry_delay(message.attempts)
        with suppress(RowNotFound):
            self._storage.outbox.postpone(message.id, next_at)
        return next_at < message.expires_at

    def remove(self, message: OutboxMessage) -> None:
        """Forget it, if nobody has yet."""
        with suppress(RowNotFound):
            self._storage.outbox.delete(message.id)


def sealing_context(message_id: str) -> str:
    """With what the content of this message is sealed."""
    return f"outgoing message {message_id}"
