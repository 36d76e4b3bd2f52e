"""Mails that wait to be sent or were given up, for managers of the instance."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from identity.crypto.sealing import UnsealingError
from identity.domain.outbox import OutboxMessage
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service
from identity.services.mails import MAIL_KIND, Mail, Notification, parse_queued
from identity.services.outbox import OutboxService

MAX_LISTED_MAILS = 100
#: How long a mail is tried again that was given up.
_RETRIED_FOR = timedelta(hours=1)


class QueuedMailState(StrEnum):
    WAITING = "waiting"
    FAILING = "failing"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMail:
    """A mail without its content, which can hold a link. ``subject`` is that of the mail, or the name of its template;
    ``recipient`` is masked, and empty if it is looked up later."""

    id: str
    created_at: datetime
    subject: str
    recipient: str
    state: QueuedMailState
    attempts: int
    last_answer: str | None
    next_at: datetime
    expires_at: datetime


@dataclass(eq=False, repr=False)
class QueuedMailService(Service):
    """Mails that were sent are not among them: they leave the outbox."""

    _access: AccessControl
    _outbox: OutboxService

    def list_newest(self, *, principal: Principal) -> tuple[QueuedMail, ...]:
        """Newest first, at most MAX_LISTED_MAILS. Raises Denied."""
        self._require(principal)
        with self._look() as storage:
            messages = storage.outbox.list_newest(MAIL_KIND, MAX_LISTED_MAILS)
        return tuple(self._describe(message) for message in messages)

    def retry(self, mail_id: str, *, principal: Principal) -> QueuedMail:
        """Send it now. A link in it may have expired. Raises Denied, NotFound."""
        message = self._get(mail_id, principal)
        self._outbox.retry(message, until=max(message.expires_at, self._now + _RETRIED_FOR))
        self._record("mail.retried", message)
        return self._describe(self._get(mail_id, principal))

    def cancel(self, mail_id: str, *, principal: Principal) -> None:
        """Never send it. Raises Denied, NotFound."""
        message = self._get(mail_id, principal)
        self._outbox.remove(message)
        self._record("mail.cancelled", message)

    def _require(self, principal: Principal) -> None:
        self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)

    def _get(self, mail_id: str, principal: Principal) -> OutboxMessage:
        self._require(principal)
        message = self._storage.outbox.find(mail_id)
        return self._require_found(message if message is None or message.kind == MAIL_KIND else None, "mail", mail_id)

    def _record(self, event: str, message: OutboxMessage) -> None:
        self._audit.record(event, kind="mail", id=message.id, organization_id=None)

    def _describe(self, message: OutboxMessage) -> QueuedMail:
        subject, recipient = self._read(message)
        state = QueuedMailState.FAILING if message.attempts else QueuedMailState.WAITING
        return QueuedMail(
            id=message.id,
            created_at=message.created_at,
            subject=subject,
            recipient=recipient,
            state=QueuedMailState.GIVEN_UP if message.expires_at <= self._now else state,
            attempts=message.attempts,
            last_answer=message.last_answer,
            next_at=message.next_at,
            expires_at=message.expires_at,
        )

    def _read(self, message: OutboxMessage) -> tuple[str, str]:
        """What may be shown of the content: subject, and the masked recipient."""
        try:
            content = parse_queued(self._outbox.unseal(message))
        except UnsealingError:
            return "", ""
        if isinstance(content, Mail):
            return content.subject, mask_address(content.to)
        if isinstance(content, Notification):
            return content.template, mask_address(content.to)
        return "password_reset", ""


def mask_address(address: str) -> str:
    """The address with little of its local part."""
    local, at, domain = address.rpartition("@")
    return f"{local[:1]}…{at}{domain}" if local else ""
