"""Delivery of webhooks: content, signatures, retries."""

import base64
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from identity.application_factory import create_application
from identity.background_worker import BackgroundWorker
from identity.domain.audit import SYSTEM, AuditEvent, Result
from identity.domain.errors import Invalid
from identity.domain.permissions import Resource
from identity.outbox_sender import OutboxSender
from identity.plugins.webhooks import ReceiverDelivery, sign_message
from identity.services.commands.organizations import CreateOrganization
from identity.services.mails import Mail, MailReason
from identity.storage.contract import factories as make
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer
from tests.plugins.webhooks.conftest import SECRET, WebhookReceiver, flush, webhook

# --- delivery ---------------------------------------------------------------------------------------------------------


def test_webhook_event_is_sent_once_and_signed(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    organization = world.make_organization()
    assert receiver.received == [], "not before somebody sends"
    assert sender.send_due() == 1
    assert sender.run() is None
    (message,) = receiver.received
    (event,) = world.audit_events(object_id=organization.id)
    assert message.event["id"] == event.id == message.headers["webhook-id"]
    assert (message.event["event"], message.event["object_id"]) == ("organization.created", organization.id)
    assert message.path == "/events?key=confidential"
    assert message.headers["Content-Type"] == "application/json"
    timestamp = int(message.headers["webhook-timestamp"])
    assert abs(timestamp - time.time()) < 60
    assert message.headers["webhook-signature"] == sign_message(SECRET, event.id, timestamp, message.body)


def test_webhook_signature_matches_specification() -> None:
    """The example of the Standard Webhooks specification."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign_message(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == expected


@pytest.mark.storages("memory")
def test_webhook_event_matches_management_api(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    world.make_organization()
    sender.send_due()
    owner = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    response = world.client.get(
        f"{world.identity.settings.base_url}/management/v1/audit-events/{receiver.received[0].event['id']}",
        {"Authorization": f"Bearer {owner.management_token()}"},
    )
    assert response.json == receiver.received[0].event


def test_webhook_sends_refused_attempts(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    robot = world.make_service_user_program()
    flush(world)
    receiver.received.clear()
    assert robot.request_token(iat=world.clock.seconds - 10_000).status_int == 400
    assert sender.send_due() == 1
    (message,) = receiver.received
    assert (message.event["event"], message.event["result"]) == ("authentication.refused", "refused")
    assert message.event["object_id"] == robot.id
    # At most once a minute, as in the audit trail.
    robot.request_token(iat=world.clock.seconds - 10_000)
    assert sender.send_due() == 0


@pytest.mark.storages("memory")
def test_only_chosen_events_are_sent(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    world.make_service_user_program()
    sender.send_due()
    assert receiver.names == ["organization.created"]


def test_aborted_transaction_sends_no_webhook(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    def fail() -> None:
        with world.transaction_services() as services:
            services.organizations.create(CreateOrganization(name="Acme"))
            raise Invalid({"name": "No."})

    with pytest.raises(Invalid):
        fail()
    assert sender.run() is None
    assert receiver.received == []


@pytest.mark.storages("memory")
def test_webhook_is_sent_outside_transactions(
    make_world: WorldFactory, settings: dict[str, str], receiver: WebhookReceiver
) -> None:
    """This storage allows one writer: another transaction writes while the receiver delays its response."""
    world = make_world(**settings | {"identity.plugin.webhooks.timeout": "20s"})
    world.make_organization()
    receiver.answering.clear()
    sending = threading.Thread(target=flush, args=[world])
    writing = threading.Thread(target=world.make_organization)
    sending.start()
    assert receiver.arrived.wait(10)
    writing.start()
    writing.join(10)
    waited = writing.is_alive()
    receiver.answering.set()
    sending.join()
    writing.join()
    assert not waited


@pytest.mark.storages("memory")
def test_unserializable_event_does_not_stop_change(
    world: World, sender: OutboxSender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: ReceiverDelivery, event: AuditEvent) -> bytes:
        raise RuntimeError("broken")

    monkeypatch.setattr(ReceiverDelivery, "event_content", fail)
    organization = world.make_organization()
    assert len(world.audit_events(object_id=organization.id)) == 1
    assert sender.run() is None
    assert "no message could be made about organization.created" in caplog.text


# --- failed deliveries ------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_failed_webhook_is_retried(
    world: World, sender: OutboxSender, receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    for status in (500, 503, 404, 400, 401, 301, 302, 307, 308):
        receiver.received.clear()
        receiver.answers = [status]
        world.make_organization()
        span = sender.run()
        assert span is not None
        assert timedelta(seconds=8) <= span <= timedelta(seconds=10)
        assert f"the receiver answered {status}" in caplog.text
        assert sender.find_problem() is not None
        world.clock.advance(10)
        assert sender.run() is None
        first, second = receiver.received
        assert first.path == second.path, "no redirect was followed"
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        assert sender.find_problem() is None
    assert "confidential" not in caplog.text


@pytest.mark.storages("memory")
def test_hanging_receiver_times_out(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    receiver.answering.clear()
    world.make_organization()
    began = time.monotonic()
    assert sender.run() is not None
    assert time.monotonic() - began < 10
    receiver.answering.set()
    world.clock.advance(10)
    assert sender.run() is None
    assert receiver.names == ["organization.created"] * 2


@pytest.mark.storages("memory")
def test_unreachable_receiver_gets_event_later(
    world: World, sender: OutboxSender, receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.close()
    world.make_organization()
    spans = []
    for _ in range(16):
        span = sender.run()
        assert span is not None
        spans.append(span)
        world.clock.advance(int(span.total_seconds()))
    assert spans[0] <= timedelta(seconds=10)
    assert timedelta(hours=19) < spans[-1] <= timedelta(days=1)
    assert "confidential" not in caplog.text
    world.clock.advance(days=7)
    assert sender.run() is None
    assert "given up lately" in (sender.find_problem() or "")


@pytest.mark.storages("memory")
def test_gone_receiver_is_skipped_until_restart(
    world: World, sender: OutboxSender, receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [410]
    world.make_organization()
    world.make_organization()
    assert sender.run() is None
    assert len(receiver.received) in (1, 2)
    assert "gone (410)" in caplog.text
    came = len(receiver.received)
    world.make_organization()
    world.clock.advance(hours=1)
    assert sender.run() is None
    assert len(receiver.received) == came


# --- reliability ------------------------------------------------------------------------------------------------------


@pytest.mark.storages("sqlite", "postgresql")
def test_crash_after_commit_loses_no_webhook(world: World, sender: OutboxSender, receiver: WebhookReceiver) -> None:
    """Memory does not survive its process."""
    world.make_organization()
    world.identity.record_refusals([make.audit_event(event="authentication.refused", result=Result.REFUSED)])
    second = create_application(world.settings, clock=world.clock)
    second.background_worker = BackgroundWorker([])
    try:
        assert webhook(second).run() is None
    finally:
        second.close()
    assert sorted(receiver.names) == ["authentication.refused", "organization.created"]
    assert sender.run() is None
    assert len(receiver.received) == 2


@pytest.mark.storages("sqlite")
def test_background_worker_sends_webhooks_without_delaying_mail(
    make_world: WorldFactory,
    settings: dict[str, str],
    receiver: WebhookReceiver,
    make_receiver: Callable[[], WebhookReceiver],
) -> None:
    hanging = make_receiver()
    hanging.answering.clear()
    post = ReceivingMailServer()
    post.start()
    # Longer than this test waits for the other receiver.
    changed = {"urls": f"{hanging.url} {receiver.url}", "timeout": "20s"}
    changed = {f"identity.plugin.webhooks.{name}": value for name, value in changed.items()}
    world = make_world(**settings | post.settings | changed)
    second = create_application(world.settings)
    try:
        with second.transaction(SYSTEM) as services:
            services.organizations.create(CreateOrganization(name="Acme"))
        assert hanging.arrived.wait(10)
        with second.transaction(SYSTEM) as services:
            services.mails.queue(Mail(to="ada@acme.example", subject="Hello", text="Hello\n"), MailReason.NOTICE)
        assert post.arrived.wait(10)
        assert receiver.arrived.wait(10)
        assert len(hanging.received) >= 1
        assert not hanging.answering.is_set()
    finally:
        hanging.answering.set()
        second.close()
        post.stop()


@pytest.mark.storages("memory")
def test_every_receiver_gets_every_event(
    make_world: WorldFactory,
    settings: dict[str, str],
    receiver: WebhookReceiver,
    make_receiver: Callable[[], WebhookReceiver],
) -> None:
    webhook_receiver = make_receiver()
    world = make_world(**settings | {"identity.plugin.webhooks.urls": f"{receiver.url} {webhook_receiver.url}"})
    receiver.answers = [500] * 10
    world.make_organization()
    for outbox_sender in world.identity.senders.values():
        outbox_sender.run()
    assert sorted(receiver.names) == sorted(webhook_receiver.names)
    names = {outbox_sender.name for outbox_sender in world.identity.senders.values()}
    assert len({name for name in names if "webhook" in name}) == 2
