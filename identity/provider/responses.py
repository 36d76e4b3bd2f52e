"""From messages and errors to answers, never cached: JSON, and redirects."""

from collections.abc import Mapping

from identity.provider.errors import OAuthError
from identity.provider.protocol_request import NO_STORE, Cookie, ProtocolResponse


def json_response(text: str, *, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> ProtocolResponse:
    """A response with JSON text."""
    return ProtocolResponse(status, text.encode("utf-8"), "application/json", headers)


def error_response(error: OAuthError) -> ProtocolResponse:
    """The response for an error (RFC 6749 §5.2): error, error_description, and the error's own headers."""
    from identity.provider.pyoidc_messages import ErrorResponse

    message = ErrorResponse(error=error.error, error_description=error.description)
    return json_response(message.to_json(), status=error.status, headers={**NO_STORE, **error.headers()})


def redirect_response(location: str, *cookies: Cookie) -> ProtocolResponse:
    """303 to a whole address: behind a proxy the request does not know its own."""
    return ProtocolResponse(303, headers={**NO_STORE, "Location": location}, cookies=cookies)
