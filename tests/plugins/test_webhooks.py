"""The plugin webhooks, with receivers that speak HTTP: what is sent, how it is signed, and that nothing is lost."""

import base64
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from identity import outgoing
from identity.app import assemble
from identity.domain.audit import SYSTEM, AuditEvent, Result
from identity.domain.errors import Invalid
from identity.domain.permissions import INSTANCE
from identity.ini_values import BadSetting
from identity.plugins.webhooks import Settings, Webhook, read_secrets, signature
from identity.process import Identity
from identity.sender import Sender
from identity.services.commands.organizations import CreateOrganization
from identity.services.mails import Mail, Reason
from identity.testing.factories import an_audit_event
from identity.testing.fixtures import MakeWorld
from identity.testing.plugin_contract import PluginContract
from identity.testing.post import Post
from identity.testing.service import PLUGINS
from identity.testing.world import World
from identity.worker import Worker

ROOT = Path(__file__).resolve().parents[2]
SECRET, OTHER = bytes(range(32)), bytes(range(32, 64))


def line(secret: bytes) -> str:
    return f"whsec_{base64.b64encode(secret).decode()}\n"


class TestPlugin(PluginContract):
    name = "webhooks"


class Received:
    """One request, as it came."""

    def __init__(self, path: str, headers: Any, body: bytes) -> None:
        self.path, self.headers, self.body = path, dict(headers), body
        self.event: dict[str, Any] = json.loads(body)


