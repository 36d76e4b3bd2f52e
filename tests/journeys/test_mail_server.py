"""Delivery to a mail server: while it is down, if it refuses, and with its certificate checked."""

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.background_worker import BackgroundJob, BackgroundWorker
from identity.mailer import MailDelivery, Mailer
from identity.services.mails import Mail, MailReason
from identity.services.outbox import DeliveryRejected
from identity.settings import SmtpSecurity, SmtpSettings
from identity.testing.clock import TickingClock
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import PASSWORD as POST_PASSWORD
from tests.mail_server import USER as POST_USER
from tests.mail_server import ReceivingMailServer, make_certificate, message_text

HELLO = Mail(to="ada@acme.example", subject="Hello", text="Hello to you\n", html="<p>Hello to you</p>")


def queue(world: World) -> None:
    with world.transaction_services() as services:
        services.mails.queue(HELLO, MailReason.NOTICE)


@pytest.mark.storages("memory")
def test_mail_is_retried_and_delivered_once(make_world: WorldFactory, caplog: pytest.LogCaptureFixture) -> None:
    post = ReceivingMailServer()
    world = make_world(**post.settings)
    caplog.set_level(logging.DEBUG)
    queue(world)
    assert world.identity.senders["mail"].send_due() == 0
    assert world.identity.mailer.find_problem() is not None
    post.start()
    assert world.identity.mailer.find_problem() is None
    assert world.identity.senders["mail"].send_due() == 0, "it waits for its next try"
    world.clock.advance(10)
    assert world.identity.senders["mail"].send_due() == 1
    world.clock.advance(hours=1)
    assert world.identity.senders["mail"].send_due() == 0
    assert message_text(post.pop_only_message()) == HELLO.text
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("identity"))
    assert "could not be sent: ConnectionRefusedError" in ours
    assert HELLO.text not in ours
    assert HELLO.to not in ours
    post.stop()


@pytest.mark.storages("memory")
def test_worker_sends_mail_without_further_requests(make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single request is enough: the worker delivers the mail, even if the server is down at first."""
    monkeypatch.setattr(MailDelivery, "initial_delay", timedelta(seconds=1))
    post = ReceivingMailServer()
    world = make_world(**post.settings)
    world.identity.clock = TickingClock()
    tried = []

    def empty() -> timedelta | None:
        again = world.identity.senders["mail"].run()
        tried.append(again)
        if len(tried) == 1:
            post.start()
        return again

    world.identity.background_worker = BackgroundWorker([BackgroundJob("outbox: mail", timedelta(minutes=1), empty)])
    queue(world)
    post.arrived.wait()
    world.identity.background_worker.stop()
    assert tried[0] is not None
    assert message_text(post.pop_only_message()) == HELLO.text
    post.stop()


def test_permanent_and_temporary_smtp_errors_are_distinguished(post: ReceivingMailServer) -> None:
    mailer = Mailer(settings_of(post))
    post.rcpt_response = "550 5.1.1 no such user"
    with pytest.raises(DeliveryRejected):
        mailer.send(HELLO)
    post.rcpt_response = "451 4.3.0 later"
    with pytest.raises(Exception, match="later"):
        mailer.send(HELLO)


def settings_of(post: ReceivingMailServer, **members: Any) -> SmtpSettings:
    security = SmtpSecurity(post.settings["identity.smtp.security"])
    return SmtpSettings(
        host="localhost", port=post.port, security=security, sender="no-reply@id.example.com", **members
    )


class TestProtected:
    """STARTTLS with a name and password, and TLS from the first byte."""

    @pytest.fixture
    def password_file(self, tmp_path: Path) -> Path:
        file = tmp_path / "password"
        file.write_text(f"{POST_PASSWORD}\n")
        return file

    @pytest.mark.parametrize("kind", ["starttls", "tls"])
    def test_mail_server_certificate_is_verified(
        self, tmp_path: Path, password_file: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        certificate, context = make_certificate(tmp_path)
        post = ReceivingMailServer(**{kind: context})
        post.start()
        credentials = {"user": POST_USER, "password_file": password_file} if kind == "starttls" else {}
        mailer = Mailer(settings_of(post, **credentials))
        problem = mailer.find_problem()
        assert problem is not None
        assert "does not prove the name in identity.smtp.host" in problem
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert mailer.find_problem() is None
        mailer.send(HELLO)
        assert post.pop_only_message()["To"] == "ada@acme.example"
        post.stop()

    def test_wrong_smtp_password_is_reported(
        self, tmp_path: Path, password_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate, context = make_certificate(tmp_path)
        post = ReceivingMailServer(starttls=context)
        post.start()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        password_file.write_text("another password")
        mailer = Mailer(settings_of(post, user=POST_USER, password_file=password_file))
        problem = mailer.find_problem()
        assert problem is not None
        assert "it refuses identity.smtp.user, or the password in identity.smtp.password_file" in problem
        assert "another password" not in problem
        missing = Mailer(settings_of(post, user=POST_USER, password_file=tmp_path / "none"))
        assert "identity.smtp.password_file" in str(missing.find_problem())
        post.stop()

    def test_mail_is_not_sent_unencrypted(self, post: ReceivingMailServer) -> None:
        """A server that offers no STARTTLS gets nothing."""
        mailer = Mailer(replace(settings_of(post), security=SmtpSecurity.STARTTLS))
        assert "SMTPNotSupportedError" in str(mailer.find_problem())
        with pytest.raises(Exception, match="STARTTLS"):
            mailer.send(HELLO)
        assert post.received_messages == []
