"""PostgreSQL's driver, letting other fibers go on while it waits for the server."""

from typing import Any

from psycopg import Connection

from identity.fibers import current


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
                # psycopg has the same numbers for reading and writing. What ends the connection is found by reading.
                awaited = gen.send(fiber.fibers.await_file(self, self.pgconn.socket, awaited))
        except StopIteration as end:
            return end.value
