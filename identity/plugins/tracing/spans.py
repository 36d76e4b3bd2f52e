"""Spans of requests and of the work in them, without values: no URL, parameter or header is recorded."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import NoOpTracer, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from identity.api.plugins import InstrumentationObserver, Measurement, ObservedRequest, __version__

#: W3C Trace Context.
_TRACE_HEADERS = ("traceparent", "tracestate")
_PROPAGATOR = TraceContextTextMapPropagator()
_NANOSECONDS = 1_000_000_000


class SpanObserver(InstrumentationObserver):
    """Creates spans with a tracer, which is a no-op until the process serves."""

    def __init__(self) -> None:
        self.tracer: Tracer = NoOpTracer()

    def record_duration(self, kind: str, name: str, seconds: float) -> None:
        """Add a span for a hash, signature or statement of the current request."""
        if not trace.get_current_span().is_recording():
            return
        ended = time.time_ns()
        attributes = (
            {"db.query.text": name} if kind == Measurement.STATEMENT else {"identity.name": name} if name else {}
        )
        span_name = f"{kind} {name.split(None, 1)[0]}" if kind == Measurement.STATEMENT and name.strip() else kind
        span = self.tracer.start_span(span_name, start_time=ended - int(seconds * _NANOSECONDS), attributes=attributes)
        span.end(ended)

    @contextmanager
    def observe_request(self, trusted_proxy: str, request: ObservedRequest) -> Iterator[None]:
        """Surround the handling of a request by a span."""
        # Trace headers of untrusted clients are ignored.
        trusted = bool(trusted_proxy) and request.peer == trusted_proxy
        found = {name: request.header(name) for name in _TRACE_HEADERS} if trusted else {}
        around = _PROPAGATOR.extract(
            {name: value for name, value in found.items() if value is not None}, context.Context()
        )
        with self.tracer.start_as_current_span(
            request.method, around, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            span_context = span.get_span_context()
            if span_context.is_valid:
                request.trace_id = trace.format_trace_id(span_context.trace_id)
            try:
                yield
            finally:
                if request.route_name is not None:
                    span.update_name(f"{request.method} {request.route_name}")
                    span.set_attribute("http.route", request.route_pattern or "")
                span.set_attribute("http.request.method", request.method)
                span.set_attribute("http.response.status_code", request.status)
                span.set_attribute("identity.request_id", request.request_id)
                if request.status >= 500:
                    span.set_status(Status(StatusCode.ERROR))


@contextmanager
def export_spans(
    spans: SpanObserver, endpoint: str, per_thousand: int, name: str, processor: SpanProcessor | None = None
) -> Iterator[None]:
    """Export spans to the collector within the block."""
    resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: __version__})
    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(per_thousand / 1000), resource=resource, shutdown_on_exit=False
    )
    provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=10)))
    spans.tracer = provider.get_tracer("identity", __version__)
    try:
        yield
    finally:
        spans.tracer = NoOpTracer()
        provider.shutdown()
