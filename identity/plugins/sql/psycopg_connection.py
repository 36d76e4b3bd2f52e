"""PostgreSQL's driver, which lets the event loop continue while it waits for the server, and does not wait for ever.

The socket is registered with the loop for each wait. A reader that stays registered would save 6.5 us of 11 (uvloop, a
socket pair), but libpq closes its socket by itself when the server goes, and the next file gets the same number.
"""

import time
from typing import Any

from psycopg import Connection, Cursor, OperationalError
from psycopg.errors import ReadOnlySqlTransaction

from identity.concurrency import in_greenlet, wait_for_socket

#: How statements begin that change nothing, or only how a transaction goes.
_READ_PREFIXES = ("SELECT ", "BEGIN ", "SET LOCAL ", "COMMIT", "ROLLBACK", "SHOW ")


class ReadOnlyCursor(Cursor[Any]):
    """A cursor that only reads, where the server cannot be told so: its next statement may be another connection's."""

    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        """Itself. Raises ReadOnlySqlTransaction, as the server would."""
        if not str(query).lstrip().upper().startswith(_READ_PREFIXES):
            raise ReadOnlySqlTransaction("this connection only reads")
        return super().execute(query, *arguments, **named)


class GreenletPsycopgConnection(Connection[Any]):
    """A connection whose every step waits by ``wait``: in a greenlet while the loop runs others."""

    #: How many seconds a server may be silent before the connection is closed; None for ever. The server's own timeouts
    #: do not help where it is frozen, or cannot commit because it has lost its standby.
    socket_timeout: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """What the generator of psycopg comes to. Raises OperationalError."""
        limit = self.socket_timeout if timeout is None else timeout
        began = time.monotonic()
        try:
            if in_greenlet():
                return self._wait_in_greenlet(gen, None if limit is None else began + limit)
            return super().wait(gen, interval, limit)
        except OperationalError:
            if timeout is None and limit is not None and time.monotonic() >= began + limit:
                # Whatever comes later would be taken for the answer to the next statement.
                self.pgconn.finish()
            raise

    def _wait_in_greenlet(self, gen: Any, deadline: float | None) -> Any:
        try:
            awaited = next(gen)
            while True:
                # psycopg has the same numbers for reading and writing. What ends the connection is found by reading.
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                ready = wait_for_socket(self.pgconn.socket, awaited, left)
                if not ready:
                    raise OperationalError("the server is silent")
                awaited = gen.send(ready)
        except StopIteration as end:
            return end.value
