"""Webhooks of organizations and of the instance: who gets which events, signatures, retries, the log, and rights."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from identity.domain.errors import Conflict, Denied, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.webhooks import DeliveryProblem, DeliveryState, Webhook, WebhookDelivery
from identity.services.access_control import Principal
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook, RotateWebhookSecret
from identity.services.organization_transfer import OrganizationTransfer
from identity.services.webhooks import MAX_WEBHOOKS, MESSAGE_LIFETIME
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.webhooks.conftest import ReceivedWebhook, WebhookReceiver, make_receiver, receiver

__all__ = ["make_receiver", "receiver"]

pytestmark = pytest.mark.storages("memory", "sqlite")


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world(**{"identity.outgoing_networks": "127.0.0.0/8"})


def create(world: World, url: str, organization: Organization | None = None, **members: Any) -> tuple[Webhook, str]:
    command = CreateWebhook.build(**{"name": "Receiver", "url": url, **members})
    owner_id = None if organization is None else organization.id
    with world.transaction_services() as services:
        return services.webhooks.create_with_new_secret(owner_id, command, principal=Principal.OPERATOR)


def deliveries(world: World, webhook: Webhook) -> tuple[WebhookDelivery, ...]:
    with world.read_only_services() as services:
        return services.webhooks.page_deliveries(webhook.id).items


def is_signed(message: ReceivedWebhook, secret: str) -> bool:
    """As a receiver checks it (Standard Webhooks)."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message.headers['webhook-id']}.{message.headers['webhook-timestamp']}.".encode() + message.body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return expected in message.headers["webhook-signature"].split(" ")


def send(world: World) -> None:
    world.identity.webhook_sender.send_due()


# --- events -----------------------------------------------------------------------------------------------------------


def test_webhook_of_an_organization_gets_its_own_events_alone(world: World, receiver: WebhookReceiver) -> None:
    acme, other = world.make_organization(), world.make_organization()
    webhook, secret = create(world, receiver.url, acme, events=("user.*", "project.created"))
    ada = world.make_human_user(acme)
    world.make_human_user(other)
    send(world)
    assert receiver.names == ["user.created"]
    [message] = receiver.received
    assert message.event["object_id"] == ada.id
    [event] = world.audit_events(object_id=ada.id, event="user.created")
    assert message.headers["webhook-id"] == message.event["id"] == event.id
    assert is_signed(message, secret)
    [delivery] = deliveries(world, webhook)
    assert (delivery.state, delivery.status, delivery.attempts) == (DeliveryState.DELIVERED, 204, 1)
    send(world)
    assert len(receiver.received) == 1


def test_webhook_of_the_instance_gets_events_of_all_organizations(world: World, receiver: WebhookReceiver) -> None:
    acme, other = world.make_organization(), world.make_organization()
    create(world, receiver.url, events=("user.created",))
    users = [world.make_human_user(acme), world.make_human_user(other)]
    send(world)
    assert {message.event["object_id"] for message in receiver.received} == {user.id for user in users}


def test_aborted_transaction_queues_no_delivery(world: World, receiver: WebhookReceiver) -> None:
    acme = world.make_organization()
    webhook, _ = create(world, receiver.url, acme)
    before = deliveries(world, webhook)

    def fail() -> None:
        with world.transaction_services() as services:
            services.webhooks.send_test(webhook.id, principal=Principal.OPERATOR)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert deliveries(world, webhook) == before


def test_deactivated_webhook_gets_no_messages(world: World, receiver: WebhookReceiver) -> None:
    acme = world.make_organization()
    webhook, _ = create(world, receiver.url, acme, events=("user.created",))
    world.make_human_user(acme)
    world.operator_services.webhooks.deactivate(webhook.id)
    world.make_human_user(acme)
    send(world)
    assert receiver.received == []
    assert [delivery.state for delivery in deliveries(world, webhook)] == [DeliveryState.PENDING]
    world.operator_services.webhooks.reactivate(webhook.id)
    send(world)
    assert receiver.names == ["user.created"]


