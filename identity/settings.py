"""The core settings: everything under ``identity.`` in the ini file."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from identity.crypto.argon2id import Argon2Cost
from identity.domain.applications import web_origin
from identity.domain.domains import DomainNamespace
from identity.domain.errors import Invalid
from identity.domain.mail_server import SmtpSecurity
from identity.domain.policies import SecondFactorRule
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.validators import LOOPBACK_HOSTS, MAX_TOKEN_LIFETIME
from identity.settings_parser import InvalidSetting, SettingErrors, duration, parse_settings, setting

PREFIX = "identity."
PLUGIN_PREFIX = "identity.plugin."

_NAMESPACE = re.compile(r"urn(:[A-Za-z0-9][A-Za-z0-9-]*){2,}\Z")
_SMTP_PREFIX = "smtp."
_MIN_AUDIT_RETENTION = timedelta(days=30)
_LOCAL_NETWORKS = ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7")
#: Value of ``trusted_proxy`` without a proxy.
NO_PROXY = "none"


def parse_name_server(text: str) -> tuple[str, int]:
    """Parse ``192.0.2.53``, ``192.0.2.53:5353`` or ``[2001:db8::53]:5353`` into address and port. Raises ValueError."""
    parts = urlsplit(f"//[{text}]" if text.count(":") > 1 and "[" not in text else f"//{text}")
    address, port = str(ip_address(parts.hostname or "")), parts.port
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or port == 0:
        raise ValueError("no address")
    return address, port or 53


def _parse_validator(read: Callable[[str], object], example: str) -> Callable[[str], None]:
    """A validator that refuses what ``read`` cannot parse."""

    def check(text: str) -> None:
        try:
            read(text)
        except ValueError:
            raise ValueError(f"must be such as {example}; {text} will not do") from None

    return check


def _choice_validator(*values: object) -> Callable[[object], None]:
    """A validator that accepts only these values."""

    def check(value: object) -> None:
        if value not in values:
            *first, last = values
            raise ValueError(f"must be {', '.join(map(str, first))} or {last}")

    return check


def _require_min_retention(span: object) -> None:
    """Validator: events are kept for at least a month."""
    if isinstance(span, timedelta) and span < _MIN_AUDIT_RETENTION:
        raise ValueError(f"must be at least {_MIN_AUDIT_RETENTION.days}d, or none")


def _parse_urn_namespace(text: str) -> None:
    if not _NAMESPACE.match(text):
        raise ValueError("no namespace")


def _parse_proxy(text: str) -> None:
    if text not in ("", NO_PROXY):
        ip_address(text)


@dataclass(frozen=True, kw_only=True)
class SmtpSettings:
    """Everything under ``identity.smtp.``. What is not set here can be set in the console. Without a host no mail is
    sent, and pages hide features that need mail."""

    host: str = setting("The mail server. Without one, no mail is sent.", default="")
    port: int = setting("The port of the mail server.", default=587, minimum=1, maximum=65535)
    security: SmtpSecurity = setting(
        "starttls (port 587), tls (port 465), or none for a server on this machine.", default=SmtpSecurity.STARTTLS
    )
    user: str = setting("SMTP user. Leave empty for no authentication.", default="")
    password_file: Path | None = setting("A file with the password of the SMTP user.", default=None)
    sender: str = setting("The From address, such as Identity <no-reply@example.com>.", default="")
    #: The names of the settings that the ini file sets.
    configured: frozenset[str] = field(default=frozenset(), metadata={"section": True})

    def __post_init__(self) -> None:
        if self.host and "@" not in self.sender:
            raise InvalidSetting("sender", "must be an address such as no-reply@example.com")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything under ``identity.`` except the settings of plugins."""

    issuer_url: str = setting(
        "The issuer, exactly as it appears in every token: scheme and host, without path and trailing slash."
    )
    base_url: str = setting(
        "The base URL of token, introspection, userinfo, keys and the APIs. By default the issuer.", default=""
    )
    login_url: str = setting(
        "The URL of the host where users sign in; only this host has cookies. By default the issuer.", default=""
    )
    storage: str = setting("The name of the storage backend, as a plugin registers it.")
    plugins: tuple[str, ...] = setting(
        "The plugins to load, in call order. Installed plugins that are not listed are not loaded."
    )
    master_keys: tuple[str, ...] = setting(
        "Master keys as id:file. The first one is active. Each file holds 32 bytes (raw, hex or base64), and only its"
        " owner can read it. Private keys and other secrets in the database are encrypted with them.",
        default=(),
    )
    data: Path = setting(
        "A folder for files that the service writes itself: in development the master key and the example key file.",
        default=Path("var"),
        is_created=True,
    )
    development: bool = setting(
        "Allow plain http on loopback addresses, create a missing master key, migrate and bootstrap at start.",
        default=False,
    )
    urn_namespaces: tuple[str, ...] = setting(
        "Namespaces of the service's scopes and claims. The first is the default; the others are accepted too. The"
        " second-to-last part of each is an alias for the id of the service's own project: service in urn:service:iam.",
        default=("urn:service:iam",),
        validator=_parse_validator(_parse_urn_namespace, "urn:service:iam"),
    )
    assertion_audiences: tuple[str, ...] = setting(
        "Additional values that are accepted as aud of a signed assertion, besides the issuer.", default=()
    )
    clock_skew: timedelta = duration(
        "How far the clock of another party may be ahead (iat, nbf) or behind (exp).", "30s", at_least="0", at_most="5m"
    )
    access_token_lifetime: timedelta = duration("Lifetime of access tokens.", "1h", at_most=MAX_TOKEN_LIFETIME)
    service_user_token_min_lifetime: timedelta = duration(
        "The minimum lifetime of a service user's access token, because common clients renew tokens 5 minutes early.",
        "10m",
        at_most=MAX_TOKEN_LIFETIME,
    )
    id_token_lifetime: timedelta = duration("Lifetime of ID tokens.", "1h", at_most=MAX_TOKEN_LIFETIME)
    authorization_code_lifetime: timedelta = duration(
        "How long an authorization code can be redeemed.", "60s", at_most="10m"
    )
    refresh_token_idle_timeout: timedelta = duration(
        "How long an unused refresh token stays valid.", "30d", at_most="365d"
    )
    refresh_token_max_age: timedelta = duration(
        "How long an application can refresh after a sign-in.", "90d", at_most="3650d"
    )
    refresh_token_grace: timedelta = duration(
        "How long a client that lost the response may repeat its last refresh. With 0, every repetition counts as"
        " theft.",
        "0",
        at_least="0",
        at_most="60s",
    )
    session_idle_timeout: timedelta = duration(
        "After this time without use, a session ends and the user has to sign in again.", "12h", at_most="90d"
    )
    session_max_age: timedelta = duration(
        "After this time, a session ends even if it is in use, and the user has to sign in again.", "7d", at_most="365d"
    )
    sign_in_lifetime: timedelta = duration("How long a pending sign-in waits for its user.", "30m", at_most="24h")
    trusted_proxy: str = setting(
        "The address of the proxy in front of the service, or none if people connect directly. Forwarding headers are"
        " accepted only from this address. Required in production.",
        default="",
        validator=_parse_validator(_parse_proxy, "10.0.0.2, or none"),
    )
    attempts_per_address: int = setting(
        "How many wrong passwords one network address may try in ten minutes, over all accounts. The same limit"
        " applies, separately, to requests for mails and new accounts. An IPv6 network of 64 bits counts as one"
        " address. 0 means no limit.",
        default=100,
        minimum=0,
    )
    password_min_length: int = setting(
        "The minimum number of characters of a password.", default=15, minimum=8, maximum=64
    )
    password_blocklist: Path | None = setting(
        "A file of passwords that users cannot choose, one per line, not case-sensitive. The thirty thousand most"
        " common passwords are always refused. The file is read at start.",
        default=None,
    )
    password_change_ends_access: bool = setting(
        "Whether a password change by a user who enters the current password also revokes the access and refresh"
        " tokens of applications. A password that is set by a link or by another person always revokes them.",
        default=True,
    )
    second_factor: SecondFactorRule = setting(
        "Who needs a second factor, unless a policy sets it: off, offered (users who have set one up),"
        " required_for_iam (managers of the instance), required_for_managers, or required (everyone).",
        default=SecondFactorRule.OFFERED,
    )
    password_memory: int = setting(
        "Memory for one password hash (argon2id) in KiB. Stored hashes are renewed as users sign in.",
        default=47104,
    )
    password_iterations: int = setting("Number of passes over that memory.", default=1)
    password_workers: int = setting(
        "How many passwords are hashed at the same time. 0 means one less than the number of processors.",
        default=0,
        minimum=0,
    )
    endpoints_in_event_loop: bool = setting(
        "Whether the event loop runs protocol endpoints, which costs least. Turn it off if the grant or claims of a"
        " plugin block: requests then run in threads.",
        default=True,
    )
    one_time_link_ttl: timedelta = duration(
        "How long one-time links are valid: new passwords, registrations, email addresses.", "1h", at_most="1h"
    )
    invitation_lifetime: timedelta = duration(
        "How long a one-time link is valid for a user who has not chosen a password yet.",
        "7d",
        at_most="30d",
    )
    smtp: SmtpSettings = field(default_factory=SmtpSettings, metadata={"section": True})
    signing_key_bits: int = setting(
        "Size of new RSA signing keys: 2048, 3072 or 4096.", default=2048, validator=_choice_validator(2048, 3072, 4096)
    )
    signing_algorithms: tuple[str, ...] = setting(
        "The algorithms that the service signs with: RS256, PS256, ES256, EdDSA. The first is the default of"
        " applications that choose none. RS256 must be among them.",
        default=("RS256",),
        validator=_parse_validator(SignatureAlgorithm, "RS256 ES256"),
    )
    signer: str = setting(
        "What creates new signing keys and signs with them: software stores them encrypted in the database. Plugins"
        " offer others, such as hardware security modules.",
        default="software",
    )
    signing_key_active_age: timedelta = duration("How long a signing key signs before the next one replaces it.", "90d")
    jwks_max_age: timedelta = duration(
        "How long clients may cache discovery and keys. A new key is announced for a minute longer.", "5m"
    )
    service_user_key_lifetime: timedelta = duration(
        "The default lifetime of a service user's key or personal access token.",
        "365d",
        at_most="3650d",
    )
    service_user_key_max_age: timedelta | None = setting(
        "The maximum lifetime of a service user's key or personal access token. none means no maximum.",
        default=None,
    )
    default_domain: str = setting(
        "The domain below which new organizations get their primary domains. By default the issuer's host name.",
        default="",
    )
    dns_resolver: tuple[str, ...] = setting(
        "The DNS servers for domain checks, as addresses, with a port if it is not 53: 192.0.2.53"
        " [2001:db8::53]:5353. By default those of the machine.",
        default=(),
        validator=_parse_validator(parse_name_server, "192.0.2.53 or [2001:db8::53]:5353"),
    )
    outgoing_networks: tuple[str, ...] = setting(
        "Private networks to which the service may send requests, such as 10.1.0.0/16: for webhooks, other identity"
        " providers, and files that prove domains. All other private addresses are refused. In development, loopback,"
        " RFC 1918 and unique local addresses are allowed.",
        default=(),
        validator=_parse_validator(ip_network, "10.1.0.0/16 or 127.0.0.1"),
    )
    hook_failure: str = setting(
        "The effect of an exception in a contribution hook: refuse (the request fails) or ignore (it is logged).",
        default="refuse",
        validator=_choice_validator("refuse", "ignore"),
    )
    import_limit: int = setting(
        "The maximum size in MiB of a document that is imported over HTTP. 100,000 users take about 60.",
        default=256,
        minimum=1,
    )
    pages_templates: tuple[Path, ...] = setting(
        "Folders that are searched for templates first, to replace single templates.", default=()
    )
    pages_style: Path | None = setting(
        "A style sheet that is loaded after the built-in one, to override its CSS variables.", default=None
    )
    purge_interval: timedelta = duration("How often the service deletes expired rows.", "5m")
    outbox_alarm_age: timedelta = duration(
        "How long a mail or other message may wait before /readyz and identity check report it.", "15m"
    )
    job_alarm_age: timedelta = duration(
        "How late background work (purge, key rotation, deletions, expiring keys) may be before /readyz and identity"
        " check report it.",
        "12h",
        at_least="1h",
    )
    hung_job_age: timedelta = duration(
        "How long a background thread may send no heartbeat before /readyz reports it.", "5m", at_least="1m"
    )
    purge_after: timedelta = duration(
        "How long expired data is kept before it is purged, except for the following kinds.", "24h", at_least="0"
    )
    session_retention: timedelta = duration(
        "How long sessions are kept after their end, in addition to the lifetime of tokens that refer to them.",
        "24h",
        at_least="0",
    )
    token_retention: timedelta = duration(
        "How long access tokens, refresh tokens and authorization codes are kept after they have expired.",
        "24h",
        at_least="0",
    )
    sent_mail_retention: timedelta = duration(
        "How long the log says to whom a mail was sent, and what the mail server replied.", "30d", at_least="0"
    )
    audit_retention: timedelta | None = setting(
        "How long audit events are kept, at least 30d. With none, they are kept forever. Events under a legal hold"
        " are always kept.",
        default=None,
        validator=_require_min_retention,
    )

    @property
    def login_origin(self) -> str:
        """The web origin of ``login_url``, as browsers send it."""
        return web_origin(self.login_url) or self.login_url

    def __post_init__(self) -> None:
        fill = object.__setattr__
        fill(self, "base_url", self.base_url or self.issuer_url)
        fill(self, "login_url", self.login_url or self.issuer_url)
        problems = SettingErrors()
        # The others default to the issuer.
        urls = {"issuer_url": self.issuer_url, "base_url": self.base_url, "login_url": self.login_url}
        for name, url in urls.items():
            if name == "issuer_url" or url != self.issuer_url:
                with problems():
                    self._check_url(name, url)
        problems.errors += self._consistency_errors()
        problems.raise_if_any()
        fill(self, "default_domain", self.default_domain or urlsplit(self.issuer_url).hostname)

    def _consistency_errors(self) -> Iterator[InvalidSetting]:
        """Settings that contradict each other."""
        if self.signing_key_active_age <= self.key_announcement_period:
            yield InvalidSetting("signing_key_active_age", "must be longer than jwks_max_age and a minute")
        if SignatureAlgorithm.RS256 not in self.signing_algorithms:
            yield InvalidSetting("signing_algorithms", "must include RS256, which every client can verify")
        if len(set(self.signing_algorithms)) < len(self.signing_algorithms):
            yield InvalidSetting("signing_algorithms", "names an algorithm twice")
        try:
            Argon2Cost(memory_kib=self.password_memory, iterations=self.password_iterations)
        except Invalid as problem:
            name = "password_iterations" if "iterations" in problem.fields else "password_memory"
            yield InvalidSetting(name, " ".join(problem.fields.values()))
        if not self.urn_namespaces:
            yield InvalidSetting("urn_namespaces", "must name at least one namespace")
        if not self.plugins:
            yield InvalidSetting("plugins", "must list at least the plugin that offers the storage")
        if not self.master_keys and not self.development:
            yield InvalidSetting(
                "master_keys", "is missing: make a file with `identity master-key FILE` and name it here as 1:FILE"
            )

    def _check_url(self, name: str, url: str) -> None:
        try:
            parts = urlsplit(url)
            hostname, _ = parts.hostname, parts.port
        except ValueError:
            raise InvalidSetting(name, "must be an address such as https://id.example.com") from None
        plain = parts.scheme == "http" and self.development and hostname in LOOPBACK_HOSTS
        if parts.scheme != "https" and not plain:
            raise InvalidSetting(name, "must start with https:// (http:// only in development, on a loopback host)")
        if not hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc or url != url.strip():
            raise InvalidSetting(name, "must be scheme and host alone, such as https://id.example.com")

    @property
    def is_loopback_only(self) -> bool:
        """True in development if all addresses are loopback addresses and there is no proxy."""
        urls = (self.issuer_url, self.base_url, self.login_url)
        local = all(urlsplit(url).hostname in LOOPBACK_HOSTS for url in urls)
        return self.development and local and self.trusted_proxy in ("", NO_PROXY)

    def is_trusted_proxy(self, peer: str) -> bool:
        """True if the peer of a connection is the proxy whose headers count."""
        return peer == self.trusted_proxy and peer not in ("", NO_PROXY)

    @property
    def reserved_domains(self) -> DomainNamespace:
        """Domains that the service assigns itself, and its own hosts, which no organization can claim."""
        urls = (self.issuer_url, self.base_url, self.login_url)
        return DomainNamespace(self.default_domain, frozenset(urlsplit(url).hostname or "" for url in urls))

    @property
    def allowed_networks(self) -> tuple[str, ...]:
        """Networks that outbound requests may reach besides public addresses. In development these include this
        machine and private networks, but no link-local addresses, where cloud providers serve credentials.
        """
        return (*self.outgoing_networks, *(_LOCAL_NETWORKS if self.development else ()))

    @property
    def key_announcement_period(self) -> timedelta:
        """How long a new signing key is published before it signs: the JWKS max-age plus a minute."""
        return self.jwks_max_age + timedelta(minutes=1)


