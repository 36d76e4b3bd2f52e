"""Settings: the only reader of ini strings. Unknown keys, bad values and missing keys stop the start by name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from datetime import timedelta
from enum import Enum
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from identity.crypto.passwords import Cost
from identity.domain.domains import NameSpace
from identity.domain.errors import Invalid
from identity.domain.rules import LONGEST_TOKEN_LIFETIME

PREFIX = "identity."
PLUGIN_PREFIX = "identity.plugin."

Parsed = TypeVar("Parsed")

_SPAN = re.compile(r"([0-9]{1,8})\s*(s|m|h|d)?\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NAMESPACE = re.compile(r"urn(:[A-Za-z0-9][A-Za-z0-9-]*){2,}\Z")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SMTP = "smtp."
#: What ``trusted_proxy`` says where there is none.
NO_PROXY = "none"
_LONGEST = {
    "authorization_code_lifetime": timedelta(minutes=10),
    "refresh_token_idle_age": timedelta(days=365),
    "refresh_token_max_age": timedelta(days=3650),
    "session_idle_age": timedelta(days=90),
    "session_max_age": timedelta(days=365),
    "sign_in_lifetime": timedelta(hours=24),
    "link_lifetime": timedelta(hours=1),
    "invitation_lifetime": timedelta(days=30),
    "service_user_key_lifetime": timedelta(days=3650),
}


class BadSetting(Exception):
    """A setting that cannot be used; says which key and what it must be."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


