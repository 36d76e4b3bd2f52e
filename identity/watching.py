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
STANDBY = "standby"
#: An endpoint that may answer from such a storage, with the source of its answer.
READ = "read"
#: A way to prove who one is, tried.
SIGN_IN = "sign-in"

#: The sources of such an answer.
FROM_STANDBY, FROM_PRIMARY = "standby", "primary"

#: A request that the web server has answered by itself, without the application; its outcome is the status.
REFUSAL = "refusal"

#: What a sign-in came to. It is held back after too many failures; ``FAILED`` is a failure of ours.
SUCCEEDED, REFUSED, HELD_BACK, BUSY, FAILED = OUTCOMES = ("succeeded", "refused", "held back", "busy", "failed")


class Watcher:
    """Hears what this process does, in whatever thread that is and in the middle of requests: it is quick about it, and
    raises nothing. Each method may be left as it is."""

    def took(self, what: str, name: str, seconds: float) -> None:
        """Something has just ended, by its kind and name, well or not."""

    def came_to(self, what: str, name: str, outcome: str) -> None:
        """An attempt at something has come to this."""

    def aged(self, what: str, seconds: float) -> None:
        """Something was so old when it was used."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many places of a kind are in use at this moment, how many there are, and how many wait for one."""

    name: str
    in_use: int
    most: int
    waiting: int


_watchers: tuple[Watcher, ...] = ()


def watched() -> bool:
    """True if anybody watches."""
    return bool(_watchers)


def begin(watchers: Iterable[Watcher]) -> None:
    """Have these hear from now on."""
    global _watchers
    _watchers = (*_watchers, *watchers)


def end(watchers: Iterable[Watcher]) -> None:
    """Have these hear nothing any longer."""
    global _watchers
    gone = {id(one) for one in watchers}
    _watchers = tuple(one for one in _watchers if id(one) not in gone)


def took(what: str, name: str, seconds: float) -> None:
    """Tell all of them how long something took that has just ended."""
    for one in _watchers:
        one.took(what, name, seconds)


def came_to(what: str, name: str, outcome: str) -> None:
    """Tell all of them what an attempt came to."""
    for one in _watchers:
        one.came_to(what, name, outcome)


def aged(what: str, seconds: float) -> None:
    """Tell all of them how old something was when it was used."""
    for one in _watchers:
        one.aged(what, seconds)


def refused(status: int) -> None:
    """Tell all of them that the web server has answered a request by itself."""
    came_to(REFUSAL, "server", str(status))


def timed(what: str, name: str = "") -> AbstractContextManager[object]:
    """Around work whose time is told; nothing where nobody watches."""
    return _Timed(what, name) if _watchers else _UNTIMED


def each_timed(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the time of each call told by its first argument; itself where nobody watches."""
    if not _watchers:
        return call

    def timed_call(name: str, *arguments: Any) -> Any:
        began = perf_counter()
        try:
            return call(name, *arguments)
        finally:
            took(what, name, perf_counter() - began)

    return timed_call


class _Timed(AbstractContextManager[None]):
    __slots__ = ("_began", "_name", "_what")

    def __init__(self, what: str, name: str) -> None:
        self._what = what
        self._name = name

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, *_exception: object) -> None:
        took(self._what, self._name, perf_counter() - self._began)


_UNTIMED = nullcontext()
