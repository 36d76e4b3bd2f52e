"""What an issuer publishes, its discovery document and its signing keys, and how long that is cached.

Nothing here sends a request: an ``Exchange`` yields it and receives the response, so that one implementation serves
``IdentityClient`` and ``AsyncIdentityClient``.
"""

import time
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from identity_client.errors import Unavailable

T = TypeVar("T")
Exchange: TypeAlias = Generator[httpx.Request, httpx.Response, T]
VerificationKey: TypeAlias = RSAKey | ECKey | OKPKey

#: After so many seconds, the keys are fetched again.
MAX_AGE = 3600
#: As long as they cannot be fetched, the old ones are used for so many seconds at most.
MAX_STALE_AGE = 24 * 3600
#: Unknown key ids, which anybody can invent, cause one request in so many seconds at most.
REFRESH_INTERVAL = 60
#: The same as long as nothing could be fetched at all.
RETRY_INTERVAL = 1

#: Asymmetric algorithms. With a symmetric one, the public key would be the secret.
KNOWN_ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
)
#: Both names of one algorithm (RFC 9864 §2.2): ``EdDSA`` could also mean Ed448, which no key here is for.
ED25519_ALGORITHMS = frozenset(("Ed25519", "EdDSA"))

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


def is_secure_url(url: str) -> bool:
    """True for https, and for http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and (host in _LOOPBACK or host.endswith(".localhost")))
    )


def response_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object in a response. Raises Unavailable."""
    path = response.request.url.path
    try:
        members = response.json()
    except (ValueError, RecursionError):
        raise Unavailable(f"the response of {path} is not JSON, status {response.status_code}") from None
    if not isinstance(members, dict):
        raise Unavailable(f"the response of {path} is not a JSON object")
    return members


def successful_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object in a response with status 200. Raises Unavailable."""
    if response.status_code != 200:
        raise Unavailable(f"{response.request.url.path} responded with status {response.status_code}")
    return response_object(response)


@dataclass(frozen=True)
class Published:
    """Discovery document and keys, the keys by ``kid``."""

    metadata: Mapping[str, Any]
    keys: Mapping[str, VerificationKey]
    fetched_at: float

    def endpoint(self, name: str) -> str:
        """An address of the discovery document. Raises Unavailable."""
        address = self.metadata.get(name)
        if not isinstance(address, str) or not is_secure_url(address):
            raise Unavailable(f"the discovery document has no usable {name}")
        return address


class Issuer:
    """The cache. ``refresh`` must not run twice at the same time: callers hold a lock."""

    def __init__(self, url: str, algorithms: Collection[str]) -> None:
        """Raises ValueError if the URL is not https, or an algorithm is not asymmetric."""
        if not is_secure_url(url):
            raise ValueError("the issuer must be an https URL, or http://localhost")
        if not algorithms or not KNOWN_ALGORITHMS.issuperset(algorithms):
            raise ValueError(f"algorithms must be some of {', '.join(sorted(KNOWN_ALGORITHMS))}")
        self.url = url
        named = frozenset(algorithms)
        self.algorithms = named | ED25519_ALGORITHMS if named & ED25519_ALGORITHMS else named
        self._published: Published | None = None
        self._attempted_at: float | None = None

    def current(self, key_id: str | None = None) -> Published | None:
        """What is cached; None if ``refresh`` has to run first."""
        published, now = self._published, time.monotonic()
        if published is None:
            return None
        age = now - published.fetched_at
        is_outdated = age > MAX_AGE or (key_id is not None and key_id not in published.keys)
        if age > MAX_STALE_AGE or (is_outdated and not self._attempted_within(REFRESH_INTERVAL, now)):
            return None
        return published

    def refresh(self, key_id: str | None = None) -> Exchange[Published]:
        """Fetch both documents, unless another caller just did. Raises Unavailable."""
        published, now = self.current(key_id), time.monotonic()
        if published is not None:
            return published
        if self._attempted_within(RETRY_INTERVAL, now):
            raise Unavailable(f"{self.url} could not be reached a moment ago")
        self._attempted_at = now
        try:
            self._published = yield from self._fetch()
        except Unavailable:
            if self._published is None or now - self._published.fetched_at > MAX_STALE_AGE:
                raise
        return self._published

    def _attempted_within(self, seconds: float, now: float) -> bool:
        return self._attempted_at is not None and now - self._attempted_at < seconds

    def _fetch(self) -> Exchange[Published]:
        url = f"{self.url.rstrip('/')}/.well-known/openid-configuration"
        metadata = successful_object((yield httpx.Request("GET", url)))
        # Otherwise one issuer could speak for another (OpenID Connect Discovery §4.3).
        if metadata.get("issuer") != self.url:
            raise Unavailable(f"the discovery document is not that of {self.url}")
        published = Published(metadata, {}, time.monotonic())
        jwk_set = successful_object((yield httpx.Request("GET", published.endpoint("jwks_uri"))))
        return Published(metadata, self._parse_keys(jwk_set.get("keys")), published.fetched_at)

    def _parse_keys(self, jwks: object) -> Mapping[str, VerificationKey]:
        """Keys that can be used; others may be of kinds that did not exist when this was written."""
        keys: dict[str, VerificationKey] = {}
        for jwk in jwks if isinstance(jwks, list) else ():
            if (
                isinstance(jwk, dict)
                and isinstance(jwk.get("kid"), str)
                and jwk.get("use", "sig") == "sig"
                and jwk.get("alg", "RS256") in KNOWN_ALGORITHMS
            ):
                try:
                    keys[jwk["kid"]] = _parse_key(jwk)
                except (JoseError, ValueError, TypeError, KeyError):
                    continue
        return keys


def _parse_key(jwk: Mapping[str, Any]) -> VerificationKey:
    """Raises JoseError, ValueError, TypeError, KeyError."""
    if jwk["kty"] != "OKP":
        return (ECKey if jwk["kty"] == "EC" else RSAKey).import_key(dict(jwk))
    if jwk.get("crv") != "Ed25519" or jwk.get("alg", "EdDSA") not in ED25519_ALGORITHMS:
        raise ValueError("not a key for Ed25519")
    # The curve binds the key to its algorithm. joserfc would compare the name.
    return OKPKey.import_key({name: value for name, value in jwk.items() if name != "alg"})
