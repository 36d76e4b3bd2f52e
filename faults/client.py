"""One connection's worth of requests, and how each was answered: rightly, not now, not at all, or in a wrong way."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

#: Longer than the service lets anybody wait for its database: whoever hears nothing for so long was forgotten.
PATIENCE = 20.0


class Kind(StrEnum):
    """How a request was answered."""

    RIGHT = "right"
    #: Refused with a word that fits the fault, such as an assertion from the future while a clock is wrong.
    FITTING = "fitting"
    #: 503 with Retry-After, or its likeness in an answer to a browser.
    BUSY = "503"
    #: The connection was refused, or ended before the first byte of an answer.
    REFUSED = "refused"
    #: The connection ended within an answer.
    CUT = "cut"
    SILENT = "silent"
    WRONG = "wrong"

    @property
    def is_allowed(self) -> bool:
        """True if a client may meet it during a fault."""
        return self in (Kind.RIGHT, Kind.FITTING, Kind.BUSY, Kind.REFUSED)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    location: str
    retry_after: str | None

    @property
    def members(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def says_later(self) -> bool:
        """True if the client is to come back, in the way that its request allows."""
        if self.status == 503:
            return self.retry_after is not None
        return self.status in (302, 303) and "error=temporarily_unavailable" in self.location


class Tally:
    """How all requests were answered, and when."""

    def __init__(self) -> None:
        self.kinds: Counter[Kind] = Counter()
        #: What a client must never meet, in words; a few of them.
        self.offences: list[str] = []
        self._lock = threading.Lock()
        self._last_failure = 0.0
        self._slowest = 0.0

    def note(self, kind: Kind, began: float, words: str) -> None:
        """One request that began then has ended now."""
        now = time.monotonic()
        with self._lock:
            self.kinds[kind] += 1
            self._slowest = max(self._slowest, now - began)
            if kind is not Kind.RIGHT:
                self._last_failure = now
            if not kind.is_allowed and len(self.offences) < 20:
                self.offences.append(f"{kind}: {words}")

    @property
    def requests(self) -> int:
        """How many there were."""
        return sum(self.kinds.values())

    @property
    def slowest(self) -> float:
        """Seconds that the slowest of them took."""
        return self._slowest

    def failing_since(self, moment: float) -> float:
        """Seconds from this moment (of ``time.monotonic``) to the end of the last request that was not right."""
        return max(0.0, self._last_failure - moment)


class Client:
    """Asks one node of several over a connection that is kept, and the next node when that one does not answer.

    ``in_turn``: the next one each time.
    """

    def __init__(
        self,
        ports: Sequence[int],
        host: str,
        tally: Tally,
        *,
        first: int = 0,
        fitting: Collection[int] = (),
        in_turn: bool = False,
    ) -> None:
        self._ports = ports
        self._host = host
        self._tally = tally
        self._turn = first
        self._fitting = fitting
        self._in_turn = in_turn
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, form: Mapping[str, str], authorization: str | None, *expected: int) -> Answer | None:
        """The answer to a form, None if it is not one of the expected."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if authorization is not None:
            headers["Authorization"] = authorization
        return self.ask("POST", path, headers, urlencode(form), *expected)

    def get(self, path: str, headers: Mapping[str, str], *expected: int) -> Answer | None:
        """The answer, None if it is not one of the expected."""
        return self.ask("GET", path, headers, None, *expected)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None, *expected: int
    ) -> Answer | None:
        """The answer, None if it is not one of the expected; either way it is counted."""
        began = time.monotonic()
        words = f"{method} {path.partition('?')[0]}"
        try:
            answer = self._sent(method, path, headers, body)
        except TimeoutError:
            self._failed(Kind.SILENT, began, words)
            return None
        except (ConnectionError, http.client.RemoteDisconnected):
            self._failed(Kind.REFUSED, began, words)
            return None
        except (OSError, http.client.HTTPException) as error:
            self._failed(Kind.CUT, began, f"{words}: {error!r}")
            return None
        # Before the status: a page that a browser is sent on to carries errors in its address.
        if answer.says_later:
            kind = Kind.BUSY
        elif answer.status in expected:
            kind = Kind.RIGHT
        elif answer.status in self._fitting:
            kind = Kind.FITTING
        else:
            kind = Kind.WRONG
            words = f"{words}: {answer.status} {answer.body[:200]!r}"
        self._tally.note(kind, began, words)
        return answer if kind is Kind.RIGHT else None

    def blame(self, words: str) -> None:
        """Count as wrong what was answered with a right status."""
        self._tally.note(Kind.WRONG, time.monotonic(), words)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sent(self, method: str, path: str, headers: Mapping[str, str], body: str | None) -> Answer:
        if self._connection is None:
            port = self._ports[self._turn % len(self._ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._connection.request(method, path, body, {"Host": self._host, **headers})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.will_close or self._in_turn:
            self.close()
            self._turn += self._in_turn
        return Answer(answer.status, content, answer.headers["Location"] or "", answer.headers["Retry-After"])

    def _failed(self, kind: Kind, began: float, words: str) -> None:
        self.close()
        self._turn += 1
        self._tally.note(kind, began, words)
