"""The server of the ini files' [server:main]: waitress, taking its port first and stopping without losing an answer."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server

from identity import hashing
from identity.ini_file import with_variables

log = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: How long requests that are being answered may take to finish once the server is told to stop.
GRACE = 25.0

_LOOK_AROUND = 1.0
_LAST_LOOKS = 0.1


def listen(global_config: Mapping[str, str], **settings: str) -> Callable[[Application], None]:
    """A function that serves an application on a port that is taken now.

    PasteDeploy calls this before it makes the application: if the port is taken by another program, nothing has been
    made and no password been printed. Raises SystemExit, saying what to change.
    """
    try:
        server = _Server(with_variables(global_config, settings))
    except OSError as problem:
        where = with_variables(global_config, settings).get("listen", "the address")
        raise SystemExit(
            f"identity cannot start. It cannot listen on {where}: {problem.strerror or problem}."
            " Stop the program that is there, or choose another port: make run PORT=… (pserve: http_port=…)."
        ) from None
    except ValueError as problem:
        raise SystemExit(f"identity cannot start. [server:main]: {problem}") from None
    return server.serve


class _Server:
    """Bound when made; answers once it serves."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._application: Application | None = None
        self._sockets: dict[int, Any] = {}
        self._server = create_server(self._call, map=self._sockets, **settings)
        self._threads = self._server.adj.threads
        self._aside = 0
        self._counting = threading.Lock()
        self._stopping = False
        self._give_up_at = float("inf")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)

    def serve(self, application: Application) -> None:
        """Answer until SIGTERM or Ctrl-C, then finish what is being answered and return."""
        self._application = application
        hashing.stepping_aside = self.stepping_aside
        for one in self._listeners():
            one.print_listen("Serving on http://{}:{}")
        try:
            while not self._stopping:
                self._look(_LOOK_AROUND)
            self._drain()
        finally:
            self._server.task_dispatcher.shutdown(timeout=max(_LAST_LOOKS, self._give_up_at - time.monotonic()))
            wasyncore.close_all(self._sockets, ignore_all=True)
            identity = getattr(getattr(application, "registry", None), "identity", None)
            if identity is not None:
                identity.close()
        log.info("stopped")

    @contextmanager
    def stepping_aside(self) -> Iterator[None]:
        """While a thread waits for a password's hash, another one answers in its place.

        So the ini's ``threads`` says how many requests are worked on at the same time, and a flood of sign-ins holds up
        nobody else.
        """
        self._make_room(1)
        try:
            yield
        finally:
            self._make_room(-1)

    def _make_room(self, more: int) -> None:
        with self._counting:
            self._aside += more
            if not self._stopping:
                self._server.task_dispatcher.set_thread_count(self._threads + self._aside)

    def _call(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._application is None:
            raise RuntimeError("a request was answered before there was an application")
        return self._application(environ, start_response)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Told to stop; told twice, no longer wait for anybody."""
        if self._application is None:
            raise SystemExit(128 + number)
        self._give_up_at = time.monotonic() + (0 if self._stopping else GRACE)
        self._stopping = True
        # The loop may be asleep.
        for one in self._listeners():
            one.pull_trigger()

    def _drain(self) -> None:
        """Take no more connections; return when every answer is sent, or the time is up."""
        # What has arrived by now is still heard.
        self._look(0)
        for one in self._listeners():
            # The socket alone: its trigger still wakes the loop when an answer is ready.
            wasyncore.dispatcher.close(one)
        while self._close_idle():
            if time.monotonic() >= self._give_up_at:
                break
            self._look(_LAST_LOOKS)
        else:
            return
        log.warning("stopped with %d connections that had no answer yet", len(self._channels()))

    def _close_idle(self) -> bool:
        """Close connections on which nothing is under way; False if none is left."""
        for channel in self._channels():
            if not _busy(channel):
                channel.handle_close()
        return bool(self._channels())

    def _look(self, timeout: float) -> None:
        wasyncore.loop(timeout=timeout, use_poll=self._server.adj.asyncore_use_poll, map=self._sockets, count=1)

    def _listeners(self) -> list[BaseWSGIServer]:
        return [one for one in self._sockets.values() if isinstance(one, BaseWSGIServer)]

    def _channels(self) -> list[HTTPChannel]:
        return [one for one in self._sockets.values() if isinstance(one, HTTPChannel)]


def _busy(channel: HTTPChannel) -> bool:
    """True while a request is read or answered, or an answer not all sent."""
    return bool(channel.requests or channel.request is not None or channel.total_outbufs_len)
