"""Sends mails to the mail server, and delivers them from the outbox."""

import re
import smtplib
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from typing import TYPE_CHECKING

from identity.domain.mail_server import EffectiveMailServer, MailServer, SmtpSecurity
from identity.domain.messages import gettext_lazy
from identity.domain.outbox import OutboxMessage
from identity.domain.sent_mails import MailOutcome
from identity.outbound_http import ForbiddenDestination, Network, OutboundHttpClient
from identity.services.mail_server import merge_mail_server
from identity.services.mails import MAIL_KIND, Mail, Notification, PasswordResetMail, parse_queued
from identity.services.outbox import Delivery, DeliveryFailed, DeliveryRejected
from identity.settings import SmtpSettings
from identity.settings_parser import InvalidSetting

if TYPE_CHECKING:
    from email.headerregistry import Address

    from identity.services.container import Services

_TIMEOUT_SECONDS = 10.0
#: The greeting's code (RFC 5321 §4.3.2).
_READY = 220
_LONGEST_REPLY = 500
#: Reply codes from here on are permanent failures (RFC 5321 §4.2.1).
_PERMANENT_FAILURE = 500


_ADDRESS = re.compile(r"<?[^\s<>]+@[^\s<>]+>?")

#: What a failure means; narrower exception types come first.
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (smtplib.SMTPAuthenticationError, "it refuses identity.smtp.user, or the password in identity.smtp.password_file"),
    (
        smtplib.SMTPNotSupportedError,
        "it lacks what is asked of it: STARTTLS (identity.smtp.security), or to log on (identity.smtp.user)",
    ),
    (smtplib.SMTPServerDisconnected, "it hangs up: do identity.smtp.port and identity.smtp.security fit each other?"),
    (smtplib.SMTPException, "it refuses us or does not speak SMTP: look at identity.smtp.host and identity.smtp.port"),
    (socket.gaierror, "the name in identity.smtp.host is not known"),
    (ssl.SSLCertVerificationError, "its certificate does not prove the name in identity.smtp.host"),
    (ssl.SSLError, "there is no TLS: do identity.smtp.port and identity.smtp.security fit each other?"),
    (ConnectionRefusedError, "nobody listens there: look at identity.smtp.host and identity.smtp.port"),
    (
        TimeoutError,
        "it says nothing: look at firewalls, at identity.smtp.host, and whether identity.smtp.port and"
        " identity.smtp.security fit each other",
    ),
)


#: The same for pages; ForbiddenDestination looks like an unknown name.
_CONNECTION_PROBLEMS: tuple[tuple[type[Exception], str], ...] = (
    (ForbiddenDestination, gettext_lazy("The host name is not known.")),
    (socket.gaierror, gettext_lazy("The host name is not known.")),
    (smtplib.SMTPNotSupportedError, gettext_lazy("The server does not offer STARTTLS, or no sign-in.")),
    (smtplib.SMTPServerDisconnected, gettext_lazy("The server hung up. Do port and encryption fit each other?")),
    (ssl.SSLCertVerificationError, gettext_lazy("The server's certificate does not prove its host name.")),
    (ssl.SSLError, gettext_lazy("There is no TLS. Do port and encryption fit each other?")),
    (ConnectionRefusedError, gettext_lazy("Nothing listens on this port.")),
    (TimeoutError, gettext_lazy("The server does not respond. Do port and encryption fit each other?")),
)


class _SmtpConnection(smtplib.SMTP):
    """A connection that was opened elsewhere, and remembers the last reply."""

    open_socket: Callable[[str, int], socket.socket]
    last_reply = ""

    def open(self, host: str, port: int) -> None:
        """Connect and read the greeting. Raises SMTPConnectError, OSError."""
        # TLS compares the certificate with it; the constructor would set it, but also connect.
        self._host = host
        code, text = self.connect(host, port)
        if code != _READY:
            self.close()
            raise smtplib.SMTPConnectError(code, text)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        opened = self.open_socket(host, port)
        opened.settimeout(timeout)
        return opened

    def getreply(self) -> tuple[int, bytes]:
        code, text = super().getreply()
        self.last_reply = format_reply(code, text)
        return code, text


class _TlsConnection(smtplib.SMTP_SSL, _SmtpConnection):
    """The same with TLS from the start."""


