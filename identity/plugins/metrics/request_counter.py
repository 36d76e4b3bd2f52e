"""Counts requests by route name: the number of paths is unbounded."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from identity.api.plugins import ObservedRequest, RequestObserver
from identity.plugins.metrics.counters import GRANT_FAILED, GRANT_ISSUED, ProcessCounters

_NO_ROUTE_LABEL = "none"


def create_request_observer(counts: ProcessCounters) -> RequestObserver:
    """An observer that counts each request, but not retried runs."""

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
    # By class: an error object's text may come from the request.
    error = getattr(request.error, "error", None)
    return error if request.status < 500 and isinstance(error, str) else GRANT_FAILED
