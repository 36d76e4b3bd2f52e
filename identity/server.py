"""The server of the ini files' [server:main]: waitress, taking its port first and stopping without losing an answer."""

import gc
import logging
import resource
import signal
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from identity import fibers, hashing
from identity.connections import Channel, Limits, Listener, TcpListener, UnixListener
from identity.ini_file import with_variables
from identity.settings import NO_PROXY
from identity.sockets import Sockets

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
#: How many bytes of a longer answer are sent together.
_PIECE = 16384
_LOOK_AROUND = 1.0
LAST_LOOKS = 0.1
_NEVER = float("inf")
#: Files that a process opens beside its connections.
_OTHER_FILES = 200


def listen(global_config: Mapping[str, str], **settings: str) -> Callable[[Application], None]:
    """A function that serves an application on a port that is taken now.

    PasteDeploy calls this before it makes the application: if the port is taken by another program, nothing has been
    made and no password been printed. Raises SystemExit, saying what to change.
    """
    return taken(Server, with_variables(global_config, settings))


def taken(kind: Callable[[Mapping[str, Any]], "Serving"], settings: Mapping[str, str]) -> Callable[[Application], None]:
    """The same for a server of this kind, with these settings."""
    try:
        server = kind(settings)
    except OSError as problem:
        where = settings.get("listen", "the address")
        raise SystemExit(
            f"identity cannot start. It cannot listen on {where}: {problem.strerror or problem}."
            " Stop the program that is there, or choose another port too (make run: PORT=…, pserve: http_port=…)."
        ) from None
    except ValueError as problem:
        raise SystemExit(f"identity cannot start. [server:main]: {problem}") from None
    server.obey_signals()
    # What a start makes stays: to look for garbage in it is a twentieth of the start.
    gc.disable()
    return partial(_serve, server)


def _serve(server: "Serving", application: Application) -> None:
    """Answer until SIGTERM or Ctrl-C; then finish what is being answered, and return."""
    hashing.stepping_aside = server.stepping_aside
    sys.setswitchinterval(_TURN)
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()
    server.announce()
    try:
        server.serve(application)
    finally:
        identity = getattr(getattr(application, "registry", None), "identity", None)
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
        self._make_room(0)

    def obey_signals(self) -> None:
        """Stop on SIGTERM and Ctrl-C."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self._signalled(number))

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

    def _signalled(self, number: int) -> None:
        if not self._serves:
            raise SystemExit(128 + number)
        self.stop()


class _Files(wasyncore.dispatcher):  # type: ignore[misc]
    """The files that fibers wait for, seen by the loop as one."""

    def __init__(self, waiting: fibers.Fibers, among: Sockets) -> None:
        super().__init__(map=among)
        self.handle_read_event = waiting.look_at_files
        self.close = waiting.close
        self._fileno = waiting.files.fileno()
        self.add_channel()

    def writable(self) -> bool:
        """Never."""
        return False


class _Dispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Gives requests to the loop or to threads."""

    def __init__(self, sockets: Sockets) -> None:
        super().__init__()
        self._sockets = sockets
        self.arrived: deque[Callable[[], object]] = deque()
        self.in_loop: Callable[[str], bool] = lambda _: False

    def add_task(self, task: Channel) -> None:
        """Answer the request whose turn it is at this connection."""
        request = task.requests[0]
        if request.error is None and self.in_loop(request.path):
            self.arrived.append(task.answer)
        else:
            self._sockets.in_thread(task)
            super().add_task(task)


