"""The audit tween: stores refusals in a transaction of their own, after the request's was aborted."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.audit import SIGN_IN_REFUSED, AuditEvent

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
                identity.write_refusals([_with_browser(event, request) for event in services.refused])
        finally:
            request.forget()
        identity.worker.wake()
        return response

    return audit_tween


def _with_browser(event: AuditEvent, request: Request) -> AuditEvent:
    """A refused sign-in of somebody known tells them, as one that succeeds does, what the browser said of itself."""
    agent = request.browser.user_agent
    if event.event != SIGN_IN_REFUSED or event.object_kind != "user" or event.object_id is None or not agent:
        return event
    return replace(event, detail={**event.detail, "browser": agent})
