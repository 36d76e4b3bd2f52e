"""Key sets of other parties by URL (RFC 7517 §5): fetched under the rules of outbound requests, cached, refreshed."""

import json
import logging
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from http.client import HTTPException
from time import monotonic
from typing import Any, Protocol

from identity import __version__
from identity.concurrency import Event, run_in_executor
from identity.crypto.jwk_sets import JwkPublicKey
from identity.crypto.signature_keys import InvalidKey
from identity.domain.key_sets import key_set_url_error
from identity.fair_semaphore import FairSemaphore, NoFreeSlot
from identity.outbound_http import ForbiddenDestination, OutboundResponse
from identity.password_hashing import PasswordHasher

log = logging.getLogger(__name__)

PublicKeys = tuple[JwkPublicKey, ...]

#: How long a key set is used without asking again: what its Cache-Control says, within these bounds.
MIN_LIFETIME_SECONDS = 60.0
MAX_LIFETIME_SECONDS = 3600.0
_DEFAULT_LIFETIME_SECONDS = 600.0
#: The minimum interval of fetches because of a missing key.
MIN_REFETCH_SECONDS = 60.0
#: How long a URL is not requested after a failure.
BACKOFF_SECONDS = 10.0
MAX_ENTRIES = 1000
#: Concurrent fetches, with those who wait for them: a quarter for an organization, half of that for a URL.
_MAX_CONCURRENT_FETCHES = 32
#: How long requests wait for another one's fetch, which takes 5 seconds for each document.
_MAX_WAIT_SECONDS = 12.0
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=\"?([0-9]{1,9})")


