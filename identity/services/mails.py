"""Mails: kept sealed in the outbox in the transaction of what they tell, sent after its commit."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from identity.crypto.sealing import Sealer, Unsealable
from identity.crypto.secrets import new_id
from identity.domain.outbox import OutgoingMessage
from identity.services.audit import Recorder
from identity.services.changes import UseCases
from identity.storage.backend import Storage

log = logging.getLogger(__name__)

KIND = "mail"

#: No mail of ours is worth anything later: what it links to works for an hour at most.
_WORTH_SENDING = timedelta(hours=1)
_FIRST_DELAY = timedelta(seconds=10)
_LONGEST_DELAY = timedelta(minutes=10)
_AT_ONCE = 50


class Undeliverable(Exception):
    """The mail server will never take this mail: nobody has the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A plain text to one address. Without an address it goes nowhere: it stands for one that is not to be sent, so
    that nobody can tell by the time it takes whether there was somebody to write to."""

    to: str
    subject: str
    text: str


class Mails(UseCases):
    """The way to the outbox, and out of it."""

    def __init__(
        self,
        storage: Storage,
        audit: Recorder,
        now: datetime,
        *,
        sealer: Sealer,
        enabled: bool,
        on_first_queued: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(storage, audit, now)
        self._sealer = sealer
        self._on_first_queued = on_first_queued
        #: False if no mail server is set: then nothing is to be promised that needs one.
        self.enabled = enabled
        #: True once a mail was queued in this transaction.
        self.queued = False

    def queue(self, mail: Mail) -> None:
        """Have it sent once this transaction is committed. Raises ValueError where no mail server is set."""
        if not self.enabled:
            raise ValueError("no mail server is set")
        message_id = new_id()
        sealed = self._sealer.seal(json.dumps(asdict(mail)).encode(), associated=_place(message_id))
        self._storage.outbox.add(
            OutgoingMessage(
                id=message_id,
                kind=KIND,
                sealed=sealed,
                created_at=self._now,
                next_at=self._now,
                expires_at=self._now + _WORTH_SENDING,
            )
        )
        if not self.queued and self._on_first_queued is not None:
            self._on_first_queued()
        self.queued = True

    def next_at(self) -> datetime | None:
        """When the next mail is due, past moments included; None if nothing waits."""
        return self._storage.outbox.next_at()

    def due(self) -> tuple[OutgoingMessage, ...]:
        """What is to be sent now."""
        return tuple(one for one in self._storage.outbox.due(self._now, _AT_ONCE) if one.kind == KIND)

    def deliver(self, message: OutgoingMessage, send: Callable[[Mail], None]) -> bool:
        """Send it and forget it; False if it was not sent. What is too old or cannot be delivered is dropped.

        ``send`` may raise anything: Undeliverable ends it, after anything else it has to wait for another try.
        """
        if self._now >= message.expires_at:
            log.error("a mail was given up after %d attempts", message.attempts)
            self._storage.outbox.remove(message.id)
            return False
        try:
            mail = Mail(**json.loads(self._sealer.open(message.sealed, associated=_place(message.id))))
        except (Unsealable, ValueError, TypeError):
            log.exception("a mail in the outbox cannot be opened")
            self._storage.outbox.remove(message.id)
            return False
        try:
            if mail.to:
                send(mail)
        except Undeliverable:
            log.warning("a mail was given up: the mail server refuses its address for good")
            self._storage.outbox.remove(message.id)
            return False
        except Exception as problem:
            # The text of the problem may quote the address.
            log.warning("a mail could not be sent: %s", type(problem).__name__)
            delay = min(_FIRST_DELAY * 2 ** min(message.attempts, 10), _LONGEST_DELAY)
            self._storage.outbox.postpone(message.id, self._now + delay)
            return False
        self._storage.outbox.remove(message.id)
        return bool(mail.to)


def _place(message_id: str) -> str:
    return f"outgoing message {message_id}"
