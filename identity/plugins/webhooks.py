"""Webhooks: audit events, signed by the Standard Webhooks specification and posted to the operator's receivers."""

import base64
import binascii
import hashlib
import hmac
import json
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from identity.api.crypto import ForbiddenDestination, OutboundHttpClient
from identity.api.plugins import InvalidSetting, __version__, duration, hookimpl, now, setting
from identity.api.plugins import Settings as CoreSettings
from identity.api.services import AuditEvent, Delivery, DeliveryFailed, event_to_dict

_SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
_SECRET_LENGTHS = range(24, 65)
_MAX_SECRETS = 2
_HTTP_GONE = 410


def read_secrets(file: Path) -> tuple[bytes, ...]:
    """The secrets in a file, one per line: ``whsec_`` and 24 to 64 bytes in base64.

    Raises InvalidSetting without the secret.
    """
    try:
        open_to_others = file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        lines = [line.strip() for line in file.read_text("ascii").splitlines() if line.strip()]
    except OSError as problem:
        raise InvalidSetting("secret_file", f"{file} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        lines = []
    if open_to_others:
        raise InvalidSetting("secret_file", f'{file} is open to others: run "chmod 600 {file}"')
    secrets = tuple(secret for line in lines if (secret := _parse_secret(line)) is not None)
    if not 0 < len(secrets) == len(lines) <= _MAX_SECRETS:
        raise InvalidSetting(
            "secret_file",
            f"{file} must hold one secret, or two on two lines while they are exchanged: {_SECRET_PREFIX} and 24 to 64"
            " random bytes in base64",
        )
    return secrets


def _parse_secret(line: str) -> bytes | None:
    try:
        secret = base64.b64decode(line.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        return None
    return secret if line.startswith(_SECRET_PREFIX) and len(secret) in _SECRET_LENGTHS else None


def sign_message(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature in the header (Standard Webhooks, symmetric signatures)."""
    signed = hmac.digest(secret, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


@dataclass(frozen=True, kw_only=True)
class WebhooksPluginSettings:
    """Where audit events are sent, which ones, and what they are signed with."""

    urls: tuple[str, ...] = setting(
        "The addresses of the receivers. Each gets every event; without an address, nothing is sent. They must begin"
        " with https://, except for receivers on this machine and in development. A host name that resolves to a"
        " private address needs ``identity.outgoing_networks``.",
        default=(),
    )
    secret_file: Path | None = setting(
        "A file with the secret that signs messages, with mode 0600: ``whsec_`` and 24 to 64 random bytes in base64."
        " With two lines, messages have two signatures, for a change of the secret. The file is read for each message.",
        default=None,
    )
    events: tuple[str, ...] = setting(
        "The events to send, by name or pattern: ``user.created service_user.* *.removed``.", default=("*",)
    )
    timeout: timedelta = duration(
        "How long a receiver may take, from the connection to the end of its response.", "5s", at_most="20s"
    )
    give_up_after: timedelta = duration(
        "How long delivery of a message is retried, with growing delays.", "7d", at_least="1m", at_most="30d"
    )
    ca_file: Path | None = setting(
        "A file of certificate authorities (PEM) to trust instead of the system's, for receivers with your own"
        " certificates.",
        default=None,
    )
    proxy: str = setting(
        "A proxy for all messages, such as http://proxy.example.com:3128. The proxy then decides which addresses are"
        " allowed. Proxies in environment variables are ignored.",
        default="",
    )

    def __post_init__(self) -> None:
        for url in self.urls:
            _check_url(url)
        if len(set(self.urls)) != len(self.urls):
            raise InvalidSetting("urls", "must not name an address twice")
        for pattern in self.events:
            if not any(fnmatchcase(name, pattern) for name in AuditEvent.NAMES):
                raise InvalidSetting("events", f"{pattern} fits the name of no event; names are such as user.created")
        if not self.events:
            raise InvalidSetting("events", "must name an event or a pattern; * stands for all")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise InvalidSetting("ca_file", f"{self.ca_file} is no file")
        if self.proxy and not _is_proxy(self.proxy):
            raise InvalidSetting("proxy", "must be an address such as http://proxy.example.com:3128")
        if self.urls:
            self.secrets()

    def secrets(self) -> tuple[bytes, ...]:
        """The current signing secrets. Raises InvalidSetting."""
        if self.secret_file is None:
            raise InvalidSetting("secret_file", "is missing: receivers tell by it who sends")
        return read_secrets(self.secret_file)


# Inside the plugin class ``Settings`` is the plugin's attribute.
_Settings = WebhooksPluginSettings


class ReceiverDelivery(Delivery):
    """Delivers events to one receiver."""

    def __init__(self, url: str, settings: WebhooksPluginSettings, networks: Iterable[str] = ()) -> None:
        hostname = urlsplit(url).hostname or ""
        # The path may be a shared secret, so it is hashed.
        self.kind = f"webhook {hostname} {hashlib.sha256(url.encode()).hexdigest()[:8]}"
        self.receiver, self.event_patterns = hostname, settings.events
        self.message_lifetime = settings.give_up_after
        self._url = url
        self._settings = settings
        self._has_failed = False
        self._client = OutboundHttpClient(
            networks=OutboundHttpClient.parse_networks([*networks, *_address_networks(hostname)]),
            seconds=settings.timeout.total_seconds(),
            ca_file=settings.ca_file,
            proxy=settings.proxy,
        )

    @property
    def is_enabled(self) -> bool:
        """False once the receiver has responded that it is gone."""
        return not self._has_failed

    def event_content(self, event: AuditEvent) -> bytes | None:
        """The event as JSON; None if its type is not selected."""
        if not any(fnmatchcase(event.event, pattern) for pattern in self._settings.events):
            return None
        return json.dumps(event_to_dict(event), separators=(",", ":")).encode()

    def send(self, content: bytes) -> None:
        """Post it. Raises DeliveryFailed for any status but 2xx; OSError, HTTPException."""
        try:
            answer = self._client.send("POST", self._url, headers=self._headers(content), body=content)
        except ForbiddenDestination:
            raise DeliveryFailed(
                "the receiver has no public address; identity.outgoing_networks can name its own"
            ) from None
        if answer.status == _HTTP_GONE:
            self._has_failed = True
            raise DeliveryFailed("the receiver is gone (410); nothing more is sent to it before a restart")
        if not 200 <= answer.status < 300:
            raise DeliveryFailed(f"the receiver answered {answer.status}")

    def _headers(self, content: bytes) -> dict[str, str]:
        message_id, timestamp = json.loads(content)["id"], int(now().timestamp())
        try:
            secrets = self._settings.secrets()
        except InvalidSetting as problem:
            raise DeliveryFailed(str(problem)) from None
        return {
            "Content-Type": "application/json",
            "User-Agent": f"identity/{__version__}",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(sign_message(secret, message_id, timestamp, content) for secret in secrets),
        }


def _check_url(url: str) -> None:
    """Raise InvalidSetting for an invalid receiver URL, without the URL, which may contain a secret."""
    try:
        parts = urlsplit(url)
        hostname, _ = parts.hostname, parts.port
    except ValueError:
        hostname = None
    if not hostname or parts.scheme not in ("https", "http") or parts.fragment or "@" in parts.netloc:
        raise InvalidSetting("urls", "must be addresses such as https://example.com/events, without a password")


def _is_proxy(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and bool(parts.hostname) and parts.port != 0 and parts.path in ("", "/")
    except ValueError:
        return False


def _address_networks(hostname: str) -> Iterable[str]:
    """The networks that the host names: an IP address in the settings is intended."""
    if hostname == "localhost":
        return ("127.0.0.0/8", "::1")
    try:
        return (str(ip_address(hostname)),)
    except ValueError:
        return ()


def _is_plain(url: str) -> bool:
    """True for a URL that sends messages unencrypted over the network."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not _is_loopback(parts.hostname or "")


def _is_loopback(hostname: str) -> bool:
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost"


class WebhooksPlugin:
    """Sends audit events to webhooks, signed and with retries."""

    hookspecs = 1
    Settings = WebhooksPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_deliveries(self, settings: CoreSettings) -> Iterable[Delivery]:
        """One delivery for each receiver. Raises InvalidSetting for plain http to another machine outside
        development."""
        if not settings.development and any(map(_is_plain, self.settings.urls)):
            raise InvalidSetting(
                "identity.plugin.webhooks.urls", "must start with https:// (http:// on a loopback host)"
            )
        return [ReceiverDelivery(url, self.settings, settings.allowed_networks) for url in self.settings.urls]
