"""Mails to people: queued in the transaction of what they tell, sent after its commit."""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from identity.crypto.secrets import digest
from identity.domain.attempts import MAIL_SPAN, MAILS_TO_ONE
from identity.domain.names import name_key
from identity.services.changes import UseCases
from identity.services.outbox import Outbox
from identity.settings import Settings

KIND = "mail"


class Reason(StrEnum):
    """Why somebody is written to: each is counted apart, so that none of them uses up another.

    Strangers can have the first three sent to any address; NOTICE tells of what was done to an account.
    """

    RESET = "reset"
    REGISTRATION = "registration"
    ADDRESS = "address"
    OWN_ADDRESS = "own_address"
    ACCESS = "access"
    NOTICE = "notice"


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


class Mails(UseCases):
    """The way of mails into the outbox, and the limit of what one address gets."""

    _outbox: Outbox
    _settings: Settings

    @property
    def enabled(self) -> bool:
        """False if no mail server is set: then nothing is to be promised that needs one."""
        return bool(self._settings.smtp.host)

    def queue(self, mail: Mail, reason: Reason, *, proved_by: str = "", instead_of: str = "") -> bool:
        """Have it sent once this transaction is committed; False if its address was written to too often.

        Whatever makes a mail counts for the address that it goes to, under its reason: what strangers ask for uses up
        nothing that the owner of the address asks for or has to be told. What is for an account that proved the
        address, which ``proved_by`` then names, is counted apart from other accounts. A mail that goes nowhere is
        counted for ``instead_of``, which takes the same work, and for no address, even if it reads like one. Raises
        ValueError where no mail server is set.
        """
        whose = f"{reason}:{proved_by}" if mail.to else "nowhere"
        key = f"mails:{whose}:{digest(name_key(mail.to or instead_of)).hex()}"
        over = self._storage.attempts.count(key, at=self._now, span=MAIL_SPAN, most=MAILS_TO_ONE)
        self._outbox.queue(KIND, (mail if over is None else replace(mail, to="")).content)
        return over is None
