"""The mail server of the instance, and mails that wait for it."""

from typing import Any

from identity.domain import mail_server
from identity.domain.errors import Conflict
from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import (
    DateTime,
    Representation,
    SortedTexts,
    representation_fields,
)
from identity.services.commands import Command
from identity.services.commands.field_types import Email
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.mails import make_test_mail
from identity.services.queued_mails import QueuedMail, QueuedMailState

_PERMISSION = "instance.write"


@representation_fields(mail_server.MailServer)
class MailServerRepresentation(Representation):
    """The mail server in use. `configured` are the members that the ini file sets: they cannot be changed here. The
    password is never returned; `password_changed_at` is when the stored one was set."""

    has_volatile_members = True

    configured: SortedTexts


class QueuedMailRepresentation(Representation):
    """A mail that waits, fails or was given up. `subject` is that of the mail, or the name of its template; the
    recipient is masked. `last_answer` is what the mail server replied to the last attempt, or why it did not."""

    id: str
    created_at: DateTime
    subject: str
    recipient: str
    state: QueuedMailState
    attempts: int
    last_answer: str | None
    next_at: DateTime
    expires_at: DateTime


class SendTestMail(Command):
    """Send a mail now, to see whether the mail server takes it."""

    to: Email


class SendResultRepresentation(Representation):
    """What the mail server replied; `problem` says why there was no reply."""

    is_sent: bool
    reply: str
    problem: str


def _represent(call: OperationCall[Any]) -> MailServerRepresentation:
    effective = call.services.mail_server.effective()
    return MailServerRepresentation.from_value(effective.server, configured=effective.configured)


def _change(call: OperationCall[Instance], command: ChangeMailServer) -> MailServerRepresentation:
    call.services.mail_server.change(command, principal=call.principal, expected_version=call.expected_version)
    return _represent(call)


def _send_test(call: OperationCall[Instance], command: SendTestMail) -> SendResultRepresentation:
    call.services.mail_server.record_test(principal=call.principal)
    if not call.services.mails.count_test(command.to):
        raise Conflict(gettext_lazy("This address has got several test mails. Try again in an hour."))
    # Hold no lock while the mail server answers.
    call.request.commit()
    mail = make_test_mail(command.to)
    result = call.request.registry.application.mailer.try_to_send(mail)
    result.record(call.services, mail)
    return SendResultRepresentation.from_value(result)


def _retry(call: OperationCall[Instance], _: Command) -> QueuedMail:
    return call.services.queued_mails.retry(call.request.matchdict["mail"], principal=call.principal)


_SERVER = ApiResource[Any]("mail_server", MailServerRepresentation)
_MAILS = ApiResource[QueuedMail](
    "queued_mail",
    QueuedMailRepresentation,
    lambda _call, mail: QueuedMailRepresentation.from_value(mail, state=mail.state),
)

OPERATIONS = (
    _SERVER.get(INSTANCE / "instance/mail-server", "Shows the mail server in use.", _represent, permission=_PERMISSION),
    _SERVER.change(
        INSTANCE / "instance/mail-server",
        "Changes the mail server.",
        ChangeMailServer,
        _change,
        permission=_PERMISSION,
        description="All processes use it with their next mail. Members that the ini file sets are refused.",
    ),
    _SERVER.action(
        "send_test_mail",
        INSTANCE / "instance/mail-server/test",
        "Sends a test mail, and returns the mail server's reply.",
        SendTestMail,
        _send_test,
        permission=_PERMISSION,
        representation=SendResultRepresentation,
    ),
    _MAILS.list(
        INSTANCE / "instance/mails",
        "Lists the newest 100 mails that wait, fail or were given up.",
        lambda call: call.services.queued_mails.list_newest(principal=call.principal),
        is_paged=False,
        permission=_PERMISSION,
        description="Mails that were sent are not among them.",
    ),
    _MAILS.action(
        "retry_mail",
        INSTANCE / "instance/mails/{mail}/retry",
        "Sends a mail again, now.",
        EmptyCommand,
        _retry,
        permission=_PERMISSION,
        description="A link in it may have expired.",
    ),
    _MAILS.delete(
        "cancel_mail",
        INSTANCE / "instance/mails/{mail}",
        "Cancels a mail: it is not sent any more.",
        lambda call: call.services.queued_mails.cancel(call.child_id, principal=call.principal),
        permission=_PERMISSION,
    ),
)
