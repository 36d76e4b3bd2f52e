"""Sender: empties the outbox for one kind of message, on one node at a time."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from identity.clock import Clock
from identity.crypto.sealing import UnsealingError
from identity.domain.outbox import OutboxMessage
from identity.services import leases
from identity.services.container import Services
from identity.services.outbox import Delivery, DeliveryFailed, DeliveryRejected

log = logging.getLogger(__name__)

#: Opens services, in a transaction or on a read connection.
OpenServices = Callable[[], AbstractContextManager[Services]]


class OutboxSender:
    """Sends what waits for one delivery. While it sends, no transaction is open."""

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
        #: The name of the worker's job, and of the lease that one node holds at a time.
        self.name = f"outbox: {delivery.kind}"

    def run(self) -> timedelta | None:
        """Send what is due; returns after what span to look again, None once nothing waits."""
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
        # What is due, and was left after all, lies with another node, which may not live to send it.
        return timedelta() if handled else self._delivery.lease_duration

    def send_due(self) -> int:
        """Send what is due, unless another node is at it; returns how many messages went."""
        if not self._list_due():
            return 0
        held_until = self._acquire_lease(self._clock())
        if held_until is None:
            return 0
        sent = 0
        for message in self._list_due():
            # From the end of the span that is held: nobody else can have taken it before.
            renewed = None if self._stopping() else self._acquire_lease(held_until)
            if renewed is None:
                break
            held_until = renewed
            sent += self._send(message)
        with self._transaction() as services:
            leases.acquire_lease(services.storage, self.name, starts_at=held_until, expires_at=self._clock())
        return sent

    def find_problem(self) -> str | None:
        """What an operator has to know of what could not be sent, or None."""
        with self._reading() as services:
            backlog = services.outbox.backlog(self._delivery.kind)
        if backlog.oldest_at is None:
            return None
        counts = {"could not be sent yet": backlog.failing, "given up lately": backlog.abandoned}
        told = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
        return f"Messages wait since {backlog.oldest_at:%Y-%m-%d %H:%M} UTC: {told}. Look into the log for the reason."

    def _list_due(self) -> tuple[OutboxMessage, ...]:
        if not self._delivery.is_enabled:
            return ()
        with self._reading() as services:
            return services.outbox.list_due(self._delivery.kind)

    def _acquire_lease(self, at: datetime) -> datetime | None:
        """Take the lease if it is free at this moment; returns until when it is held, None if another has it."""
        until = self._clock() + self._delivery.lease_duration
        with self._transaction() as services:
            return until if leases.acquire_lease(services.storage, self.name, starts_at=at, expires_at=until) else None

    def _send(self, message: OutboxMessage) -> bool:
        """Send it and forget it; False if it was not sent."""
        kind = self._delivery.kind
        try:
            with self._reading() as services:
                content = services.outbox.unseal(message)
            self._delivery.send(content)
        except UnsealingError:
            log.exception("%s: a message in the outbox cannot be opened, and is dropped", kind)
        except DeliveryRejected:
            log.warning("%s: a message was given up: the other side refuses it for good", kind)
        except Exception as problem:
            # The text of others may quote an address.
            reason = str(problem) if isinstance(problem, DeliveryFailed) else type(problem).__name__
            log.warning("%s: a message could not be sent: %s", kind, reason)
            self._postpone(message)
            return False
        else:
            self._remove(message)
            return True
        self._remove(message)
        return False

    def _remove(self, message: OutboxMessage) -> None:
        # Each by itself: what was sent is forgotten, whatever comes after it.
        with self._transaction() as services:
            services.outbox.remove(message)

    def _postpone(self, message: OutboxMessage) -> None:
        with self._transaction() as services:
            again = services.outbox.postpone(message)
        if not again:
            log.error("%s: a message was given up after %d attempts", self._delivery.kind, message.attempts + 1)
