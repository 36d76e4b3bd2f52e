"""Reports durations, outcomes and pool usage of this process to observers.

Without observers it costs next to nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any


class Measurement(StrEnum):
    """What is measured."""

    #: Hashing a password, including the wait for it.
    HASH = "hash"
    #: A signature, by algorithm.
    SIGNATURE = "signature"
    #: A call of a signer outside the process, by the signer's name. Its outcome is "succeeded" or "failed".
    SIGNER = "signer"
    #: An SQL statement or commit; its name is the statement without values.
    STATEMENT = "statement"
    #: A batch of a purge, by kind: the time for which it blocks other writers on storages with a single writer.
    PURGE = "purge"
    #: A read from a standby, with its replication lag.
    STANDBY_READ = "standby"
    #: An endpoint that may answer from a standby, with the source of its answer: "standby" or "primary".
    LAGGING_ENDPOINT = "read"
    #: An attempt to sign in, by method.
    SIGN_IN = "sign-in"
    #: A request that the web server refused without calling the application; its outcome is the status.
    SERVER_REFUSAL = "refusal"


class Outcome(StrEnum):
    """What came of a sign-in attempt, or of a call of a signer."""

    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    #: Too many failures before.
    RATE_LIMITED = "held back"
    BUSY = "busy"
    #: The service failed.
    FAILED = "failed"

    def record_sign_in(self, method: str) -> None:
        """Tell the observers what came of an attempt to sign in by this method."""
        record_outcome(Measurement.SIGN_IN, method, self)


class InstrumentationObserver:
    """Receives measurements in any thread and in the middle of requests: its methods must be quick and must not
    raise. Override the methods you need.
    """

    def record_duration(self, kind: Measurement, name: str, seconds: float) -> None:
        """Called when something has ended, successful or not."""

    def record_outcome(self, kind: Measurement, name: str, outcome: str) -> None:
        pass

    def record_lag(self, kind: Measurement, seconds: float) -> None:
        pass


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """How many slots of a pool are in use, how many there are, and how many requests wait for one."""

    name: str
    in_use: int
    size: int
    queued: int


_watchers: tuple[InstrumentationObserver, ...] = ()


def has_observers() -> bool:
    return bool(_watchers)


def add_observers(watchers: Iterable[InstrumentationObserver]) -> None:
    global _watchers
    _watchers = (*_watchers, *watchers)


def remove_observers(watchers: Iterable[InstrumentationObserver]) -> None:
    global _watchers
    removed = {id(observer) for observer in watchers}
    _watchers = tuple(observer for observer in _watchers if id(observer) not in removed)


def record_duration(kind: Measurement, name: str, seconds: float) -> None:
    for observer in _watchers:
        observer.record_duration(kind, name, seconds)


def record_outcome(kind: Measurement, name: str, outcome: str) -> None:
    """Tell the observers what came of something, such as Measurement.SIGN_IN by the method of this name."""
    for observer in _watchers:
        observer.record_outcome(kind, name, outcome)


def record_lag(kind: Measurement, seconds: float) -> None:
    for observer in _watchers:
        observer.record_lag(kind, seconds)


def record_server_refusal(status: int) -> None:
    record_outcome(Measurement.SERVER_REFUSAL, "server", str(status))


def measure_duration(kind: Measurement, name: str = "") -> AbstractContextManager[object]:
    """Measures the block; does nothing without observers."""
    return _DurationMeasurement(kind, name) if _watchers else _NO_MEASUREMENT


def with_measured_duration(kind: Measurement, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function so that each call is measured under the name in its first argument; returns it unchanged
    without observers.
    """
    if not _watchers:
        return call

    def timed_call(name: str, *arguments: Any) -> Any:
        began = perf_counter()
        try:
            return call(name, *arguments)
        finally:
            record_duration(kind, name, perf_counter() - began)

    return timed_call


class _DurationMeasurement(AbstractContextManager[None]):
    __slots__ = ("_began", "_kind", "_name")

    def __init__(self, kind: Measurement, name: str) -> None:
        self._kind = kind
        self._name = name

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, *_exception: object) -> None:
        record_duration(self._kind, self._name, perf_counter() - self._began)


_NO_MEASUREMENT = nullcontext()
