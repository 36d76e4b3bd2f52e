"""Sent mails: what became of each mail, without its content."""

from identity.domain.sent_mails import MailOutcome, SentMail
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, USER
from identity.plugins.management.representation import DateTime, Representation


class SentMailRepresentation(Representation):
    """A mail that was sent, refused or given up. `kind` is the name of its text, `recipient` its address, empty if the
    caller may not read it. `reply` is the mail server's last reply without addresses."""

    has_volatile_members = True

    id: str
    kind: str
    recipient: str
    outcome: MailOutcome
    created_at: DateTime
    ended_at: DateTime
    attempts: int
    reply: str
    message_id: str
    language: str
    user_id: str | None
    organization_id: str | None


_MAILS = ApiResource[SentMail]("sent_mail", SentMailRepresentation)

OPERATIONS = (
    _MAILS.list(
        INSTANCE / "instance/sent-mails",
        "Lists mails that were sent, refused or given up, newest first.",
        lambda call: call.services.sent_mails.page(call.page, principal=call.principal),
        has_states=False,
        permission="instance.read",
        description="Addresses need `user.read` at the organization of the mail, or at the instance if it has no user.",
    ),
    _MAILS.list(
        USER / "mails",
        "Lists the mails to a user, newest first.",
        lambda call: call.services.sent_mails.page_of_user(call.entity.id, call.page, principal=call.principal),
        has_states=False,
        name="list_user_mails",
        permission="user.read",
    ),
)
