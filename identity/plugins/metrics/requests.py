"""Requests, counted by the names of their routes: addresses are as many as people like."""

from collections.abc import Callable
from time import perf_counter

from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response
from pyramid_retry import is_error_retryable  # type: ignore[import-untyped]

from identity.plugins.metrics.counts import FAILED, ISSUED, Counts

_NO_ROUTE = "none"


def tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """Around everything else; an attempt that is made anew is not counted."""
    counts: Counts = registry.metrics_counts

    def counting(request: Request) -> Response:
        began = perf_counter()
        counts.began()
        try:
            response = handler(request)
        except Exception as problem:
            if not is_error_retryable(request, problem):
                _count(request, 500, perf_counter() - began)
            raise
        finally:
            counts.ended()
        seconds = perf_counter() - began
        answered = request.__dict__.get("exception")
        if answered is None or not is_error_retryable(request, answered):
            _count(request, response.status_int, seconds)
        return response

    def _count(request: Request, status: int, seconds: float) -> None:
        route = getattr(request, "matched_route", None)
        counts.answered(_NO_ROUTE if route is None else route.name, status, seconds)
        context = request.__dict__.get("protocol_context")
        grant_type = None if context is None else context.told.get("grant_type")
        if grant_type is not None:
            counts.granted(grant_type, _outcome(request, status))

    return counting


def _outcome(request: Request, status: int) -> str:
    if status < 300:
        return ISSUED
    # By its class: what an object says may have come with the request.
    error = getattr(type(request.__dict__.get("exception")), "error", None)
    return error if status < 500 and isinstance(error, str) else FAILED