@dataclass(frozen=True, slots=True)
class MailReceipt:
    """The server's reply to a mail, and the mail's header Message-ID."""

    reply: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """What became of a mail: the server's own words, or why it said nothing. ``is_private`` if the host has no address
    to which the service may connect."""

    is_sent: bool
    reply: str = ""
    problem: str = ""
    is_private: bool = False
    message_id: str = ""

    def record(self, services: "Services", mail: Mail, *, language: str = "", user_id: str | None = None) -> None:
        """Record the test mail in the log of sent mails. It is not retried: without a reply it is given up."""
        outcome = MailOutcome.REFUSED if self.reply else MailOutcome.GIVEN_UP
        services.sent_mails.record_test(
            mail.to,
            MailOutcome.SENT if self.is_sent else outcome,
            reply=_ADDRESS.sub("…", self.reply or self.problem),
            message_id=self.message_id,
            language=language,
            user_id=user_id,
        )


class Mailer:
    """Opens one connection per mail, because mails are rare."""

    #: True if mails are stored for a page instead, as long as there is no mail server.
    has_mailbox = False

    def __init__(self, settings: SmtpSettings, networks: Sequence[Network] = ()) -> None:
        every = frozenset(field.name for field in fields(settings))
        #: The mail server to use now; set by the application, which also reads what is stored.
        self.load: Callable[[], EffectiveMailServer] = lambda: merge_mail_server(
            replace(settings, configured=every), MailServer()
        )
        self._restricted = OutboundHttpClient(networks=networks, seconds=_TIMEOUT_SECONDS)
        #: Renders a notification; set by the pages, which own the templates. A process without pages sends none.
        self.render_notification: Callable[[Notification], Mail] | None = None
        #: The same for password resets of an address: one mail for each spelling of it.
        self.render_password_reset: Callable[[PasswordResetMail], list[Mail]] | None = None

    def send(self, mail: Mail) -> MailReceipt:
        """Send the mail. Raises DeliveryRejected if the server rejects the address
        permanently; DeliveryFailed without a server; OSError, smtplib.SMTPException.
        """
        used = self.load()
        if not used.server.host:
            raise DeliveryFailed("no mail server is set")
        message = EmailMessage()
        message["From"] = _sender(used.server, mail.sender)
        message["To"] = mail.to
        message["Subject"] = mail.subject
        message["Date"] = formatdate(usegmt=True)
        message["Message-ID"] = make_msgid(domain=used.server.sender.rpartition("@")[2].rstrip("> "))
        # Suppresses automatic replies.
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.text)
        if mail.html:
            message.add_alternative(mail.html, subtype="html")
        with self._connect(used) as server:
            _log_in(server, used)
            try:
                # Given explicitly, so that nothing in a header can decide where a link goes.
                server.send_message(message, to_addrs=[mail.to])
            except smtplib.SMTPRecipientsRefused as refused:
                if all(code >= _PERMANENT_FAILURE for code, _ in refused.recipients.values()):
                    raise DeliveryRejected(*map(_format_refusal, refused.recipients.values())) from None
                raise
            return MailReceipt(server.last_reply, str(message["Message-ID"]))

    def try_to_send(self, mail: Mail) -> SendResult:
        """Send the mail now and say what the server replied."""
        try:
            receipt = self.send(mail)
            return SendResult(is_sent=True, reply=receipt.reply, message_id=receipt.message_id)
        except DeliveryRejected as refused:
            return SendResult(is_sent=False, reply=str(refused))
        except (DeliveryFailed, InvalidSetting) as problem:
            return SendResult(is_sent=False, problem=str(problem))
        except (OSError, smtplib.SMTPException) as problem:
            reply = find_reply(problem)
            return SendResult(
                is_sent=False,
                reply=reply,
                problem="" if reply else _connection_problem(problem),
                is_private=isinstance(problem, ForbiddenDestination),
            )

    def find_problem(self) -> str | None:
        """What prevents sending mail, as a sentence that names settings; None if nothing does, or without a server."""
        used = self.load()
        if not used.server.host:
            return None
        try:
            with self._connect(used) as server:
                _log_in(server, used)
        except (OSError, smtplib.SMTPException, InvalidSetting) as problem:
            where = f"{used.server.host}:{used.server.port}"
            return f"The mail server {where} does not take our mail: {_failure_reason(problem)}."
        return None

    def _connect(self, used: EffectiveMailServer) -> _SmtpConnection:
        server = used.server
        context = ssl.create_default_context()
        tls = server.security is SmtpSecurity.TLS
        connection = (
            _TlsConnection(timeout=_TIMEOUT_SECONDS, context=context)
            if tls
            else _SmtpConnection(timeout=_TIMEOUT_SECONDS)
        )
        connection.open_socket = self._restricted.connect if used.is_restricted else _open_socket
        connection.open(server.host, server.port)
        if server.security is SmtpSecurity.STARTTLS:
            try:
                connection.starttls(context=context)
            except BaseException:
                connection.close()
                raise
        return connection


