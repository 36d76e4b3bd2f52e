"""The userinfo endpoint (service description §4.5, OpenID Connect Core §5.3)."""

from typing import Any

from identity.domain.tokens import PresentedAccessToken
from identity.provider.bearer_token import authenticate_token
from identity.provider.claims import token_claims
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.errors import InsufficientScope
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.provider.scope import Scope


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Claims about the token's user, by granted scopes; ``sub`` always. Raises MissingToken, InvalidToken,
    InsufficientScope, InvalidBearerRequest."""
    issued = authenticate_token(request, context)
    from identity.provider.pyoidc_messages import OpenIDSchema

    return ProtocolResponse.from_json(OpenIDSchema(**userinfo_claims(issued, context)).to_json())


def userinfo_claims(issued: PresentedAccessToken, context: Context) -> dict[str, Any]:
    """Claims for the bearer of a live token. Raises InsufficientScope."""
    if Scope.OPENID not in issued.token.scope or issued.subject is None:
        raise InsufficientScope("the access token lacks the scope openid")
    return {"sub": issued.token.subject, **token_claims(issued, context, requested=issued.claims)}


ENDPOINT = Endpoint(
    name="userinfo",
    path="/oauth/v2/userinfo",
    host=EndpointHost.BASE,
    methods=("GET", "POST"),
    discovery_member="userinfo_endpoint",
    writes=False,
    allows_cors=True,
    allows_stale_reads=True,
    token_claims=userinfo_claims,
    handle=handle,
)
