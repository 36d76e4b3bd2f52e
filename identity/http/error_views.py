"""Exception views: JSON for the protocol and the APIs. ``identity.pages`` adds pages for browsers before them."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPException, HTTPForbidden, HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response

from identity.crypto.sealing import UnsealingError
from identity.crypto.signature_keys import InvalidKey
from identity.domain.errors import Conflict, Denied, DomainError, Invalid, NotFound
from identity.http.csrf import CrossSiteRequest, InvalidFormToken
from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX, build_response
from identity.http.route_predicates import accepted_hosts_by_address, allowed_methods
from identity.password_hashing import ServerBusy
from identity.provider.bearer_token import parse_token_header
from identity.provider.context import Context
from identity.provider.errors import OAuthError, ServerError, TemporarilyUnavailable
from identity.provider.protocol_request import ProtocolResponse
from identity.provider.redirect_target import RedirectTarget
from identity.storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from identity.application import IdentityApplication

log = logging.getLogger(__name__)

_BUSY_MESSAGE = "The service cannot answer just now. Try again in a few seconds."
_ERROR_CODES = {400: "invalid", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported"}


class MalformedRequest(Exception):
    """An API request that cannot be parsed; the message says why."""

    status = 400
    error = "invalid"


class BodyTooLarge(MalformedRequest):
    """The body exceeds the size limit."""

    status = 413
    error = "too_large"


class UnsupportedMediaType(MalformedRequest):
    """The body has an unsupported media type."""

    status = 415
    error = "unsupported"


class PreconditionFailed(MalformedRequest):
    """The client has not seen the current version (RFC 9110 §13.1.1)."""

    status = 412
    error = "precondition_failed"


#: Builds a response from request, status, error code, message and the messages of fields.
ErrorFormat = Callable[[Request, int, str, str, Mapping[str, str]], Response]


def api_error_response(
    request: Request, status: int, error: str, message: str, *, fields: dict[str, str] | None = None, **headers: str
) -> Response:
    """A response in the error format of the route, or else that of the APIs: error, message, fields, request_id."""
    route = getattr(request, "matched_route", None)
    build = None if route is None else request.registry.error_formats.get(route.name)
    response = (build or _build_error_response)(request, status, error, str(message), fields or {})
    response.cache_control = "no-store"
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def _build_error_response(
    request: Request, status: int, error: str, message: str, fields: Mapping[str, str]
) -> Response:
    body: dict[str, Any] = {"error": error, "message": message, "request_id": request.request_id}
    if fields:
        body["fields"] = fields
    return Response(json.dumps(body).encode(), status=status, content_type="application/json", charset=None)


def add_error_format(config: Configurator, route_name: str, build: ErrorFormat) -> None:
    """Directive: errors of this route, of any kind, have a format of their own, which another specification sets."""
    config.registry.error_formats[route_name] = build


def add_resource_metadata(config: Configurator, path_prefix: str, url: str) -> None:
    """Directive: challenges below this path name the address of the resource's metadata."""
    config.registry.resource_metadata_urls[path_prefix] = url


def oauth_error_view(error: OAuthError, request: Request) -> Response:
    return build_response(request, ProtocolResponse.from_error(error))


def domain_error_view(error: DomainError, request: Request) -> Response:
    if isinstance(error, Invalid):
        return api_error_response(request, 422, "invalid", "Some fields need a change.", fields=error.fields)
    if isinstance(error, NotFound):
        return api_error_response(request, 404, "not_found", str(error))
    if isinstance(error, Conflict):
        return api_error_response(request, 409, "conflict", str(error))
    if isinstance(error, Denied):
        record_access_refusal(request, str(error))
        return api_error_response(request, 403, "forbidden", str(error))
    if isinstance(error, ServerBusy):
        return api_error_response(request, 503, "temporarily_unavailable", str(error), Retry_After=str(error.seconds))
    return unexpected_error_view(error, request)


