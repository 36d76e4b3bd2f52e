"""Traces by OpenTelemetry: each request as a span, with its hashes, signatures and statements below it."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyramid.config import Configurator

from identity import hookimpl
from identity.ini_values import BadSetting, setting
from identity.operations import Running
from identity.watching import Watcher

if TYPE_CHECKING:
    from identity.plugins.tracing.spans import Spans


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where traces are sent, and of how many requests. Without an address nothing is traced."""

    endpoint: str = setting(
        "The address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces.", default=""
    )
    per_thousand: int = setting(
        "Of how many requests in a thousand a trace is kept; where a trusted proxy has begun one, it decides.",
        default=100,
        at_least=0,
        at_most=1000,
    )
    service_name: str = setting("The name under which they are found.", default="identity")

    def __post_init__(self) -> None:
        if not self.endpoint:
            return
        try:
            parts = urlsplit(self.endpoint)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        if not fits:
            raise BadSetting("endpoint", "must be an address such as http://127.0.0.1:4318/v1/traces")
        if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
            raise BadSetting("endpoint", "needs OpenTelemetry, which the extra tracing of this package brings")


# Inside Plugin the name stands for the attribute that every plugin has.
_Settings = Settings


class Plugin:
    """Traces requests, and sends the traces to a collector."""

    hookspecs = 1
    Settings = Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.spans: Spans | None = None
        if settings.endpoint:
            from identity.plugins.tracing import spans

            self.spans = spans.Spans()

    @hookimpl
    def identity_watchers(self) -> Iterable[Watcher]:
        """What hears of hashes, signatures and statements; nothing unless there is a collector."""
        return [] if self.spans is None else [self.spans]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        """Trace requests."""
        if self.spans is not None:
            proxy = config.registry.identity.settings.trusted_proxy
            config.add_request_observer(partial(self.spans.request, proxy))

    @hookimpl
    def identity_running(self, running: Running) -> AbstractContextManager[object]:
        """Send traces, from a thread, for as long as the process answers; what is left is sent at its end."""
        return self._sending()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        if self.spans is None:
            yield
            return
        from identity.plugins.tracing.spans import sending

        with sending(self.spans, self.settings.endpoint, self.settings.per_thousand, self.settings.service_name):
            yield
