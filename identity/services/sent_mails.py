"""The log of mails that were sent, refused or given up, for managers."""

from dataclasses import dataclass, replace
from functools import cache

from identity.crypto.secrets import new_id
from identity.domain.outbox import OutboxMessage
from identity.domain.permissions import Resource
from identity.domain.sent_mails import MailOutcome, SentMail
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service
from identity.services.mails import MailReason
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage


@dataclass(eq=False, repr=False)
class SentMailService(Service):
    """The log of all mails needs ``instance.read``; in it, the address of a recipient needs ``user.read`` at the
    organization of the mail, or at the instance if it belongs to none or to no account. The log of one user needs
    ``user.read`` at the user's organization."""

    _access: AccessControl

    def record(
        self, message: OutboxMessage, recipient: str, outcome: MailOutcome, *, reply: str = "", message_id: str = ""
    ) -> None:
        """Record the end of a message's mail to this address."""
        # The user may have been deleted meanwhile.
        user = None if message.user_id is None else self._storage.users.find(message.user_id)
        self._storage.sent_mails.add(
            SentMail(
                id=new_id(),
                kind=message.purpose or "",
                recipient=recipient,
                outcome=outcome,
                created_at=message.created_at,
                ended_at=self._now,
                attempts=message.attempts + 1,
                reply=reply,
                message_id=message_id,
                language=message.language or "",
                user_id=None if user is None else user.id,
                organization_id=message.organization_id,
            )
        )

    def record_test(
        self, recipient: str, outcome: MailOutcome, *, reply: str, message_id: str, language: str, user_id: str | None
    ) -> None:
        """Record the result of a test mail, which waits for nothing."""
        # The user may have been deleted while the mail server replied.
        subject = None if user_id is None else self._storage.users.find_subject(user_id)
        self._storage.sent_mails.add(
            SentMail(
                id=new_id(),
                kind=MailReason.TEST,
                recipient=recipient,
                outcome=outcome,
                created_at=self._now,
                ended_at=self._now,
                attempts=1,
                reply=reply,
                message_id=message_id,
                language=language,
                user_id=None if subject is None else subject.user.id,
                organization_id=None if subject is None else subject.organization.id,
            )
        )

    def page(self, request: PageRequest = FIRST_PAGE, *, principal: Principal) -> ResultPage[SentMail]:
        """All mails, newest first; ``recipient`` is empty where the principal may not read it. Raises Denied."""
        self._access.require(principal, "instance.read", Resource.INSTANCE)

        @cache
        def reads_recipients(organization_id: str | None) -> bool:
            resource = Resource.INSTANCE if organization_id is None else Resource.of_organization(organization_id)
            return self._access.is_permitted(principal, "user.read", resource)

        page = self._storage.sent_mails.page(None, request)
        mails = tuple(
            mail
            if reads_recipients(None if mail.user_id is None else mail.organization_id)
            else replace(mail, recipient="")
            for mail in page.items
        )
        return ResultPage(mails, page.next_cursor, page.total)

    def page_of_user(
        self, user_id: str, request: PageRequest = FIRST_PAGE, *, principal: Principal
    ) -> ResultPage[SentMail]:
        """The mails to the user, newest first. Raises NotFound, Denied."""
        home = Resource.of_organization(self._get_subject(user_id).organization.id)
        self._access.require(principal, "user.read", home)
        return self._storage.sent_mails.page(user_id, request)

    def remove_old(self) -> int:
        """Delete what is older than ``identity.sent_mail_retention``; returns the number."""
        return self._storage.sent_mails.delete_before(self._now - self._settings.sent_mail_retention)
