"""The server's connections: how many, for how long, and how they end. waitress's, with what it leaves to proxies."""

import errno
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, TcpWSGIServer, UnixWSGIServer

from identity import fibers
from identity.domain.addresses import network_of
from identity.log_format import OnceAMinute
from identity.server.answers import Task, refusal
from identity.server.framing import Memory, StrictParser

log = logging.getLogger(__name__)
for _floods in (log, logging.getLogger("waitress.queue")):
    _floods.addFilter(OnceAMinute())

#: How long a request whose headers are there may take to arrive as a whole.
_WHOLE_REQUEST = 60.0
#: The same for one whose body the application has admitted.
_LARGE_REQUEST = 600.0
#: How long we listen on after our last word, so that the other side has read it before the connection is gone.
_LINGERING = 2.0
#: How long a connection has to be silent before it ends while the process stops.
_QUIET = 2.0
#: How long a connection has to have waited before another one may take its place.
_PATIENCE = 1.0
#: Connections taken before those that are there have their turn again.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """What an ini file's [server:main] sets beside waitress's own words."""

    connections_per_address: int = 100
    header_timeout: int = 10

    def __post_init__(self) -> None:
        if min(self.connections_per_address, self.header_timeout) < 1:
            raise ValueError("connections_per_address and header_timeout must be 1 or more")


