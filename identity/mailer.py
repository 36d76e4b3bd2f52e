"""Sends mails to the mail server of ``identity.smtp``, and delivers them from the outbox."""

import smtplib
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from typing import TYPE_CHECKING

from identity.services.mails import MAIL_KIND, Mail, Notification, PasswordResetMail, parse_queued
from identity.services.outbox import Delivery, DeliveryFailed, DeliveryRejected
from identity.settings import SmtpSecurity, SmtpSettings
from identity.settings_parser import InvalidSetting

if TYPE_CHECKING:
    from email.headerregistry import Address

_TIMEOUT_SECONDS = 10.0
#: Reply codes from here on are permanent failures (RFC 5321 §4.2.1).
_PERMANENT_FAILURE = 500


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


class Mailer:
    """Opens one connection per mail, because mails are rare."""

    def __init__(self, settings: SmtpSettings) -> None:
        self._settings = settings
        #: False if mail cannot be sent; then pages must not promise any.
        self.is_enabled = bool(settings.host)
        #: Renders a notification; set by the pages, which own the templates. A process without pages sends none.
        self.render_notification: Callable[[Notification], Mail] | None = None
        #: The same for password resets of an address: one mail for each spelling of it.
        self.render_password_reset: Callable[[PasswordResetMail], list[Mail]] | None = None

    def send(self, mail: Mail) -> None:
        """Send the mail. Raises DeliveryRejected if the server rejects the address permanently; OSError,
        smtplib.SMTPException.
        """
        message = EmailMessage()
        message["From"] = self._sender(mail.sender)
        message["To"] = mail.to
        message["Subject"] = mail.subject
        message["Date"] = formatdate(usegmt=True)
        message["Message-ID"] = make_msgid(domain=self._settings.sender.rpartition("@")[2].rstrip("> "))
        # Suppresses automatic replies.
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.text)
        if mail.html:
            message.add_alternative(mail.html, subtype="html")
        with self._connect() as server:
            if self._settings.user:
                server.login(self._settings.user, self._read_password())
            try:
                # Given explicitly, so that nothing in a header can decide where a link goes.
                server.send_message(message, to_addrs=[mail.to])
            except smtplib.SMTPRecipientsRefused as refused:
                if all(code >= _PERMANENT_FAILURE for code, _ in refused.recipients.values()):
                    raise DeliveryRejected from None
                raise

    def find_problem(self) -> str | None:
        """What prevents sending mail, as a sentence that names settings; None if nothing does."""
        try:
            with self._connect() as server:
                if self._settings.user:
                    server.login(self._settings.user, self._read_password())
        except (OSError, smtplib.SMTPException, InvalidSetting) as problem:
            where = f"{self._settings.host}:{self._settings.port}"
            return f"The mail server {where} does not take our mail: {_failure_reason(problem)}."
        return None

    def _sender(self, name: str) -> "str | Address":
        """The sender address with another display name."""
        if not name:
            return self._settings.sender
        from email.headerregistry import Address

        return Address(display_name=name, addr_spec=parseaddr(self._settings.sender)[1])

    def _connect(self) -> smtplib.SMTP:
        settings = self._settings
        if settings.security is SmtpSecurity.TLS:
            return smtplib.SMTP_SSL(
                settings.host, settings.port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context()
            )
        server = smtplib.SMTP(settings.host, settings.port, timeout=_TIMEOUT_SECONDS)
        if settings.security is SmtpSecurity.STARTTLS:
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server

    def _read_password(self) -> str:
        file = self._settings.password_file
        if file is None:
            raise InvalidSetting("identity.smtp.password_file", "is missing")
        try:
            return file.read_text("utf-8").strip()
        except OSError as problem:
            raise InvalidSetting("identity.smtp.password_file", f"{file} cannot be read: {problem.strerror}") from None


def _failure_reason(problem: Exception) -> str:
    """What the operator has to check."""
    if isinstance(problem, InvalidSetting):
        return str(problem)
    for kind, sentence in _REASONS:
        if isinstance(problem, kind):
            return f"{sentence} ({type(problem).__name__})"
    return f"look at identity.smtp.host and identity.smtp.port ({getattr(problem, 'strerror', type(problem).__name__)})"


class MailDelivery(Delivery):
    kind = MAIL_KIND
    # Links in mails are valid for an hour at most, so later mails are useless.
    message_lifetime = timedelta(hours=1)
    max_delay = timedelta(minutes=10)

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer

    def send(self, content: bytes) -> None:
        """Send the mail or mails that the message stands for."""
        refused = None
        for mail in self._render_mails(parse_queued(content)):
            try:
                if mail.to:
                    self._mailer.send(mail)
            except DeliveryRejected as problem:
                # The remaining mails are sent nevertheless.
                refused = problem
        if refused is not None:
            raise refused

    def _render_mails(self, found: Mail | Notification | PasswordResetMail) -> list[Mail]:
        """Raises DeliveryFailed if no renderer is set."""
        if isinstance(found, Mail):
            return [found]
        if isinstance(found, Notification) and self._mailer.render_notification is not None:
            return [self._mailer.render_notification(found)]
        if isinstance(found, PasswordResetMail) and self._mailer.render_password_reset is not None:
            return self._mailer.render_password_reset(found) if found.key else []
        raise DeliveryFailed("no page of this process words it")
