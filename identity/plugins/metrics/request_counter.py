"""Requests, counted by the names of their routes: addresses are as many as people like."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from identity.http.request_observers import ObservedRequest, RequestObserver
from identity.plugins.metrics.counters import GRANT_FAILED, GRANT_ISSUED, ProcessCounters

_NO_ROUTE_LABEL = "none"


def create_request_observer(counts: ProcessCounters) -> RequestObserver:
    """Counts each request; a run that is repeated is not counted."""

    @contextmanager
    def counting(request: ObservedRequest) -> Iterator[None]:
        began = perf_counter()
        counts.request_started()
        try:
            yield
        finally:
            counts.request_ended()
            if request.is_final:
                counts.count_request(request.route_name or _NO_ROUTE_LABEL, request.status, perf_counter() - began)
                if request.grant_type is not None:
                    counts.count_grant(request.grant_type, _grant_outcome(request))

    return counting


def _grant_outcome(request: ObservedRequest) -> str:
    if request.status < 300:
        return GRANT_ISSUED
    # By its class: what an object says may have come with the request.
    error = getattr(request.error, "error", None)
    return error if request.status < 500 and isinstance(error, str) else GRANT_FAILED
