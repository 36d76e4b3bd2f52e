"""Mails to users: queued in the transaction of the change, sent after its commit."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum

from identity.crypto.secrets import token_digest
from identity.domain.attempts import MAIL_WINDOW, MAX_MAILS_PER_ADDRESS
from identity.domain.email_addresses import email_key
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.services.base import Service
from identity.services.mail_server import MailServerService
from identity.services.outbox import Delivery, OutboxService

MAIL_KIND = "mail"

#: How long a notification of a change is worth sending.
_NOTICE_LASTS = timedelta(days=7)


class MailReason(StrEnum):
    """Why a mail is sent: each reason has its own rate limit. Anonymous clients can cause the first three for any
    address; NOTICE reports a change of an account."""

    RESET = "reset"
    REGISTRATION = "registration"
    ADDRESS = "address"
    OWN_ADDRESS = "own_address"
    ACCESS = "access"
    NOTICE = "notice"
    CODE = "code"
    TEST = "test"


#: Higher limits per address in MAIL_SPAN: only users who know the password have codes sent.
_MORE: Mapping[str, int] = {MailReason.CODE: 10}
#: Managers can cause these by the thousand; the user waits for all others.
_BULK = frozenset({MailReason.ACCESS, MailReason.NOTICE})


#: The maximum number of mails to one mailbox in MAIL_SPAN that list its accounts.
_FORGOTTEN, _MOST_FORGOTTEN = "forgotten", 3


@dataclass(frozen=True, slots=True)
class _Queued:
    """What the outbox holds of a mail."""

    @property
    def content(self) -> bytes:
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail(_Queued):
    """A mail as text and HTML. ``sender`` replaces the usual display name of the sender. A mail without an address is
    not sent: it takes as much work as one that is, so that the response time does not reveal whether the account
    exists."""

    to: str
    subject: str
    text: str
    html: str = ""
    sender: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(_Queued):
    """A notification about an account: mail template and values, rendered when it is sent. ``languages`` are language
    tags by preference; ``at`` is when it happened (RFC 3339)."""

    to: str
    template: str
    values: Mapping[str, str]
    languages: tuple[str, ...]
    organization_id: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordResetMail(_Queued):
    """A forgotten password: the accounts with the typed address are looked up when the mail is sent. ``key`` is its
    ``email_key``, empty if nothing is to be looked up. ``organization_id`` is that of the page, or empty. The rest
    describes the origin of the request, for the audit trail."""

    key: str
    organization_id: str
    language: str
    client_address: str
    request_id: str


def make_test_mail(to: str) -> Mail:
    """A mail whose arrival is all that it says."""
    return Mail(
        to=to,
        subject=gettext_lazy("Test of the mail server"),
        text=gettext_lazy("The mail server of this service works. You can ignore this mail.") + "\n",
    )


def parse_queued(content: bytes) -> Mail | Notification | PasswordResetMail:
    """The inverse of ``content``."""
    members = json.loads(content)
    if "key" in members:
        return PasswordResetMail(**members)
    if "template" not in members:
        return Mail(**members)
    return Notification(**members | {"languages": tuple(members["languages"])})


@dataclass(eq=False, repr=False)
class MailService(Service):
    """Queues mails in the outbox, within the rate limit of each address."""

    _outbox: OutboxService
    _deliveries: Mapping[str, Delivery]
    _server: MailServerService

    @property
    def is_enabled(self) -> bool:
        """False without a mail server: then promise nothing that needs a mail."""
        return MAIL_KIND in self._deliveries and self._server.is_enabled

    def queue(
        self,
        mail: Mail,
        reason: MailReason,
        *,
        verified_by: str = "",
        instead_of: str = "",
        password_reset: PasswordResetMail | None = None,
        organization_id: str | None = None,
        template: str = "",
        user_id: str | None = None,
        language: str = "",
    ) -> bool:
        """Send the mail once this transaction is committed; False if the address has reached its limit.

        Mails are counted by address and reason, so that mails caused by anonymous clients do not use up the limit of
        those that the owner needs. Mails for an account that has proved the address, named by ``verified_by``, are
        counted per account. A mail without an address is counted for ``replaces``, which takes the same work.
        ``password_reset`` is queued in its place, a few times an hour for one mailbox. ``template``, ``user_id`` and
        ``language`` are for the log. Raises ValueError without a mail plugin."""
        counter = f"{reason}:{verified_by}" if mail.to else "nowhere"
        counted = self._count(counter, mail.to or instead_of, _MORE.get(reason, MAX_MAILS_PER_ADDRESS))
        content = (mail if counted else replace(mail, to="")).content
        if password_reset is not None and self._may_look_up_accounts(password_reset, instead_of) and not mail.to:
            content = password_reset.content
        self._outbox.queue(
            MAIL_KIND,
            content,
            organization_id=organization_id,
            bulk=reason in _BULK,
            purpose=template or reason,
            user_id=user_id,
            language=language,
        )
        return counted

    def queue_notification(
        self, notice: Notification, *, proved_by: str = "", is_counted: bool = True, user_id: str | None = None
    ) -> bool:
        """Send the notification once this transaction is committed; False if the address has reached its limit. For an
        account that has proved the address each kind has its own limit, so that none hides another."""
        counter = f"{MailReason.NOTICE}:{notice.template}:{proved_by}" if proved_by else f"{MailReason.NOTICE}:"
        counted = not is_counted or self._count(counter, notice.to)
        if counted:
            self._queue_notification(notice, user_id, _NOTICE_LASTS)
        return counted

    def queue_invitation(self, invitation: Notification, *, user_id: str) -> bool:
        """Send the invitation once this transaction is committed; False if the address has reached its limit."""
        counted = self._count(MailReason.ACCESS, invitation.to)
        if counted:
            self._queue_notification(invitation, user_id)
        return counted

    def _queue_notification(self, notice: Notification, user_id: str | None, lifetime: timedelta | None = None) -> None:
        self._outbox.queue(
            MAIL_KIND,
            notice.content,
            lifetime=lifetime,
            organization_id=notice.organization_id,
            bulk=True,
            purpose=notice.template,
            user_id=user_id,
            language=next(filter(None, notice.languages), ""),
        )

    def count_test(self, address: str) -> bool:
        """Count a mail that tests the mail server; False if the address has reached its limit."""
        return self._count(MailReason.TEST, address)

    def _may_look_up_accounts(self, forgotten: PasswordResetMail, typed: str) -> bool:
        """True if the accounts of the address may be looked up; both results take the same work."""
        counter, most = (_FORGOTTEN, _MOST_FORGOTTEN) if forgotten.key else ("nowhere", MAX_MAILS_PER_ADDRESS)
        key = f"mails:{counter}:{token_digest(forgotten.key or name_key(typed)).hex()}"
        over = self._storage.attempts.count_use(key, used_at=self._now, window=MAIL_WINDOW, limit=most)
        return bool(forgotten.key) and over is None

    def _count(self, counter: str, address: str, most: int = MAX_MAILS_PER_ADDRESS) -> bool:
        # The typed text may not be an address.
        key = f"mails:{counter}:{token_digest(email_key(address) or name_key(address)).hex()}"
        return self._storage.attempts.count_use(key, used_at=self._now, window=MAIL_WINDOW, limit=most) is None
