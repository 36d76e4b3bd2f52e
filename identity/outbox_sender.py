"""Sends the outbox messages of one kind, on one node at a time."""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from identity.clock import Clock
from identity.crypto.sealing import UnsealingError
from identity.domain.outbox import OutboxMessage
from identity.services import leases
from identity.services.container import Services
from identity.services.outbox import Delivery, DeliveryRejected

log = logging.getLogger(__name__)

#: Opens services, in a transaction or on a read connection.
OpenServices = Callable[[], AbstractContextManager[Services]]


class OutboxSender:
    """Sends pending messages of one delivery. No transaction is open while it sends."""

    def __init__(
        self,
        delivery: Delivery,
        *,
        transaction: OpenServices,
        reading: OpenServices,
        clock: Clock,
        stopping: Callable[[], bool],
    ) -> None:
        self._delivery = delivery
        self._transaction = transaction
        self._reading = reading
        self._clock = clock
        self._stopping = stopping
        #: Name of the background job and of the lease.
        self.name = f"outbox: {delivery.kind}"

    def run(self) -> timedelta | None:
        """Send what is due; returns the delay until the next run, None if nothing is pending."""
        handled = self.send_due()
        if not self._delivery.is_enabled:
            return None
        with self._reading() as services:
            next_at = services.outbox.next_at(self._delivery.kind)
        if next_at is None:
            return None
        now = self._clock()
        if next_at > now:
            return next_at - now
        # Due messages that were not sent belong to another node, which may die before it sends them.
        return timedelta() if handled else self._delivery.lease_duration

    def send_due(self) -> int:
        """Send what is due, if this node gets the lease; returns the number of messages sent or replaced."""
        if not self._list_due():
            return 0
        held_until = self._acquire_lease(self._clock())
        if held_until is None:
            return 0
        sent = 0
        due, count = self._list_due(), self._delivery.max_concurrent
        for batch in (due[start : start + count] for start in range(0, len(due), count)):
            # Renewed from the end of the current lease, so that no other node can have taken it before.
            renewed = None if self._stopping() else self._acquire_lease(held_until)
            if renewed is None:
                break
            held_until = renewed
            sent += self._send_batch(batch)
        with self._transaction() as services:
            leases.acquire_lease(services.storage, self.name, starts_at=held_until, expires_at=self._clock())
        return sent

    def find_problem(self) -> str | None:
        """What the operator has to know about failed messages, or None."""
        with self._reading() as services:
            backlog = services.outbox.backlog(self._delivery.kind)
        if backlog.oldest_at is None:
            return None
        counts = {"could not be sent yet": backlog.failing, "given up lately": backlog.abandoned}
        summary = " and ".join(f"{count} {label}" for label, count in counts.items() if count)
        return (
            f"Messages wait since {backlog.oldest_at:%Y-%m-%d %H:%M} UTC: {summary}. Look into the log for the reason."
        )

    def _list_due(self) -> tuple[OutboxMessage, ...]:
        if not self._delivery.is_enabled:
            return ()
        with self._reading() as services:
            return services.outbox.list_due(self._delivery.kind)

    def _acquire_lease(self, at: datetime) -> datetime | None:
        """Take the lease if it is free; returns its end, None if another node holds it."""
        until = self._clock() + self._delivery.lease_duration
        with self._transaction() as services:
            return until if leases.acquire_lease(services.storage, self.name, starts_at=at, expires_at=until) else None

    def _send_batch(self, messages: Sequence[OutboxMessage]) -> int:
        if len(messages) == 1:
            return int(self._send(messages[0]))
        with ThreadPoolExecutor(len(messages), thread_name_prefix="identity-outbox") as pool:
            return sum(pool.map(self._send, messages))

    def _send(self, message: OutboxMessage) -> bool:
        """Send the message and delete it, or replace it; False if neither was done."""
        kind = self._delivery.kind
        try:
            with self._reading() as services:
                content = self._delivery.prepare(services.outbox.unseal(message), services)
            if content is not None and not isinstance(content, bytes):
                self._replace(message, content)
                return True
            if content is not None:
                self._delivery.send(content)
        except UnsealingError:
            log.exception("%s: a message in the outbox cannot be opened, and is dropped", kind)
        except DeliveryRejected:
            log.warning("%s: a message was given up: the other side refuses it for good", kind)
            self._remove(message)
            self._record(message)
            return False
        except Exception as problem:
            reason = self._delivery.describe_failure(problem)
            log.warning("%s: a message could not be sent: %s", kind, reason)
            self._postpone(message, reason)
            return False
        else:
            self._remove(message)
            if content is not None:
                self._record(message)
            return content is not None
        self._remove(message)
        return False

    def _replace(self, message: OutboxMessage, contents: Iterable[tuple[bytes, str | None]]) -> None:
        with self._transaction() as services:
            services.outbox.replace(message, contents)

    def _remove(self, message: OutboxMessage) -> None:
        # One transaction for each message, so that a sent one is deleted whatever happens afterwards.
        with self._transaction() as services:
            services.outbox.remove(message)

    def _record(self, message: OutboxMessage, given_up: str = "") -> None:
        """Not with the removal: a failure here must not let the message be sent again."""
        try:
            with self._transaction() as services:
                self._delivery.record(services, message, given_up)
        except Exception:
            log.exception("%s: the end of a message could not be recorded", self._delivery.kind)

    def _postpone(self, message: OutboxMessage, reason: str) -> None:
        with self._transaction() as services:
            again = services.outbox.postpone(message, reason)
            self._delivery.record_failure(services, message, reason)
        if not again:
            log.error("%s: a message was given up after %d attempts", self._delivery.kind, message.attempts + 1)
            self._record(message, reason)
