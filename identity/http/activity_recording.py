"""Counts and logs requests after they have ended, in the memory of the process."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyramid.request import Request

from identity.crypto.secrets import is_client_id, new_id
from identity.domain.application_requests import ApplicationRequest
from identity.domain.audit import AuditEvent
from identity.domain.figures import FigureKind
from identity.http.client_network import request_network
from identity.http.sign_in_attempts import WRONG_FACTOR
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint
from identity.services.attempts import ACCOUNT_LIMIT_REASON, ADDRESS_LIMIT_REASON

if TYPE_CHECKING:
    from identity.application import IdentityApplication

#: In place of an endpoint's name: an attempt on a page.
SIGN_IN_STEP = "sign-in"
_SERVER_ERRORS = 500
WRONG_CREDENTIALS = "wrong login name or password"
#: Reasons that are the same for existing and unknown accounts, or that follow a right password.
_PUBLIC_REASONS = frozenset({ACCOUNT_LIMIT_REASON, ADDRESS_LIMIT_REASON, WRONG_FACTOR})


def record_endpoint_activity(
    identity: "IdentityApplication", endpoint: Endpoint, context: Context | None, status: int, client_address: str
) -> None:
    """Count tokens and log the request. Successful requests that change nothing, such as introspection, are not
    logged: they would displace all others."""
    if context is None or context.activity.is_recorded:
        return
    activity = context.activity
    activity.is_recorded = True
    if not activity.error and status >= _SERVER_ERRORS:
        return
    collector = identity.process_state.activity_collector
    if activity.token_owner and not activity.error:
        collector.count(FigureKind.TOKENS, activity.organization_id, context.now, object_id=activity.token_owner)
    if not activity.application_id or not (activity.error or endpoint.writes):
        return
    if not activity.is_verified and not is_client_id(activity.application_id):
        return
    collector.log_request(
        ApplicationRequest(
            id=new_id(),
            application_id=activity.application_id,
            at=context.now,
            endpoint=endpoint.name,
            grant_type=context.metric_labels.get("grant_type", ""),
            error=activity.error,
            reason=activity.reason,
            user_id=None if activity.error else activity.user_id,
            client_network=request_network(client_address, identity.settings.trusted_proxy),
        ),
        is_verified=activity.is_verified,
    )


def record_sign_in_refusals(request: Request, refused: Sequence[AuditEvent]) -> None:
    """Log refused attempts of a person to sign in to an application. Neither the user nor what was wrong with name or
    password is logged: an application's managers must not learn from it which accounts other organizations have."""
    client_id = getattr(getattr(request.context, "pending", None), "client_id", None)
    if client_id is None:
        return
    identity: IdentityApplication = request.registry.application
    for event in refused:
        if event.event == AuditEvent.SIGN_IN_REFUSED:
            identity.process_state.activity_collector.log_request(
                ApplicationRequest(
                    id=new_id(),
                    application_id=client_id,
                    at=event.at,
                    endpoint=SIGN_IN_STEP,
                    error="access_denied",
                    reason=_public_reason(event),
                    client_network=request_network(event.actor.client_address or "", identity.settings.trusted_proxy),
                ),
                is_verified=True,
            )


def _public_reason(event: AuditEvent) -> str:
    if event.object_kind == "user" and event.reason not in _PUBLIC_REASONS:
        return WRONG_CREDENTIALS
    return event.reason or ""
