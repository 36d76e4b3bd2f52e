"""From messages and errors to answers: JSON, never cached."""

from collections.abc import Mapping

from identity.provider.errors import OAuthError
from identity.provider.request import NO_STORE, ProtocolResponse


def json_answer(text: str, *, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> ProtocolResponse:
    """An answer from JSON text."""
    return ProtocolResponse(status, text.encode("utf-8"), "application/json", headers)


def refusal(error: OAuthError) -> ProtocolResponse:
    """The answer for an error (RFC 6749 §5.2): error, error_description, and the error's own headers."""
    from identity.provider.messages import ErrorResponse

    message = ErrorResponse(error=error.error, error_description=error.description)
    return json_answer(message.to_json(), status=error.status, headers={**NO_STORE, **error.headers()})
