"""The sockets of the server's loop: a look at them costs what has happened since, however many are open."""

import selectors
from collections import deque
from typing import Any

from waitress import wasyncore

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Sockets(dict[int, Any]):
    """waitress's map of its sockets by their numbers, watched by what the system has for many (epoll, kqueue).

    waitress's own loop asks each of them before every look what it waits for. Here one says so when it waits for more
    than before (``changed``); that it waits for less is found out when that comes in vain, which for most never is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()
        self._awaited: dict[int, int] = {}
        self._changed: deque[Any] = deque()
        self._in_threads: set[Any] = set()

    def __setitem__(self, descriptor: int, one: Any) -> None:
        super().__setitem__(descriptor, one)
        self._changed.append(one)

    def __delitem__(self, descriptor: int) -> None:
        super().__delitem__(descriptor)
        if self._awaited.pop(descriptor, 0):
            self._selector.unregister(descriptor)

    def changed(self, one: Any) -> None:
        """It may wait for more than before."""
        self._changed.append(one)

    def reads_on(self, one: Any) -> None:
        """The same, if it was found not to be reading."""
        if not self._awaited.get(one._fileno, _READ) & _READ:
            self._changed.append(one)

    def in_thread(self, connection: Any) -> None:
        """A thread answers at this connection: at any time it may have something to send, until it has answered."""
        self._in_threads.add(connection)

    def look(self, seconds: float) -> None:
        """Have what comes handled; wait for so long until something does."""
        for connection in list(self._in_threads):
            if not connection.requests:
                self._in_threads.discard(connection)
            self._changed.append(connection)
        while self._changed:
            self._await_more(self._changed.popleft())
        for key, events in self._selector.select(seconds):
            if self.get(key.fd) is key.data:
                self._handle(key.fd, key.data, events)

    def close(self) -> None:
        """Close them all."""
        wasyncore.close_all(self, ignore_all=True)
        self._selector.close()

    def _await_more(self, one: Any) -> None:
        descriptor = one._fileno
        if descriptor not in self or self[descriptor] is not one:
            return
        awaited = self._awaited.get(descriptor, 0)
        wanted = awaited | (_READ if one.readable() else 0) | (_WRITE if one.writable() else 0)
        if wanted != awaited:
            self._await(descriptor, one, wanted)

    def _await(self, descriptor: int, one: Any, events: int) -> None:
        awaited, self._awaited[descriptor] = self._awaited.get(descriptor, 0), events
        if not events:
            self._selector.unregister(descriptor)
        elif awaited:
            self._selector.modify(descriptor, events, one)
        else:
            self._selector.register(descriptor, events, one)

    def _handle(self, descriptor: int, one: Any, events: int) -> None:
        in_vain = 0
        if events & _READ:
            if one.readable():
                wasyncore.read(one)
            else:
                in_vain = _READ
        if events & _WRITE:
            if one.writable():
                wasyncore.write(one)
                self._changed.append(one)
            else:
                in_vain |= _WRITE
        if in_vain and self.get(descriptor) is one:
            self._await(descriptor, one, self._awaited[descriptor] & ~in_vain)
