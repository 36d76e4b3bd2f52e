"""Mails to people: queued in the transaction of what they tell, sent after its commit."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum

from identity.crypto.secrets import token_digest
from identity.domain.attempts import MAIL_WINDOW, MAX_MAILS_PER_ADDRESS
from identity.domain.email_addresses import email_key
from identity.domain.names import name_key
from identity.services.base import Service, TransactionState
from identity.services.outbox import Delivery, OutboxService

MAIL_KIND = "mail"

#: How long it is worth telling somebody what was done to their account.
_NOTICE_LASTS = timedelta(days=7)


class MailReason(StrEnum):
    """Why somebody is written to: each is counted apart, so that none of them uses up another.

    Strangers can have the first three sent to any address; NOTICE tells of what was done to an account.
    """

    RESET = "reset"
    REGISTRATION = "registration"
    ADDRESS = "address"
    OWN_ADDRESS = "own_address"
    ACCESS = "access"
    NOTICE = "notice"
    CODE = "code"


#: The most mails to one address in MAIL_SPAN of those reasons that need more than others: only who knows the password
#: has codes sent.
_MORE: Mapping[str, int] = {MailReason.CODE: 10}
#: What managers can cause by the thousand; whoever asked for one of the others sits and waits for it.
_BULK = frozenset({MailReason.ACCESS, MailReason.NOTICE})


#: The most mails to one mailbox in MAIL_SPAN that tell its accounts.
_FORGOTTEN, _MOST_FORGOTTEN = "forgotten", 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A text to one address, and the same as HTML. ``sender`` is the name beside the address that it comes from, if not
    the usual one. Without an address it goes nowhere: it stands for one that is not to be sent, so that nobody can tell
    by the time it takes whether there was somebody to write to."""

    to: str
    subject: str
    text: str
    html: str = ""
    sender: str = ""

    @property
    def content(self) -> bytes:
        """The mail as the outbox keeps it."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What somebody is told of their account: the template of the mail and its values, to be worded when it is sent.

    ``languages`` are language tags, those that count before others first; ``at`` is when it happened (RFC 3339).
    """

    to: str
    template: str
    values: Mapping[str, str]
    languages: tuple[str, ...]
    organization_id: str
    at: str

    @property
    def content(self) -> bytes:
        """The notice as the outbox keeps it."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordResetMail:
    """Somebody forgot the password and typed an address: the accounts are looked for when the mail is sent.

    ``key`` is its ``email_key``; empty where nobody is to be looked for. ``organization_id`` is that of the page, or
    empty. The rest is where the request came from, for the audit trail.
    """

    key: str
    organization_id: str
    language: str
    client_address: str
    request_id: str

    @property
    def content(self) -> bytes:
        """It as the outbox keeps it."""
        return json.dumps(asdict(self)).encode()


def parse_queued(content: bytes) -> Mail | Notification | PasswordResetMail:
    """What was queued with this content."""
    members = json.loads(content)
    if "key" in members:
        return PasswordResetMail(**members)
    if "template" not in members:
        return Mail(**members)
    return Notification(**members | {"languages": tuple(members["languages"])})


class MailService(Service):
    """The way of mails into the outbox, and the limit of what one address gets."""

    def __init__(self, state: TransactionState, outbox: OutboxService, deliveries: Mapping[str, Delivery]) -> None:
        super().__init__(state)
        self._outbox, self._deliveries = outbox, deliveries

    @property
    def is_enabled(self) -> bool:
        """False if nothing takes mails: then nothing is to be promised that needs one."""
        return MAIL_KIND in self._deliveries

    def queue(
        self,
        mail: Mail,
        reason: MailReason,
        *,
        verified_by: str = "",
        instead_of: str = "",
        password_reset: PasswordResetMail | None = None,
        organization_id: str | None = None,
    ) -> bool:
        """Have it sent once this transaction is committed; False if its address was written to too often.

        Whatever makes a mail counts for the address that it goes to, under its reason: what strangers ask for uses up
        nothing that the owner of the address asks for or has to be told. What is for an account that proved the
        address, which ``verified_by`` then names, is counted apart from other accounts. A mail that goes nowhere is
        counted for ``replaces``, which takes the same work, and for no address, even if it reads like one.
        ``password_reset`` is queued in its place, a few times an hour for one mailbox. Raises ValueError where nothing
        takes mails.
        """
        counter = f"{reason}:{verified_by}" if mail.to else "nowhere"
        counted = self._count(counter, mail.to or instead_of, _MORE.get(reason, MAX_MAILS_PER_ADDRESS))
        content = (mail if counted else replace(mail, to="")).content
        if password_reset is not None and self._may_look(password_reset, instead_of) and not mail.to:
            content = password_reset.content
        self._outbox.queue(MAIL_KIND, content, organization_id=organization_id, bulk=reason in _BULK)
        return counted

    def queue_notification(self, notice: Notification, *, proved_by: str = "") -> bool:
        """Have a notice sent once this transaction is committed; False if its address was written to too often.

        For an account that proved the address each kind of notice is counted apart, so that none hides another.
        """
        counter = f"{MailReason.NOTICE}:{notice.template}:{proved_by}" if proved_by else f"{MailReason.NOTICE}:"
        counted = self._count(counter, notice.to)
        if counted:
            self._outbox.queue(
                MAIL_KIND, notice.content, lifetime=_NOTICE_LASTS, organization_id=notice.organization_id, bulk=True
            )
        return counted

    def _may_look(self, forgotten: PasswordResetMail, typed: str) -> bool:
        """True if the accounts of the address are to be looked for; it takes the same work where they are not."""
        counter, most = (_FORGOTTEN, _MOST_FORGOTTEN) if forgotten.key else ("nowhere", MAX_MAILS_PER_ADDRESS)
        key = f"mails:{counter}:{token_digest(forgotten.key or name_key(typed)).hex()}"
        over = self._storage.attempts.count_use(key, used_at=self._now, window=MAIL_WINDOW, limit=most)
        return bool(forgotten.key) and over is None

    def _count(self, counter: str, address: str, most: int = MAX_MAILS_PER_ADDRESS) -> bool:
        # What is no address was typed in place of one.
        key = f"mails:{counter}:{token_digest(email_key(address) or name_key(address)).hex()}"
        return self._storage.attempts.count_use(key, used_at=self._now, window=MAIL_WINDOW, limit=most) is None
