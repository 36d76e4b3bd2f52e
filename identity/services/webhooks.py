"""Webhooks: who receives which events, their signing secrets, and the queue of deliveries."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import constant_time_equal, new_id
from identity.crypto.webhook_signatures import new_webhook_secret
from identity.domain.audit import AuditEvent
from identity.domain.errors import Conflict
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.webhooks import DeliveryProblem, DeliveryState, Webhook, WebhookDelivery
from identity.services.access_control import AccessControl, Principal
from identity.services.audit import event_to_dict
from identity.services.base import CHANGED_MEANWHILE
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook, RotateWebhookSecret
from identity.services.crud import DeactivatableEntityService
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

#: Name of the queue, of the background job that empties it, and of its system check.
QUEUE = "webhooks"
#: Webhooks of one organization, and of the instance.
MAX_WEBHOOKS = 20
#: How long delivery of a message is retried.
MESSAGE_LIFETIME = timedelta(days=3)
#: Each failure doubles the delay. The first exceeds the time that an attempt takes: until then it belongs to the
#: process that claimed it.
_FIRST_DELAY, _MAX_DELAY = timedelta(seconds=30), timedelta(hours=6)
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What came of an attempt. Without a ``status`` there was no response."""

    duration_ms: int
    status: int | None = None
    problem: DeliveryProblem | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A message to send now, and the delivery that was claimed for it."""

    delivery: WebhookDelivery
    url: str
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(eq=False, repr=False)
class WebhookService(DeactivatableEntityService[Webhook]):
    """A webhook of an organization gets events of that organization, one of the instance those of all. Who manages one
    must be permitted to read these events; webhooks of the instance take instance.write."""

    kind = "webhook"
    store = "webhooks"

    _access: AccessControl
    _on_queue: Callable[[str], None]
    #: Receivers by organization, read once in a transaction; emptied by each change.
    _receiving: dict[str | None, tuple[Webhook, ...]] = field(default_factory=dict, init=False)

    def create(
        self,
        organization_id: str | None,
        command: CreateWebhook,
        *,
        principal: Principal,
        secret: str = "",
        id: str | None = None,
    ) -> Webhook:
        """Add a webhook with this secret; without one it gets no messages before ``rotate_secret``. None as an
        organization stands for the instance. Raises NotFound, Denied; Conflict if there are too many."""
        webhook = self._new_entity(Webhook, command, id=id, organization_id=organization_id)
        self._authorize(webhook, principal)
        if len(self._storage.webhooks.page(organization_id, PageRequest(limit=MAX_WEBHOOKS))) >= MAX_WEBHOOKS:
            raise Conflict(
                gettext_lazy("There are {number} webhooks already, which is the limit.", number=MAX_WEBHOOKS)
            )
        if secret:
            webhook = replace(webhook, secret=self._seal(webhook.id, secret), secret_changed_at=self._now)
        self._add("webhook.created", webhook, organization_id, parent=("organization", organization_id or ""))
        return webhook

    def create_with_new_secret(
        self, organization_id: str | None, command: CreateWebhook, *, principal: Principal
    ) -> tuple[Webhook, str]:
        """The new webhook with the text of its secret, which is shown only once. Raises like ``create``."""
        secret = new_webhook_secret()
        return self.create(organization_id, command, principal=principal, secret=secret), secret

    def change(
        self, webhook_id: str, command: ChangeWebhook, *, principal: Principal, expected_version: int | None = None
    ) -> Webhook:
        """Raises NotFound, Denied, Conflict."""
        before = self._get_authorized(webhook_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        return self._update("webhook.changed", before, after)

    def rotate_secret(
        self, webhook_id: str, command: RotateWebhookSecret, *, principal: Principal
    ) -> tuple[Webhook, str]:
        """Replace the signing secret; returns the text of the new one, which is shown only once. Raises NotFound,
        Denied."""
        secret = new_webhook_secret()
        overlap = timedelta(hours=command.overlap_hours)
        return self._replace_secret(webhook_id, secret, overlap, principal), secret

    def set_secret(self, webhook_id: str, secret: str, *, principal: Principal) -> Webhook:
        """Replace the signing secret by a given one; the one before ends at once. Raises NotFound, Denied."""
        return self._replace_secret(webhook_id, secret, timedelta(), principal)

    def retire_previous_secret(self, webhook_id: str, *, principal: Principal) -> Webhook:
        """Sign with the current secret alone from now on. Raises NotFound, Denied."""
        before = self._get_authorized(webhook_id, principal)
        if before.previous_secret_expires_at is None:
            return before
        after = self._next_version(
            before, secret=self._seal(before.id, self._open(before)[0]), previous_secret_expires_at=None
        )
        return self._update("webhook.secret_retired", before, after)

    def has_secret(self, webhook: Webhook, secret: str) -> bool:
        """True if this is its current secret."""
        return bool(webhook.secret) and constant_time_equal(self._open(webhook)[0].encode(), secret.encode())

    # --- deliveries ------------------------------------------------------------------------------------------------

    def send_test(self, webhook_id: str, *, principal: Principal) -> Webhook:
        """Queue a message that only this webhook gets, about an event of its own. Raises NotFound, Denied; Conflict if
        it gets no messages now."""
        webhook = self._get_authorized(webhook_id, principal)
        if not webhook.is_usable:
            raise Conflict(gettext_lazy("The webhook is deactivated, or has no signing secret."))
        self._record_event(Webhook.TEST_EVENT, webhook, webhook.organization_id, {"name": webhook.name})
        return webhook

    def page_deliveries(self, webhook_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[WebhookDelivery]:
        """The log of a webhook, newest first."""
        return self._storage.webhook_deliveries.page(webhook_id, request)

    def get_delivery(self, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        """Raises NotFound."""
        found = self._storage.webhook_deliveries.find(delivery_id)
        if found is not None and found.webhook_id != webhook_id:
            found = None
        return self._require_found(found, "webhook delivery", delivery_id)

    def resend(self, webhook_id: str, delivery_id: str, *, principal: Principal) -> WebhookDelivery:
        """Send the message of a delivery again, or now if it is pending. Raises NotFound, Denied, Conflict."""
        webhook = self._get_authorized(webhook_id, principal)
        before = self.get_delivery(webhook_id, delivery_id)
        if not webhook.is_usable:
            raise Conflict(gettext_lazy("The webhook is deactivated, or has no signing secret."))
        after = replace(before, state=DeliveryState.PENDING, next_at=self._now, expires_at=self._now + MESSAGE_LIFETIME)
        if not self._storage.webhook_deliveries.update(after, attempts=before.attempts):
            raise Conflict(CHANGED_MEANWHILE)
        detail = {"delivery_id": before.id, "event_id": before.event_id, "event": before.event}
        self._record_event("webhook.resent", webhook, webhook.organization_id, detail)
        self._on_queue(QUEUE)
        return after

    def queue_event(self, event: AuditEvent) -> None:
        """Queue a message for each webhook that gets this event, in the transaction that writes it."""
        owner = event.organization_id
        if owner not in self._receiving:
            self._receiving[owner] = self._storage.webhooks.list_receiving(owner)
        for webhook in self._receiving[owner]:
            if webhook.is_usable and webhook.matches(event):
                self._storage.webhook_deliveries.add(
                    WebhookDelivery(
                        id=new_id(),
                        webhook_id=webhook.id,
                        event_id=event.id,
                        event=event.event,
                        created_at=self._now,
                        next_at=self._now,
                        expires_at=self._now + MESSAGE_LIFETIME,
                    )
                )
                self._on_queue(QUEUE)

    # --- for the sender --------------------------------------------------------------------------------------------

    def begin_attempt(self, delivery: WebhookDelivery) -> WebhookMessage | None:
        """Claim the delivery and make its message; None if another process claimed it, the webhook gets no messages
        now, or there is nothing to send any more."""
        webhook = self._storage.webhooks.find(delivery.webhook_id)
        if webhook is None or not webhook.active:
            return None
        claimed = replace(
            delivery,
            attempts=delivery.attempts + 1,
            attempted_at=self._now,
            next_at=self._now + _retry_delay(delivery.attempts),
        )
        if not self._storage.webhook_deliveries.update(claimed, attempts=delivery.attempts):
            return None
        event = self._storage.audit.find(delivery.event_id)
        secrets = self._signing_secrets(webhook)
        if event is None or not secrets or delivery.expires_at <= self._now:
            failed = replace(claimed, state=DeliveryState.FAILED, problem=DeliveryProblem.NOT_SENDABLE)
            self._storage.webhook_deliveries.update(failed, attempts=claimed.attempts)
            return None
        body = json.dumps(event_to_dict(event), separators=(",", ":")).encode()
        return WebhookMessage(claimed, webhook.url, body, secrets)

    def finish_attempt(self, claimed: WebhookDelivery, result: AttemptResult) -> None:
        """Record the result in the log. A webhook that is gone is deactivated."""
        if result.problem is None:
            state = DeliveryState.DELIVERED
        elif result.problem is DeliveryProblem.DISCONTINUED or claimed.next_at >= claimed.expires_at:
            state = DeliveryState.FAILED
        else:
            state = DeliveryState.PENDING
        finished = replace(
            claimed,
            state=state,
            status=result.status,
            problem=result.problem,
            answer=result.answer,
            duration_ms=result.duration_ms,
        )
        self._storage.webhook_deliveries.update(finished, attempts=claimed.attempts)
        if result.problem is DeliveryProblem.DISCONTINUED:
            webhook = self._storage.webhooks.find(claimed.webhook_id)
            if webhook is not None:
                self.deactivate(webhook.id, principal=Principal.OPERATOR)

    def _signing_secrets(self, webhook: Webhook) -> tuple[str, ...]:
        """The secrets to sign with now, newest first; empty if there is none that can be opened."""
        if not webhook.secret:
            return ()
        try:
            current, *previous = self._open(webhook)
        except UnsealingError:
            return ()
        ends_at = webhook.previous_secret_expires_at
        return (current, *previous) if ends_at is not None and ends_at > self._now else (current,)

    def _open(self, webhook: Webhook) -> list[str]:
        return self._sealer.open(webhook.secret, associated_data=sealing_context(webhook.id)).decode().split("\n")

    def _seal(self, webhook_id: str, *secrets: str) -> bytes:
        return self._sealer.seal("\n".join(secrets).encode(), associated_data=sealing_context(webhook_id))

    def _replace_secret(self, webhook_id: str, secret: str, overlap: timedelta, principal: Principal) -> Webhook:
        before = self._get_authorized(webhook_id, principal)
        previous: list[str] = []
        if overlap and before.secret:
            try:
                previous = self._open(before)[:1]
            except UnsealingError:
                # Sealed under a lost master key: a new secret is the way out.
                previous = []
        ends_at: datetime | None = self._now + overlap if previous else None
        after = self._next_version(
            before,
            secret=self._seal(before.id, secret, *previous),
            secret_changed_at=self._now,
            previous_secret_expires_at=ends_at,
        )
        return self._update("webhook.secret_rotated", before, after)

    def _record_event(self, event: str, entity: Any, organization_id: str | None, detail: Mapping[str, object]) -> None:
        # The event itself already goes to the receivers after the change.
        self._receiving.clear()
        super()._record_event(event, entity, organization_id, detail)

    def _authorize(self, entity: Webhook, principal: Principal) -> None:
        if entity.organization_id is None:
            self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        else:
            self._access.require(principal, "audit_event.read", Resource.of_organization(entity.organization_id))


def _retry_delay(attempts: int) -> timedelta:
    """Delay after this many earlier attempts, in whole seconds."""
    longest = min(_FIRST_DELAY * 2.0 ** min(attempts, 30), _MAX_DELAY)
    share = random.uniform(1 - _JITTER, 1)  # noqa: S311 - nothing depends on its being unpredictable
    return timedelta(seconds=round(longest.total_seconds() * share))


def sealing_context(webhook_id: str) -> str:
    """Sealing context of this webhook's secrets."""
    return f"webhook\n{webhook_id}"
