"""The outbox: nothing is sent before the commit, nothing is lost, and nothing is sent twice."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.application import IdentityApplication
from identity.background_worker import BackgroundWorker
from identity.services.leases import acquire_lease
from identity.services.mails import Mail, MailReason
from identity.services.outbox import DeliveryRejected
from identity.testing.clock import FakeClock

MAIL = Mail(to="ada@acme.example", subject="Hello", text="Hello\n")


class FailingMailServer:
    """Replaces the mail sender."""

    def __init__(self) -> None:
        self.sent: list[Mail] = []
        self.problem: Exception | None = None

    def send(self, mail: Mail) -> None:
        if self.problem is not None:
            raise self.problem
        self.sent.append(mail)


@pytest.fixture
def further() -> dict[str, str]:
    return {"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"}


@pytest.fixture
def server(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch) -> FailingMailServer:
    identity.background_worker.stop()
    identity.background_worker = BackgroundWorker([])
    server = FailingMailServer()
    monkeypatch.setattr(identity.mailer, "send", server.send)
    return server


@pytest.fixture
def calls(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs for which the worker was woken."""
    identity.background_worker.stop()
    identity.background_worker = BackgroundWorker([])
    calls: list[str] = []
    monkeypatch.setattr(identity.background_worker, "run_now", calls.append)
    return calls


def queue(identity: IdentityApplication, mail: Mail = MAIL) -> None:
    with identity.transaction() as services:
        services.mails.queue(mail, MailReason.NOTICE)


def test_commit_wakes_worker_once(identity: IdentityApplication, calls: list[str]) -> None:
    with identity.transaction() as services:
        services.mails.queue(MAIL, MailReason.NOTICE)
        services.mails.queue(MAIL, MailReason.NOTICE)
        assert calls == []
    assert calls == ["outbox: mail"]


def test_aborted_message_is_not_sent(
    identity: IdentityApplication, server: FailingMailServer, calls: list[str]
) -> None:
    def change_our_mind() -> None:
        with identity.transaction() as services:
            services.mails.queue(MAIL, MailReason.NOTICE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_our_mind()
    assert calls == []
    assert identity.senders["mail"].run() is None
    assert server.sent == []


def test_message_is_sent_once_immediately(identity: IdentityApplication, server: FailingMailServer) -> None:
    queue(identity)
    assert identity.senders["mail"].run() is None
    # The mail server works again.
    queue(identity)
    assert identity.senders["mail"].run() is None
    assert server.sent == [MAIL, MAIL]


def test_retry_delay_grows_during_outage(
    identity: IdentityApplication, server: FailingMailServer, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.problem = ConnectionRefusedError(f"no way to {MAIL.to}")
    queue(identity)
    spans = []
    for _ in range(7):
        span = identity.senders["mail"].run()
        assert span is not None
        spans.append(int(span.total_seconds()))
        clock.advance(spans[-1])
    # Up to a fifth shorter, so that mails that failed together are not retried together.
    longest = [10, 20, 40, 80, 160, 320, 600]
    assert all(0.8 * most - 1 <= span <= most for span, most in zip(spans, longest, strict=True)), spans
    assert MAIL.to not in caplog.text
    assert "ConnectionRefusedError" in caplog.text
    server.problem = None
    assert identity.senders["mail"].run() is None
    assert server.sent == [MAIL]


def test_expired_message_is_dropped(
    identity: IdentityApplication, server: FailingMailServer, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.problem = ConnectionRefusedError()
    queue(identity)
    began = clock()
    for _ in range(20):
        span = identity.senders["mail"].run()
        if "given up after" in caplog.text:
            break
        assert span is not None
        clock.advance(seconds=int(span.total_seconds()))
    assert timedelta(minutes=50) <= clock() - began < timedelta(hours=1)
    server.problem = None
    clock.advance(hours=1)
    assert identity.senders["mail"].run() is None
    assert server.sent == []


def test_backlog_is_reported_to_operators(
    identity: IdentityApplication, server: FailingMailServer, clock: FakeClock
) -> None:
    sender = identity.senders["mail"]
    queue(identity)
    assert sender.find_problem() is None, "it was not tried yet"
    server.problem = ConnectionRefusedError()
    sender.run()
    assert sender.find_problem() == (
        "Messages wait since 2026-11-21 12:00 UTC: 1 could not be sent yet. Look into the log for the reason."
    )
    assert "outbox: mail" in identity.system_checks.failures()
    assert "outbox: mail" not in identity.system_checks.failures(readiness_only=True)
    clock.advance(hours=1)
    queue(identity)
    sender.run()
    assert "1 could not be sent yet and 1 given up lately" in (sender.find_problem() or "")
    clock.advance(days=3)
    identity.background_jobs.purge()
    assert sender.find_problem() is None


def test_rejected_address_is_not_retried(
    identity: IdentityApplication, server: FailingMailServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.problem = DeliveryRejected()
    queue(identity)
    assert identity.senders["mail"].run() is None
    assert MAIL.to not in caplog.text


def test_mail_without_recipient_is_not_sent(
    identity: IdentityApplication, server: FailingMailServer, caplog: pytest.LogCaptureFixture
) -> None:
    queue(identity, Mail(to="", subject="Hello", text="Hello\n"))
    assert identity.senders["mail"].run() is None
    assert server.sent == []
    assert caplog.text == ""


def test_queue_is_sent_by_one_node(identity: IdentityApplication, server: FailingMailServer, clock: FakeClock) -> None:
    queue(identity)
    with identity.transaction() as services:
        acquire_lease(services.storage, "outbox: mail", starts_at=clock(), expires_at=clock() + timedelta(seconds=60))
    assert identity.senders["mail"].run() == timedelta(minutes=1)
    assert server.sent == []
    clock.advance(60)
    assert identity.senders["mail"].run() is None
    assert server.sent == [MAIL]


def test_full_batches_are_sent_without_delay(identity: IdentityApplication, server: FailingMailServer) -> None:
    with identity.transaction() as services:
        for number in range(15):
            # More mails to one address would exceed its hourly limit.
            services.mails.queue(replace(MAIL, to=f"ada-{number}@acme.example"), MailReason.NOTICE)
    assert identity.senders["mail"].run() == timedelta()
    assert identity.senders["mail"].run() is None
    assert len(server.sent) == 15


def test_tampered_message_is_not_sent(
    identity: IdentityApplication, server: FailingMailServer, caplog: pytest.LogCaptureFixture
) -> None:
    with identity.transaction() as services:
        services.mails.queue(MAIL, MailReason.NOTICE)
        services.mails.queue(MAIL, MailReason.NOTICE)
        first, second = services.outbox.list_due("mail")
        services.storage.outbox.delete(second.id)
        services.storage.outbox.add(replace(second, sealed=first.sealed))
    assert identity.senders["mail"].run() is None
    assert len(server.sent) == 1
    assert "cannot be opened" in caplog.text
