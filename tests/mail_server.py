"""A real SMTP server on the loopback interface, and the messages it received."""

import re
import socket
import ssl
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.http_server import self_signed_certificate

USER, PASSWORD = "identity", "the mail server's own password"


class ReceivingMailServer:
    """An SMTP server. ``received_messages`` are the accepted messages, ``rcpt_response`` is the response to each
    recipient.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None) -> None:
        self._tls, self._starttls = tls, starttls
        self.received_messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.rcpt_response = "250 OK"
        self.arrived = threading.Event()
        self._bound = socket.socket()
        # Reserves the port; the server accepts connections only after ``start``.
        self._bound.bind(("127.0.0.1", 0))
        self.port: int = self._bound.getsockname()[1]
        self._controller: Controller | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a service that sends mail through this server."""
        security = "tls" if self._tls else "starttls" if self._starttls else "none"
        return {
            "identity.smtp.host": "localhost",
            "identity.smtp.port": str(self.port),
            "identity.smtp.security": security,
            "identity.smtp.sender": "Identity <no-reply@id.example.com>",
        }

    def start(self) -> None:
        self._controller = _Controller(self, self._bound, self._tls, self._starttls)
        self._controller.start()

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop()
        self._bound.close()

    def pop_only_message(self) -> EmailMessage:
        """Remove and return the only message received."""
        assert len(self.received_messages) == 1, [
            str(received_message["To"]) for received_message in self.received_messages
        ]
        return self.received_messages.pop()

    async def handle_RCPT(  # noqa: N802 - the name is given by aiosmtpd
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if self.rcpt_response.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.rcpt_response

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.recipients += envelope.rcpt_tos
        letter = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(letter, EmailMessage)
        self.received_messages.append(letter)
        self.arrived.set()
        return "250 OK"


class _Controller(Controller):
    """Serves on a socket that is already bound."""

    def __init__(
        self,
        post: ReceivingMailServer,
        bound: socket.socket,
        tls: ssl.SSLContext | None,
        starttls: ssl.SSLContext | None,
    ) -> None:
        guarded: dict[str, Any] = {}
        if starttls is not None:
            guarded = {
                "tls_context": starttls,
                "require_starttls": True,
                "auth_required": True,
                "authenticator": _authenticate,
            }
        super().__init__(post, hostname="localhost", port=bound.getsockname()[1], ssl_context=tls, **guarded)
        self._bound = bound

    def _create_server(self) -> Any:
        return self.loop.create_server(self._factory_invoker, sock=self._bound, ssl=self.ssl_context)


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for localhost, and a server-side SSL context."""
    file = self_signed_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return file, context


def message_text(letter: EmailMessage) -> str:
    return _part(letter, "plain")


def message_html(letter: EmailMessage) -> str:
    return _part(letter, "html")


def _part(letter: EmailMessage, kind: str) -> str:
    assert letter.get_content_type() == "multipart/alternative"
    body = letter.get_body((kind,))
    assert body is not None
    text: str = body.get_content()
    return text.replace("\r\n", "\n")


def extract_one_time_link(letter: EmailMessage) -> str:
    """The single-use link in the message."""
    found = re.findall(r"https://[^\s]+/[A-Za-z0-9]{43}", message_text(letter))
    assert len(found) == 1, message_text(letter)
    return str(found[0])
