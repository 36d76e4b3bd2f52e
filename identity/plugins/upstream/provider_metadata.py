"""Provider metadata (OpenID Connect Discovery §4) and keys, with a cache."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlsplit

from identity.api.crypto import InvalidKey, JwkPublicKey
from identity.plugins.upstream.http_client import ProviderHttpSession, ProviderResponseError

_CACHE_SECONDS = 3600.0
_MAX_CACHE_ENTRIES = 500
_LONGEST_ADDRESS = 2000

#: Accepted signature algorithms (RFC 7518 §3.1): neither HMAC nor "none".
ACCEPTED_ALGORITHMS = JwkPublicKey.ALGORITHMS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderMetadata:
    """A provider's endpoints. ``algorithms`` are its signature algorithms that are accepted here."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    algorithms: frozenset[str] = ACCEPTED_ALGORITHMS
    sends_issuer: bool = False


class KeySets(Protocol):
    """The key sets of the process, by URL; see ``identity.key_sets.KeySetCache``."""

    def find(self, url: str, *, is_key_missing: bool = False) -> tuple[JwkPublicKey, ...] | None: ...

    def fetch(self, url: str, request: Callable[[], Any], *, organization_id: str = "") -> tuple[JwkPublicKey, ...]: ...

    def forget(self, url: str) -> None: ...


class ProviderMetadataCache:
    """Metadata by issuer, and keys. One per process."""

    def __init__(self, key_sets: KeySets, seconds: Callable[[], float] = monotonic) -> None:
        self._key_sets = key_sets
        self._seconds = seconds
        self._lock = Lock()
        self._metadata: dict[str, tuple[float, ProviderMetadata]] = {}

    def cached_metadata(self, issuer: str) -> ProviderMetadata | None:
        """The cached metadata, without a request."""
        with self._lock:
            at, provider_metadata = self._metadata.get(issuer, (0.0, None))
        return provider_metadata if provider_metadata is not None and self._seconds() < at + _CACHE_SECONDS else None

    def fetch_metadata(self, issuer: str, asking: ProviderHttpSession) -> ProviderMetadata:
        """The provider's metadata. Raises ProviderUnreachable, ProviderResponseError."""
        provider_metadata = self.cached_metadata(issuer)
        if provider_metadata is None:
            provider_metadata = parse_metadata(asking.get_object(discovery_url(issuer)), issuer)
            self.store_metadata(provider_metadata)
        return provider_metadata

    def store_metadata(self, provider_metadata: ProviderMetadata) -> None:
        """Replace the cached metadata, and forget its keys, which are fetched again."""
        with self._lock:
            if len(self._metadata) >= _MAX_CACHE_ENTRIES:
                self._metadata.clear()
            self._metadata[provider_metadata.issuer] = (self._seconds(), provider_metadata)
        self._key_sets.forget(provider_metadata.jwks_uri)

    def fetch_keys(
        self, uri: str, asking: ProviderHttpSession, *, is_key_missing: bool = False, organization_id: str = ""
    ) -> tuple[JwkPublicKey, ...]:
        """The provider's keys; ``is_key_missing`` if a key is not in the cache. Raises ProviderUnreachable,
        ProviderResponseError."""
        found = self._key_sets.find(uri, is_key_missing=is_key_missing)
        if found is not None:
            return found
        try:
            return self._key_sets.fetch(uri, lambda: asking.get_response(uri), organization_id=organization_id)
        except InvalidKey:
            raise ProviderResponseError("the provider's keys cannot be read") from None


def discovery_url(issuer: str) -> str:
    """Where the provider's metadata is (OpenID Connect Discovery §4)."""
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def parse_metadata(document: Mapping[str, Any], issuer: str) -> ProviderMetadata:
    """The metadata of this issuer (§4.3). Raises ProviderResponseError."""
    if document.get("issuer") != issuer:
        raise ProviderResponseError("the provider calls itself otherwise than it is called here")
    listed = document.get("id_token_signing_alg_values_supported", ["RS256"])
    algorithms = (
        ACCEPTED_ALGORITHMS & {item for item in listed if isinstance(item, str)}
        if isinstance(listed, list)
        else frozenset()
    )
    if not algorithms:
        raise ProviderResponseError("the provider signs with nothing that is believed here")
    return ProviderMetadata(
        issuer=issuer,
        authorization_endpoint=_read_url(document, "authorization_endpoint", issuer),
        token_endpoint=_read_url(document, "token_endpoint", issuer),
        jwks_uri=_read_url(document, "jwks_uri", issuer),
        userinfo_endpoint=_read_url(document, "userinfo_endpoint", issuer, needed=False),
        end_session_endpoint=_read_url(document, "end_session_endpoint", issuer, needed=False),
        algorithms=frozenset(algorithms),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _read_url(document: Mapping[str, Any], name: str, issuer: str, *, needed: bool = True) -> str:
    """A URL of the provider: https, unless the issuer has a loopback address."""
    address = document.get(name, "")
    if address == "" and not needed:
        return ""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        host = None
    plain = isinstance(address, str) and address.isascii() and address.isprintable() and " " not in address
    if not plain or not host or len(address) > _LONGEST_ADDRESS or "@" in parts.netloc or parts.fragment:
        raise ProviderResponseError(f"the provider's {name} is no address")
    if parts.scheme != "https" and parts.scheme != urlsplit(issuer).scheme:
        raise ProviderResponseError(f"the provider's {name} does not start with https://")
    return str(address)
