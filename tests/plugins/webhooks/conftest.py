"""HTTP receivers of webhooks, and a service that sends to one."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from identity.application import IdentityApplication
from identity.outbox_sender import OutboxSender
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

SECRET, OTHER = bytes(range(32)), bytes(range(32, 64))


def line(secret: bytes) -> str:
    return f"whsec_{base64.b64encode(secret).decode()}\n"


class ReceivedWebhook:
    """One received request."""

    def __init__(self, path: str, headers: Any, body: bytes) -> None:
        self.path, self.headers, self.body = path, dict(headers), body
        self.event: dict[str, Any] = json.loads(body)


class WebhookReceiver:
    """An HTTP server on the loopback interface. ``answers`` are its next status codes, then come 204s."""

    def __init__(self) -> None:
        self.received: list[ReceivedWebhook] = []
        self.answers: list[int] = []
        self.response_body = b""
        self.arrived = threading.Event()
        #: Requests get no response until it is set.
        self.answering = threading.Event()
        self.answering.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(ReceivedWebhook(self.path, self.headers, body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                receiver.arrived.set()
                receiver.answering.wait(30)
                try:
                    self.send_response(status)
                    self.send_header("Location", "/elsewhere")
                    body = b"" if status == 204 else receiver.response_body
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the sender has given up

            do_GET = do_POST  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/events?key=confidential"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self.answering.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def names(self) -> list[str]:
        return [received_webhook.event["event"] for received_webhook in self.received]


@pytest.fixture
def make_receiver() -> Iterator[Callable[[], WebhookReceiver]]:
    webhook_receivers: list[WebhookReceiver] = []

    def make() -> WebhookReceiver:
        webhook_receivers.append(WebhookReceiver())
        return webhook_receivers[-1]

    yield make
    for webhook_receiver in webhook_receivers:
        webhook_receiver.close()


@pytest.fixture
def receiver(make_receiver: Callable[[], WebhookReceiver]) -> WebhookReceiver:
    return make_receiver()


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "webhooks.secret"
    file.write_text(line(SECRET))
    file.chmod(0o600)
    return file


@pytest.fixture
def settings(receiver: WebhookReceiver, secret_file: Path, storage_name: str) -> dict[str, str]:
    storage = "memory" if storage_name == "memory" else "sql"
    return {
        "identity.plugins": f"{storage} {DEFAULT_PLUGINS} webhooks",
        "identity.plugin.webhooks.urls": receiver.url,
        "identity.plugin.webhooks.secret_file": str(secret_file),
        "identity.plugin.webhooks.timeout": "1s",
        "identity.plugin.webhooks.events": "organization.* authentication.refused",
    }


@pytest.fixture
def world(make_world: WorldFactory, settings: dict[str, str]) -> World:
    return make_world(**settings)


def webhook(identity: IdentityApplication) -> OutboxSender:
    (outbox_sender,) = [sender for kind, sender in identity.senders.items() if kind.startswith("webhook ")]
    return outbox_sender


def flush(world: World) -> None:
    """Send the events of the world's startup."""
    webhook(world.identity).send_due()


@pytest.fixture
def sender(world: World, receiver: WebhookReceiver) -> OutboxSender:
    """The outbox sender with an empty queue."""
    flush(world)
    receiver.received.clear()
    return webhook(world.identity)