class KeySetUnavailable(InvalidKey):
    """The key set cannot be fetched or read; ``reason`` quotes nothing of the response."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class KeySetForm(StrEnum):
    """What is at the URL: a JWK set, a SPIFFE bundle with keys for JWT-SVIDs, or an issuer whose metadata names the JWK
    set (OpenID Connect Discovery §4)."""

    JWKS = "jwks"
    BUNDLE = "bundle"
    ISSUER = "issuer"


@dataclass(slots=True)
class _Entry:
    organization_id: str
    keys: PublicKeys = ()
    fetched_at: float = -MAX_LIFETIME_SECONDS
    lifetime: float = 0.0
    failed_at: float = -BACKOFF_SECONDS
    refetched_at: float = -MIN_REFETCH_SECONDS
    error: Exception | None = None
    #: Set at the end of the fetch in progress.
    fetched: Event | None = None


class KeySetCache:
    """Key sets by URL, at most MAX_ENTRIES; beyond that the organization with the most entries loses its oldest.

    Concurrent requests share one fetch. If a fetch fails, known keys stay in use until MAX_LIFETIME_SECONDS after
    their own fetch, so a key that its publisher removed is not accepted for longer.
    """

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def find(self, url: str, *, is_key_missing: bool = False) -> PublicKeys | None:
        """The cached keys; None if they must be fetched. A key may be published just after a fetch (OpenID Connect Core
        §10.1.1), so a missing key causes one more fetch per interval, whatever key ids tokens name."""
        now = self._seconds()
        with self._lock:
            entry = self._entries.get(url)
            if entry is None or not entry.keys:
                return None
            self._entries.move_to_end(url)
            is_usable = now - entry.fetched_at < MAX_LIFETIME_SECONDS
            is_fresh = now - entry.fetched_at < entry.lifetime or now - entry.failed_at < BACKOFF_SECONDS
            is_refetch_due = is_key_missing and now - entry.refetched_at >= MIN_REFETCH_SECONDS
            return entry.keys if is_usable and is_fresh and not is_refetch_due else None

    def fetch(self, url: str, request: Callable[[], OutboundResponse], *, organization_id: str = "") -> PublicKeys:
        """The keys from ``request``, or from a request for the same URL that is in progress. Raises KeySetUnavailable
        and what ``request`` raises."""
        now = self._seconds()
        with self._lock:
            entry = self._entries.get(url) or self._add(url, organization_id)
            if entry.error is not None and now - entry.failed_at < BACKOFF_SECONDS:
                return self._keys_after(entry, now)
            in_progress, entry.error = entry.fetched, None
            if in_progress is None:
                entry.fetched = Event()
                if entry.keys:
                    entry.refetched_at = now
        if in_progress is None:
            self._run(entry, request)
        elif not in_progress.wait(_MAX_WAIT_SECONDS):
            raise KeySetUnavailable("the key set was not fetched in time")
        return self._keys_after(entry, now)

    @staticmethod
    def _keys_after(entry: _Entry, now: float) -> PublicKeys:
        if entry.error is not None and not (entry.keys and now - entry.fetched_at < MAX_LIFETIME_SECONDS):
            raise entry.error
        return entry.keys

    def forget(self, url: str) -> None:
        """Fetch it again at the next use."""
        with self._lock:
            self._entries.pop(url, None)

    def _run(self, entry: _Entry, request: Callable[[], OutboundResponse]) -> None:
        error: Exception | None = None
        try:
            answer = request()
            keys = JwkPublicKey.parse_set(answer.body)
            if not keys:
                raise KeySetUnavailable("the key set has no key that can be used")
            entry.lifetime = _lifetime(answer.cache_control)
            entry.keys, entry.fetched_at = keys, self._seconds()
        except KeySetUnavailable as problem:
            error = problem
        except InvalidKey:
            error = KeySetUnavailable("the response is no key set")
        except Exception as problem:
            error = problem
        finally:
            with self._lock:
                entry.error, ended, entry.fetched = error, entry.fetched, None
                if error is not None:
                    entry.failed_at = self._seconds()
            if ended is not None:
                ended.set()

    def _add(self, url: str, organization_id: str) -> _Entry:
        if len(self._entries) >= MAX_ENTRIES:
            counts = Counter(entry.organization_id for entry in self._entries.values())
            largest = max(counts, key=lambda name: counts[name])
            oldest = next(name for name, entry in self._entries.items() if entry.organization_id == largest)
            del self._entries[oldest]
        entry = self._entries[url] = _Entry(organization_id)
        return entry


def _lifetime(cache_control: str) -> float:
    found = _MAX_AGE.search(cache_control.lower())
    if "no-store" in cache_control.lower() or "no-cache" in cache_control.lower():
        return MIN_LIFETIME_SECONDS
    seconds = float(found[1]) if found else _DEFAULT_LIFETIME_SECONDS
    return min(max(seconds, MIN_LIFETIME_SECONDS), MAX_LIFETIME_SECONDS)


class KeySetTransport(Protocol):
    """Sends requests; implemented by ``OutboundHttpClient``."""

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> Any: ...


class KeySetClient:
    """Fetches key sets, and documents that name them, for organizations. One per process.

    A request holds a slot of its network and organization while it fetches or waits for a fetch, so a host that does
    not respond delays only its own users. Callers hold no lock of the storage and no connection.
    """

    def __init__(self, transport: KeySetTransport, *, cache: KeySetCache | None = None) -> None:
        self.transport = transport
        self.cache = cache or KeySetCache()
        self._slots = FairSemaphore(_MAX_CONCURRENT_FETCHES)
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def find(self, url: str, form: KeySetForm = KeySetForm.JWKS, *, is_key_missing: bool = False) -> PublicKeys | None:
        """The cached keys; None if they must be fetched."""
        return self.cache.find(_cache_key(url, form), is_key_missing=is_key_missing)

    def fetch(self, url: str, organization_id: str, form: KeySetForm = KeySetForm.JWKS) -> PublicKeys:
        """Raises KeySetUnavailable."""
        with FairSemaphore.organization_scope(organization_id):
            try:
                leave = self._slots.acquire(url)
            except NoFreeSlot:
                raise KeySetUnavailable("too many requests wait for key sets") from None
            try:
                with PasswordHasher.released_slot():
                    return self.cache.fetch(
                        _cache_key(url, form),
                        lambda: run_in_executor(self._threads(), lambda: self._get_key_set(url, form)),
                        organization_id=organization_id,
                    )
            finally:
                leave()

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _get_key_set(self, url: str, form: KeySetForm) -> OutboundResponse:
        if form is KeySetForm.ISSUER:
            metadata = _parse_object(self._get(f"{url.rstrip('/')}/.well-known/openid-configuration").body)
            if metadata.get("issuer") != url:
                raise KeySetUnavailable("the issuer's metadata names another issuer")
            url = metadata.get("jwks_uri", "")
            if not isinstance(url, str) or not url or key_set_url_error(url) is not None:
                raise KeySetUnavailable("the issuer's metadata has no usable jwks_uri")
        answer = self._get(url)
        return replace(answer, body=_jwt_svid_keys(answer.body)) if form is KeySetForm.BUNDLE else answer

    def _get(self, url: str) -> OutboundResponse:
        headers = {"Accept": "application/json", "User-Agent": f"identity/{__version__}"}
        try:
            answer: OutboundResponse = self.transport.send("GET", url, headers=headers)
        except ForbiddenDestination:
            # The same reason as for an unknown name: others could probe names of the internal network.
            raise KeySetUnavailable("the host of the key set did not respond: OSError") from None
        except (OSError, HTTPException, ValueError) as problem:
            raise KeySetUnavailable(f"the host of the key set did not respond: {type(problem).__name__}") from None
        if answer.status != 200:
            raise KeySetUnavailable(f"the host of the key set responded with {answer.status}")
        return answer

    def _threads(self) -> ThreadPoolExecutor:
        # Not before the first use: no thread may start before a fork.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_FETCHES, "identity-key-sets")
            return self._pool


def _cache_key(url: str, form: KeySetForm) -> str:
    return url if form is KeySetForm.JWKS else f"{form} {url}"


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise KeySetUnavailable("the response is no JSON object")
    return document


def _jwt_svid_keys(body: bytes) -> bytes:
    """The keys of a SPIFFE bundle that sign JWT-SVIDs, as a JWK set (SPIFFE Trust Domain and Bundle §4.2.2)."""
    keys = _parse_object(body).get("keys")
    listed = keys if isinstance(keys, list) else []
    found = [key for key in listed if isinstance(key, dict) and key.get("use") == "jwt-svid"]
    return json.dumps({"keys": [{name: key[name] for name in key if name != "use"} for key in found]}).encode()


#: Key sets that are stored here, parsed once.
parse_stored_key_set = lru_cache(256)(lambda text: JwkPublicKey.parse_set(text.encode()))


def select_key(header: Mapping[str, Any], get_keys: Callable[[bool], Sequence[JwkPublicKey]]) -> JwkPublicKey | None:
    """The key for the token's ``kid`` and ``alg``; without ``kid`` the only key for the algorithm (OpenID Connect Core
    §10.1). ``get_keys`` is called again with True if none is found. None if there is no such key, or more than one."""
    algorithm, key_id = header["alg"], header.get("kid")
    for is_key_missing in (False, True):
        fitting = [key for key in get_keys(is_key_missing) if algorithm in key.algorithms]
        found = fitting if key_id is None else [key for key in fitting if key.id == key_id]
        if len(found) == 1:
            return found[0]
    return None
