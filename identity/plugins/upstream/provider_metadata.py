"""Provider metadata (OpenID Connect Discovery §4) and keys, with a cache."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from identity.api.crypto import InvalidKey, JwkPublicKey
from identity.plugins.upstream.http_client import ProviderHttpSession, ProviderResponseError

#: Lifetime of cache entries, and the minimum interval of key fetches because of a missing key.
_CACHE_SECONDS = 3600.0
MIN_REFETCH_SECONDS = 30.0
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


class ProviderMetadataCache:
    """Metadata and keys by issuer. One per process."""

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._metadata: dict[str, tuple[float, ProviderMetadata]] = {}
        self._keys: dict[str, tuple[float, tuple[JwkPublicKey, ...]]] = {}
        self._looked_again: dict[str, float] = {}

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
        self._store(self._metadata, provider_metadata.issuer, provider_metadata)
        with self._lock:
            self._keys.pop(provider_metadata.jwks_uri, None)

    def fetch_keys(
        self, uri: str, asking: ProviderHttpSession, *, is_key_missing: bool = False
    ) -> tuple[JwkPublicKey, ...]:
        """The provider's keys; ``is_key_missing`` if a key is not in the cache. Raises ProviderUnreachable,
        ProviderResponseError. A key may be published just after a fetch (OpenID Connect Core §10.1.1), so a missing key
        causes one more fetch per interval, whatever key ids tokens name."""
        now = self._seconds()
        with self._lock:
            at, jwk_public_keys = self._keys.get(uri, (0.0, ()))
            recent = now - at < MIN_REFETCH_SECONDS
            if (
                jwk_public_keys
                and now - at < _CACHE_SECONDS
                and not (is_key_missing and self._can_refetch(uri, now, recent=recent))
            ):
                return jwk_public_keys
        try:
            jwk_public_keys = JwkPublicKey.parse_set(asking.get(uri))
        except InvalidKey:
            raise ProviderResponseError("the provider's keys cannot be read") from None
        self._store(self._keys, uri, jwk_public_keys)
        return jwk_public_keys

    def _can_refetch(self, uri: str, now: float, *, recent: bool) -> bool:
        if recent and now - self._looked_again.get(uri, -MIN_REFETCH_SECONDS) < MIN_REFETCH_SECONDS:
            return False
        if recent:
            if len(self._looked_again) >= _MAX_CACHE_ENTRIES:
                self._looked_again.clear()
            self._looked_again[uri] = now
        return True

    def _store(self, cache: dict[str, tuple[float, Any]], name: str, value: Any) -> None:
        with self._lock:
            if len(cache) >= _MAX_CACHE_ENTRIES:
                cache.clear()
            cache[name] = (self._seconds(), value)


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
