"""The audit tween: stores refusals in a transaction of their own, after the request's was aborted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

if TYPE_CHECKING:
    from identity.process import Identity


def audit_tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """The tween, the last to see a request: it also has it let go of its services, and background work wake up."""
    identity: Identity = registry.identity

    def audit_tween(request: Request) -> Response:
        try:
            response = handler(request)
            services = request.__dict__.get("services")
            if services is not None and services.refused:
                identity.write_refusals(services.refused)
        finally:
            request.forget()
        identity.worker.wake()
        return response

    return audit_tween
