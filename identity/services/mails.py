"""Mails to people: queued in the transaction of what they tell, sent after its commit."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from identity.crypto.secrets import digest
from identity.domain.attempts import MAIL_SPAN, MAILS_TO_ONE
from identity.domain.names import name_key
from identity.services.outbox import Outbox
from identity.storage.backend import Storage

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
    """The way of mails into the outbox, and the limit of what one address gets."""

    def __init__(self, storage: Storage, now: datetime, outbox: Outbox, *, enabled: bool) -> None:
        self._storage = storage
        self._now = now
        self._outbox = outbox
        #: False if no mail server is set: then nothing is to be promised that needs one.
        self.enabled = enabled

    def queue(self, mail: Mail, *, notice_to: str | None = None, instead_of: str = "") -> bool:
        """Have it sent once this transaction is committed; False if its address was written to too often.

        Whatever makes a mail counts for the address that it goes to. Notices of what was done to an account are counted
        apart from what strangers can ask for, and where the account proved the address, which ``notice_to`` then names,
        apart from other accounts: nobody can use up what somebody has to be told. A mail that goes nowhere is counted
        for ``instead_of``, which takes the same work, and for no address, even if it reads like one. Raises ValueError
        where no mail server is set.
        """
        kind = f"notice:{notice_to}" if notice_to is not None else "address" if mail.to else "nowhere"
        key = f"mails:{kind}:{digest(name_key(mail.to or instead_of)).hex()}"
        over = self._storage.attempts.count(key, at=self._now, span=MAIL_SPAN, most=MAILS_TO_ONE)
        self._outbox.queue(KIND, (mail if over is None else replace(mail, to="")).content)
        return over is None
