"""Webhooks in the console: what the page of a delivery shows, and to whom."""

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.webhooks import CreateWebhook
from identity.services.lookup import Lookup
from identity.testing.browser import Browser
from identity.testing.world import World


def test_message_of_a_delivery_is_for_readers_of_its_event(
    world: World, owner: Browser, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = CreateWebhook.build(name="Receiver", url="https://hooks.example.com/identity")
    with world.transaction_services() as services:
        webhook, _secret = services.webhooks.create_with_new_secret(
            organization.id, command, principal=Principal.OPERATOR
        )
    world.make_human_user(organization)
    with world.read_only_services() as services:
        delivery, *_ = services.webhooks.page_deliveries(webhook.id).items
    path = f"/console/webhooks/{webhook.id}/deliveries/{delivery.id}"
    assert owner.open(path).html.find(id="message") is not None

    def deny_events(_principal: Principal, permission: str, _resource: Resource, _lookup: Lookup) -> str | None:
        return "denied" if permission == "audit_event.read" else None

    monkeypatch.setattr(world.identity.process_state, "deny_hook", deny_events)
    page = owner.open(path)
    assert page.status_int == 200
    assert page.html.find(id="message") is None
