"""Serving: what web servers of ours do alike: take the port first, obey signals, stop without losing an answer."""

import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from typing import Any

from waitress.task import ThreadedTaskDispatcher

from identity import hashing
from identity.ini_values import BadSetting
from identity.server import systemd
from identity.server.connections import Limits
from identity.server.listening import PATIENCE, WORKERS, made
from identity.settings import NO_PROXY

log = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: How long requests that are being answered may take to finish once the server is told to stop.
GRACE = 25.0

#: Seconds after which a thread that only computes lets the loop have the interpreter. Python's own 5 ms would come on
#: top of each of the loop's answers while somebody draws a page.
_TURN = 0.0005
#: How many new objects there may be before they are looked through for garbage: more than the requests have in hand
#: that are answered at the same time. Those leave none (``IdentityRequest.forget``).
_YOUNG = 10_000
LAST_LOOKS = 0.1
_NEVER = float("inf")
#: Files that a process opens beside its connections.
_OTHER_FILES = 200


def taken(kind: Callable[[Mapping[str, Any]], "Serving"], settings: Mapping[str, str]) -> Callable[[Application], None]:
    """The same for a server of this kind, with these settings."""
    server = made(kind, settings)
    server.obey_signals()
    # What a start makes stays: to look for garbage in it is a twentieth of the start.
    gc.disable()

    def announced(application: Application) -> None:
        server.announce()
        server.beat = answers
        serve(server, application)

    def answers() -> None:
        server.beat = _in_peace
        systemd.notify("READY=1")

    return announced


def serve(server: "Serving", application: Application) -> None:
    """Answer until told to stop; then finish what is being answered, and return."""
    hashing.stepping_aside = server.stepping_aside
    sys.setswitchinterval(_TURN)
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()
    identity = getattr(getattr(application, "registry", None), "identity", None)
    try:
        with nullcontext() if identity is None else identity.running():
            server.serve(application)
    except BadSetting as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    finally:
        if identity is not None:
            identity.close()
    log.info("stopped")


class Serving(ABC):
    """A server, bound already. Its threads answer what waits for more than the storage."""

    def __init__(self, threads: ThreadedTaskDispatcher, count: int) -> None:
        self.threads = threads
        self._count = count
        self._aside = 0
        self._counting = threading.Lock()
        self._serves = False
        self._stopping = False
        self._give_up_at = _NEVER
        #: Called whenever the loop goes round, at least once a second.
        self.beat: Callable[[], None] = _in_peace
        self._make_room(0)

    def obey_signals(self) -> None:
        """Stop on SIGTERM and Ctrl-C, and go on when told to reload, unless it is a terminal that hangs up."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self._signalled(number))
        if not os.isatty(0):
            signal.signal(signal.SIGHUP, lambda *_: self._go_on())

    def obey_parent(self) -> None:
        """Stop on SIGTERM, however often it comes: the parent may not be the only one who tells. SIGINT hurries.

        What comes from the keyboard reaches the supervisor alone.
        """
        signal.signal(signal.SIGTERM, lambda number, _: self._told_once(number))
        signal.signal(signal.SIGINT, lambda number, _: self._signalled(number))

    @abstractmethod
    def announce(self) -> None:
        """Say in the log where it listens."""

    @abstractmethod
    def serve(self, application: Application) -> None:
        """Answer until told to stop, then finish what is being answered and return."""

    def stop(self, grace: float = GRACE) -> None:
        """Have ``serve`` come to its end, after as many seconds at most; told twice, it waits for nobody any longer."""
        self._give_up_at = time.monotonic() + (0 if self._stopping else grace)
        self._stopping = True
        self._wake_to_stop()

    @contextmanager
    def stepping_aside(self) -> Iterator[None]:
        """While a thread waits for a password's hash, or is at a large document, another one answers in its place.

        So the ini's ``threads`` says how many requests are worked on at the same time, and a flood of sign-ins holds up
        nobody else.
        """
        self._make_room(1)
        try:
            yield
        finally:
            self._make_room(-1)

    @abstractmethod
    def _wake_to_stop(self) -> None:
        """Have the loop see that it is to stop; it may be asleep."""

    def _end_threads(self) -> None:
        self.threads.shutdown(timeout=max(LAST_LOOKS, self._give_up_at - time.monotonic()))

    def _make_room(self, more: int) -> None:
        with self._counting:
            self._aside += more
            if not self._stopping:
                self.threads.set_thread_count(self._count + self._aside)

    def _told_once(self, number: int) -> None:
        if not self._stopping:
            self._signalled(number)

    def _signalled(self, number: int) -> None:
        if not self._serves:
            raise SystemExit(128 + number)
        # A worker's supervisor tells of all.
        systemd.notify("STOPPING=1")
        self.stop()

    def _go_on(self) -> None:
        log.warning("told to reload: one process without a supervisor cannot, and goes on; restart it, or set workers")
        if self._serves and not self._stopping:
            systemd.reloading()
            systemd.notify("READY=1")


def _in_peace() -> None:
    """Nobody looks."""


def own_limits(settings: Mapping[str, Any]) -> tuple[Limits, dict[str, Any]]:
    """Our own limits among the settings, and waitress's words. Raises ValueError."""
    own = {one.name: _number(one.name, settings[one.name]) for one in fields(Limits) if one.name in settings}
    return Limits(**own), {name: value for name, value in settings.items() if name not in {*own, WORKERS, PATIENCE}}


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} must be a whole number") from None


def allow_files(connections: int) -> None:
    """Let the process open as many files as it needs with so many connections, as far as it may decide that."""
    wanted = connections + _OTHER_FILES
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != allowed < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if most < 0 else min(wanted, most), most))


def without_no_proxy(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without a word of the proxy if there is none."""
    if settings.get("trusted_proxy", "") not in ("", NO_PROXY):
        return dict(settings)
    return {name: value for name, value in settings.items() if not name.startswith("trusted_proxy")}
