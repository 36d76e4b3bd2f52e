"""The audit tween: stores refusals in a transaction of their own, after the request's was aborted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.http.request_services import with_user_agent

if TYPE_CHECKING:
    from identity.process import Identity


def audit_tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """The tween, the last to see a request: it also has it let go of its services, and background work wake up."""
    identity: Identity = registry.identity

    def audit_tween(request: Request) -> Response:
        try:
            response = handler(request)
            if refused := request.opened.refused:
                agent = request.browser.user_agent
                identity.write_refusals([with_user_agent(event, agent) for event in refused])
        finally:
            request.opened.forget()
        identity.worker.wake()
        return response

    return audit_tween
