"""The access token of a request to a protected resource (RFC 6750 §2)."""

import re
from collections.abc import Container

from identity.domain.tokens import PresentedAccessToken
from identity.provider.context import Context
from identity.provider.errors import InvalidBearerRequest, InvalidToken, MissingToken
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest
from identity.provider.sender_constraint import check_sender, prove_sender

_AUTHORIZATION = re.compile(r"(?P<scheme>[A-Za-z]+) +(?P<token>\S+) *\Z")


def authenticate_token(request: ProtocolRequest, context: Context) -> PresentedAccessToken:
    """The live access token of a request, whose sender has its key if it is bound to one. Raises MissingToken,
    InvalidToken, InvalidBearerRequest, the error of the proof."""
    scheme, text = read_access_token(request, context.protocol.token_schemes)
    proved = prove_sender(request, scheme, text, context)
    issued = context.services.tokens.find_live_access_token(text)
    if issued is None:
        raise InvalidToken("the access token is unknown, expired or revoked")
    check_sender(issued.token, proved, request, context)
    return issued


def read_access_token(request: ProtocolRequest, schemes: Container[str]) -> tuple[str, str]:
    """The scheme in lower case, and the token, from the Authorization header or, for POST, from the form body. Raises
    MissingToken if there is none; InvalidBearerRequest if it is in the query string or in two places; InvalidRequest if
    the body cannot be read."""
    if request.query and "access_token" in Parameters.parse(request.query):
        raise InvalidBearerRequest("send the access token in the header, never in the address")
    in_header = parse_token_header(request.authorization, schemes)
    in_body = None
    if request.method == "POST" and request.body and request.content_type == "application/x-www-form-urlencoded":
        in_body = Parameters.parse(request.body).get_value("access_token")
    if in_header is not None and in_body is not None:
        raise InvalidBearerRequest("send the access token once, in the header or in the body")
    if in_header is not None:
        return in_header
    if in_body is None:
        raise MissingToken("send an access token as Authorization: Bearer")
    return "bearer", in_body


def parse_token_header(authorization: str | None, schemes: Container[str]) -> tuple[str, str] | None:
    """The scheme in lower case and the token of an Authorization header; None for no header, a scheme that is not among
    ``schemes``, or a header without a token."""
    match = _AUTHORIZATION.match(authorization or "")
    if match is None:
        return None
    scheme = match["scheme"].lower()
    return (scheme, match["token"]) if scheme in schemes else None