class Channel(HTTPChannel):  # type: ignore[misc]
    """One connection."""

    task_class = Task
    error_task_class = staticmethod(refusal)

    def __init__(self, server: "Listener", sock: socket.socket, addr: Any, adj: Any, map: Any) -> None:  # noqa: A002
        #: Whom it counts for; None for a trusted proxy, which speaks for many.
        self.origin = server.origin_of(addr)
        #: Each of its requests may be like the one before.
        self.parser_class = partial(StrictParser, memory=Memory())
        self._lingers_until: float | None = None
        self._timed: StrictParser | None = None
        self._began_at = 0.0
        self.request: StrictParser | None
        super().__init__(server, sock, addr, adj, map=map)

    @property
    def waits(self) -> bool:
        """True if it is the other side's turn to say something."""
        return not self.requests and not self.total_outbufs_len

    @property
    def waits_since(self) -> float:
        """Since when: a request that comes in small pieces does not count anew with each of them."""
        return self._began_at if self.request is not None else self.last_activity

    def is_overdue(self, now: float) -> bool:
        """True if it has taken all the time that it gets."""
        if self._lingers_until is not None:
            return now > self._lingers_until
        if self.requests and not self.total_outbufs_len:
            return False
        if self.request is not None and not self.total_outbufs_len:
            allowed = self._allowed(self.request)
            if now - self._began_at > allowed:
                return True
        return bool(now - self.last_activity > self.adj.channel_timeout)

    def _allowed(self, request: StrictParser) -> float:
        if request.admitted:
            return _LARGE_REQUEST
        return _WHOLE_REQUEST if request.headers_finished else float(self.server.limits.header_timeout)

    def end_if_quiet(self, now: float) -> None:
        """End it if nothing is under way, and nothing was for a moment: whoever is about to ask is answered."""
        if self.waits and self.request is None and self._lingers_until is None and now - self.last_activity > _QUIET:
            self.end()

    def end(self) -> None:
        """Send no more, and hear on for a moment: what is still under way would otherwise undo our last words."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.handle_close()
        else:
            self.close_when_flushed = False
            self._lingers_until = time.time() + _LINGERING

    def readable(self) -> bool:
        """True if we hear what is said."""
        return self._lingers_until is not None or super().readable()

    def writable(self) -> bool:
        """True if there is something to say, or to close."""
        return bool(self.will_close or (self._lingers_until is None and super().writable()))

    def handle_write(self) -> None:
        """Send what is there; ``end`` after the last answer."""
        # A thread whose answer is over may still tell the other side to go on (100), and would share the buffer.
        with self.outbuf_lock:
            if not self.close_when_flushed or self.will_close:
                super().handle_write()
                return
            self._flush_exception(self._flush_some)
            if self.connected and not self.will_close and not self.total_outbufs_len:
                self.end()

    def answer(self) -> None:
        """Answer the request whose turn it is, in the loop."""
        self.service()
        if self.connected and self.writable():
            wasyncore.write(self)
            self._map.changed(self)
        else:
            self._map.reads_on(self)

    def write_soon(self, data: bytes) -> int:
        """Take what is to be sent; silence counts from here, however long the answer has taken."""
        sent = 0
        if not self.total_outbufs_len:
            self.last_activity = time.time()
            if self.connected and fibers.current() is not None:
                # Nobody else sends here, so it need not lie in a buffer first.
                sent = self.send(data, do_close=False)
        if sent < len(data):
            super().write_soon(data[sent:])
        return len(data)

    def _flush_outbufs_below_high_watermark(self) -> None:
        # A thread waits until a slow reader has taken some of a large answer. The loop waits for nobody: what it has in
        # hand goes to a file.
        if fibers.current() is None:
            super()._flush_outbufs_below_high_watermark()

    def service(self) -> None:
        """Answer the request whose turn it is."""
        asked: StrictParser = self.requests[0]
        super().service()
        with self.requests_lock:
            # What had arrived before the body was admitted may have been all of it.
            if self.request is asked and asked.completed:
                self.request = None
                self.requests.append(asked)
                if len(self.requests) == 1:
                    self.server.add_task(self)

    def received(self, data: bytes) -> bool:
        """Read on in the request that comes in; False if nothing is read any more."""
        if self._lingers_until is not None:
            return False
        heard: bool = super().received(data)
        if self.request is not self._timed:
            self._timed, self._began_at = self.request, time.time()
        return heard

    def handle_close(self) -> None:
        """Close it; a request that has not come whole is gone."""
        super().handle_close()
        if self.request is not None:
            self.request.abandon()

    def add_channel(self, map: Any = None) -> None:  # noqa: A002
        """Count it."""
        self.server.connections[self.origin] += 1
        super().add_channel(map)

    def del_channel(self, map: Any = None) -> None:  # noqa: A002
        """Count it no longer."""
        if self._fileno is not None:
            self.server.connections[self.origin] -= 1
            if not self.server.connections[self.origin]:
                del self.server.connections[self.origin]
        super().del_channel(map)


class Listener(BaseWSGIServer):  # type: ignore[misc]
    """Takes connections. Where there is no room, whoever has waited longest without saying anything has to go."""

    channel_class = Channel
    #: True once the process is about to end: every answer is then the last of its connection.
    stopping = False

    def __init__(self, application: Any, *arguments: Any, limits: Limits, **named: Any) -> None:
        self.limits = limits
        self.connections: Counter[str | None] = Counter()
        self._looked_at = 0.0
        # A signal may come while it is held.
        self._waking = threading.RLock()
        self._asleep_for_good = False
        super().__init__(application, *arguments, **named)
        #: The application, for requests in which no proxy says anything.
        self.plain = application

    def origin_of(self, address: Any) -> str | None:
        """Whom connections from this address count for; None if they are not counted."""
        host = str(address[0])
        if self.adj.trusted_proxy in ("*", host):
            return None
        return network_of(host)

    def stop_listening(self) -> None:
        """Take what has arrived, and then nothing more."""
        self.stopping = True
        for _ in range(self.adj.backlog):
            if not self._accept():
                break
        # The socket alone: the trigger still wakes the loop when an answer is ready.
        wasyncore.dispatcher.close(self)

    def pull_trigger(self) -> None:
        """Wake the loop, if it goes on: what was a file of ours may be somebody else's by now."""
        # A fiber runs in the loop.
        if fibers.current() is not None:
            return
        with self._waking:
            if not self._asleep_for_good:
                super().pull_trigger()

    def close(self) -> None:
        """Let go of everything, the way to wake the loop included."""
        with self._waking:
            self._asleep_for_good = True
            super().close()

    def readable(self) -> bool:
        """True if another connection can be taken."""
        return bool(self.accepting) and (self._is_free() or self._longest_waiting(self._all()) is not None)

    def handle_accept(self) -> None:
        """Take those that have arrived."""
        for _ in range(_AT_ONCE):
            if not self._accept():
                break

    def _accept(self) -> bool:
        """Take one connection; False if there is none, or no room."""
        if not self._is_free() and not self._let_go(self._all(), "all connections are taken (connection_limit)"):
            return False
        try:
            accepted = self.accept()
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE):
                self._let_go(self._all(), "the process may not open more files")
            return False
        if accepted is None:
            return False
        self._take(*accepted)
        return True

    def maintain(self, now: float) -> None:
        """Close what has taken all the time that it gets; looks once a second."""
        if now - self._looked_at >= 1:
            self._looked_at = now
            # There may be room again.
            self._map.changed(self)
            for channel in self._all():
                if channel.is_overdue(now):
                    channel.handle_close()

    def _take(self, connection: socket.socket, address: Any) -> None:
        address = self.fix_addr(address)
        origin = self.origin_of(address)
        if origin is not None and self.connections[origin] >= self.limits.connections_per_address:
            same = [one for one in self._all() if one.origin == origin]
            if not self._let_go(same, "one address has all of its connections (connections_per_address)"):
                connection.close()
                return
        try:
            self.set_socket_options(connection)
        except OSError:
            # The other side is gone already.
            connection.close()
        else:
            self.channel_class(self, connection, address, self.adj, map=self._map)

    def _all(self) -> list[Channel]:
        return list(self.active_channels.values())

    def _is_free(self) -> bool:
        return bool(len(self._map) < self.adj.connection_limit)

    def _let_go(self, channels: Collection[Channel], why: str) -> bool:
        """Close the one that has waited longest; False if all are busy."""
        found = self._longest_waiting(channels)
        log.warning(f"{why}: " + ("all are busy" if found is None else "the longest waiting one is closed"))
        if found is not None:
            found.handle_close()
        return found is not None

    def _longest_waiting(self, channels: Collection[Channel]) -> Channel | None:
        """The one that may have to go. A trusted proxy's are spared: what comes through it is its own to limit."""
        until = time.time() - _PATIENCE
        waiting = [one for one in channels if one.origin is not None and one.waits and one.waits_since < until]
        return min(waiting, key=lambda one: one.waits_since, default=None)


class TcpListener(Listener, TcpWSGIServer):  # type: ignore[misc]
    """On an address and port."""


class UnixListener(Listener, UnixWSGIServer):  # type: ignore[misc]
    """On a socket in the file system."""
