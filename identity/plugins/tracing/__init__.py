"""OpenTelemetry traces: each request is a span, with hashes, signatures and statements as its children."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyramid.config import Configurator

from identity.api.plugins import InstrumentationObserver, InvalidSetting, ServingProcess, hookimpl, setting

if TYPE_CHECKING:
    from identity.plugins.tracing.spans import SpanObserver


@dataclass(frozen=True, kw_only=True)
class TracingPluginSettings:
    """Where traces are sent, and the sampling ratio. Without an address nothing is traced."""

    endpoint: str = setting(
        "The address of a collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces.", default=""
    )
    per_thousand: int = setting(
        "How many of a thousand requests are traced. If a trusted proxy has started a trace, the proxy decides.",
        default=100,
        minimum=0,
        maximum=1000,
    )
    service_name: str = setting("The service name in the traces.", default="identity")

    def __post_init__(self) -> None:
        if not self.endpoint:
            return
        try:
            parts = urlsplit(self.endpoint)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        if not fits:
            raise InvalidSetting("endpoint", "must be an address such as http://127.0.0.1:4318/v1/traces")
        if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
            raise InvalidSetting("endpoint", "needs OpenTelemetry, which the extra tracing of this package brings")


# Inside TracingPlugin the name Settings is the attribute that every plugin has.
_Settings = TracingPluginSettings


class TracingPlugin:
    """OpenTelemetry traces of requests."""

    hookspecs = 1
    Settings = TracingPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.spans: SpanObserver | None = None
        if settings.endpoint:
            from identity.plugins.tracing import spans

            self.spans = spans.SpanObserver()

    @hookimpl
    def identity_observers(self) -> Iterable[InstrumentationObserver]:
        """Observe hashes, signatures and statements, if there is a collector."""
        return [] if self.spans is None else [self.spans]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        """Trace requests."""
        if self.spans is not None:
            proxy = config.registry.application.settings.trusted_proxy
            config.add_request_observer(partial(self.spans.observe_request, proxy))

    @hookimpl
    def identity_lifespan(self, process: ServingProcess) -> AbstractContextManager[object]:
        """Export traces from a thread while the process serves; the rest is sent at its end."""
        return self._export_spans()

    @contextmanager
    def _export_spans(self) -> Iterator[None]:
        if self.spans is None:
            yield
            return
        from identity.plugins.tracing.spans import export_spans

        with export_spans(self.spans, self.settings.endpoint, self.settings.per_thousand, self.settings.service_name):
            yield
