"""Contract of the stores of webhooks and of their deliveries."""

from dataclasses import replace

from identity.domain.webhooks import DeliveryProblem, DeliveryState
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, remove
from identity.storage.paging import PageRequest


class WebhookContract(ContractBase):
    """Events go to the active webhooks of their organization and of the instance. Deliveries are a queue and a log."""

    def test_webhooks_receive_events_of_their_organization_and_those_of_the_instance_all(
        self, on: StorageHarness
    ) -> None:
        ours = make.webhook(on.organization, created_at=NOW + DAY)
        foreign = make.webhook(on.other_organization)
        of_instance = make.webhook()
        resting = make.webhook(on.organization, active=False)
        resting_of_instance = make.webhook(active=False)
        on.store(ours, foreign, of_instance, resting, resting_of_instance)
        receiving = on.read.webhooks.list_receiving
        assert receiving(on.organization.id) == (of_instance, ours)
        assert receiving(None) == receiving(make_id()) == (of_instance,)
        assert set(on.read.webhooks.page(None).items) == {of_instance, resting_of_instance}

    def test_webhook_deliveries_are_listed_newest_first_in_pages(self, on: StorageHarness) -> None:
        webhook, other = make.webhook(on.organization), make.webhook(on.organization)
        on.store(webhook, other)
        deliveries = [make.webhook_delivery(webhook, created_at=NOW + number * DAY) for number in range(3)]
        on.store(*deliveries, make.webhook_delivery(other))
        first = on.read.webhook_deliveries.page(webhook.id, PageRequest(limit=2))
        assert first.items == (deliveries[2], deliveries[1])
        rest = on.read.webhook_deliveries.page(webhook.id, PageRequest(limit=2, cursor=first.next_cursor))
        assert (rest.items, rest.next_cursor) == ((deliveries[0],), None)

    def test_webhook_deliveries_that_are_due_are_found_by_webhook(self, on: StorageHarness) -> None:
        webhook, idle = make.webhook(on.organization), make.webhook(on.organization)
        later, resting = make.webhook(), make.webhook(on.organization, active=False)
        on.store(webhook, idle, later, resting)
        due = [make.webhook_delivery(webhook, next_at=NOW - DAY), make.webhook_delivery(webhook, next_at=NOW)]
        on.store(
            *due,
            make.webhook_delivery(webhook, next_at=NOW + DAY),
            make.webhook_delivery(webhook, next_at=NOW - 2 * DAY, state=DeliveryState.DELIVERED),
            make.webhook_delivery(webhook, next_at=NOW - 2 * DAY, state=DeliveryState.FAILED),
            make.webhook_delivery(later, next_at=NOW + 2 * DAY),
            make.webhook_delivery(resting, next_at=NOW - DAY),
            make.webhook_delivery(idle, state=DeliveryState.DELIVERED),
        )
        stored = on.read.webhook_deliveries
        assert stored.list_next_attempts(10) == ((webhook.id, NOW - DAY), (later.id, NOW + 2 * DAY))
        assert stored.list_next_attempts(1) == ((webhook.id, NOW - DAY),)
        assert stored.list_next_attempts(1, without=[webhook.id]) == ((later.id, NOW + 2 * DAY),)
        assert stored.list_due(webhook.id, NOW, 10) == tuple(due)
        assert stored.list_due(webhook.id, NOW, 1) == (due[0],)
        assert stored.list_due(later.id, NOW, 10) == ()

    def test_webhook_deliveries_are_claimed_once_by_their_number_of_attempts(self, on: StorageHarness) -> None:
        webhook = on.store_value(make.webhook(on.organization))
        delivery = on.store_value(make.webhook_delivery(webhook))
        claimed = replace(delivery, attempts=1, next_at=NOW + DAY)
        assert on.write.webhook_deliveries.update(claimed, attempts=0)
        assert not on.write.webhook_deliveries.update(replace(claimed, answer="late"), attempts=0)
        result = replace(
            claimed,
            state=DeliveryState.FAILED,
            attempted_at=NOW,
            duration_ms=31,
            status=500,
            problem=DeliveryProblem.STATUS,
            answer="Zürich 株\n<b>",
        )
        assert on.write.webhook_deliveries.update(result, attempts=1)
        assert on.read.webhook_deliveries.find(delivery.id) == result
        assert not on.write.webhook_deliveries.update(make.webhook_delivery(webhook), attempts=0)
        assert on.read.webhook_deliveries.find(make_id()) is None

    def test_webhook_deliveries_are_deleted_with_their_webhook(self, on: StorageHarness) -> None:
        webhook = on.store_value(make.webhook(on.organization))
        delivery = on.store_value(make.webhook_delivery(webhook))
        remove(on.write, webhook)
        assert on.read.webhook_deliveries.find(delivery.id) is None
