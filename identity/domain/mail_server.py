"""The mail server that the service hands its mails to."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parseaddr
from enum import StrEnum
from pathlib import Path

from identity.domain.entity import entity, internal, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable
from identity.domain.validators import LOOPBACK_HOSTS, email_problem, text_problem


class SmtpSecurity(StrEnum):
    """How the connection to the mail server is protected."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\Z|[0-9A-Fa-f:]{2,45}\Z")
_LAST_PORT = 65535
_LONGEST_SENDER = 320


def _host_error(host: str) -> str | None:
    return None if not host or _HOST.match(host) else gettext_lazy("Enter a host name such as mail.example.com.")


def _port_error(port: int) -> str | None:
    return None if 0 < port <= _LAST_PORT else gettext_lazy("Enter a port between 1 and 65535.")


def _sender_error(sender: str) -> str | None:
    if not sender:
        return None
    if len(sender) > _LONGEST_SENDER or not is_printable(sender) or email_problem(parseaddr(sender)[1]):
        return gettext_lazy("Enter an address such as {example}.", example="Example <no-reply@example.com>")
    return None


@entity
class MailServer:
    """Without a host no mail is sent. ``password`` is stored sealed, with the rest, and never displayed."""

    host: str = mutable(default="", validator=_host_error)
    port: int = mutable(default=587, validator=_port_error)
    security: SmtpSecurity = mutable(default=SmtpSecurity.STARTTLS)
    user: str = mutable(default="", validator=text_problem)
    sender: str = mutable(default="", validator=_sender_error)
    password: str = internal(default="")
    password_changed_at: datetime | None = read_only(default=None)
    changed_at: datetime | None = versioned(default=None)
    version: int = versioned(default=0)

    @property
    def is_on_this_machine(self) -> bool:
        return self.host in LOOPBACK_HOSTS

    @property
    def connection(self) -> tuple[str, int, SmtpSecurity, str]:
        """Where the password goes, and how."""
        return self.host, self.port, self.security, self.user


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveMailServer:
    """The mail server in use. The ini file sets the fields in ``configured``; ``password_file`` is its password.
    ``is_restricted`` if the host was chosen in the service: then it must have a public address or one that the operator
    allows, as for other requests to the outside."""

    server: MailServer
    configured: frozenset[str] = frozenset()
    password_file: Path | None = field(default=None, repr=False)
    is_restricted: bool = False