def test_message_never_contains_the_secret_of_a_link(world: World, receiver: WebhookReceiver) -> None:
    acme = world.make_organization()
    _, secret = create(world, receiver.url, acme)
    world.make_human_user(acme)
    send(world)
    assert receiver.received
    for message in receiver.received:
        assert secret.encode() not in message.body


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_webhook_secret_is_shown_once_and_sealed(world: World, receiver: WebhookReceiver) -> None:
    webhook, secret = create(world, receiver.url, world.make_organization())
    assert secret.encode() not in webhook.secret
    [event] = world.audit_events(event="webhook.created", object_id=webhook.id)
    assert "whsec_" not in json.dumps(dict(event.detail))


def test_rotated_webhook_secret_is_valid_until_the_end_of_its_overlap(world: World, receiver: WebhookReceiver) -> None:
    webhook, first = create(world, receiver.url, events=("organization.created",))

    def sent() -> ReceivedWebhook:
        world.make_organization()
        send(world)
        return receiver.received[-1]

    with world.transaction_services() as services:
        command = RotateWebhookSecret(overlap_hours=2)
        _, second = services.webhooks.rotate_secret(webhook.id, command, principal=Principal.OPERATOR)
    message = sent()
    assert is_signed(message, first)
    assert is_signed(message, second)
    world.clock.advance(2 * 3600)
    message = sent()
    assert not is_signed(message, first)
    assert is_signed(message, second)
    with world.transaction_services() as services:
        _, third = services.webhooks.rotate_secret(webhook.id, RotateWebhookSecret(), principal=Principal.OPERATOR)
    after = world.operator_services.webhooks.retire_previous_secret(webhook.id)
    assert after.previous_secret_expires_at is None
    message = sent()
    assert [is_signed(message, secret) for secret in (first, second, third)] == [False, False, True]


