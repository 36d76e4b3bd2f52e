"""The server of the ini files' [server:main]: waitress, with a loop of our own."""

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from identity import fibers
from identity.server.connections import Channel, Limits, Listener, TcpListener, UnixListener
from identity.server.serving import LAST_LOOKS, Application, Serving, allow_files, own_limits, without_no_proxy
from identity.server.sockets import Sockets

log = logging.getLogger(__name__)

#: How many bytes of a longer answer are sent together.
_PIECE = 16384
_LOOK_AROUND = 1.0


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
        # Connections are taken already.
        self.beat()
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
                kind = UnixListener if one.family == socket.AF_UNIX else TcpListener
                yield kind(self._call, self._sockets, True, one, bind_socket=False, sockinfo=bound, **common)
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
        self.beat()
        now = time.time()
        for one in self.listeners:
            one.maintain(now)

    def _channels(self) -> list[Channel]:
        return [one for one in self._sockets.values() if isinstance(one, Channel)]