def malformed_request_view(error: MalformedRequest, request: Request) -> Response:
    return api_error_response(request, error.status, error.error, str(error))


#: Raised for damaged stored data.
DAMAGED_DATA_ERRORS = (UnsealingError, InvalidKey)


def unavailable_view(error: Exception, request: Request) -> Response:
    """503 while the storage is unavailable or its data is damaged; the cause is not disclosed."""
    log_unavailable(error, request.request_id)
    if _is_protocol_route(request):
        problem = TemporarilyUnavailable("try again in a few seconds")
        address = pending_redirect_target(request)
        return build_response(
            request, ProtocolResponse.from_error(problem) if address is None else address.error_response(problem)
        )
    return api_error_response(request, 503, "temporarily_unavailable", _BUSY_MESSAGE, Retry_After="5")


def log_unavailable(error: Exception, request_id: str) -> None:
    """Log the cause, which the response does not disclose."""
    level = logging.ERROR if isinstance(error, DAMAGED_DATA_ERRORS) else logging.WARNING
    log.log(level, "request %s: storage unavailable: %s", request_id, error)


def forbidden_view(error: HTTPForbidden, request: Request) -> Response:
    """401 without authentication, else 403 with the missing permission; the refusal is audited."""
    reason = denial_reason(error)
    if request.identity is None:
        problem: OAuthError | None = request.token_error
        metadata = _resource_metadata_parameter(request)
        if problem is not None:
            headers: Any = {
                name.replace("-", "_"): value + metadata if name == "WWW-Authenticate" else value
                for name, value in problem.headers.items()
            }
            return api_error_response(request, 401, "unauthenticated", problem.description, **headers)
        sent = parse_token_header(request.environ.get("HTTP_AUTHORIZATION"), {"bearer"}) is not None
        challenge = 'Bearer realm="identity", error="invalid_token"' if sent else 'Bearer realm="identity"'
        message = "Send a live access token whose audience holds the service's own project as Authorization: Bearer."
        return api_error_response(request, 401, "unauthenticated", message, WWW_Authenticate=challenge + metadata)
    record_access_refusal(request, reason)
    return api_error_response(request, 403, "forbidden", reason)


def _resource_metadata_parameter(request: Request) -> str:
    """The parameter of a challenge that names the resource's metadata (RFC 9728 §5.1); empty if it has none."""
    path, found = request.environ.get("PATH_INFO", ""), request.registry.resource_metadata_urls.items()
    url = next((url for prefix, url in found if path.startswith(f"{prefix}/")), None)
    return "" if url is None else f', resource_metadata="{url}"'


def denial_reason(error: HTTPForbidden) -> str:
    """The reason as a sentence: a plugin's text is taken literally, percent signs included."""
    message = getattr(getattr(error, "result", None), "s", "") or error.detail
    return message if isinstance(message, str) and message else "Forbidden."


def record_access_refusal(request: Request, reason: str) -> None:
    """Record that the caller was refused what the request asked for."""
    principal = request.identity
    if principal is not None:
        request.services.audit.record_refusal(
            "access.refused",
            kind="route",
            id=getattr(request.matched_route, "name", None),
            organization_id=principal.subject.organization.id,
            reason=str(reason),
        )


def not_found_view(error: HTTPNotFound, request: Request) -> Response:
    """404; 405 if the path has other methods; 421 with the setting to check, if the host is not ours."""
    identity: IdentityApplication = request.registry.application
    host = request.environ.get("HTTP_HOST", "").lower()
    hosts = accepted_hosts_by_address(identity.settings)
    if not any(host in names for names in hosts.values()):
        return _misdirected_response(request)
    other_host = request.registry.endpoint_hosts.get(request.environ.get("PATH_INFO", ""))
    if other_host is not None and host not in hosts[other_host]:
        where = getattr(identity.settings, f"{other_host}_url")
        return api_error_response(
            request, 404, "not_found", f"This address lives at {where} (identity.{other_host}_url)."
        )
    methods = allowed_methods(request)
    # A view may have raised the 404 itself.
    if methods and request.method not in methods:
        allowed = ", ".join(methods)
        return api_error_response(request, 405, "method_not_allowed", f"This address answers {allowed}.", Allow=allowed)
    return api_error_response(request, 404, "not_found", "There is nothing at this address.")