def test_webhook_without_a_secret_gets_nothing_until_it_has_one(world: World, receiver: WebhookReceiver) -> None:
    command = CreateWebhook.build(name="Imported", url=receiver.url, events=("organization.created",))
    webhook = world.operator_services.webhooks.create(None, command)
    world.make_organization()
    with pytest.raises(Conflict):
        world.operator_services.webhooks.send_test(webhook.id)
    send(world)
    assert receiver.received == []
    with world.transaction_services() as services:
        _, secret = services.webhooks.rotate_secret(webhook.id, RotateWebhookSecret(), principal=Principal.OPERATOR)
    world.make_organization()
    send(world)
    [message] = receiver.received
    assert is_signed(message, secret)


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_refused_message_is_retried_and_its_answer_logged(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    receiver.answers, receiver.response_body = [500], b"<b>no\x00\x1b\xff " + b"x" * 3000
    world.make_organization()
    send(world)
    [failed] = deliveries(world, webhook)
    assert (failed.state, failed.status, failed.problem) == (DeliveryState.PENDING, 500, DeliveryProblem.STATUS)
    assert failed.answer.startswith("<b>no  � xxx")
    assert len(failed.answer) == WebhookDelivery.MAX_ANSWER_LENGTH
    assert failed.next_at > world.clock()
    send(world)
    assert len(receiver.received) == 1, "it waits for its next attempt"
    world.clock.advance(60)
    send(world)
    [delivered] = deliveries(world, webhook)
    assert (delivered.state, delivered.status, delivered.attempts) == (DeliveryState.DELIVERED, 204, 2)
    assert receiver.received[0].headers["webhook-id"] == receiver.received[1].headers["webhook-id"]


def test_webhook_that_is_gone_is_deactivated(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    receiver.answers = [410]
    world.make_organization()
    send(world)
    [delivery] = deliveries(world, webhook)
    assert (delivery.state, delivery.problem) == (DeliveryState.FAILED, DeliveryProblem.DISCONTINUED)
    assert not world.operator_services.webhooks.get(webhook.id).active
    [event] = world.audit_events(event="webhook.deactivated", object_id=webhook.id)
    assert event.actor.kind == "system"


def test_redirect_is_not_followed(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    receiver.answers = [302]
    world.make_organization()
    send(world)
    assert [message.path for message in receiver.received] == ["/events?key=confidential"]
    assert deliveries(world, webhook)[0].problem is DeliveryProblem.STATUS


def test_message_to_an_internal_address_is_not_sent(make_world: WorldFactory, receiver: WebhookReceiver) -> None:
    world = make_world()
    acme = world.make_organization()
    webhook, _ = create(world, receiver.url, acme, events=("user.created",))
    unknown, _ = create(world, "https://does-not-exist.invalid/", acme, events=("user.created",))
    world.make_human_user(acme)
    send(world)
    assert receiver.received == []
    [internal], [missing] = deliveries(world, webhook), deliveries(world, unknown)
    assert internal.problem is missing.problem is DeliveryProblem.UNREACHABLE, "nobody can probe for internal names"
    assert (internal.status, internal.answer) == (missing.status, missing.answer) == (None, "")


def test_delivery_is_given_up_at_its_end_and_can_be_resent(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    receiver.answers = [500] * 100
    world.make_organization()
    for _ in range(60):
        send(world)
        world.clock.advance(3 * 3600)
    [given_up] = deliveries(world, webhook)
    assert given_up.state is DeliveryState.FAILED
    assert 10 < given_up.attempts < 40
    receiver.answers = []
    world.operator_services.webhooks.resend(webhook.id, given_up.id)
    send(world)
    [delivery] = deliveries(world, webhook)
    assert delivery.state is DeliveryState.DELIVERED
    [event] = world.audit_events(event="webhook.resent", object_id=webhook.id)
    assert event.detail["delivery_id"] == delivery.id


def test_message_whose_event_is_gone_is_given_up(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    world.make_organization()
    [pending] = deliveries(world, webhook)
    world.clock.advance(MESSAGE_LIFETIME.total_seconds() + 1)
    assert pending.state_at(world.clock()) is DeliveryState.FAILED
    send(world)
    [delivery] = deliveries(world, webhook)
    assert (delivery.state, delivery.problem) == (DeliveryState.FAILED, DeliveryProblem.NOT_SENDABLE)
    assert receiver.received == []


def test_hanging_receiver_delays_no_other(
    world: World, make_receiver: Callable[[], WebhookReceiver], receiver: WebhookReceiver
) -> None:
    """An organization with more hanging receivers than its share of places does not stop another organization."""
    acme, other = world.make_organization(), world.make_organization()
    hanging = make_receiver()
    hanging.answering.clear()
    for _ in range(MAX_WEBHOOKS):
        create(world, hanging.url, acme, events=("user.created",))
    create(world, receiver.url, other, events=("user.created",))
    for _ in range(3):
        world.make_human_user(acme)
    for _ in range(3):
        world.make_human_user(other)
    sending = threading.Thread(target=world.identity.webhook_sender.run)
    sending.start()
    try:
        while len(receiver.received) < 3:
            assert receiver.arrived.wait(60)
            receiver.arrived.clear()
        assert 0 < len(hanging.received) <= 4, "a quarter of the places"
    finally:
        hanging.answering.set()
        sending.join()
    assert len(hanging.received) == 3 * MAX_WEBHOOKS


def test_delivery_is_claimed_by_one_of_two_processes(world: World, receiver: WebhookReceiver) -> None:
    webhook, _ = create(world, receiver.url, events=("organization.created",))
    world.make_organization()
    [delivery] = deliveries(world, webhook)
    with world.transaction_services() as services:
        assert services.webhooks.begin_attempt(delivery) is not None
    with world.transaction_services() as services:
        assert services.webhooks.begin_attempt(delivery) is None


# --- test message, rights, limits -------------------------------------------------------------------------------------


def test_test_message_goes_to_its_webhook_alone(
    world: World, receiver: WebhookReceiver, make_receiver: Callable[[], WebhookReceiver]
) -> None:
    acme, other = world.make_organization(), make_receiver()
    webhook, _ = create(world, receiver.url, acme, events=("user.removed",))
    create(world, other.url, acme)
    send(world)
    other.received.clear()
    world.operator_services.webhooks.send_test(webhook.id)
    send(world)
    assert receiver.names == ["webhook.tested"]
    assert other.received == []


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://user:password@hooks.example.com/",
        "https://hooks.example.com/#fragment",
        "https://hooks.example.com/a b",
        "https://",
        "https://[::1",
        "https://hooks.example.com:99999/",
        "javascript:alert(1)",
        "ftp://hooks.example.com/",
        "",
        "https://hooks.example.com/" + "x" * 2000,
    ],
)
def test_webhook_address_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        CreateWebhook.decode({"name": "Receiver", "url": url})
    assert set(refused.value.fields) == {"url"}


@pytest.mark.parametrize("events", [[], ["nothing.happened"], ["user"], ["user.created", "[a-z]*"], ["*"] * 51, [""]])
def test_event_patterns_are_refused(events: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        CreateWebhook.decode({"name": "Receiver", "url": "https://hooks.example.com/", "events": events})
    assert set(refused.value.fields) == {"events"}


def manager(world: World, role: str, resource: Resource) -> Principal:
    program = world.make_manager_program(role, resource=resource)
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(program.user.id)
        assert subject is not None
        return services.access_control.load_principal(subject)


def test_webhook_of_the_instance_takes_instance_write(world: World) -> None:
    command = CreateWebhook.build(name="Receiver", url="https://hooks.example.com/")
    org_manager = manager(world, "IAM_ORG_MANAGER", Resource.INSTANCE)
    owner = manager(world, "IAM_OWNER", Resource.INSTANCE)
    acme = world.make_organization()
    with world.transaction_services() as services:
        services.webhooks.create(acme.id, command, principal=org_manager)
        with pytest.raises(Denied):
            services.webhooks.create(None, command, principal=org_manager)
        webhook = services.webhooks.create(None, command, principal=owner)
    for change in (
        lambda webhooks: webhooks.change(webhook.id, ChangeWebhook.build(name="Mine"), principal=org_manager),
        lambda webhooks: webhooks.remove(webhook.id, principal=org_manager),
        lambda webhooks: webhooks.rotate_secret(webhook.id, RotateWebhookSecret(), principal=org_manager),
        lambda webhooks: webhooks.retire_previous_secret(webhook.id, principal=org_manager),
        lambda webhooks: webhooks.send_test(webhook.id, principal=org_manager),
        lambda webhooks: webhooks.deactivate(webhook.id, principal=org_manager),
    ):
        with pytest.raises(Denied), world.transaction_services() as services:
            change(services.webhooks)


def test_webhook_takes_the_right_to_read_what_it_sends(world: World) -> None:
    acme = world.make_organization()
    command = CreateWebhook.build(name="Receiver", url="https://hooks.example.com/")
    user_manager = manager(world, "ORG_USER_MANAGER", Resource.of_organization(acme.id))
    with pytest.raises(Denied), world.transaction_services() as services:
        services.webhooks.create(acme.id, command, principal=user_manager)


def test_number_of_webhooks_is_limited(world: World, receiver: WebhookReceiver) -> None:
    acme = world.make_organization()
    for _ in range(MAX_WEBHOOKS):
        create(world, receiver.url, acme)
    with pytest.raises(Conflict):
        create(world, receiver.url, acme)


def test_delivery_is_found_below_its_own_webhook_alone(world: World, receiver: WebhookReceiver) -> None:
    acme, other = world.make_organization(), world.make_organization()
    webhook, _ = create(world, receiver.url, acme, events=("user.created",))
    foreign, _ = create(world, receiver.url, other)
    world.make_human_user(acme)
    [delivery] = deliveries(world, webhook)
    with pytest.raises(NotFound):
        world.operator_services.webhooks.get_delivery(foreign.id, delivery.id)
    with pytest.raises(NotFound):
        world.operator_services.webhooks.resend(foreign.id, delivery.id)


def test_webhooks_are_exported_without_secrets(world: World) -> None:
    acme = world.make_organization()
    webhook, secret = create(world, "https://hooks.example.com/", acme, events=("user.*",))
    with world.read_only_services() as services:
        exported = services.webhooks.get(webhook.id)
        transfer = OrganizationTransfer(services)
        document = json.loads("".join(transfer.export_document(acme.id, principal=Principal.OPERATOR)))
    assert document["organization"]["webhooks"] == [
        {
            "id": webhook.id,
            "active": True,
            "name": "Receiver",
            "url": "https://hooks.example.com/",
            "events": ["user.*"],
        }
    ]
    assert secret not in json.dumps(document)
    assert exported.secret
