"""The userinfo endpoint (service description §4.5, OpenID Connect Core §5.3)."""

from typing import Any

from identity.domain.tokens import PresentedAccessToken
from identity.provider.bearer_token import read_bearer_token
from identity.provider.claim_reasons import ClaimsCarrier
from identity.provider.claims import requested_claims, scope_claims
from identity.provider.context import Context
from identity.provider.endpoint import ClaimsPreview, Endpoint, EndpointHost
from identity.provider.errors import InsufficientScope, InvalidToken
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.provider.responses import json_response
from identity.provider.role_claims import response_role_claims
from identity.provider.scope import Scope, scopes_from_token


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Claims about the token's user, by granted scopes; ``sub`` always. Raises MissingToken, InvalidToken,
    InsufficientScope, InvalidBearerRequest."""
    issued = context.services.tokens.find_live_access_token(read_bearer_token(request))
    if issued is None:
        raise InvalidToken("the access token is unknown, expired or revoked")
    from identity.provider.pyoidc_messages import OpenIDSchema

    return json_response(OpenIDSchema(**userinfo_claims(issued, context)).to_json())


def userinfo_claims(issued: PresentedAccessToken, context: Context) -> dict[str, Any]:
    """Claims for the bearer of a live token. Raises InsufficientScope."""
    if Scope.OPENID not in issued.token.scope or issued.subject is None:
        raise InsufficientScope("the access token lacks the scope openid")
    claims = scope_claims(issued.subject.user, issued.token.scope, context)
    claims |= requested_claims(issued.subject.user, issued.claims, context)
    claims |= response_role_claims(issued.subject, issued.client, scopes_from_token(issued.token), context)
    return {"sub": issued.token.subject, **claims}


ENDPOINT = Endpoint(
    name="userinfo",
    path="/oauth/v2/userinfo",
    host=EndpointHost.BASE,
    methods=("GET", "POST"),
    discovery_member="userinfo_endpoint",
    writes=False,
    allows_cors=True,
    allows_stale_reads=True,
    claims_preview=ClaimsPreview(ClaimsCarrier.USERINFO, userinfo_claims),
    handle=handle,
)
