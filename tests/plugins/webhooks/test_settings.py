"""Webhook settings: secrets, allowed addresses, proxies; and the example receiver."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from identity import outbound_http
from identity.application_factory import create_application
from identity.outbox_sender import OutboxSender
from identity.plugins.webhooks import ReceiverDelivery, WebhooksPluginSettings, read_secrets, sign_message
from identity.services.outbox import DeliveryFailed
from identity.settings_parser import InvalidSetting
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.webhooks.conftest import OTHER, SECRET, WebhookReceiver, flush, line, webhook

ROOT = Path(__file__).resolve().parents[3]


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_secret_rotation_signs_with_both_secrets(
    world: World, sender: OutboxSender, receiver: WebhookReceiver, secret_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret_file.write_text(line(OTHER) + line(SECRET))
    world.make_organization()
    sender.send_due()
    (message,) = receiver.received
    timestamp = int(message.headers["webhook-timestamp"])
    both = [sign_message(item, message.headers["webhook-id"], timestamp, message.body) for item in (OTHER, SECRET)]
    assert message.headers["webhook-signature"].split() == both
    # An invalid secret file delays messages and loses none.
    secret_file.write_text("oops")
    world.make_organization()
    assert sender.run() is not None
    assert "must hold one secret" in caplog.text
    secret_file.write_text(line(SECRET))
    world.clock.advance(10)
    assert sender.run() is None
    assert len(receiver.received) == 2


def test_invalid_secret_file_is_refused(secret_file: Path) -> None:
    for content in (
        "",
        "whsec_",
        line(SECRET)[6:],
        line(b"x" * 23),
        line(b"x" * 65),
        line(SECRET) * 3,
        "whsec_###",
        "ü",
    ):
        secret_file.write_text(content)
        with pytest.raises(InvalidSetting, match="must hold one secret") as refusal:
            read_secrets(secret_file)
        assert line(SECRET).strip() not in str(refusal.value)


def test_readable_secret_file_is_refused(secret_file: Path) -> None:
    secret_file.chmod(0o640)
    with pytest.raises(InvalidSetting, match="chmod 600"):
        read_secrets(secret_file)


def test_inconsistent_webhook_settings_are_refused(secret_file: Path) -> None:
    for key, value in (
        ("urls", ("https://example.com", "https://example.com")),
        *(("urls", (item,)) for item in ("https://user:password@example.com", "ftp://example.com", "https://[::1")),
        *(("events", value) for value in (("organisation.*",), ())),
        *(("secret_file", value) for value in (None, Path("/nowhere/secret"))),
        ("ca_file", Path("/nowhere/ca.pem")),
        *(("proxy", f"{item}proxy.example.com:3128") for item in ("https://", "socks5://", "")),
    ):
        with pytest.raises(InvalidSetting) as refusal:
            WebhooksPluginSettings(**{"urls": ("https://example.com/events",), "secret_file": secret_file, key: value})
        assert refusal.value.key == key
        assert "password@" not in str(refusal.value)


@pytest.mark.storages("memory")
def test_plain_http_requires_loopback_or_development(world: World, settings: dict[str, str], tmp_path: Path) -> None:
    plain_http = world.settings | {"identity.plugin.webhooks.urls": "http://example.com/events"}
    with pytest.raises(InvalidSetting, match="must start with https://"):
        create_application(plain_http)
    create_application(plain_http | {"identity.development": "true"}).close()


@pytest.mark.parametrize("host", ["receiver.example", "2130706433", "0x7f.1"])
def test_private_receiver_address_requires_outgoing_networks(
    receiver: WebhookReceiver, secret_file: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original_init = outbound_http.OutboundHttpClient.__init__
    to_loopback = {**original_init.__kwdefaults__, "resolve": lambda host, seconds: ["127.0.0.1"]}
    monkeypatch.setattr(original_init, "__kwdefaults__", to_loopback)
    url, settings = receiver.url.replace("127.0.0.1", host), WebhooksPluginSettings(secret_file=secret_file)
    content = json.dumps({"id": "1", "event": "user.created"}).encode()
    with pytest.raises(DeliveryFailed, match=r"identity\.outgoing_networks"):
        ReceiverDelivery(url, settings).send(content)
    assert receiver.received == []
    ReceiverDelivery(url, settings, ["127.0.0.0/8"]).send(content)
    assert receiver.names == ["user.created"]


@pytest.mark.storages("memory")
def test_proxy_environment_variables_are_ignored(
    world: World, sender: OutboxSender, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    world.make_organization()
    assert sender.send_due() == 1


@pytest.mark.storages("memory")
def test_configured_proxy_is_used(
    make_world: WorldFactory,
    settings: dict[str, str],
    receiver: WebhookReceiver,
    make_receiver: Callable[[], WebhookReceiver],
) -> None:
    proxy = make_receiver()
    address = proxy.url.partition("/events")[0]
    world = make_world(**settings | {"identity.plugin.webhooks.proxy": address})
    world.make_organization()
    flush(world)
    assert receiver.received == []
    assert proxy.received[0].path == receiver.url


# --- documentation example --------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_example_receiver_verifies_signature(
    make_world: WorldFactory, settings: dict[str, str], secret_file: Path
) -> None:
    script = ROOT / "docs" / "how-to" / "application-developers" / "examples" / "webhook_receiver.py"
    command = [sys.executable, str(script), "0", str(secret_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            (port,) = re.findall(r"\d+", process.stdout.readline())
            url = f"http://127.0.0.1:{port}/"
            world = make_world(**settings | {"identity.plugin.webhooks.urls": url})
            flush(world)
            organization = world.make_organization()
            assert webhook(world.identity).send_due() == 1
            output_lines = [process.stdout.readline()]
            while organization.id not in output_lines[-1]:
                output_lines.append(process.stdout.readline())
            assert "organization.created" in output_lines[-1]
            secret_file.write_text(line(OTHER))
            world.make_organization()
            assert webhook(world.identity).send_due() == 0, "signed with another secret"
        finally:
            process.terminate()