def setting(doc: str, *, default: Any = MISSING) -> Any:
    """A dataclass field with the sentence that the settings reference shows."""
    if default is MISSING:
        return field(metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


def _span(text: str) -> timedelta:
    match = _SPAN.match(text)
    if match is None:
        raise ValueError("must be a span such as 3600, 90s, 10m, 12h or 30d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2] or "s"])


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("must be true or false")


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("must be a whole number")
    return int(text)


def _convert(kind: Any, text: str) -> Any:
    """Turn the text into the annotated type; ValueError says what it must be."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        inner = [option for option in get_args(kind) if option is not type(None)]
        return _convert(inner[0], text) if text else None
    if origin is tuple:
        return tuple(_convert(get_args(kind)[0], word) for word in text.split())
    if isinstance(kind, type) and issubclass(kind, Enum):
        if text not in {one.value for one in kind}:
            raise ValueError(f"must be one of {', '.join(str(one.value) for one in kind)}")
        return kind(text)
    if kind is bool:
        return _boolean(text)
    if kind is int:
        return _integer(text)
    if kind is timedelta:
        return _span(text)
    if kind is Path:
        return Path(text)
    if kind is str:
        return text
    raise TypeError(f"no reader for settings of type {kind}")


def parse(kind: type[Parsed], values: Mapping[str, str], prefix: str) -> Parsed:
    """An instance of the dataclass ``kind`` from ini strings; ``values`` are keyed without the prefix.

    Raises BadSetting, naming the full key, for unknown keys, bad values and missing keys.
    """
    hints = get_type_hints(kind)
    # A section of its own is filled in by whoever reads the file.
    known: dict[str, Field[Any]] = {one.name: one for one in fields(kind) if "section" not in one.metadata}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise BadSetting(prefix + name, f"is not known; known are: {', '.join(sorted(known)) or 'none'}")
    arguments = {}
    for name, one in known.items():
        if name in values:
            try:
                arguments[name] = _convert(hints[name], values[name].strip())
            except ValueError as problem:
                raise BadSetting(prefix + name, str(problem)) from None
        elif one.default is MISSING and one.default_factory is MISSING:
            raise BadSetting(prefix + name, "is missing")
    try:
        return kind(**arguments)
    except BadSetting as problem:
        raise BadSetting(prefix + problem.key, problem.problem) from None


def describe(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each field, for the settings reference."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        if "section" in one.metadata:
            continue
        default = "required" if one.default is MISSING else _shown(one.default)
        yield one.name, _type_name(hints[one.name]), default, one.metadata.get("doc", "")


def _type_name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _type_name(get_args(kind)[0])
    if origin is tuple:
        return "words"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(str(one.value) for one in kind)
    names = {str: "text", int: "number", bool: "true or false", timedelta: "span", Path: "file"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def _shown(value: Any) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        for unit in ("d", "h", "m"):
            if seconds and seconds % _SECONDS[unit] == 0:
                return f"{seconds // _SECONDS[unit]}{unit}"
        return f"{seconds}s"
    if isinstance(value, tuple):
        return " ".join(str(word) for word in value)
    return str(value)


def read_name_server(word: str) -> tuple[str, int]:
    """Address and port that ``192.0.2.53``, ``192.0.2.53:5353`` or ``[2001:db8::53]:5353`` names. Raises ValueError."""
    parts = urlsplit(f"//[{word}]" if word.count(":") > 1 and "[" not in word else f"//{word}")
    address, port = str(ip_address(parts.hostname or "")), parts.port
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or port == 0:
        raise ValueError("no address")
    return address, port or 53


class SmtpSecurity(Enum):
    """How the way to the mail server is protected."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class SmtpSettings:
    """Everything under ``identity.smtp.``; without a host no mail is sent, and pages offer nothing that needs one."""

    host: str = setting("The mail server; without one no mail is sent.", default="")
    port: int = setting("Its port.", default=587)
    security: SmtpSecurity = setting(
        "starttls (port 587), tls (port 465), or none for a server on this machine.", default=SmtpSecurity.STARTTLS
    )
    user: str = setting("The name to log on with; without one nobody logs on.", default="")
    password_file: Path | None = setting("A file that holds its password.", default=None)
    sender: str = setting("The From address, such as Identity <no-reply@example.com>.", default="")

    def __post_init__(self) -> None:
        if self.host and "@" not in self.sender:
            raise BadSetting("sender", "must be an address such as no-reply@example.com")
        if not 0 < self.port < 65536:
            raise BadSetting("port", "must be between 1 and 65535")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything under ``identity.`` that is not a plugin's own."""

    issuer_url: str = setting("The issuer, as it stands in every token: scheme and host, no path, no slash at the end.")
    base_url: str = setting(
        "Where token, introspection, userinfo, keys and the APIs live; by default the issuer.", default=""
    )
    login_url: str = setting("Where people sign in; its cookies stay there. By default the issuer.", default="")
    storage: str = setting("The storage backend, by the name under which a plugin offers it.")
    plugins: tuple[str, ...] = setting(
        "The plugins to load, in call order. Installed but unlisted ones are not loaded."
    )
    master_keys: tuple[str, ...] = setting(
        "Master keys as id:file, the first one active. Each file holds 32 bytes (raw, hex or base64) and is readable"
        " by its owner alone. Private keys of the service are sealed under them.",
        default=(),
    )
    data: Path = setting(
        "A folder for what the service writes by itself: in development the master key and the example key file.",
        default=Path("var"),
    )
    development: bool = setting(
        "Allow plain http on loopback, create a missing master key, migrate and bootstrap at start.", default=False
    )
    urn_namespaces: tuple[str, ...] = setting(
        "Namespaces of our scopes and claims; the first is ours, the others are understood equally. The last but"
        " one part of each is an alias of the own project's id: service in urn:service:iam.",
        default=("urn:service:iam",),
    )
    assertion_audiences: tuple[str, ...] = setting(
        "Further values accepted as aud of a signed assertion, beside the issuer.", default=()
    )
    clock_skew: timedelta = setting(
        "How far another party's clock may run ahead (iat, nbf) or behind (exp); 300 s at most.",
        default=timedelta(seconds=30),
    )
    access_token_lifetime: timedelta = setting("Lifetime of access tokens; 12 h at most.", default=timedelta(hours=1))
    service_user_token_min_lifetime: timedelta = setting(
        "A service user's access token never lives shorter than this: common clients renew 5 minutes early.",
        default=timedelta(minutes=10),
    )
    id_token_lifetime: timedelta = setting("Lifetime of ID tokens; 12 h at most.", default=timedelta(hours=1))
    authorization_code_lifetime: timedelta = setting(
        "How long an authorization code can be redeemed; 10 m at most.", default=timedelta(seconds=60)
    )
    refresh_token_idle_age: timedelta = setting(
        "How long a refresh token that nobody uses stays good.", default=timedelta(days=30)
    )
    refresh_token_max_age: timedelta = setting(
        "How long refreshing can go on after a sign-in, whatever is used meanwhile.", default=timedelta(days=90)
    )
    refresh_token_grace: timedelta = setting(
        "How long a client that lost the answer may repeat its last refresh; 60 s at most. 0 takes every repetition for"
        " theft.",
        default=timedelta(),
    )
    session_idle_age: timedelta = setting(
        "After so long without use a person has to give the password again.", default=timedelta(hours=12)
    )
    session_max_age: timedelta = setting(
        "After so long a person has to give the password again, used or not.", default=timedelta(days=7)
    )
    sign_in_lifetime: timedelta = setting(
        "How long a sign-in that was begun waits for its user.", default=timedelta(minutes=30)
    )
    trusted_proxy: str = setting(
        "The one address of the proxy in front, from which alone forwarded addresses are believed, or none if people"
        " connect directly. Production has to say either; the server is told in its own section.",
        default="",
    )
    attempts_per_address: int = setting(
        "How many wrong passwords one network address may try in ten minutes, over all accounts; as many requests for"
        " mails and accounts, counted apart. Of IPv6 a /64 is one address. 0 is no limit.",
        default=100,
    )
    password_min_length: int = setting("The fewest characters of a password; at least 8.", default=15)
    password_change_ends_access: bool = setting(
        "Whether a new password of somebody who shows the present one also revokes what applications got before: access"
        " and refresh tokens. One that is set by a link or by somebody else always does.",
        default=True,
    )
    password_memory: int = setting(
        "Memory of one password hash (argon2id) in KiB. Stored passwords are hashed anew as people sign in.",
        default=47104,
    )
    password_iterations: int = setting("Passes over that memory.", default=1)
    password_workers: int = setting(
        "How many passwords are hashed at the same time; 0 leaves one processor to all others.", default=0
    )
    link_lifetime: timedelta = setting(
        "How long links that work once can be used: new passwords, registrations, addresses; 1 h at most.",
        default=timedelta(hours=1),
    )
    invitation_lifetime: timedelta = setting(
        "The same for whoever has not chosen a password yet: people read an invitation when they start; 30 d at most.",
        default=timedelta(days=7),
    )
    smtp: SmtpSettings = field(default_factory=SmtpSettings, metadata={"section": True})
    signing_key_bits: int = setting("Size of new RSA signing keys: 2048, 3072 or 4096.", default=2048)
    signing_key_active_age: timedelta = setting(
        "How long a signing key signs before the next one takes over.", default=timedelta(days=90)
    )
    jwks_max_age: timedelta = setting(
        "How long clients may cache discovery and keys; a new key is announced at least a minute longer.",
        default=timedelta(minutes=5),
    )
    service_user_key_lifetime: timedelta = setting(
        "How long a service user's key or personal access token works where nobody says until when; 3650 d at most.",
        default=timedelta(days=365),
    )
    service_user_key_max_age: timedelta | None = setting(
        "The longest span until the expiration date of a service user's key or personal access token; none allows any,"
        " and never.",
        default=None,
    )
    default_domain: str = setting(
        "The domain under which organizations get their primary domains; by default the issuer's host name.", default=""
    )
    dns_resolver: tuple[str, ...] = setting(
        "The DNS servers that are asked for the proof of a domain, as addresses, with a port if it is not 53:"
        " 192.0.2.53 [2001:db8::53]:5353; by default those of the machine.",
        default=(),
    )
    outgoing_networks: tuple[str, ...] = setting(
        "Networks that requests of the service may go to though they are not public, such as 10.1.0.0/16: receivers of"
        " webhooks, web servers whose domains are proven by a file. All other private addresses are refused.",
        default=(),
    )
    hook_failure: str = setting(
        "What an exception in a contribution hook does: refuse (the request fails) or ignore (logged).",
        default="refuse",
    )
    import_limit: int = setting(
        "How many MiB a document may have that is imported over HTTP. 100,000 people are about 60.", default=256
    )
    pages_templates: tuple[Path, ...] = setting(
        "Folders searched for templates before our own, to replace single ones.", default=()
    )
    pages_style: Path | None = setting(
        "A style sheet of the operator, linked after ours, to set other values for its tokens.", default=None
    )
    purge_interval: timedelta = setting("How often expired rows are looked for.", default=timedelta(minutes=5))
    purge_after: timedelta = setting(
        "How long expired rows are kept before they are purged.", default=timedelta(hours=24)
    )

    def __post_init__(self) -> None:
        fill = object.__setattr__
        fill(self, "base_url", self.base_url or self.issuer_url)
        fill(self, "login_url", self.login_url or self.issuer_url)
        for name in ("issuer_url", "base_url", "login_url"):
            self._check_url(name, getattr(self, name))
        fill(self, "default_domain", self.default_domain or urlsplit(self.issuer_url).hostname)
        self._check_lifetimes()
        self._check_attempts()
        self._check_passwords()
        if self.signing_key_bits not in (2048, 3072, 4096):
            raise BadSetting("signing_key_bits", "must be 2048, 3072 or 4096")
        if self.import_limit < 1:
            raise BadSetting("import_limit", "must be 1 or more")
        if self.hook_failure not in ("refuse", "ignore"):
            raise BadSetting("hook_failure", "must be refuse or ignore")
        self._check_addresses()
        if not self.urn_namespaces:
            raise BadSetting("urn_namespaces", "must name at least one namespace")
        if not all(_NAMESPACE.match(namespace) for namespace in self.urn_namespaces):
            raise BadSetting("urn_namespaces", "must be namespaces such as urn:service:iam")
        if not self.plugins:
            raise BadSetting("plugins", "must list at least the plugin that offers the storage")
        if not self.master_keys and not self.development:
            raise BadSetting(
                "master_keys", "is missing: make a file with `identity master-key FILE` and name it here as 1:FILE"
            )

    def _check_url(self, name: str, url: str) -> None:
        try:
            parts = urlsplit(url)
            hostname, _ = parts.hostname, parts.port
        except ValueError:
            raise BadSetting(name, "must be an address such as https://id.example.com") from None
        plain = parts.scheme == "http" and self.development and hostname in _LOOPBACK
        if parts.scheme != "https" and not plain:
            raise BadSetting(name, "must start with https:// (http:// only in development, on a loopback host)")
        if not hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc or url != url.strip():
            raise BadSetting(name, "must be scheme and host alone, such as https://id.example.com")

    def _check_addresses(self) -> None:
        for name, read, example in (
            ("dns_resolver", read_name_server, "192.0.2.53 or [2001:db8::53]:5353"),
            ("outgoing_networks", ip_network, "10.1.0.0/16 or 127.0.0.1"),
        ):
            for word in getattr(self, name):
                try:
                    read(word)
                except ValueError:
                    raise BadSetting(name, f"{word} will not do; it must be such as {example}") from None

    def _check_lifetimes(self) -> None:
        if not timedelta() <= self.clock_skew <= timedelta(seconds=300):
            raise BadSetting("clock_skew", "must be between 0 and 300 seconds")
        for name in ("access_token_lifetime", "service_user_token_min_lifetime", "id_token_lifetime"):
            if not timedelta(seconds=1) <= getattr(self, name) <= LONGEST_TOKEN_LIFETIME:
                raise BadSetting(name, "must be between 1 second and 12 hours")
        for name in ("signing_key_active_age", "jwks_max_age", "purge_interval"):
            if getattr(self, name) < timedelta(seconds=1):
                raise BadSetting(name, "must be at least 1 second")
        if self.signing_key_active_age <= self.announcement_age:
            raise BadSetting("signing_key_active_age", "must be longer than jwks_max_age and a minute")
        for name, longest in _LONGEST.items():
            if not timedelta(seconds=1) <= getattr(self, name) <= longest:
                raise BadSetting(name, f"must be between 1 second and {_shown(longest)}")
        if not timedelta() <= self.refresh_token_grace <= timedelta(seconds=60):
            raise BadSetting("refresh_token_grace", "must be between 0 and 60 seconds")

    def _check_attempts(self) -> None:
        if self.attempts_per_address < 0:
            raise BadSetting("attempts_per_address", "must not be negative")
        if self.trusted_proxy not in ("", NO_PROXY):
            try:
                ip_address(self.trusted_proxy)
            except ValueError:
                raise BadSetting("trusted_proxy", "must be one address such as 10.0.0.2, or none") from None

    def _check_passwords(self) -> None:
        if not 8 <= self.password_min_length <= 64:
            raise BadSetting("password_min_length", "must be between 8 and 64")
        if self.password_workers < 0:
            raise BadSetting("password_workers", "must not be negative")
        try:
            Cost(memory_kib=self.password_memory, iterations=self.password_iterations)
        except Invalid as problem:
            name = "password_iterations" if "iterations" in problem.fields else "password_memory"
            raise BadSetting(name, " ".join(problem.fields.values())) from None

    @property
    def name_space(self) -> NameSpace:
        """The domains that the service gives out itself, and its own hosts, which are nobody's."""
        urls = (self.issuer_url, self.base_url, self.login_url)
        return NameSpace(self.default_domain, frozenset(urlsplit(url).hostname or "" for url in urls))

    @property
    def announcement_age(self) -> timedelta:
        """How long a new signing key is published before it signs: a JWKS max-age and a minute."""
        return self.jwks_max_age + timedelta(minutes=1)


@dataclass(frozen=True)
class SettingsFile:
    """The ini's strings sorted out: the core's settings, and each plugin's strings still to be parsed."""

    core: Settings
    plugins: Mapping[str, Mapping[str, str]]


def read_settings(settings: Mapping[str, str]) -> SettingsFile:
    """Sort and parse what the ini holds.

    Keys without the prefix ``identity.`` belong to other libraries and are left alone. Raises BadSetting.
    """
    core: dict[str, str] = {}
    smtp: dict[str, str] = {}
    plugins: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        if key.startswith(PLUGIN_PREFIX):
            name, _, rest = key[len(PLUGIN_PREFIX) :].partition(".")
            plugins.setdefault(name, {})[rest] = value
        elif key.startswith(PREFIX + _SMTP):
            smtp[key[len(PREFIX + _SMTP) :]] = value
        elif key.startswith(PREFIX):
            core[key[len(PREFIX) :]] = value
    parsed = replace(parse(Settings, core, PREFIX), smtp=parse(SmtpSettings, smtp, PREFIX + _SMTP))
    for name in plugins:
        if name not in parsed.plugins:
            raise BadSetting(f"{PLUGIN_PREFIX}{name}", "is for a plugin that identity.plugins does not list")
    return SettingsFile(parsed, {name: plugins.get(name, {}) for name in parsed.plugins})
