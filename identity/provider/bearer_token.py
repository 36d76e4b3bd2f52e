"""Reads the bearer token of a request (RFC 6750 §2)."""

import re

from identity.provider.errors import InvalidBearerRequest, MissingToken
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest

_BEARER = re.compile(r"bearer +(?P<token>\S+) *\Z", re.IGNORECASE)


def read_bearer_token(request: ProtocolRequest) -> str:
    """The token from the Authorization header or, for POST, from the form body. Raises MissingToken if there is none;
    InvalidBearerRequest if it is in the query string or in two places; InvalidRequest if the body cannot be read."""
    if request.query and "access_token" in Parameters.parse(request.query):
        raise InvalidBearerRequest("send the access token in the header, never in the address")
    in_header = parse_bearer_header(request.authorization)
    in_body = None
    if request.method == "POST" and request.body and request.content_type == "application/x-www-form-urlencoded":
        in_body = Parameters.parse(request.body).get_value("access_token")
    if in_header is not None and in_body is not None:
        raise InvalidBearerRequest("send the access token once, in the header or in the body")
    token = in_header or in_body
    if token is None:
        raise MissingToken("send an access token as Authorization: Bearer")
    return token


def parse_bearer_header(authorization: str | None) -> str | None:
    """The token of a Bearer header; None for no header, another scheme, or a header without a token."""
    match = _BEARER.match(authorization or "")
    return match["token"] if match else None
