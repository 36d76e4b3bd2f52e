"""Requests, counted by the names of their routes: addresses are as many as people like."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from identity.http.observers import ObservedRequest, Observer
from identity.plugins.metrics.counts import FAILED, ISSUED, Counts

_NO_ROUTE = "none"


def observer(counts: Counts) -> Observer:
    """Counts each request; a run that is repeated is not counted."""

    @contextmanager
    def counting(request: ObservedRequest) -> Iterator[None]:
        began = perf_counter()
        counts.began()
        try:
            yield
        finally:
            counts.ended()
            if request.is_final:
                counts.answered(request.route_name or _NO_ROUTE, request.status, perf_counter() - began)
                if request.grant_type is not None:
                    counts.granted(request.grant_type, _outcome(request))

    return counting


def _outcome(request: ObservedRequest) -> str:
    if request.status < 300:
        return ISSUED
    # By its class: what an object says may have come with the request.
    error = getattr(request.error, "error", None)
    return error if request.status < 500 and isinstance(error, str) else FAILED
