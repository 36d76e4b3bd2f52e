"""The bearer token of a request (RFC 6750)."""

import re

from identity_client.errors import InvalidToken, MissingToken

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


def bearer_token(authorization: str | None) -> str:
    """The token in an ``Authorization`` header. Raises MissingToken, InvalidToken."""
    if authorization is None or not authorization.lower().startswith("bearer"):
        raise MissingToken("the request has no bearer token")
    match = _BEARER.fullmatch(authorization.strip())
    if match is None:
        raise InvalidToken("malformed")
    return match[1]
