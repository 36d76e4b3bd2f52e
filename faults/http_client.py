"""HTTP requests over a connection, and how responses are classified: right, temporarily unavailable, missing or
wrong.
"""

import http.client
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs, urlencode

#: Longer than the service lets a request wait for its database: after that, a missing response counts as lost.
TIMEOUT_SECONDS = 20.0


class ResponseClass(StrEnum):
    """Classification of a response."""

    RIGHT = "right"
    #: Refused with an error that the fault explains, such as an assertion from the future while a clock is wrong.
    FITTING = "fitting"
    #: 503 with Retry-After, or its equivalent in a response to a browser.
    BUSY = "503"
    #: The connection was refused, or ended before the head of a response was complete.
    REFUSED = "refused"
    #: The connection ended within a response: after its head, or after part of its first line.
    CUT = "cut"
    SILENT = "silent"
    WRONG = "wrong"

    @property
    def is_allowed(self) -> bool:
        """True if a client may get it during any fault."""
        return self in (ResponseClass.RIGHT, ResponseClass.BUSY, ResponseClass.REFUSED)


@dataclass(frozen=True)
class ReceivedResponse:
    status: int
    body: bytes
    location: str
    retry_after: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def asks_for_retry(self) -> bool:
        """True if the client is asked to retry, in the form for this kind of request."""
        if self.status == 503:
            return self.retry_after is not None
        return self.status in (302, 303) and "error=temporarily_unavailable" in self.location


class ResponseTally:
    """Counts responses and their times. ``tolerated`` classes are allowed for requests sent during the fault."""

    def __init__(self, tolerated: Collection[ResponseClass] = ()) -> None:
        self.counts: Counter[ResponseClass] = Counter()
        #: Durations of requests, by whether they ended before the fault began.
        self.before: list[float] = []
        self.since: list[float] = []
        #: Descriptions of some responses that a client must never get.
        self.violations: list[str] = []
        self._tolerated = tolerated
        self._lock = threading.Lock()
        self._last_failure = 0.0
        self._begin = self._end = math.inf

    def mark_fault_start(self) -> None:
        """The fault begins now."""
        self._begin = time.monotonic()

    def mark_fault_end(self) -> float:
        """The cause of the fault ends now; returns the time of ``time.monotonic``."""
        self._end = time.monotonic()
        return self._end

    def record(self, kind: ResponseClass, began: float, description: str) -> None:
        """Count a request that began then and has ended now."""
        now = time.monotonic()
        with self._lock:
            self.counts[kind] += 1
            (self.before if now < self._begin else self.since).append(now - began)
            if kind is not ResponseClass.RIGHT:
                self._last_failure = now
            is_tolerated = kind in self._tolerated and now >= self._begin and began < self._end
            if not (kind.is_allowed or is_tolerated) and len(self.violations) < 20:
                self.violations.append(f"{kind}: {description}")

    @property
    def requests(self) -> int:
        """Number of requests."""
        return sum(self.counts.values())

    @property
    def slowest(self) -> float:
        """Duration of the slowest request in seconds."""
        return max([*self.before, *self.since], default=0.0)

    def failing_since(self, moment: float) -> float:
        """Seconds from this moment (of ``time.monotonic``) to the end of the last failed request."""
        return max(0.0, self._last_failure - moment)


class FailoverClient:
    """Sends requests to one of several nodes over a persistent connection, and to the next node when that one fails.

    ``stays``: switch to the next one also after this many requests, with a new connection. ``fitting`` maps parts of
    requests to statuses that count as ``ResponseClass.FITTING``.
    """

    def __init__(
        self,
        ports: Sequence[int],
        host: str,
        tally: ResponseTally,
        *,
        first: int = 0,
        fitting: Collection[tuple[str, int]] = (),
        stays: int | None = None,
    ) -> None:
        self._ports = ports
        self._host = host
        self._tally = tally
        self._turn = first
        self._fitting = fitting
        self._stays = stays
        self._request_count = 0
        self._connection: http.client.HTTPConnection | None = None

    def post(
        self, path: str, form: Mapping[str, str], authorization: str | None, *expected: int
    ) -> ReceivedResponse | None:
        """The response to a form; None if its status is not expected."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if authorization is not None:
            headers["Authorization"] = authorization
        return self.request("POST", path, headers, urlencode(form), *expected)

    def get(self, path: str, headers: Mapping[str, str], *expected: int) -> ReceivedResponse | None:
        """The response; None if its status is not expected."""
        return self.request("GET", path, headers, None, *expected)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None, *expected: int
    ) -> ReceivedResponse | None:
        """The response, None if its status is not expected; counted in both cases."""
        began = time.monotonic()
        description = " ".join([method, path.partition("?")[0], *parse_qs(body or "").get("grant_type", ())])
        try:
            answer = self._send(method, path, headers, body)
        except TimeoutError:
            self._record_failure(ResponseClass.SILENT, began, description)
            return None
        except ConnectionError:
            self._record_failure(ResponseClass.REFUSED, began, description)
            return None
        except (OSError, http.client.HTTPException) as error:
            self._record_failure(ResponseClass.CUT, began, f"{description}: {error!r}")
            return None
        # Before the status: redirects of a browser carry errors in their URLs.
        if answer.asks_for_retry:
            kind = ResponseClass.BUSY
        elif answer.status in expected:
            kind = ResponseClass.RIGHT
        elif any(pattern in description and status == answer.status for pattern, status in self._fitting):
            kind = ResponseClass.FITTING
        else:
            kind = ResponseClass.WRONG
            description = f"{description}: {answer.status} {answer.body[:200]!r}"
        self._tally.record(kind, began, description)
        return answer if kind is ResponseClass.RIGHT else None

    def record_violation(self, description: str) -> None:
        """Count a response with a right status as wrong."""
        self._tally.record(ResponseClass.WRONG, time.monotonic(), description)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: str | None) -> ReceivedResponse:
        if self._connection is None:
            port = self._ports[self._turn % len(self._ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self._connection.request(method, path, body, {"Host": self._host, **headers})
        answer = self._connection.getresponse()
        if answer.length is None and not answer.chunked:
            # Every response of the service has a length; the library accepts a truncated head as complete.
            raise http.client.HTTPException(f"{answer.status}, and half a head")
        try:
            content = answer.read()
        except ConnectionError as error:
            raise http.client.HTTPException(f"{answer.status}, and then {error!r}") from None
        self._request_count += 1
        if self._stays is not None and self._request_count % self._stays == 0:
            self.close()
            self._turn += 1
        elif answer.will_close:
            self.close()
        return ReceivedResponse(answer.status, content, answer.headers["Location"] or "", answer.headers["Retry-After"])

    def _record_failure(self, kind: ResponseClass, began: float, description: str) -> None:
        self.close()
        self._turn += 1
        self._tally.record(kind, began, description)
