"""OAuthError and one class per error code."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from identity.domain.applications import Application

#: The maximum length of a displayed URI.
_LONGEST_URI = 200
_CREDENTIALS = re.compile(r"(?<=//)[^/]*@")


class OAuthError(Exception):
    """A protocol error (RFC 6749 §5.2).

    ``description`` is for the client, ``audit_reason`` for the audit trail, without any request data.
    ``commits_transaction`` commits the transaction in spite of the error."""

    status = 400
    error = "invalid_request"
    headers: Mapping[str, str] = MappingProxyType({})
    commits_transaction = False

    def __init__(self, description: str, *, reason: str | None = None, keep_changes: bool = False) -> None:
        super().__init__(description)
        self.description = description
        self.audit_reason = reason or description
        self.commits_transaction = keep_changes


class InvalidRequest(OAuthError):
    """A parameter is missing, repeated or malformed."""


class RequestTooLarge(InvalidRequest):
    """The body exceeds the endpoint's size limit."""

    status = 413


class MethodNotAllowed(InvalidRequest):
    """The endpoint does not allow this method; the header names those that it allows (RFC 9110 §15.5.6)."""

    status = 405

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(f"use {' or '.join(methods)}")
        self.headers = {"Allow": ", ".join(methods)}


class InvalidClient(OAuthError):
    """Client authentication failed (RFC 6749 §5.2). ``kind`` is the kind of client, for the audit trail."""

    status = 401
    error = "invalid_client"
    headers = MappingProxyType({"WWW-Authenticate": 'Basic realm="identity", charset="UTF-8"'})

    def __init__(self, description: str, *, reason: str | None = None, kind: str = "application") -> None:
        super().__init__(description, reason=reason)
        self.kind = kind


class InvalidGrant(OAuthError):
    """The presented assertion, code or token is not valid."""

    error = "invalid_grant"


class InvalidScope(OAuthError):
    """The requested scope cannot be granted."""

    error = "invalid_scope"


class InvalidTarget(OAuthError):
    """The requested resource or audience is not allowed for the token (RFC 8707 §2, RFC 8693 §2.2.2)."""

    error = "invalid_target"


class UnauthorizedClient(OAuthError):
    """The client may not use this grant type."""

    error = "unauthorized_client"


class UnsupportedResponseType(OAuthError):
    """No plugin offers this response type."""

    error = "unsupported_response_type"


class AccessDenied(OAuthError):
    """The user or a policy refused the request."""

    error = "access_denied"


class LoginRequired(OAuthError):
    """The user is not signed in, and no page may be shown (OpenID Connect Core §3.1.2.6)."""

    error = "login_required"


class InteractionRequired(OAuthError):
    """The user has to interact with a page, and none may be shown."""

    error = "interaction_required"


class AccountSelectionRequired(OAuthError):
    """Several accounts are signed in, and no page may be shown to choose one."""

    error = "account_selection_required"


class ConsentRequired(OAuthError):
    """The user has to consent, and no page may be shown."""

    error = "consent_required"


class UnmetAuthenticationRequirements(OAuthError):
    """The authentication that the client requires cannot be reached (OpenID specification of this error, §2)."""

    error = "unmet_authentication_requirements"


class RequestNotSupported(OAuthError):
    """Request objects are not supported (OpenID Connect Core §6)."""

    error = "request_not_supported"


class RequestUriNotSupported(OAuthError):
    """Request objects by reference are not supported."""

    error = "request_uri_not_supported"


class InvalidRequestUri(OAuthError):
    """The reference to an authorization request is unknown, was used, or its content is invalid."""

    error = "invalid_request_uri"


class InvalidRequestObject(OAuthError):
    """The request object is invalid."""

    error = "invalid_request_object"


class RegistrationNotSupported(OAuthError):
    """Registration in a request is not supported."""

    error = "registration_not_supported"


class UnredirectableError(OAuthError):
    """An authorization or end-session request whose error cannot be sent to the client: it is shown in the browser.

    Raised itself if the request cannot be read, so that its origin is unknown."""


class OversizedRequest(UnredirectableError):
    """The request exceeds the endpoint's size limit."""

    status = 413


class UnknownApplication(UnredirectableError):
    """An unknown or deactivated client: the error does not disclose which."""

    error = "unauthorized_client"


class UnavailableClientMetadata(UnredirectableError):
    """A client known by its URL whose metadata cannot be fetched or is refused. The description says what to fix."""

    error = "invalid_client_metadata"


class UntrustedRedirect(UnredirectableError):
    """The redirect URI is missing or not registered: nothing is sent there.

    ``application`` is the requesting one, if known. ``sent`` is the URI in a form safe to display, ``displayed_uri``
    the same if the application is in development, and otherwise empty."""

    def __init__(self, description: str, *, application: Application | None = None, uri: str = "") -> None:
        super().__init__(description)
        self.application = application
        self.sent = _redact_uri(uri)
        self.displayed_uri = self.sent if application is not None and application.development else ""


def _redact_uri(uri: str) -> str:
    """A received URI without query, fragment and credentials, which can be secrets, and without unprintable
    characters; truncated."""
    bare = _CREDENTIALS.sub("", re.split(r"[?#]", uri, maxsplit=1)[0])
    printable = "".join(item for item in bare[: 4 * _LONGEST_URI] if item.isprintable())
    return printable if len(printable) <= _LONGEST_URI else printable[:_LONGEST_URI] + "…"


class UnsupportedGrantType(OAuthError):
    """No plugin offers this grant type."""

    error = "unsupported_grant_type"


class BearerError(OAuthError):
    """A protected resource refuses a bearer token (RFC 6750 §3)."""

    status = 401
    error = "invalid_token"

    def __init__(self, description: str) -> None:
        super().__init__(description)
        challenge = f'Bearer realm="identity", error="{self.error}", error_description="{description}"'
        self.headers = {"WWW-Authenticate": challenge}


class InvalidToken(BearerError):
    """The token is unknown, expired or revoked."""


class InsufficientScope(BearerError):
    """The token lacks a scope that the resource needs."""

    status = 403
    error = "insufficient_scope"


class InvalidBearerRequest(BearerError):
    """The token was sent in an unsupported way (RFC 6750 §3.1)."""

    status = 400
    error = "invalid_request"


class MissingToken(BearerError):
    """No token was sent: the challenge then names no error (RFC 6750 §3.1)."""

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.headers = {"WWW-Authenticate": 'Bearer realm="identity"'}


class ServerError(OAuthError):
    """An unexpected error of the service."""

    status = 500
    error = "server_error"


class TemporarilyUnavailable(OAuthError):
    """The service cannot answer now; the same request may succeed later."""

    status = 503
    error = "temporarily_unavailable"
    headers = MappingProxyType({"Retry-After": "5"})
