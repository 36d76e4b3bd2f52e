"""The access log: one line per request with method, route, status and time.

It names the route instead of the path: paths contain one-time links, and queries contain codes and tokens.
"""

import logging
import time
from collections.abc import Callable

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.http.environ_keys import ENDPOINT_RESULT_KEY, UNREAD_BODY_KEY
from identity.http.request_observers import normalized_method

log = logging.getLogger(__name__)

#: Paths without a route are not logged: the client chooses them.
_NO_ROUTE = "no route"


def access_log_tween_factory(
    handler: Callable[[Request], Response], _registry: Registry
) -> Callable[[Request], Response]:
    """The handler itself if the log is off; a retried request is logged once."""
    if not log.isEnabledFor(logging.INFO):
        return handler

    def logging_handler(request: Request) -> Response:
        started = time.perf_counter()
        response = handler(request)
        # Skip a view that still needs its body, and a page of an endpoint, which is part of another request.
        if not (request.environ.get(UNREAD_BODY_KEY) or ENDPOINT_RESULT_KEY in request.environ):
            route = getattr(request, "matched_route", None)
            pattern = _NO_ROUTE if route is None else route.pattern
            log_request(normalized_method(request.method), pattern, response.status_int, time.perf_counter() - started)
        return response

    return logging_handler


def log_request(method: str, pattern: str, status: int, seconds: float) -> None:
    """Write the line; ``pattern`` is the route's."""
    log.info("%s %s %d, %.0f ms", method, pattern, status, seconds * 1000)


def includeme(config: Configurator) -> None:
    """Around everything but the request id."""
    config.add_tween(
        "identity.http.access_log.access_log_tween_factory", under="identity.http.request_ids.request_id_tween_factory"
    )