class Server(Serving):
    """Bound when made; answers once it serves.

    What waits for nothing but the storage is answered by the loop itself (``registry.in_loop``): what has arrived by
    one look, at most ``in_loop.most``, goes on together in fibers. So no thread takes the interpreter from another for
    it, and what is written meanwhile shares commits. The rest is answered by threads.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take the addresses; raises OSError if one is taken, ValueError for a setting that does not fit."""
        limits, others = own_limits(settings)
        self._adjustments = Adjustments(**without_no_proxy(others))
        # Head and body go out together; waitress would send each by itself.
        self._adjustments.send_bytes = _PIECE
        self._application: Application | None = None
        self._sockets = Sockets()
        self._fibers: fibers.Fibers | None = None
        self._dispatcher = _Dispatcher(self._sockets)
        self.listeners = list(self._open(limits))
        super().__init__(self._dispatcher, self._adjustments.threads)
        allow_files(self._adjustments.connection_limit)

    def announce(self) -> None:
        """Say in the log where it listens."""
        for one in self.listeners:
            one.print_listen("Serving on http://{}:{}")

    def serve(self, application: Application) -> None:
        """Answer until told to stop, then finish what is being answered and return."""
        self._application, self._serves = application, True
        in_loop = getattr(getattr(application, "registry", None), "in_loop", None)
        if in_loop is not None:
            self._fibers = fibers.Fibers(self.listeners[0].pull_trigger, in_loop.apart, most=in_loop.most)
            _Files(self._fibers, self._sockets)
            self._dispatcher.arrived, self._dispatcher.in_loop = self._fibers.arrived, in_loop.takes
        try:
            while not self._stopping:
                self._look(_LOOK_AROUND)
            self._drain()
        finally:
            self._end_threads()
            for one in self.listeners:
                one.close()
            self._sockets.close()

    def _wake_to_stop(self) -> None:
        for one in self.listeners:
            one.pull_trigger()

    def _open(self, limits: Limits) -> Iterator[Listener]:
        adjustments = self._adjustments
        common = {"dispatcher": self._dispatcher, "adj": adjustments, "limits": limits}
        if adjustments.unix_socket:
            family = (socket.AF_UNIX, socket.SOCK_STREAM, None, None)
            yield UnixListener(self._call, self._sockets, sockinfo=family, **common)
        elif adjustments.sockets:
            for one in adjustments.sockets:
                bound = (one.family, one.type, one.proto, one.getsockname())
                yield TcpListener(self._call, self._sockets, True, one, bind_socket=False, sockinfo=bound, **common)
        else:
            for where in adjustments.listen:
                yield TcpListener(self._call, self._sockets, sockinfo=where, **common)

    def _call(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._application is None:
            raise RuntimeError("a request was answered before there was an application")
        return self._application(environ, start_response)

    def _drain(self) -> None:
        """Take no more connections; return when the last one has ended, or the time is up."""
        # What has arrived by now is still heard.
        self._look(0)
        for one in self.listeners:
            one.stop_listening()
        while self._channels() and time.monotonic() < self._give_up_at:
            self._look(LAST_LOOKS)
            for channel in self._channels():
                channel.end_if_quiet(time.time())
        unanswered = [one for one in self._channels() if one.requests or one.request is not None]
        if unanswered:
            log.warning("stopped with %d connections that had no answer yet", len(unanswered))

    def _look(self, timeout: float) -> None:
        """Hear what has come within so many seconds, and answer what never waits."""
        working = self._fibers
        if working is not None:
            timeout = working.until_alarm(timeout)
        self._sockets.look(timeout)
        if working is not None:
            working.go_round()
            # A database is often quick: those who have begun are answered before others are heard.
            while working.awaits_files and working.look_at_files():
                working.go_round()
        now = time.time()
        for one in self.listeners:
            one.maintain(now)

    def _channels(self) -> list[Channel]:
        return [one for one in self._sockets.values() if isinstance(one, Channel)]


def own_limits(settings: Mapping[str, Any]) -> tuple[Limits, dict[str, Any]]:
    """Our own limits among the settings, and waitress's words. Raises ValueError."""
    own = {one.name: _number(one.name, settings[one.name]) for one in fields(Limits) if one.name in settings}
    return Limits(**own), {name: value for name, value in settings.items() if name not in own}


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
