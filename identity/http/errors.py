"""Exception views: JSON for the protocol and the APIs. Pages for people come before them, from ``identity.pages``."""

import json
import logging
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPException, HTTPForbidden, HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response

from identity.crypto.keys import UnreadableKey
from identity.crypto.sealing import Unsealable
from identity.domain.errors import Conflict, Denied, DomainError, Invalid, NotFound
from identity.hashing import Busy
from identity.http.csrf import CrossSite, StaleForm
from identity.http.endpoints import PROTOCOL_ROUTE, respond
from identity.http.routes import answered_methods, known_hosts
from identity.provider.answers import refusal
from identity.provider.bearer import from_header
from identity.provider.context import Context
from identity.provider.errors import OAuthError, ServerError, TemporarilyUnavailable
from identity.provider.return_address import ReturnAddress
from identity.storage.errors import Unavailable

if TYPE_CHECKING:
    from identity.process import Identity

log = logging.getLogger(__name__)

_BUSY = "The service cannot answer just now. Try again in a few seconds."
_STATUS_WORDS = {400: "invalid", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported"}


class Malformed(Exception):
    """A request to an API that cannot be read at all; the sentence says why."""

    status = 400
    error = "invalid"


class TooLarge(Malformed):
    """The body is larger than is read."""

    status = 413
    error = "too_large"


class Unsupported(Malformed):
    """The body is of a type that is not read."""

    status = 415
    error = "unsupported"


class PreconditionFailed(Malformed):
    """What is to be changed is not what the client has seen (RFC 9110 §13.1.1)."""

    status = 412
    error = "precondition_failed"


def api_error(
    request: Request, status: int, error: str, message: str, *, fields: dict[str, str] | None = None, **headers: str
) -> Response:
    """An answer in the error format of the APIs: error, message, fields, request_id."""
    body: dict[str, Any] = {"error": error, "message": message, "request_id": request.request_id}
    if fields:
        body["fields"] = fields
    response = Response(json.dumps(body).encode(), status=status, content_type="application/json", charset=None)
    response.cache_control = "no-store"
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def oauth_error(error: OAuthError, request: Request) -> Response:
    """The protocol's answer for its own errors."""
    return respond(request, refusal(error))


def domain_error(error: DomainError, request: Request) -> Response:
    """A use case's refusal, in the APIs' format."""
    if isinstance(error, Invalid):
        return api_error(request, 422, "invalid", "Some fields need a change.", fields=error.fields)
    if isinstance(error, NotFound):
        return api_error(request, 404, "not_found", str(error))
    if isinstance(error, Conflict):
        return api_error(request, 409, "conflict", str(error))
    if isinstance(error, Denied):
        _audit_refusal(request, str(error))
        return api_error(request, 403, "forbidden", str(error))
    if isinstance(error, Busy):
        return api_error(request, 503, "temporarily_unavailable", str(error), Retry_After=str(error.seconds))
    return unexpected(error, request)


def malformed(error: Malformed, request: Request) -> Response:
    """A request to an API that was not read."""
    return api_error(request, error.status, error.error, str(error))


#: What raises them is stored and damaged.
DAMAGED = (Unsealable, UnreadableKey)


def unavailable(error: Exception, request: Request) -> Response:
    """503 while the storage is away, or what it holds is damaged; nothing of the cause is told."""
    log_unavailable(error, request.request_id)
    if _is_protocol(request):
        problem = TemporarilyUnavailable("try again in a few seconds")
        address = return_address(request)
        return respond(request, refusal(problem) if address is None else address.error(problem))
    return api_error(request, 503, "temporarily_unavailable", _BUSY, Retry_After="5")


def log_unavailable(error: Exception, request_id: str) -> None:
    """Say why, in the log alone."""
    level = logging.ERROR if isinstance(error, DAMAGED) else logging.WARNING
    log.log(level, "request %s: storage unavailable: %s", request_id, error)


def forbidden(error: HTTPForbidden, request: Request) -> Response:
    """401 if nobody is authenticated, else 403 with what is missing; the refusal is audited."""
    reason = reason_of(error)
    if request.identity is None:
        sent = from_header(request.environ.get("HTTP_AUTHORIZATION")) is not None
        challenge = 'Bearer realm="identity", error="invalid_token"' if sent else 'Bearer realm="identity"'
        message = "Send a live access token whose audience holds the service's own project as Authorization: Bearer."
        return api_error(request, 401, "unauthenticated", message, WWW_Authenticate=challenge)
    _audit_refusal(request, reason)
    return api_error(request, 403, "forbidden", reason)


def reason_of(error: HTTPForbidden) -> str:
    """Why one may not, as a sentence: whatever a plugin wrote, percent signs included."""
    said = getattr(getattr(error, "result", None), "s", "") or error.detail
    return said if isinstance(said, str) and said else "Forbidden."


def _audit_refusal(request: Request, reason: str) -> None:
    principal = request.identity
    if principal is not None:
        request.services.audit.refuse(
            "access.refused",
            kind="route",
            id=getattr(request.matched_route, "name", None),
            organization_id=principal.subject.organization.id,
            reason=str(reason),
        )


def not_found(error: HTTPNotFound, request: Request) -> Response:
    """404; 405 if the address answers other methods; 421 with the setting to look at, if the host is none of ours."""
    identity: Identity = request.registry.identity
    host = request.environ.get("HTTP_HOST", "").lower()
    hosts = known_hosts(identity.settings)
    if not any(host in names for names in hosts.values()):
        return _wrong_host(request)
    elsewhere = identity.host_of_path.get(request.environ.get("PATH_INFO", ""))
    if elsewhere is not None and host not in hosts[elsewhere]:
        where = getattr(identity.settings, f"{elsewhere}_url")
        return api_error(request, 404, "not_found", f"This address lives at {where} (identity.{elsewhere}_url).")
    methods = answered_methods(request)
    # A view of ours may have said that there is nothing here.
    if methods and request.method not in methods:
        allowed = ", ".join(methods)
        return api_error(request, 405, "method_not_allowed", f"This address answers {allowed}.", Allow=allowed)
    return api_error(request, 404, "not_found", "There is nothing at this address.")


def _wrong_host(request: Request) -> Response:
    settings = request.registry.identity.settings
    text = (
        "This service does not answer at this host name.\n\n"
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


def http_exception(error: HTTPException, request: Request) -> Response:
    """Pyramid's own refusals, in the APIs' format."""
    word = _STATUS_WORDS.get(error.status_code, "invalid" if error.status_code < 500 else "server_error")
    return api_error(request, error.status_code, word, error.explanation or error.title)


def cross_site(error: CrossSite, request: Request) -> Response:
    """A form that another site sent."""
    return api_error(request, 403, "forbidden", "Another site sent this form.")


def stale_form(error: StaleForm, request: Request) -> Response:
    """A form whose token does not fit."""
    return api_error(request, 422, "stale", "This form is too old. Open it again.")


def undecodable(error: UnicodeDecodeError, request: Request) -> Response:
    """An address that is not UTF-8 names nothing."""
    return api_error(request, 404, "not_found", "There is nothing at this address.")


def unexpected(error: Exception, request: Request) -> Response:
    """500 with a request id and nothing else; the log has the rest."""
    log.error("request %s failed", request.request_id, exc_info=error)
    address = return_address(request)
    if address is not None:
        return respond(request, address.error(ServerError(f"something went wrong on our side ({request.request_id})")))
    if _is_protocol(request):
        body = {"error": "server_error", "request_id": request.request_id}
        response = Response(json.dumps(body).encode(), status=500, content_type="application/json", charset=None)
        response.cache_control = "no-store"
        return response
    return api_error(request, 500, "server_error", "Something went wrong on our side.")


def return_address(request: Request) -> ReturnAddress | None:
    """Where an application waits for an answer that has now failed; None if nobody does."""
    context: Context | None = request.opened.context
    return context.waiting[-1] if context is not None and context.waiting else None


def _is_protocol(request: Request) -> bool:
    route = getattr(request, "matched_route", None)
    return route is not None and route.name.startswith(PROTOCOL_ROUTE)


def includeme(config: Configurator) -> None:
    """One view per family of errors."""
    views = {
        OAuthError: oauth_error,
        DomainError: domain_error,
        Malformed: malformed,
        **dict.fromkeys((Unavailable, *DAMAGED), unavailable),
        HTTPException: http_exception,
        CrossSite: cross_site,
        StaleForm: stale_form,
        UnicodeDecodeError: undecodable,
        Exception: unexpected,
    }
    for kind, view in views.items():
        config.add_exception_view(view, context=kind)
    config.add_forbidden_view(forbidden)
    config.add_notfound_view(not_found)
