"""Sends queued messages to webhooks: several at a time, so that a slow receiver delays only itself."""

import logging
import ssl
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from http import HTTPStatus
from http.client import HTTPException
from time import monotonic

from identity import __version__
from identity.clock import Clock
from identity.crypto.webhook_signatures import sign_webhook_message
from identity.domain.webhooks import DeliveryProblem, Webhook, WebhookDelivery
from identity.outbound_http import OutboundHttpClient
from identity.services.container import Services
from identity.services.webhooks import QUEUE, AttemptResult, WebhookMessage

log = logging.getLogger(__name__)

#: Opens services, in a transaction or on a read connection.
OpenServices = Callable[[], AbstractContextManager[Services]]

#: Webhooks served at a time in a process. One organization gets a quarter, and the instance another.
_MAX_CONCURRENT = 16
_MAX_OF_OWNER = _MAX_CONCURRENT // 4
#: While something is being sent, new messages are looked for this often.
_POLL_SECONDS = 1.0
_LOOKED_AT = 200
#: A webhook is served for at most this long before others get their turn.
_TURN_SECONDS = 10.0
_AT_ONCE = 10
#: After failures in a row, a receiver is left alone for 10 s, 20 s, 40 s, then a minute at a time.
_FIRST_PAUSE, _MAX_PAUSE = timedelta(seconds=10), timedelta(minutes=1)


class WebhookSender:
    """Claims due deliveries and sends them. No transaction is open meanwhile. Processes share the queue: each delivery
    is claimed by one of them."""

    #: Name of the background job.
    name = QUEUE

    def __init__(
        self,
        client: OutboundHttpClient,
        *,
        transaction: OpenServices,
        reading: OpenServices,
        clock: Clock,
        stopping: Callable[[], bool],
    ) -> None:
        self._client = client
        self._transaction = transaction
        self._reading = reading
        self._clock = clock
        self._stopping = stopping
        #: Failures in a row by webhook, and until when it is left alone.
        self._pauses: dict[str, tuple[int, datetime]] = {}

    def run(self) -> timedelta | None:
        """Send what is due; returns the delay until the next run, None if nothing is pending."""
        running: dict[Future[None], Webhook] = {}
        due, next_at = self._find_due(running)
        if due:
            with ThreadPoolExecutor(_MAX_CONCURRENT, thread_name_prefix="identity-webhook") as pool:
                while True:
                    for webhook in due:
                        running[pool.submit(self._send_turn, webhook.id)] = webhook
                    if not running:
                        break
                    for future in wait(running, _POLL_SECONDS, FIRST_COMPLETED).done:
                        running.pop(future)
                        future.result()
                    due, next_at = ((), None) if self._stopping() else self._find_due(running)
        return None if next_at is None else max(next_at - self._clock(), timedelta())

    def send_due(self) -> None:
        """Send what is due and not paused, one after the other."""
        for webhook in self._find_due({})[0]:
            self._send_turn(webhook.id)

    def _find_due(self, running: dict[Future[None], Webhook]) -> tuple[tuple[Webhook, ...], datetime | None]:
        """Webhooks to start with now, and when the next delivery of those that are not running is due."""
        now = self._clock()
        # Copied: other threads change it meanwhile.
        pauses = {id_: until for id_, (_, until) in self._pauses.copy().items()}
        for id_ in [id_ for id_, until in pauses.items() if until < now - 2 * _MAX_PAUSE]:
            self._pauses.pop(id_, None)
        paused = {id_: until for id_, until in pauses.items() if until > now}
        busy = {webhook.id for webhook in running.values()}
        with self._reading() as services:
            waiting = services.storage.webhook_deliveries.list_next_attempts(_LOOKED_AT, without=busy | paused.keys())
            found = services.storage.webhooks.find_many([id_ for id_, at in waiting if at <= now])
        running_counts = Counter(webhook.organization_id for webhook in running.values())
        due: list[Webhook] = []
        for webhook in (found[id_] for id_, at in waiting if id_ in found):
            if running_counts[webhook.organization_id] < _MAX_OF_OWNER and running_counts.total() < _MAX_CONCURRENT:
                running_counts[webhook.organization_id] += 1
                due.append(webhook)
        times = [*(at for id_, at in waiting if id_ not in found), *paused.values()]
        return tuple(due), min(times, default=None)

    def _send_turn(self, webhook_id: str) -> None:
        """Send due deliveries of the webhook until one fails."""
        ends_at = monotonic() + _TURN_SECONDS
        try:
            while True:
                with self._reading() as services:
                    deliveries = services.storage.webhook_deliveries.list_due(webhook_id, self._clock(), _AT_ONCE)
                if not deliveries:
                    return
                for delivery in deliveries:
                    if self._stopping() or monotonic() > ends_at:
                        return
                    if not self._send(delivery):
                        self._pause(webhook_id)
                        return
        except Exception:
            log.exception("a webhook could not be served: %s", webhook_id)
            self._pause(webhook_id)

    def _send(self, delivery: WebhookDelivery) -> bool:
        """False if the receiver did not accept the message."""
        with self._transaction() as services:
            message = services.webhooks.begin_attempt(delivery)
        if message is None:
            return True
        result = self._post(message)
        with self._transaction() as services:
            services.webhooks.finish_attempt(message.delivery, result)
        if result.problem is None:
            self._pauses.pop(delivery.webhook_id, None)
        else:
            log.warning("a webhook did not accept a message: %s, %s", delivery.webhook_id, result.problem)
        return result.problem is None

    def _post(self, message: WebhookMessage) -> AttemptResult:
        began = monotonic()
        status, problem, answer = None, None, ""
        try:
            response = self._client.send("POST", message.url, headers=self._headers(message), body=message.body)
        except TimeoutError:
            problem = DeliveryProblem.TIMEOUT
        except ssl.SSLError:
            problem = DeliveryProblem.CERTIFICATE
        except (OSError, HTTPException, ValueError):
            # The same for a name that is unknown and one with an internal address: nobody can probe for names.
            problem = DeliveryProblem.UNREACHABLE
        else:
            status, answer = response.status, _printable_beginning(response.body)
            if status == HTTPStatus.GONE:
                problem = DeliveryProblem.DISCONTINUED
            elif not 200 <= status < 300:
                problem = DeliveryProblem.STATUS
        return AttemptResult(round((monotonic() - began) * 1000), status, problem, answer)

    def _headers(self, message: WebhookMessage) -> dict[str, str]:
        message_id, timestamp = message.delivery.event_id, int(self._clock().timestamp())
        signatures = (sign_webhook_message(secret, message_id, timestamp, message.body) for secret in message.secrets)
        return {
            "Content-Type": "application/json",
            "User-Agent": f"identity/{__version__}",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signatures),
        }

    def _pause(self, webhook_id: str) -> None:
        failures = self._pauses.get(webhook_id, (0, None))[0]
        pause = min(_FIRST_PAUSE * 2 ** min(failures, 10), _MAX_PAUSE)
        self._pauses[webhook_id] = (failures + 1, self._clock() + pause)


def _printable_beginning(body: bytes) -> str:
    """The beginning of a response as text, without control characters except line ends."""
    text = body[: WebhookDelivery.MAX_ANSWER_LENGTH].decode("utf-8", "replace")
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
