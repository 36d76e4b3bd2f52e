"""A proxy between a service and its database, which can cut, delay and refuse connections.

A connection is cut when the service sends data for the n-th time: before a statement, while it runs, at the commit,
at the rollback.
"""

import select
import socket
import threading
import time
from contextlib import suppress

_CHUNK_SIZE = 1 << 16


class TcpProxy:
    """Forwards bytes between clients on a loopback port and a server's socket."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._live: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        #: Number of sends before the cut; None for never.
        self._left: int | None = None
        self._delivered = self._for_good = False
        #: Delay in seconds of each chunk that clients send.
        self.delay = 0.0
        #: Number of chunks delayed.
        self.is_paused = 0
        self.restore()

    def cut(self, after: int, *, delivered: bool, for_good: bool) -> None:
        """Cut when clients send for the n-th time from now, after their data is ``delivered`` to the server or not.

        ``for_good``: refuse connections afterwards, until ``restore``.
        """
        self._left, self._delivered, self._for_good = after, delivered, for_good

    @property
    def has_cut(self) -> bool:
        """True after the cut."""
        return self._left == 0

    def restore(self) -> None:
        """Forward everything again."""
        with self._lock:
            self._left = None
            if self._listener is None:
                self._listener = socket.socket()
                self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._listener.bind(("127.0.0.1", self.port))
                self._listener.listen(100)
                self.port = self._listener.getsockname()[1]
                threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def refuse_connections(self) -> None:
        """Refuse new connections, and cut all existing ones."""
        with self._lock:
            if self._listener is not None:
                # Closing alone does not wake an accepting thread.
                self._listener.shutdown(socket.SHUT_RDWR)
                self._listener.close()
                self._listener = None
            for item in self._live:
                with suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=[client], daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            with self._lock:
                self._live.add(client)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                if server in ready:
                    client.sendall(server.recv(_CHUNK_SIZE) or _is_closed_error())
                else:
                    sent = client.recv(_CHUNK_SIZE) or _is_closed_error()
                    if self.delay:
                        time.sleep(self.delay)
                        self.is_paused += 1
                    if self._left:
                        self._left -= 1
                        if not self._left:
                            if self._delivered:
                                server.sendall(sent)
                                server.recv(_CHUNK_SIZE)
                            if self._for_good:
                                self.refuse_connections()
                            break
                    server.sendall(sent)
        with self._lock:
            self._live.discard(client)


def _is_closed_error() -> bytes:
    raise OSError
