"""The userinfo endpoint (service description §4.5, OpenID Connect Core §5.3)."""

from collections.abc import Mapping
from typing import Any

from identity.crypto.jwt import sign
from identity.domain.signature_algorithms import SignatureAlgorithm
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

    claims = userinfo_claims(issued, context)
    algorithm = None if issued.client is None else issued.client.application.userinfo_signed_response_alg
    if algorithm is not None:
        return _signed_response(claims, algorithm, issued, context)
    return ProtocolResponse.from_json(OpenIDSchema(**claims).to_json())


def _signed_response(
    claims: Mapping[str, Any], algorithm: SignatureAlgorithm, issued: PresentedAccessToken, context: Context
) -> ProtocolResponse:
    """The claims as a JWT for the client (OpenID Connect Core §5.3.2). Without exp and azp it is no ID token, neither
    for clients nor as a hint."""
    key_id, key = context.services.signing_keys.current_signing_key(algorithm)
    addressed = {**claims, "iss": context.issuer, "aud": issued.token.client_id}
    text = sign(addressed, key, key_id=key_id, typ="JWT")
    return ProtocolResponse(200, text.encode(), content_type="application/jwt")


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
