"""psycopg connections that let the event loop run while they wait, and that have a timeout.

The socket is registered with the loop for each wait. A permanent registration would save 6.5 us of 11 (uvloop, a
socket pair), but libpq closes its socket by itself when the server disappears, and the next file gets the same
descriptor.
"""

import time
from typing import Any

from psycopg import Connection, Cursor, OperationalError
from psycopg.errors import ReadOnlySqlTransaction

from identity.concurrency import in_greenlet, wait_for_socket

#: Prefixes of statements that change no data.
_READ_PREFIXES = ("SELECT ", "BEGIN ", "SET LOCAL ", "COMMIT", "ROLLBACK", "SHOW ")


class ReadOnlyCursor(Cursor[Any]):
    """A cursor that only reads, for poolers that do not support read-only sessions: the next statement may use another
    server connection."""

    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        if not str(query).lstrip().upper().startswith(_READ_PREFIXES):
            raise ReadOnlySqlTransaction("this connection only reads")
        return super().execute(query, *arguments, **named)


class GreenletPsycopgConnection(Connection[Any]):
    """A connection that waits in ``wait``: in a greenlet while the loop runs others."""

    #: Seconds of silence before the connection is closed; None for no limit. The server's own timeouts do not help if
    #: it is frozen, or cannot commit because it has lost its standby.
    socket_timeout: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Run psycopg's generator to its result. Raises OperationalError."""
        limit = self.socket_timeout if timeout is None else timeout
        began = time.monotonic()
        try:
            if in_greenlet():
                return self._wait_in_greenlet(gen, None if limit is None else began + limit)
            return super().wait(gen, interval, limit)
        except OperationalError:
            if timeout is None and limit is not None and time.monotonic() >= began + limit:
                # Later data would be taken for the response to the next statement.
                self.pgconn.finish()
            raise

    def _wait_in_greenlet(self, gen: Any, deadline: float | None) -> Any:
        try:
            awaited = next(gen)
            while True:
                # psycopg's flags for reading and writing have the selectors' values. A closed connection is detected by
                # reading.
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                ready = wait_for_socket(self.pgconn.socket, awaited, left)
                if not ready:
                    raise OperationalError("the server is silent")
                awaited = gen.send(ready)
        except StopIteration as end:
            return end.value
