"""In development, mails are stored in a folder and shown on a page (``/dev/mails``) instead of being sent."""

import json
import logging
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from identity.crypto.secrets import new_id
from identity.domain.errors import Invalid
from identity.mailer import Mailer, MailReceipt
from identity.outbound_http import OutboundHttpClient
from identity.secret_files import secret_file_transaction
from identity.services.mails import Mail
from identity.services.outbox import DeliveryFailed
from identity.settings import Settings

log = logging.getLogger(__name__)

#: Path of the page below ``identity.login_url``.
MAILBOX_PATH = "/dev/mails"
#: The oldest mails beyond this number are deleted.
MAX_STORED_MAILS = 100

_FOLDER = "mails"
#: Nanoseconds, so that names sort by time, and a random id, so that processes never collide.
_FILE_NAME = re.compile(r"\d{20}-[0-9a-f-]{36}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredMail:
    id: str
    stored_at: datetime
    mail: Mail


class DevelopmentMailbox(Mailer):
    """Stores the newest mails as files that only their owner can read. All processes with the same ``identity.data``
    share it. As soon as a mail server is set in the console, mails go there.
    """

    has_mailbox = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.smtp, OutboundHttpClient.parse_networks(settings.allowed_networks))
        self._folder = settings.data / _FOLDER
        self._page = f"{settings.login_url}{MAILBOX_PATH}"

    def send(self, mail: Mail) -> MailReceipt:
        """Store the mail. Raises DeliveryFailed if the folder cannot be written."""
        if self.load().server.host:
            return super().send(mail)
        name = f"{time.time_ns():020}-{new_id()}"
        try:
            with secret_file_transaction() as write:
                write(self._folder / f"{name}.json", json.dumps(asdict(mail)))
        except Invalid as problem:
            raise DeliveryFailed(" ".join(problem.fields.values())) from None
        for old in self._names()[MAX_STORED_MAILS:]:
            (self._folder / f"{old}.json").unlink(missing_ok=True)
        # Without address and link, because terminals are shared and their output is kept.
        log.warning("no mail server is set: read the mail that was just made at %s", self._page)
        return MailReceipt("", "")

    def mails(self) -> Iterator[StoredMail]:
        """Newest first."""
        for name in self._names():
            stored_mail = self.find(name)
            if stored_mail is not None:
                yield stored_mail

    def find(self, mail_id: str) -> StoredMail | None:
        if not _FILE_NAME.fullmatch(mail_id):
            return None
        try:
            mail = Mail(**json.loads((self._folder / f"{mail_id}.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            # Another process deleted it, or the name belongs to an unrelated file.
            return None
        return StoredMail(mail_id, datetime.fromtimestamp(int(mail_id[:20]) // 10**9, UTC), mail)

    def _names(self) -> list[str]:
        try:
            found = (Path(name).stem for name in os.listdir(self._folder) if name.endswith(".json"))
            return sorted((name for name in found if _FILE_NAME.fullmatch(name)), reverse=True)
        except OSError:
            return []


def create_mailer(settings: Settings, *, listens_locally: bool) -> Mailer:
    """The mailer that the settings describe.

    Without a mail server, a service that only this machine can reach stores its mails: ``listens_locally`` says that
    its web server listens on loopback addresses only and trusts no proxy.
    """
    if not settings.smtp.host and settings.is_loopback_only and listens_locally:
        return DevelopmentMailbox(settings)
    return Mailer(settings.smtp, OutboundHttpClient.parse_networks(settings.allowed_networks))
