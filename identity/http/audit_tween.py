"""The audit tween: stores refusals in their own transaction, after the request's was aborted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.http.activity_recording import record_endpoint_activity, record_sign_in_refusals
from identity.http.request_services import add_user_agent

if TYPE_CHECKING:
    from identity.application import IdentityApplication


def audit_tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """The outermost tween: it also releases the request's services and wakes background work."""
    identity: IdentityApplication = registry.application

    def audit_tween(request: Request) -> Response:
        try:
            response = handler(request)
            if refused := request.request_services.refusals:
                agent = request.browser_state.user_agent
                identity.record_refusals([add_user_agent(event, agent) for event in refused])
                record_sign_in_refusals(request, refused)
            route = request.matched_route
            endpoint_handler = None if route is None else registry.endpoint_handlers.get(route.name)
            if endpoint_handler is not None:
                record_endpoint_activity(
                    identity,
                    endpoint_handler.endpoint,
                    request.request_services.context,
                    response.status_code,
                    request.environ.get("REMOTE_ADDR") or "",
                )
        finally:
            request.request_services.release()
        identity.background_worker.wake()
        return response

    return audit_tween
