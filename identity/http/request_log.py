"""One line in the log for each request, for whoever watches: method, route, status and time.

The route stands for the address: addresses hold links that work once, and their queries hold codes and tokens.
"""

import logging
import time
from collections.abc import Callable

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

log = logging.getLogger(__name__)

_LONGEST = 40


def tween_factory(handler: Callable[[Request], Response], _registry: Registry) -> Callable[[Request], Response]:
    """The handler itself where nobody watches; what is tried again is told once."""
    if not log.isEnabledFor(logging.INFO):
        return handler

    def logging_handler(request: Request) -> Response:
        started = time.perf_counter()
        response = handler(request)
        span = (time.perf_counter() - started) * 1000
        log.info("%s %s %d, %.0f ms", request.method, _place(request), response.status_int, span)
        return response

    return logging_handler


def _place(request: Request) -> str:
    route = getattr(request, "matched_route", None)
    if route is not None:
        return str(route.pattern)
    first, *rest = request.environ.get("PATH_INFO", "").lstrip("/").split("/", 1)
    return f"/{first[:_LONGEST]}{'…' if rest or len(first) > _LONGEST else ''}"


def includeme(config: Configurator) -> None:
    """Around everything else but the id of the request."""
    config.add_tween("identity.http.request_log.tween_factory", under="identity.http.request_ids.tween_factory")
