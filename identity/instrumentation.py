"""What this process does, told to whoever watches it: how long work took, what attempts came to, how much is in use.

Where nobody watches it costs next to nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

#: A password's hash, with the wait for it.
HASH = "hash"
#: A signature, by its algorithm.
SIGNATURE = "signature"
#: A statement of SQL, or a commit; its name is its text without values.
STATEMENT = "statement"
#: A batch of a purge, by what goes: for how long nobody else could write, where there is one writer at a time.
PURGE = "purge"
#: What is read from a storage that may be behind; its age is the time since nothing was missing there.
STANDBY_READ = "standby"
#: An endpoint that may answer from such a storage, with the source of its answer.
LAGGING_ENDPOINT = "read"
#: A way to prove who one is, tried.
SIGN_IN = "sign-in"

#: The sources of such an answer.
ANSWERED_BY_STANDBY, ANSWERED_BY_PRIMARY = "standby", "primary"

#: A request that the web server has answered by itself, without the application; its outcome is the status.
SERVER_REFUSAL = "refusal"

#: What a sign-in came to. It is held back after too many failures; ``FAILED`` is a failure of ours.
SUCCEEDED, REFUSED, RATE_LIMITED, BUSY, FAILED = OUTCOMES = ("succeeded", "refused", "held back", "busy", "failed")


class InstrumentationObserver:
    """Hears what this process does, in whatever thread that is and in the middle of requests: it is quick about it, and
    raises nothing. Each method may be left as it is."""

    def record_duration(self, kind: str, name: str, seconds: float) -> None:
        """Something has just ended, by its kind and name, well or not."""

    def record_outcome(self, what: str, name: str, outcome: str) -> None:
        """An attempt at something has come to this."""

    def record_lag(self, what: str, seconds: float) -> None:
        """Something was so old when it was used."""


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """How many places of a kind are in use at this moment, how many there are, and how many wait for one."""

    name: str
    in_use: int
    size: int
    queued: int


_watchers: tuple[InstrumentationObserver, ...] = ()


def has_observers() -> bool:
    """True if anybody watches."""
    return bool(_watchers)


def add_observers(watchers: Iterable[InstrumentationObserver]) -> None:
    """Have these hear from now on."""
    global _watchers
    _watchers = (*_watchers, *watchers)


def remove_observers(watchers: Iterable[InstrumentationObserver]) -> None:
    """Have these hear nothing any longer."""
    global _watchers
    gone = {id(observer) for observer in watchers}
    _watchers = tuple(observer for observer in _watchers if id(observer) not in gone)


def record_duration(what: str, name: str, seconds: float) -> None:
    """Tell all of them how long something took that has just ended."""
    for observer in _watchers:
        observer.record_duration(what, name, seconds)


def record_outcome(what: str, name: str, outcome: str) -> None:
    """Tell all of them what an attempt came to."""
    for observer in _watchers:
        observer.record_outcome(what, name, outcome)


def record_lag(what: str, seconds: float) -> None:
    """Tell all of them how old something was when it was used."""
    for observer in _watchers:
        observer.record_lag(what, seconds)


def record_server_refusal(status: int) -> None:
    """Tell all of them that the web server has answered a request by itself."""
    record_outcome(SERVER_REFUSAL, "server", str(status))


def measure_duration(what: str, name: str = "") -> AbstractContextManager[object]:
    """Around work whose time is told; nothing where nobody watches."""
    return _DurationMeasurement(what, name) if _watchers else _NO_MEASUREMENT


def with_measured_duration(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the time of each call told by its first argument; itself where nobody watches."""
    if not _watchers:
        return call

    def timed_call(name: str, *arguments: Any) -> Any:
        began = perf_counter()
        try:
            return call(name, *arguments)
        finally:
            record_duration(what, name, perf_counter() - began)

    return timed_call


class _DurationMeasurement(AbstractContextManager[None]):
    __slots__ = ("_began", "_name", "_what")

    def __init__(self, what: str, name: str) -> None:
        self._what = what
        self._name = name

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, *_exception: object) -> None:
        record_duration(self._what, self._name, perf_counter() - self._began)


_NO_MEASUREMENT = nullcontext()
