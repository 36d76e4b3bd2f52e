"""HTTP server of the metrics' own address."""

import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from identity.plugins.metrics.response import METRICS_PATH, MetricsResponse, ScrapeHandler

log = logging.getLogger(__name__)

#: Seconds until an idle client is disconnected, and maximum number of concurrent clients.
_READ_TIMEOUT = 10
_MAX_CONNECTIONS = 8


class MetricsServer(ThreadingHTTPServer):
    """Serves GET /metrics from threads. Raises OSError if the address is in use.

    All processes of a service listen on the same address, and the system distributes the connections.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, host: str, port: int, ask: ScrapeHandler) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.handler = ask
        self._connection_slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__((host, port), _MetricsRequestHandler)
        self._thread = threading.Thread(target=self.serve_forever, name="identity-metrics-listener", daemon=True)

    def server_bind(self) -> None:
        """Bind the address, together with other processes of the same user."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # http.server's method would query the DNS for a name.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle the request in a thread, if one is free."""
        if not self._connection_slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Release the thread's slot afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connection_slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected."""
        log.debug("somebody who asked for metrics went away", exc_info=True)


class _MetricsRequestHandler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = _READ_TIMEOUT
    server_version, sys_version = "identity", ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != METRICS_PATH:
            self._send(MetricsResponse(404, b"There are metrics at /metrics, and nothing else here.\n"))
            return
        try:
            answer = self.server.handler(self.headers.get("Authorization"), self.headers.get("Accept", ""))
        except Exception:
            log.exception("metrics could not be told")
            answer = MetricsResponse(500, b"Something went wrong.\n")
        self._send(answer)

    def _send(self, answer: MetricsResponse) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *arguments: Any) -> None:
        pass