class Receiver:
    """An HTTP server on the loopback interface. ``answers`` are its next status codes, then come 204s."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int] = []
        self.arrived = threading.Event()
        #: While it is not set, nobody gets an answer.
        self.answering = threading.Event()
        self.answering.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received(self.path, self.headers, body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                receiver.arrived.set()
                receiver.answering.wait(30)
                try:
                    self.send_response(status)
                    self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # nobody waits any more

            do_GET = do_POST  # noqa: N815

            def log_message(self, *words: object) -> None:
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
        return [one.event["event"] for one in self.received]


@pytest.fixture
def make_receiver() -> Iterator[Callable[[], Receiver]]:
    made: list[Receiver] = []

    def make() -> Receiver:
        made.append(Receiver())
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def receiver(make_receiver: Callable[[], Receiver]) -> Receiver:
    return make_receiver()


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "webhooks.secret"
    file.write_text(line(SECRET))
    file.chmod(0o600)
    return file


@pytest.fixture
def settings(receiver: Receiver, secret_file: Path, storage_name: str) -> dict[str, str]:
    storage = "memory" if storage_name == "memory" else "sql"
    return {
        "identity.plugins": f"{storage} {PLUGINS} webhooks",
        "identity.plugin.webhooks.urls": receiver.url,
        "identity.plugin.webhooks.secret_file": str(secret_file),
        "identity.plugin.webhooks.timeout": "1s",
        "identity.plugin.webhooks.events": "organization.* authentication.refused",
    }


@pytest.fixture
def world(make_world: MakeWorld, settings: dict[str, str]) -> World:
    return make_world(**settings)


def webhook(identity: Identity) -> Sender:
    (found,) = [one for kind, one in identity.senders.items() if kind.startswith("webhook ")]
    return found


def flush(world: World) -> None:
    """Send what the start of the world has written."""
    webhook(world.identity).send_due()


@pytest.fixture
def sender(world: World, receiver: Receiver) -> Sender:
    """The way to the receiver, with nothing in it."""
    flush(world)
    receiver.received.clear()
    return webhook(world.identity)


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_an_event_is_sent_once_and_signed(world: World, sender: Sender, receiver: Receiver) -> None:
    organization = world.an_organization()
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
    assert message.headers["webhook-signature"] == signature(SECRET, event.id, timestamp, message.body)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks specification."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == expected


@pytest.mark.storages("memory")
def test_the_event_looks_as_in_the_management_api(world: World, sender: Sender, receiver: Receiver) -> None:
    world.an_organization()
    sender.send_due()
    owner = world.a_manager("IAM_OWNER", resource=INSTANCE)
    shown = world.client.get(
        f"{world.identity.settings.base_url}/management/v1/audit-events/{receiver.received[0].event['id']}",
        {"Authorization": f"Bearer {owner.managing_token()}"},
    )
    assert shown.json == receiver.received[0].event


def test_refused_attempts_are_sent_too(world: World, sender: Sender, receiver: Receiver) -> None:
    robot = world.a_robot()
    flush(world)
    receiver.received.clear()
    assert robot.token(iat=world.clock.seconds - 10_000).status_int == 400
    assert sender.send_due() == 1
    (message,) = receiver.received
    assert (message.event["event"], message.event["result"]) == ("authentication.refused", "refused")
    assert message.event["object_id"] == robot.id
    # At most once a minute, as in the audit trail.
    robot.token(iat=world.clock.seconds - 10_000)
    assert sender.send_due() == 0


@pytest.mark.storages("memory")
def test_only_chosen_events_are_sent(world: World, sender: Sender, receiver: Receiver) -> None:
    world.a_robot()
    sender.send_due()
    assert receiver.names == ["organization.created"]


def test_nothing_of_what_is_aborted_is_sent(world: World, sender: Sender, receiver: Receiver) -> None:
    def fail() -> None:
        with world.transaction() as services:
            services.organizations.create(CreateOrganization(name="Acme"))
            raise Invalid({"name": "No."})

    with pytest.raises(Invalid):
        fail()
    assert sender.run() is None
    assert receiver.received == []


@pytest.mark.storages("memory")
def test_no_transaction_is_open_while_it_leaves(
    make_world: MakeWorld, settings: dict[str, str], receiver: Receiver
) -> None:
    """On this storage a writer keeps all others out: somebody else writes while the receiver thinks."""
    world = make_world(**settings | {"identity.plugin.webhooks.timeout": "20s"})
    receiver.answering.clear()
    sending = threading.Thread(target=flush, args=[world])
    writing = threading.Thread(target=world.an_organization)
    sending.start()
    receiver.arrived.wait(10)
    writing.start()
    writing.join(10)
    waited = writing.is_alive()
    receiver.answering.set()
    sending.join()
    writing.join()
    assert not waited


@pytest.mark.storages("memory")
def test_an_event_that_cannot_be_told_stops_no_change(
    world: World, sender: Sender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Webhook, event: AuditEvent) -> bytes:
        raise RuntimeError("broken")

    monkeypatch.setattr(Webhook, "content", fail)
    organization = world.an_organization()
    assert len(world.audit_events(object_id=organization.id)) == 1
    assert sender.run() is None
    assert "has nothing to tell of organization.created" in caplog.text


# --- what is not taken ------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
@pytest.mark.parametrize("status", [500, 503, 404, 400, 401, 301, 302, 307, 308])
def test_what_is_not_taken_is_tried_again(
    world: World, sender: Sender, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [status]
    world.an_organization()
    span = sender.run()
    assert span is not None
    assert timedelta(seconds=8) <= span <= timedelta(seconds=10)
    assert f"the receiver answered {status}" in caplog.text
    assert "confidential" not in caplog.text
    assert sender.check() is not None
    world.clock.advance(10)
    assert sender.run() is None
    first, second = receiver.received
    assert first.path == second.path, "no redirect was followed"
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert sender.check() is None


@pytest.mark.storages("memory")
def test_a_receiver_that_hangs_is_given_a_second(world: World, sender: Sender, receiver: Receiver) -> None:
    receiver.answering.clear()
    world.an_organization()
    began = time.monotonic()
    assert sender.run() is not None
    assert time.monotonic() - began < 10
    receiver.answering.set()
    world.clock.advance(10)
    assert sender.run() is None
    assert receiver.names == ["organization.created"] * 2


@pytest.mark.storages("memory")
def test_a_receiver_that_is_away_gets_it_later(
    world: World, sender: Sender, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.close()
    world.an_organization()
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
    assert "given up lately" in (sender.check() or "")


@pytest.mark.storages("memory")
def test_a_receiver_that_is_gone_is_left_alone_until_a_restart(
    world: World, sender: Sender, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [410]
    world.an_organization()
    world.an_organization()
    assert sender.run() is None
    assert len(receiver.received) in (1, 2)
    assert "gone (410)" in caplog.text
    came = len(receiver.received)
    world.an_organization()
    world.clock.advance(hours=1)
    assert sender.run() is None
    assert len(receiver.received) == came


# --- nothing is lost, nothing waits for others ------------------------------------------------------------------------


@pytest.mark.storages("sqlite", "postgresql")
def test_a_process_that_dies_after_the_commit_loses_nothing(world: World, sender: Sender, receiver: Receiver) -> None:
    """Memory dies with its process."""
    world.an_organization()
    world.identity.write_refusals([an_audit_event(event="authentication.refused", result=Result.REFUSED)])
    second = assemble(world.settings, clock=world.clock)
    second.worker = Worker([])
    try:
        assert webhook(second).run() is None
    finally:
        second.close()
    assert sorted(receiver.names) == ["authentication.refused", "organization.created"]
    assert sender.run() is None
    assert len(receiver.received) == 2


@pytest.mark.storages("sqlite")
def test_the_worker_sends_it_by_itself_and_a_hanging_receiver_delays_no_mail(
    make_world: MakeWorld, settings: dict[str, str], receiver: Receiver, make_receiver: Callable[[], Receiver]
) -> None:
    hanging = make_receiver()
    hanging.answering.clear()
    post = Post()
    post.open()
    changed = {
        "identity.plugin.webhooks.urls": f"{hanging.url} {receiver.url}",
        # Longer than this test waits for the others.
        "identity.plugin.webhooks.timeout": "20s",
    }
    world = make_world(**settings | post.settings | changed)
    second = assemble(world.settings)
    try:
        with second.transaction(SYSTEM) as services:
            services.organizations.create(CreateOrganization(name="Acme"))
        assert hanging.arrived.wait(10)
        with second.transaction(SYSTEM) as services:
            services.mails.queue(a_mail(), Reason.NOTICE)
        assert post.arrived.wait(10)
        assert receiver.arrived.wait(10)
        assert len(hanging.received) >= 1
        assert not hanging.answering.is_set()
    finally:
        hanging.answering.set()
        second.close()
        post.close()


def a_mail() -> Mail:
    return Mail(to="ada@acme.example", subject="Hello", text="Hello\n")


@pytest.mark.storages("memory")
def test_each_receiver_gets_every_event(
    make_world: MakeWorld, settings: dict[str, str], receiver: Receiver, make_receiver: Callable[[], Receiver]
) -> None:
    other = make_receiver()
    world = make_world(**settings | {"identity.plugin.webhooks.urls": f"{receiver.url} {other.url}"})
    receiver.answers = [500] * 10
    world.an_organization()
    for one in world.identity.senders.values():
        one.run()
    assert sorted(receiver.names) == sorted(other.names)
    assert len({one.name for one in world.identity.senders.values()}) == 2


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_two_secrets_sign_while_they_are_exchanged(
    world: World, sender: Sender, receiver: Receiver, secret_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret_file.write_text(line(OTHER) + line(SECRET))
    world.an_organization()
    sender.send_due()
    (message,) = receiver.received
    timestamp = int(message.headers["webhook-timestamp"])
    both = [signature(one, message.headers["webhook-id"], timestamp, message.body) for one in (OTHER, SECRET)]
    assert message.headers["webhook-signature"].split() == both
    # A file that is spoilt meanwhile holds messages back, and loses none.
    secret_file.write_text("oops")
    world.an_organization()
    assert sender.run() is not None
    assert "must hold one secret" in caplog.text
    secret_file.write_text(line(SECRET))
    world.clock.advance(10)
    assert sender.run() is None
    assert len(receiver.received) == 2


@pytest.mark.parametrize(
    "content",
    ["", "whsec_", line(SECRET)[6:], line(b"x" * 23), line(b"x" * 65), line(SECRET) * 3, "whsec_###", "ü"],
)
def test_a_secret_file_that_will_not_do(secret_file: Path, content: str) -> None:
    secret_file.write_text(content)
    with pytest.raises(BadSetting, match="must hold one secret") as refusal:
        read_secrets(secret_file)
    assert line(SECRET).strip() not in str(refusal.value)


def test_a_secret_file_that_others_may_read(secret_file: Path) -> None:
    secret_file.chmod(0o640)
    with pytest.raises(BadSetting, match="chmod 600"):
        read_secrets(secret_file)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"urls": ("https://example.com", "https://example.com")}, "urls"),
        ({"urls": ("https://user:password@example.com",)}, "urls"),
        ({"urls": ("ftp://example.com",)}, "urls"),
        ({"urls": ("https://[::1",)}, "urls"),
        ({"events": ("organisation.*",)}, "events"),
        ({"events": ()}, "events"),
        ({"secret_file": None}, "secret_file"),
        ({"secret_file": Path("/nowhere/secret")}, "secret_file"),
        ({"ca_file": Path("/nowhere/ca.pem")}, "ca_file"),
        ({"proxy": "https://proxy.example.com"}, "proxy"),
        ({"proxy": "socks5://proxy.example.com"}, "proxy"),
        ({"proxy": "proxy.example.com:3128"}, "proxy"),
    ],
)
def test_settings_that_do_not_fit(secret_file: Path, changed: dict[str, Any], key: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        Settings(**{"urls": ("https://example.com/events",), "secret_file": secret_file} | changed)
    assert refusal.value.key == key
    assert "password@" not in str(refusal.value)


@pytest.mark.storages("memory")
def test_plain_http_goes_to_this_machine_alone_but_in_development(
    world: World, settings: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = world.settings | {"identity.plugin.webhooks.urls": "http://example.com/events"}
    with pytest.raises(BadSetting, match="must start with https://"):
        assemble(elsewhere)
    assemble(elsewhere | {"identity.development": "true"}).close()


@pytest.mark.storages("memory")
@pytest.mark.parametrize("host", ["receiver.example", "2130706433", "0x7f.1"])
def test_a_name_that_leads_to_a_private_address_has_to_be_named(
    make_world: MakeWorld,
    settings: dict[str, str],
    receiver: Receiver,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(outgoing.Outgoing.__init__, "__kwdefaults__", _resolving_to_loopback())
    url = receiver.url.replace("127.0.0.1", host)
    private = {**settings, "identity.plugin.webhooks.urls": url, "identity.development": "true"}
    world = make_world(**private)
    world.an_organization()
    assert webhook(world.identity).send_due() == 0
    assert receiver.received == []
    assert "identity.outgoing_networks" in caplog.text
    world = make_world(**private, **{"identity.outgoing_networks": "127.0.0.0/8"})
    world.an_organization()
    assert webhook(world.identity).send_due() > 0


def _resolving_to_loopback() -> dict[str, Any]:
    return {**outgoing.Outgoing.__init__.__kwdefaults__, "resolve": lambda host, seconds: ["127.0.0.1"]}


@pytest.mark.storages("memory")
def test_the_environment_says_nothing_about_proxies(
    world: World, sender: Sender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    world.an_organization()
    assert sender.send_due() == 1


@pytest.mark.storages("memory")
def test_a_proxy_that_is_named_is_used(
    make_world: MakeWorld, settings: dict[str, str], receiver: Receiver, make_receiver: Callable[[], Receiver]
) -> None:
    proxy = make_receiver()
    address = proxy.url.partition("/events")[0]
    world = make_world(**settings | {"identity.plugin.webhooks.proxy": address})
    flush(world)
    assert receiver.received == []
    assert proxy.received[0].path == receiver.url


# --- the example of the documentation ---------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_the_example_receiver_believes_what_is_signed(
    make_world: MakeWorld, settings: dict[str, str], secret_file: Path
) -> None:
    script = ROOT / "docs" / "integrators" / "examples" / "webhook_receiver.py"
    command = [sys.executable, str(script), "0", str(secret_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            (port,) = re.findall(r"\d+", process.stdout.readline())
            url = f"http://127.0.0.1:{port}/"
            world = make_world(**settings | {"identity.plugin.webhooks.urls": url})
            flush(world)
            organization = world.an_organization()
            assert webhook(world.identity).send_due() == 1
            told = [process.stdout.readline()]
            while organization.id not in told[-1]:
                told.append(process.stdout.readline())
            assert "organization.created" in told[-1]
            secret_file.write_text(line(OTHER))
            world.an_organization()
            assert webhook(world.identity).send_due() == 0, "signed with another secret"
        finally:
            process.terminate()
