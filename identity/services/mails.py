"""Mails to people: queued in the transaction of what they tell, sent after its commit."""

import json
from dataclasses import asdict, dataclass

from identity.services.outbox import Outbox

KIND = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A plain text to one address. Without an address it goes nowhere: it stands for one that is not to be sent, so
    that nobody can tell by the time it takes whether there was somebody to write to."""

    to: str
    subject: str
    text: str

    @classmethod
    def of(cls, content: bytes) -> "Mail":
        """The mail that was queued with this content."""
        return cls(**json.loads(content))

    @property
    def content(self) -> bytes:
        """The mail as the outbox keeps it."""
        return json.dumps(asdict(self)).encode()


class Mails:
    """The way of mails into the outbox."""

    def __init__(self, outbox: Outbox, *, enabled: bool) -> None:
        self._outbox = outbox
        #: False if no mail server is set: then nothing is to be promised that needs one.
        self.enabled = enabled

    def queue(self, mail: Mail) -> None:
        """Have it sent once this transaction is committed. Raises ValueError where no mail server is set."""
        self._outbox.queue(KIND, mail.content)
