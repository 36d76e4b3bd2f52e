"""Protocol endpoints without a web framework: what Pyramid and the ASGI application share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from identity import instrumentation
from identity.http.cookies import cookie_headers
from identity.http.cors import cors_headers, preflight_response
from identity.http.request_services import RequestServices
from identity.http.security_policy import IMPERSONATION_DENIAL, ImpersonationDenied
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.errors import MethodNotAllowed, OAuthError, RequestTooLarge
from identity.provider.protocol_request import BrowserState, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.application import IdentityApplication

#: The maximum size of a form or API request.
MAX_BODY_BYTES = 64 * 1024

log = logging.getLogger(__name__)

_NOT_MODIFIED = 304

Headers = list[tuple[str, str]]


def body_too_large_error() -> RequestTooLarge:
    """The error for a body over MAX_BODY_BYTES."""
    return RequestTooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class EndpointResult:
    """The result of an endpoint that Pyramid renders as a page: a response or an error."""

    result: ProtocolResponse | Exception
    context: Context | None


class EndpointHandler:
    """Calls one endpoint."""

    def __init__(self, endpoint: Endpoint, identity: "IdentityApplication") -> None:
        self.endpoint = endpoint
        # A HEAD must not do what a GET does if that changes anything (RFC 9110 §9.3.2).
        shows = "GET" in endpoint.methods and not endpoint.writes
        self._methods = frozenset(endpoint.methods) | ({"HEAD"} if shows else set())
        self._may_lag = endpoint.allows_stale_reads and identity.backend.has_standby
        # Without the storage it is unknown whose session it is.
        self.reads_browser_state = endpoint.host is EndpointHost.LOGIN and endpoint.uses_storage
        self._identity = identity

    def is_preflight(self, method: str, requested_method: str | None) -> bool:
        """True for a CORS preflight request (Fetch §3.2.2)."""
        return method == "OPTIONS" and requested_method is not None and self.endpoint.allows_cors

    def needs_storage_for_cors(self, origin: str | None) -> bool:
        """True if the response to a script of this origin, None for no script, may wait for the storage."""
        return self.endpoint.uses_storage or (origin is not None and self.endpoint.allows_cors)

    def preflight_response(self) -> ProtocolResponse:
        return preflight_response(self.endpoint)

    def check_method(self, method: str) -> None:
        """Raise MethodNotAllowed."""
        if method not in self._methods:
            raise MethodNotAllowed(self.endpoint.methods)

    def handle(self, request: ProtocolRequest, request_services: RequestServices) -> ProtocolResponse:
        """The endpoint's response. Raises its errors; ImpersonationDenied in a session in which a manager is signed in
        as a person, unless the endpoint allows it."""
        if not self.endpoint.allows_impersonators and request.browser_state.sessions:
            accounts = request_services.services.sessions.list_by_secrets(request.browser_state.sessions.values())
            if any(account.session.is_impersonated for account in accounts):
                raise ImpersonationDenied(IMPERSONATION_DENIAL)
        may_lag = self._may_lag and not self._has_proof(request)
        answer = self._handle_on_standby(request, request_services) if may_lag else None
        if answer is None:
            request_services.context = request_services.create_context()
            try:
                answer = self.endpoint.handle(request, request_services.context)
            except OAuthError as error:
                request_services.context.activity.refuse(error)
                raise
            if request_services.context.response_headers:
                answer = replace(answer, headers={**answer.headers, **request_services.context.response_headers})
        return answer

    def _has_proof(self, request: ProtocolRequest) -> bool:
        """True if the sender proves a key: that may write."""
        return any(item.is_used_in(request) for item in self._identity.protocol_registry.sender_constraints.values())

    def response_headers(
        self, answer: ProtocolResponse, origin: str | None, opened: RequestServices, browser: Callable[[], BrowserState]
    ) -> Headers:
        """All headers of the response; ``origin`` is that of a script."""
        headers = response_headers(answer, self._identity, browser)
        if origin is not None and self.endpoint.allows_cors:
            headers += cors_headers(origin, opened.services)
        return headers

    def _handle_on_standby(self, request: ProtocolRequest, opened: RequestServices) -> ProtocolResponse | None:
        """The response from a standby that may lag behind; None if the primary must be asked. Refusals and failures do
        not count: recent rows may not be replicated yet."""
        if opened.begin_standby_read():
            try:
                answer = self.endpoint.handle(request, opened.create_context())
            except Exception as problem:
                log.debug("retried: %s", type(problem).__name__)
            else:
                if not answer.is_negative:
                    instrumentation.record_outcome(
                        instrumentation.Measurement.LAGGING_ENDPOINT, self.endpoint.name, "standby"
                    )
                    return answer
            opened.end_standby_read()
        instrumentation.record_outcome(instrumentation.Measurement.LAGGING_ENDPOINT, self.endpoint.name, "primary")
        return None


def response_headers(
    answer: ProtocolResponse, identity: "IdentityApplication", browser: Callable[[], BrowserState]
) -> Headers:
    """The headers of a response to any client."""
    headers = [("X-Content-Type-Options", "nosniff")]
    if identity.has_hsts:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    # A 304 has no body, and may only state the length that a 200 would have (RFC 9110 §8.6).
    if answer.status != _NOT_MODIFIED:
        headers.append(("Content-Length", str(len(answer.body))))
    if answer.body:
        headers.append(("Content-Type", answer.content_type))
    headers.extend(answer.headers.items())
    if answer.cookies:
        headers.extend(cookie_headers(identity.settings, browser(), answer.cookies))
    return headers
