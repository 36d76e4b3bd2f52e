"""OAuthError and one class per error code."""

from collections.abc import Mapping


class OAuthError(Exception):
    """A protocol error (RFC 6749 §5.2).

    Three readers: ``description`` is fixed text for the client, ``reason`` is for the audit trail and the log, the
    class is for us. ``keep_changes`` commits what the transaction holds in spite of the refusal.
    """

    status = 400
    error = "invalid_request"
    keep_changes = False

    def __init__(self, description: str, *, reason: str | None = None, keep_changes: bool = False) -> None:
        super().__init__(description)
        self.description = description
        self.reason = reason or description
        self.keep_changes = keep_changes

    def headers(self) -> Mapping[str, str]:
        """Headers that the answer needs beside the usual ones."""
        return {}


class InvalidRequest(OAuthError):
    """A parameter is missing, repeated or malformed."""


class RequestTooLarge(InvalidRequest):
    """The body is larger than the endpoint reads."""

    status = 413


class MethodNotAllowed(InvalidRequest):
    """The endpoint does not answer this method."""

    status = 405

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(f"use {' or '.join(methods)}")
        self.methods = methods

    def headers(self) -> Mapping[str, str]:
        """Names the methods that are answered (RFC 9110 §15.5.6)."""
        return {"Allow": ", ".join(self.methods)}


class InvalidClient(OAuthError):
    """Client authentication failed (RFC 6749 §5.2)."""

    status = 401
    error = "invalid_client"

    def headers(self) -> Mapping[str, str]:
        """Names the scheme to authenticate with."""
        return {"WWW-Authenticate": 'Basic realm="identity", charset="UTF-8"'}


class InvalidGrant(OAuthError):
    """The assertion, code or token presented is not valid."""

    error = "invalid_grant"


class InvalidScope(OAuthError):
    """The requested scope cannot be granted."""

    error = "invalid_scope"


class UnauthorizedClient(OAuthError):
    """The client may not use this grant type."""

    error = "unauthorized_client"


class UnsupportedGrantType(OAuthError):
    """No plugin offers this grant type."""

    error = "unsupported_grant_type"


class BearerError(OAuthError):
    """A protected resource refuses a bearer token (RFC 6750 §3)."""

    status = 401
    error = "invalid_token"

    def headers(self) -> Mapping[str, str]:
        """The challenge, with the error."""
        return {
            "WWW-Authenticate": f'Bearer realm="identity", error="{self.error}", error_description="{self.description}"'
        }


class InvalidToken(BearerError):
    """The token is unknown, expired or revoked."""


class InsufficientScope(BearerError):
    """The token lacks a scope that the resource needs."""

    status = 403
    error = "insufficient_scope"


class InvalidBearerRequest(BearerError):
    """The token was sent in a way that is not accepted (RFC 6750 §3.1)."""

    status = 400
    error = "invalid_request"


class NoToken(BearerError):
    """No token was sent: the challenge then names no error (RFC 6750 §3.1)."""

    def headers(self) -> Mapping[str, str]:
        """The bare challenge."""
        return {"WWW-Authenticate": 'Bearer realm="identity"'}


class TemporarilyUnavailable(OAuthError):
    """The service cannot answer now; the same request may succeed later."""

    status = 503
    error = "temporarily_unavailable"

    def headers(self) -> Mapping[str, str]:
        """Says when to come back."""
        return {"Retry-After": "5"}
