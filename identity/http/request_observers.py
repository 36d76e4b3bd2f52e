"""Request observers: metrics and traces see each request, whether ASGI or Pyramid handles it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response
from pyramid_retry import is_error_retryable  # type: ignore[import-untyped]

from identity.http.environ_keys import ENDPOINT_RESULT_KEY, PEER_KEY, TRACE_ID_KEY, UNREAD_BODY_KEY

if TYPE_CHECKING:
    from identity.provider.context import Context

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: The name in OpenTelemetry's semantic conventions.
_OTHER_METHOD = "_OTHER"


def normalized_method(method: str) -> str:
    """The method, for logs and traces; all methods without a view share one name."""
    return method if method in _METHODS else _OTHER_METHOD


@dataclass(slots=True)
class ObservedRequest:
    """A request, and from ``status`` on its outcome, which is set when the observers' contexts end. ``header`` returns
    a request header by its lower-case name, ``peer`` is the other end of the connection. ``is_final`` is False for a
    run that is retried. A tracing observer sets ``trace_id``."""

    method: str
    peer: str
    request_id: str
    header: Callable[[str], str | None]
    status: int = 500
    route_name: str | None = None
    route_pattern: str | None = None
    grant_type: str | None = None
    #: Class of the error that was handled.
    error: type[BaseException] | None = None
    is_final: bool = True
    trace_id: str | None = None

    def set_context(self, context: "Context | None") -> None:
        """Take the grant type from an endpoint's context."""
        if context is not None:
            self.grant_type = context.metric_labels.get("grant_type")


#: Returns a context that surrounds the handling of a request, in the thread or greenlet that does it.
RequestObserver = Callable[[ObservedRequest], AbstractContextManager[object]]


def observe_request(observers: tuple[RequestObserver, ...], request: ObservedRequest) -> ExitStack:
    """Enter the contexts of all observers, the first one outermost."""
    stack = ExitStack()
    for observer in observers:
        stack.enter_context(observer(request))
    return stack


def add_request_observer(config: Configurator, observer: RequestObserver) -> None:
    """Directive: call the observer for each request."""
    config.registry.request_observers = (*config.registry.request_observers, observer)


def observer_tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """The handler itself if there are no observers."""
    if not registry.request_observers:
        return handler

    def observing(request: Request) -> Response:
        environ = request.environ
        if ENDPOINT_RESULT_KEY in environ:
            # A subrequest of a request that is already observed.
            return handler(request)
        observed_request = ObservedRequest(
            method=normalized_method(request.method),
            peer=environ.get(PEER_KEY, ""),
            request_id=request.request_id,
            header=lambda name: environ.get("HTTP_" + name.upper().replace("-", "_")),
        )
        with observe_request(registry.request_observers, observed_request):
            if observed_request.trace_id is not None:
                environ[TRACE_ID_KEY] = observed_request.trace_id
            try:
                response = handler(request)
            except Exception as problem:
                observed_request.is_final = not is_error_retryable(request, problem)
                raise
            finally:
                route = getattr(request, "matched_route", None)
                if route is not None:
                    observed_request.route_name, observed_request.route_pattern = route.name, route.pattern
                observed_request.set_context(request.request_services.context)
            observed_request.status = response.status_int
            answered = request.__dict__.get("exception")
            if answered is not None:
                observed_request.error = type(answered)
                observed_request.is_final = not (is_error_retryable(request, answered) or environ.get(UNREAD_BODY_KEY))
            return response

    return observing


def includeme(config: Configurator) -> None:
    """Add the directive, and the tween inside the request id tween and around all others."""
    config.registry.request_observers = ()
    config.add_directive("add_request_observer", add_request_observer)
    config.add_tween(
        "identity.http.request_observers.observer_tween_factory",
        under="identity.http.request_ids.request_id_tween_factory",
    )