def _misdirected_response(request: Request) -> Response:
    settings = request.registry.application.settings
    text = (
        "This service is not available at this host name.\n\n"
        "It is set up for these addresses:\n"
        f"  {settings.issuer_url}  (identity.issuer_url)\n"
        f"  {settings.base_url}  (identity.base_url)\n"
        f"  {settings.login_url}  (identity.login_url)\n\n"
        "If you run this service: open one of these addresses, or change the settings in the ini file.\n"
        "Behind a proxy, have it pass the Host header on unchanged.\n\n"
        f"Request id: {request.request_id}\n"
    )
    response = Response(text.encode(), status=421, content_type="text/plain", charset="utf-8")
    response.cache_control = "no-store"
    return response


def http_exception_view(error: HTTPException, request: Request) -> Response:
    """Pyramid's own errors, in the APIs' format."""
    code = _ERROR_CODES.get(error.status_code, "invalid" if error.status_code < 500 else "server_error")
    return api_error_response(request, error.status_code, code, error.explanation or error.title)


def cross_site_view(error: CrossSiteRequest, request: Request) -> Response:
    return api_error_response(request, 403, "forbidden", "Another site sent this form.")


def invalid_form_token_view(error: InvalidFormToken, request: Request) -> Response:
    return api_error_response(request, 422, "stale", "This form is too old. Open it again.")


def undecodable_url_view(error: UnicodeDecodeError, request: Request) -> Response:
    """404: a path that is not UTF-8 names nothing."""
    return api_error_response(request, 404, "not_found", "There is nothing at this address.")


def unexpected_error_view(error: Exception, request: Request) -> Response:
    """500 with only a request id; the log has the details."""
    log.error("request %s failed", request.request_id, exc_info=error)
    address = pending_redirect_target(request)
    if address is not None:
        return build_response(
            request, address.error_response(ServerError(f"something went wrong on our side ({request.request_id})"))
        )
    if _is_protocol_route(request):
        body = {"error": "server_error", "request_id": request.request_id}
        response = Response(json.dumps(body).encode(), status=500, content_type="application/json", charset=None)
        response.cache_control = "no-store"
        return response
    return api_error_response(request, 500, "server_error", "Something went wrong on our side.")


def pending_redirect_target(request: Request) -> RedirectTarget | None:
    """The application that waits for the response of a failed request; None without one."""
    context: Context | None = request.request_services.context
    return context.redirect_targets[-1] if context is not None and context.redirect_targets else None


def _is_protocol_route(request: Request) -> bool:
    route = getattr(request, "matched_route", None)
    return route is not None and route.name.startswith(PROTOCOL_ROUTE_PREFIX)


def includeme(config: Configurator) -> None:
    """One view per family of errors."""
    config.registry.error_formats = {}
    config.registry.resource_metadata_urls = {}
    config.add_directive("add_error_format", add_error_format)
    config.add_directive("add_resource_metadata", add_resource_metadata)
    views = {
        OAuthError: oauth_error_view,
        DomainError: domain_error_view,
        MalformedRequest: malformed_request_view,
        **dict.fromkeys((StorageUnavailable, *DAMAGED_DATA_ERRORS), unavailable_view),
        HTTPException: http_exception_view,
        CrossSiteRequest: cross_site_view,
        InvalidFormToken: invalid_form_token_view,
        UnicodeDecodeError: undecodable_url_view,
        Exception: unexpected_error_view,
    }
    for kind, view in views.items():
        config.add_exception_view(view, context=kind)
    config.add_forbidden_view(forbidden_view)
    config.add_notfound_view(not_found_view)
