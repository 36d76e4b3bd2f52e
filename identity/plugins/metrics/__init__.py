"""Prometheus metrics of requests, sign-ins, passwords, the database and the storage."""

import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.crypto import constant_time_equal, token_digest
from identity.api.plugins import InstrumentationObserver, InvalidSetting, ServingProcess, hookimpl, setting
from identity.api.services import AuditEvent
from identity.plugins.metrics.counters import ProcessCounters
from identity.plugins.metrics.families import AUDIT_EVENTS
from identity.plugins.metrics.request_counter import create_request_observer
from identity.plugins.metrics.response import METRICS_PATH, MetricsResponse

_MIN_TOKEN_LENGTH = 32


@dataclass(frozen=True, kw_only=True)
class MetricsPluginSettings:
    """Where metrics are served, and to whom. Without address and token nothing is counted."""

    listen: str = setting(
        "A separate address, such as 127.0.0.1:9464, for all processes together: ``GET /metrics``. An address that"
        " other machines can reach needs ``token_file``.",
        default="",
    )
    token_file: Path | None = setting(
        "A file with the token that clients must send (``Authorization: Bearer``): 32 characters or more, mode 0600. To"
        " change the token, replace the file; no restart is needed. Without ``listen``, the service itself then serves"
        " ``/metrics``.",
        default=None,
    )
    directory: Path | None = setting(
        "A folder in which the processes of this machine share their counts; by default ``metrics`` in"
        " ``identity.data``. Each machine needs its own.",
        default=None,
        is_created=True,
    )

    def __post_init__(self) -> None:
        if self.listen:
            host, _ = self.address
            if self.token_file is None and not ip_address(host).is_loopback:
                raise InvalidSetting(
                    "listen", f"{host} is not of this machine alone: name a token_file too, or 127.0.0.1"
                )
        if self.token_file is not None:
            self.read_token()
        if self.is_enabled and find_spec("prometheus_client") is None:
            problem = "needs the client of Prometheus, which the extra metrics of this package brings"
            raise InvalidSetting("listen" if self.listen else "token_file", problem)

    @property
    def is_enabled(self) -> bool:
        """True if metrics are served anywhere."""
        return bool(self.listen) or self.token_file is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on. Raises InvalidSetting."""
        host, _, port = self.listen.rpartition(":")
        try:
            ip_address(host.strip("[]"))
            number = int(port)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 16:
            raise InvalidSetting("listen", "must be an address and a port, such as 127.0.0.1:9464 or [::1]:9464")
        return host.strip("[]"), number

    def read_token(self) -> str | None:
        """The current token, None if none is required. Raises InvalidSetting, whose text does not quote the token."""
        if self.token_file is None:
            return None
        try:
            open_to_others = self.token_file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            token = self.token_file.read_text("ascii").strip()
        except OSError as problem:
            raise InvalidSetting("token_file", f"{self.token_file} cannot be read: {problem.strerror}") from None
        except UnicodeDecodeError:
            token, open_to_others = "", 0
        if open_to_others:
            raise InvalidSetting(
                "token_file", f'{self.token_file} is open to others: run "chmod 600 {self.token_file}"'
            )
        if len(token) < _MIN_TOKEN_LENGTH or not token.isprintable() or " " in token:
            raise InvalidSetting(
                "token_file",
                f"{self.token_file} must hold one token of {_MIN_TOKEN_LENGTH} characters or more, in ASCII",
            )
        return token


# Inside MetricsPlugin the name Settings is the attribute that every plugin has.
_Settings = MetricsPluginSettings


class MetricsPlugin:
    """Prometheus metrics, at a separate address or with a token."""

    hookspecs = 1
    Settings = MetricsPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.counters = ProcessCounters()
        self._running: _MetricsProcess | None = None

    @hookimpl
    def identity_observers(self) -> Iterable[InstrumentationObserver]:
        """Observe durations and outcomes, if metrics are enabled."""
        return [self.counters] if self.settings.is_enabled else []

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        """Count requests; without an address, serve metrics at a path of the service."""
        if not self.settings.is_enabled:
            return
        identity = config.registry.application
        self.counters.methods = frozenset(
            {*identity.process_state.capabilities.sign_in_methods, *identity.protocol_registry.factors}
        )
        self.counters.grant_types = tuple(identity.protocol_registry.grant_types)
        config.add_request_observer(create_request_observer(self.counters))
        if not self.settings.listen:
            config.add_route("metrics", METRICS_PATH)
            config.add_view(self._metrics_view, route_name="metrics", permission=NO_PERMISSION_REQUIRED)

    @hookimpl
    def identity_audit_event_recorded(self, event: AuditEvent) -> None:
        """Count the event."""
        if self.settings.is_enabled:
            self.counters.increment(AUDIT_EVENTS, event.event)

    @hookimpl
    def identity_lifespan(self, process: ServingProcess) -> AbstractContextManager[object]:
        """Listen, and publish to other processes. Raises InvalidSetting if the address is in use or the folder is
        not accessible.
        """
        return self._serve_metrics(process)

    @contextmanager
    def _serve_metrics(self, running: ServingProcess) -> Iterator[None]:
        if not self.settings.is_enabled:
            yield
            return
        from identity.plugins.metrics.http_server import MetricsServer

        folder = self.settings.directory or running.settings.data / "metrics"
        metrics_process = _MetricsProcess(self.counters, running, folder)
        listener = None
        try:
            setting, value = "listen", self.settings.listen
            if self.settings.listen:
                listener = MetricsServer(*self.settings.address, partial(self._handle_scrape, metrics_process))
            setting, value = "directory", str(folder)
            metrics_process.publisher.start()
        except OSError as problem:
            why = f"{value} cannot be used: {problem.strerror}"
            raise InvalidSetting(f"identity.plugin.metrics.{setting}", why) from None
        if listener is not None:
            listener.start()
        self._running = metrics_process
        try:
            yield
        finally:
            self._running = None
            if listener is not None:
                listener.stop()
            metrics_process.publisher.stop()

    def _metrics_view(self, request: Request) -> Response:
        environ = request.environ
        answer = MetricsResponse(503, b"Not yet.\n", headers=(("Retry-After", "5"),))
        if self._running is not None:
            answer = self._handle_scrape(
                self._running, environ.get("HTTP_AUTHORIZATION"), environ.get("HTTP_ACCEPT", "")
            )
        headers = [("Content-Type", answer.media_type), ("Content-Length", str(len(answer.body))), *answer.headers]
        return Response(body=answer.body, status=answer.status, headerlist=headers)

    def _handle_scrape(
        self, metrics_process: "_MetricsProcess", authorization: str | None, accept: str
    ) -> MetricsResponse:
        try:
            token = self.settings.read_token()
        except InvalidSetting as problem:
            return MetricsResponse(503, f"{problem}\n".encode())
        if token is not None and not constant_time_equal(
            token_digest(authorization or ""), token_digest(f"Bearer {token}")
        ):
            return MetricsResponse(
                401, b"Send the token as Authorization: Bearer.\n", headers=(("WWW-Authenticate", "Bearer"),)
            )
        body, media_type = metrics_process.render(accept)
        return MetricsResponse(200, body, media_type)


class _MetricsProcess:
    """The metrics of this running process, and of the others beside it."""

    def __init__(self, counters: ProcessCounters, process: ServingProcess, folder: Path) -> None:
        from identity.plugins.metrics.metric_files import MetricFiles, MetricPublisher
        from identity.plugins.metrics.storage_gauges import StorageGauges

        self._files = MetricFiles(folder)
        self.publisher = MetricPublisher(self._files, counters, process.pool_usages, process.worker_replacements)
        self._storage_gauges = StorageGauges(process.open_services)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics of all processes, and the media type. Raises OSError."""
        from identity.plugins.metrics.exposition import render_exposition

        self.publisher.publish()
        return render_exposition(*self._files.read(), self._storage_gauges.read(), accept)
