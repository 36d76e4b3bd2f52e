"""Documents of others by URL: fetched under the rules of outbound requests, shared, cached, refreshed."""

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from identity import __version__
from identity.concurrency import Event, run_in_executor
from identity.fair_semaphore import FairSemaphore, NoFreeSlot
from identity.outbound_http import ForbiddenDestination, OutboundResponse
from identity.password_hashing import PasswordHasher

T = TypeVar("T")

#: How long a document is used without asking again: what its Cache-Control says, within these bounds.
MIN_LIFETIME_SECONDS = 60.0
MAX_LIFETIME_SECONDS = 3600.0
_DEFAULT_LIFETIME_SECONDS = 600.0
#: The minimum interval of fetches because the cached document lacks something.
MIN_REFETCH_SECONDS = 60.0
#: How long a URL is not requested after a failure.
BACKOFF_SECONDS = 10.0
MAX_ENTRIES = 1000
#: Concurrent fetches, with those who wait for them: a quarter for an organization, half of that for a URL.
_MAX_CONCURRENT_FETCHES = 32
#: How long requests wait for another one's fetch, which takes 5 seconds for each document.
_MAX_WAIT_SECONDS = 12.0
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=\"?([0-9]{1,9})")


class DocumentUnavailable(Exception):
    """The document cannot be fetched or read; ``reason`` quotes nothing of the response."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class _Entry(Generic[T]):
    organization_id: str
    value: T | None = None
    fetched_at: float = -MAX_LIFETIME_SECONDS
    lifetime: float = 0.0
    failed_at: float = -BACKOFF_SECONDS
    refetched_at: float = -MIN_REFETCH_SECONDS
    error: Exception | None = None
    #: Set at the end of the fetch in progress.
    fetched: Event | None = None


class DocumentCache(Generic[T]):
    """Parsed documents by URL, at most MAX_ENTRIES; beyond that the organization with the most entries loses its
    oldest.

    Concurrent requests share one fetch. If a fetch fails, the last document stays in use until MAX_LIFETIME_SECONDS
    after its own fetch, so what its publisher removed is not accepted for longer.
    """

    #: What is fetched, for messages.
    subject: ClassVar[str] = "document"
    unavailable: ClassVar[type[DocumentUnavailable]] = DocumentUnavailable

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def find_document(self, url: str, *, is_incomplete: bool = False) -> T | None:
        """The cached document; None if it must be fetched. One that ``is_incomplete``, such as a key set without the
        key that is looked for, is fetched once more per interval."""
        now = self._seconds()
        with self._lock:
            entry = self._entries.get(url)
            if entry is None or entry.value is None:
                return None
            self._entries.move_to_end(url)
            is_usable = now - entry.fetched_at < MAX_LIFETIME_SECONDS
            is_fresh = now - entry.fetched_at < entry.lifetime or now - entry.failed_at < BACKOFF_SECONDS
            is_refetch_due = is_incomplete and now - entry.refetched_at >= MIN_REFETCH_SECONDS
            return entry.value if is_usable and is_fresh and not is_refetch_due else None

    def fetch_document(self, url: str, request: Callable[[], tuple[T, str]], *, organization_id: str = "") -> T:
        """The document and its Cache-Control from ``request``, or from a request for the same URL that is in progress.
        Raises DocumentUnavailable and what ``request`` raises."""
        now = self._seconds()
        with self._lock:
            entry = self._entries.get(url) or self._add(url, organization_id)
            if entry.error is not None and now - entry.failed_at < BACKOFF_SECONDS:
                return self._value_after(entry, now)
            in_progress, entry.error = entry.fetched, None
            if in_progress is None:
                entry.fetched = Event()
                if entry.value is not None:
                    entry.refetched_at = now
        if in_progress is None:
            self._run(entry, request)
        elif not in_progress.wait(_MAX_WAIT_SECONDS):
            raise self.unavailable(f"the {self.subject} was not fetched in time")
        return self._value_after(entry, now)

    def _value_after(self, entry: _Entry[T], now: float) -> T:
        is_usable = entry.value is not None and now - entry.fetched_at < MAX_LIFETIME_SECONDS
        if entry.error is not None and not is_usable:
            raise entry.error
        if entry.value is None:
            raise self.unavailable(f"the {self.subject} is not there yet")
        return entry.value

    def forget(self, url: str) -> None:
        """Fetch it again at the next use."""
        with self._lock:
            self._entries.pop(url, None)

    def _run(self, entry: _Entry[T], request: Callable[[], tuple[T, str]]) -> None:
        error: Exception | None = None
        try:
            value, cache_control = request()
            entry.lifetime = _lifetime(cache_control)
            entry.value, entry.fetched_at = value, self._seconds()
        except Exception as problem:
            error = problem
        finally:
            with self._lock:
                entry.error, ended, entry.fetched = error, entry.fetched, None
                if error is not None:
                    entry.failed_at = self._seconds()
            if ended is not None:
                ended.set()

    def _add(self, url: str, organization_id: str) -> _Entry[T]:
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


class DocumentTransport(Protocol):
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


class DocumentClient(Generic[T]):
    """Fetches documents for organizations, or for none: those share one bucket. One per process and kind of document.

    A request holds a slot of its network and organization while it fetches or waits for a fetch, so a host that does
    not respond delays only its own users. Callers hold no lock of the storage and no connection.
    """

    def __init__(self, transport: DocumentTransport, cache: DocumentCache[T]) -> None:
        self.transport = transport
        self.cache = cache
        self._slots = FairSemaphore(_MAX_CONCURRENT_FETCHES)
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def fetch_document(self, url: str, key: str, request: Callable[[], tuple[T, str]], organization_id: str = "") -> T:
        """The document for this ``key`` of the cache, from ``request``, which runs in a thread. Raises
        DocumentUnavailable and what ``request`` raises."""
        with FairSemaphore.organization_scope(organization_id):
            try:
                leave = self._slots.acquire(url)
            except NoFreeSlot:
                raise self.cache.unavailable(f"too many requests wait for a {self.cache.subject}") from None
            try:
                with PasswordHasher.released_slot():
                    return self.cache.fetch_document(
                        key, lambda: run_in_executor(self._threads(), request), organization_id=organization_id
                    )
            finally:
                leave()

    def get(self, url: str) -> OutboundResponse:
        """The response with status 200 at this URL. Raises DocumentUnavailable."""
        subject, unavailable = self.cache.subject, self.cache.unavailable
        headers = {"Accept": "application/json", "User-Agent": f"identity/{__version__}"}
        try:
            answer: OutboundResponse = self.transport.send("GET", url, headers=headers)
        except ForbiddenDestination:
            # The same reason as for an unknown name: others could probe names of the internal network.
            raise unavailable(f"the host of the {subject} did not respond: OSError") from None
        except (OSError, HTTPException, ValueError) as problem:
            raise unavailable(f"the host of the {subject} did not respond: {type(problem).__name__}") from None
        if answer.status != 200:
            raise unavailable(f"the host of the {subject} responded with {answer.status}")
        return answer

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _threads(self) -> ThreadPoolExecutor:
        # Not before the first use: no thread may start before a fork.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_FETCHES, f"identity-{self.cache.subject}s")
            return self._pool
