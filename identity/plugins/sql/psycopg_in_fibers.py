"""PostgreSQL's driver, letting other fibers go on while it waits for the server."""

import select
from typing import Any

from psycopg import Connection, waiting

from identity.fibers import current

_EVENTS = {
    waiting.WAIT_R: select.EPOLLIN,
    waiting.WAIT_W: select.EPOLLOUT,
    waiting.WAIT_RW: select.EPOLLIN | select.EPOLLOUT,
}


class ConnectionInFibers(Connection[Any]):
    """A connection whose every step waits by ``wait``: in a fiber that steps aside."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """What the generator of psycopg comes to."""
        fiber = current()
        if fiber is None:
            return super().wait(gen, interval, timeout)
        try:
            awaited = next(gen)
            while True:
                events = fiber.fibers.await_file(self.pgconn.socket, _EVENTS[awaited])
                # What ends the connection is found by reading.
                ready: int = waiting.READY_R if events & ~select.EPOLLOUT else waiting.READY_NONE
                if events & select.EPOLLOUT:
                    ready |= waiting.READY_W
                awaited = gen.send(ready)
        except StopIteration as end:
            return end.value