@dataclass(frozen=True)
class ParsedSettings:
    """The core settings, and each plugin's strings that are still to be parsed."""

    core: Settings
    plugins: Mapping[str, Mapping[str, str]]


def read_settings(settings: Mapping[str, str]) -> ParsedSettings:
    """Split and parse the ini values.

    Keys without the prefix ``identity.`` belong to other libraries and are ignored. Raises InvalidSetting.
    """
    core: dict[str, str] = {}
    smtp: dict[str, str] = {}
    for key, value in settings.items():
        if key.startswith(PREFIX + _SMTP_PREFIX):
            smtp[key[len(PREFIX + _SMTP_PREFIX) :]] = value
        elif key.startswith(PREFIX) and not key.startswith(PLUGIN_PREFIX):
            core[key[len(PREFIX) :]] = value
    problems = SettingErrors()
    with problems():
        parsed = parse_settings(Settings, core, PREFIX)
    with problems():
        mail = parse_settings(SmtpSettings, smtp, PREFIX + _SMTP_PREFIX)
    listed = plugin_setting_strings(settings)
    named = (key[len(PLUGIN_PREFIX) :].partition(".")[0] for key in settings if key.startswith(PLUGIN_PREFIX))
    for name in dict.fromkeys(named):
        if name not in listed:
            problem = "is for a plugin that identity.plugins does not list"
            problems.errors.append(InvalidSetting(f"{PLUGIN_PREFIX}{name}", problem))
    problems.raise_if_any()
    configured = frozenset(name for name, value in smtp.items() if value.strip())
    return ParsedSettings(replace(parsed, smtp=replace(mail, configured=configured)), listed)


def plugin_setting_strings(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The strings for each listed plugin, even if other settings are invalid."""
    listed: dict[str, dict[str, str]] = {name: {} for name in settings.get(f"{PREFIX}plugins", "").split()}
    for key, value in settings.items():
        name, _, rest = key.removeprefix(PLUGIN_PREFIX).partition(".")
        if key.startswith(PLUGIN_PREFIX) and name in listed:
            listed[name][rest] = value
    return listed