def _open_socket(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS)


def _log_in(connection: _SmtpConnection, used: EffectiveMailServer) -> None:
    """Raises InvalidSetting, smtplib.SMTPException."""
    if not used.server.user:
        return
    password = used.server.password
    if used.password_file is not None:
        try:
            password = used.password_file.read_text("utf-8").strip()
        except OSError as problem:
            raise InvalidSetting(
                "identity.smtp.password_file", f"{used.password_file} cannot be read: {problem.strerror}"
            ) from None
    if not password:
        raise InvalidSetting("identity.smtp.password_file", "is missing")
    connection.login(used.server.user, password)


def _sender(server: MailServer, name: str) -> "str | Address":
    """The sender address with another display name."""
    if not name:
        return server.sender
    from email.headerregistry import Address

    return Address(display_name=name, addr_spec=parseaddr(server.sender)[1])


def format_reply(code: int, text: bytes | str) -> str:
    """A reply of the server (RFC 5321 §4.2) as a line of text."""
    line = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(line.split())}"[:_LONGEST_REPLY]


def _format_refusal(refusal: tuple[int, bytes]) -> str:
    return format_reply(*refusal)


def find_reply(problem: BaseException) -> str:
    """The server's reply that caused the problem; empty if it said nothing."""
    if isinstance(problem, smtplib.SMTPRecipientsRefused):
        return " ".join(map(_format_refusal, problem.recipients.values()))
    if isinstance(problem, smtplib.SMTPResponseException):
        return format_reply(problem.smtp_code, problem.smtp_error)
    return ""


def _connection_problem(problem: Exception) -> str:
    """Why there was no reply."""
    for kind, sentence in _CONNECTION_PROBLEMS:
        if isinstance(problem, kind):
            return sentence
    return gettext_lazy("The connection failed: {reason}.", reason=type(problem).__name__)


def _failure_reason(problem: Exception) -> str:
    """What the operator has to check."""
    if isinstance(problem, InvalidSetting):
        return str(problem)
    for kind, sentence in _REASONS:
        if isinstance(problem, kind):
            return f"{sentence} ({type(problem).__name__})"
    return f"look at identity.smtp.host and identity.smtp.port ({getattr(problem, 'strerror', type(problem).__name__)})"


_NO_RECEIPT = MailReceipt("", "")


class MailDelivery(Delivery):
    kind = MAIL_KIND
    # Links in mails are valid for an hour at most, so later mails are useless.
    message_lifetime = timedelta(hours=1)
    max_delay = timedelta(minutes=10)

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer
        #: Recipient, outcome and receipt of each mail of the message that was sent last.
        self._ended: list[tuple[str, MailOutcome, MailReceipt]] = []

    def send(self, content: bytes) -> None:
        """Send the mail or mails that the message stands for."""
        refused, self._ended = None, []
        for mail in self._render_mails(parse_queued(content)):
            if not mail.to:
                continue
            self._ended.append((mail.to, MailOutcome.GIVEN_UP, _NO_RECEIPT))
            try:
                receipt, outcome = self._mailer.send(mail), MailOutcome.SENT
            except DeliveryRejected as problem:
                # The remaining mails are sent nevertheless.
                refused, outcome, receipt = problem, MailOutcome.REFUSED, MailReceipt(" ".join(problem.args), "")
            self._ended[-1] = (mail.to, outcome, receipt)
        if refused is not None:
            raise refused

    def record(self, services: "Services", message: OutboxMessage, given_up: str = "") -> None:
        for recipient, outcome, receipt in self._ended:
            reply = _ADDRESS.sub("…", receipt.reply) or given_up
            services.sent_mails.record(message, recipient, outcome, reply=reply, message_id=receipt.message_id)

    def describe_failure(self, problem: Exception) -> str:
        """The server's reply without the address that it repeats."""
        reply = find_reply(problem)
        return _ADDRESS.sub("…", reply) if reply else super().describe_failure(problem)

    def _render_mails(self, found: Mail | Notification | PasswordResetMail) -> list[Mail]:
        """Raises DeliveryFailed if no renderer is set."""
        if isinstance(found, Mail):
            return [found]
        if isinstance(found, Notification) and self._mailer.render_notification is not None:
            return [self._mailer.render_notification(found)]
        if isinstance(found, PasswordResetMail) and self._mailer.render_password_reset is not None:
            return self._mailer.render_password_reset(found) if found.key else []
        raise DeliveryFailed("no page of this process words it")
