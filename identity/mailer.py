"""Mailer: hands mails to the mail server of ``identity.smtp``; MailDelivery, their way out of the outbox."""

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
#: Replies from here on stay the same however often one asks (RFC 5321 §4.2.1).
_PERMANENT_FAILURE = 500


#: What a failure means, the narrower kinds of exceptions first.
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
    """One connection per mail: there are few of them."""

    def __init__(self, settings: SmtpSettings) -> None:
        self._settings = settings
        #: False if no mail goes anywhere: then nothing is to be promised that needs one.
        self.is_enabled = bool(settings.host)
        #: Words a notice; set by the pages, which know the templates. A process without pages sends none.
        self.render_notification: Callable[[Notification], Mail] | None = None
        #: The same for the accounts of an address: a mail for each spelling of it.
        self.render_password_reset: Callable[[PasswordResetMail], list[Mail]] | None = None

    def send(self, mail: Mail) -> None:
        """Send it. Raises DeliveryRejected if the server refuses the address for good; OSError,
        smtplib.SMTPException."""
        message = EmailMessage()
        message["From"] = self._sender(mail.sender)
        message["To"] = mail.to
        message["Subject"] = mail.subject
        message["Date"] = formatdate(usegmt=True)
        message["Message-ID"] = make_msgid(domain=self._settings.sender.rpartition("@")[2].rstrip("> "))
        # Nobody's "out of office" is to answer.
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.text)
        if mail.html:
            message.add_alternative(mail.html, subtype="html")
        with self._connect() as server:
            if self._settings.user:
                server.login(self._settings.user, self._read_password())
            try:
                # Named once more: nothing in the header is to say where a link goes.
                server.send_message(message, to_addrs=[mail.to])
            except smtplib.SMTPRecipientsRefused as refused:
                if all(code >= _PERMANENT_FAILURE for code, _ in refused.recipients.values()):
                    raise DeliveryRejected from None
                raise

    def find_problem(self) -> str | None:
        """What is wrong with the way to the mail server, as a sentence that names settings, or None."""
        try:
            with self._connect() as server:
                if self._settings.user:
                    server.login(self._settings.user, self._read_password())
        except (OSError, smtplib.SMTPException, InvalidSetting) as problem:
            where = f"{self._settings.host}:{self._settings.port}"
            return f"The mail server {where} does not take our mail: {_failure_reason(problem)}."
        return None

    def _sender(self, name: str) -> "str | Address":
        """The address that mails come from, with another name beside it."""
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
    """What an operator has to look at."""
    if isinstance(problem, InvalidSetting):
        return str(problem)
    for kind, sentence in _REASONS:
        if isinstance(problem, kind):
            return f"{sentence} ({type(problem).__name__})"
    return f"look at identity.smtp.host and identity.smtp.port ({getattr(problem, 'strerror', type(problem).__name__)})"


class MailDelivery(Delivery):
    """Mails out of the outbox."""

    kind = MAIL_KIND
    # No mail of ours is worth anything later: what it links to works for an hour at most.
    message_lifetime = timedelta(hours=1)
    max_delay = timedelta(minutes=10)

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer

    def send(self, content: bytes) -> None:
        """Send the mail; one that stands for none goes nowhere."""
        refused = None
        for mail in self._render_mails(parse_queued(content)):
            try:
                if mail.to:
                    self._mailer.send(mail)
            except DeliveryRejected as problem:
                # The others go out all the same.
                refused = problem
        if refused is not None:
            raise refused

    def _render_mails(self, found: Mail | Notification | PasswordResetMail) -> list[Mail]:
        """Raises DeliveryFailed where nobody words them."""
        if isinstance(found, Mail):
            return [found]
        if isinstance(found, Notification) and self._mailer.render_notification is not None:
            return [self._mailer.render_notification(found)]
        if isinstance(found, PasswordResetMail) and self._mailer.render_password_reset is not None:
            return self._mailer.render_password_reset(found) if found.key else []
        raise DeliveryFailed("no page of this process words it")
