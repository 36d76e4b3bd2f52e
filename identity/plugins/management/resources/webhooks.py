"""Webhooks: receivers of audit events, of an organization or of the whole instance, and the log of deliveries."""

from collections.abc import Callable

from identity.domain import webhooks
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.plugins.management.api_resource import ApiResource, EntityApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION, WEBHOOK
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook, RotateWebhookSecret
from identity.storage.paging import PageRequest, ResultPage


@representation_fields(webhooks.Webhook)
class WebhookRepresentation(Representation):
    """A webhook; without `organization_id` it gets the events of the whole instance. Its signing secret is never
    returned again; `secret_changed_at` is when it was last replaced."""


class NewWebhookRepresentation(WebhookRepresentation):
    """A webhook with its new signing secret (Standard Webhooks), which is returned only once."""

    secret: str


@representation_fields(webhooks.WebhookDelivery, without={"webhook_id"})
class WebhookDeliveryRepresentation(Representation):
    """A message about an event, and the result of the last attempt to deliver it: HTTP `status` and beginning of the
    response, or the `problem`. The event itself is `/audit-events/{event_id}`. A delivery that failed is not retried;
    one that is `pending` is tried at `next_at`."""

    has_volatile_members = True


_WEBHOOKS = EntityApiResource(
    "webhook",
    WebhookRepresentation,
    at=WEBHOOK,
    change_command=ChangeWebhook,
    service=lambda services: services.webhooks,
)


def _represent_delivery(
    call: OperationCall[webhooks.Webhook], delivery: webhooks.WebhookDelivery
) -> WebhookDeliveryRepresentation:
    return WebhookDeliveryRepresentation.from_value(delivery, state=delivery.state_at(call.services.now))


_DELIVERIES = ApiResource[webhooks.WebhookDelivery](
    "webhook_delivery", WebhookDeliveryRepresentation, _represent_delivery, permission_subject="webhook"
)


def _page(call: OperationCall[Organization] | OperationCall[Instance]) -> ResultPage[webhooks.Webhook]:
    page: Callable[[str | None, PageRequest], ResultPage[webhooks.Webhook]] = call.services.storage.webhooks.page
    return call.filter_page(page(_owner_id(call), call.page))


def _create(
    call: OperationCall[Organization] | OperationCall[Instance], command: CreateWebhook
) -> NewWebhookRepresentation:
    webhook, secret = call.services.webhooks.create_with_new_secret(_owner_id(call), command, principal=call.principal)
    return NewWebhookRepresentation.from_value(webhook, secret=secret)


def _owner_id(call: OperationCall[Organization] | OperationCall[Instance]) -> str | None:
    return call.entity.id if isinstance(call.entity, Organization) else None


def _rotate(call: OperationCall[webhooks.Webhook], command: RotateWebhookSecret) -> NewWebhookRepresentation:
    webhook, secret = call.services.webhooks.rotate_secret(call.entity.id, command, principal=call.principal)
    return NewWebhookRepresentation.from_value(webhook, secret=secret)


OPERATIONS = (
    _WEBHOOKS.list(
        INSTANCE / "instance/webhooks",
        "Lists the webhooks of the instance, newest first.",
        _page,
        name="list_instance_webhooks",
        permission="instance.read",
    ),
    _WEBHOOKS.create(
        "create_instance_webhook",
        INSTANCE / "instance/webhooks",
        "Adds a webhook for events of the whole instance; the response contains its signing secret, once.",
        CreateWebhook,
        _create,
        location="/webhooks/{id}",
        permission="instance.write",
        representation=NewWebhookRepresentation,
    ),
    _WEBHOOKS.list(ORGANIZATION / "webhooks", "Lists the webhooks of an organization, newest first.", _page),
    _WEBHOOKS.create(
        "create_webhook",
        ORGANIZATION / "webhooks",
        "Adds a webhook for events of the organization; the response contains its signing secret, once.",
        CreateWebhook,
        _create,
        location="/webhooks/{id}",
        description="Messages are only sent to public addresses, and to networks that the operator allows.",
        representation=NewWebhookRepresentation,
    ),
    _WEBHOOKS.show("Shows a webhook."),
    _WEBHOOKS.update("Changes a webhook."),
    _WEBHOOKS.deactivate("Deactivates a webhook: it gets no messages about what happens until it is reactivated."),
    _WEBHOOKS.reactivate("Reactivates a webhook."),
    _WEBHOOKS.remove("Deletes a webhook with its log."),
    _WEBHOOKS.action(
        "rotate_webhook_secret",
        WEBHOOK / "rotate-secret",
        "Replaces the signing secret; the response contains the new one, once.",
        RotateWebhookSecret,
        _rotate,
        description="For `overlap_hours`, 24 by default, messages are also signed with the one before.",
        representation=NewWebhookRepresentation,
    ),
    _WEBHOOKS.action(
        "retire_webhook_secret",
        WEBHOOK / "retire-previous-secret",
        "Ends the previous signing secret before its time.",
        EmptyCommand,
        lambda call, _: call.services.webhooks.retire_previous_secret(call.entity.id, principal=call.principal),
    ),
    _WEBHOOKS.action(
        "test_webhook",
        WEBHOOK / "test",
        "Sends a test message: an event `webhook.tested`, which no other webhook gets.",
        EmptyCommand,
        lambda call, _: call.services.webhooks.send_test(call.entity.id, principal=call.principal),
    ),
    _DELIVERIES.list(
        WEBHOOK / "deliveries",
        "Lists the deliveries to a webhook, newest first.",
        lambda call: call.services.webhooks.page_deliveries(call.entity.id, call.page),
        name="list_webhook_deliveries",
        has_states=False,
    ),
    _DELIVERIES.get(
        WEBHOOK / "deliveries/{delivery}",
        "Shows a delivery.",
        lambda call: call.services.webhooks.get_delivery(call.entity.id, call.child_id),
    ),
    _DELIVERIES.action(
        "resend_webhook_delivery",
        WEBHOOK / "deliveries/{delivery}/resend",
        "Sends the message of a delivery again, or now if it is pending.",
        EmptyCommand,
        lambda call, _: call.services.webhooks.resend(call.entity.id, call.child_id, principal=call.principal),
    ),
)
