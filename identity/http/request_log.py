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

#: Of an address that leads nowhere nothing is told: whoever asks chooses it.
_NO_ROUTE = "no route"


def tween_factory(handler: Callable[[Request], Response], _registry: Registry) -> Callable[[Request], Response]:
    """The handler itself where nobody watches; what is tried again is told once."""
    if not log.isEnabledFor(logging.INFO):
        return handler

    def logging_handler(request: Request) -> Response:
        started = time.perf_counter()
        response = handler(request)
        span = (time.perf_counter() - started) * 1000
        log.info("%s %s %d, %.0f ms", request.known_method, _place(request), response.status_int, span)
        return response

    return logging_handler


def _place(request: Request) -> str:
    route = getattr(request, "matched_route", None)
    return _NO_ROUTE if route is None else str(route.pattern)


def includeme(config: Configurator) -> None:
    """Around everything else but the id of the request."""
    config.add_tween("identity.http.request_log.tween_factory", under="identity.http.request_ids.tween_factory")
