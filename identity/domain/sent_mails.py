"""The log of mails that were sent, refused or given up."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MailOutcome(StrEnum):
    """What became of a mail: the server took it, refused it for good, or could not be reached in time."""

    SENT = "sent"
    REFUSED = "refused"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMail:
    """A mail without subject, text, link or code. ``kind`` is the name of its template, ``created_at`` when it was
    caused, ``ended_at`` when it was sent or given up, ``attempts`` how often it was tried, ``reply`` the mail server's
    last reply without addresses, ``message_id`` the header Message-ID. ``user_id`` is the recipient, None if the mail
    is not for one account."""

    id: str
    kind: str
    recipient: str
    outcome: MailOutcome
    created_at: datetime
    ended_at: datetime
    attempts: int
    reply: str = ""
    message_id: str = ""
    language: str = ""
    user_id: str | None = None
    organization_id: str | None = None
