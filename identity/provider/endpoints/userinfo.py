"""The userinfo endpoint (service description §4.5, OpenID Connect Core §5.3)."""

from typing import Any

from identity.domain.tokens import IssuedToken
from identity.provider.answers import json_answer
from identity.provider.bearer import bearer_token
from identity.provider.claims import claims_about, single_claims
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.errors import InsufficientScope, InvalidToken
from identity.provider.request import ProtocolRequest, ProtocolResponse
from identity.provider.roles import told_roles
from identity.provider.scope import OPENID, granted_by


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Claims about the user whose token is shown, by granted scopes; ``sub`` always.

    Raises NoToken, InvalidToken, InsufficientScope, InvalidBearerRequest.
    """
    issued = context.services.tokens.find_live(bearer_token(request))
    if issued is None:
        raise InvalidToken("the access token is unknown, expired or revoked")
    from identity.provider.messages import OpenIDSchema

    return json_answer(OpenIDSchema(**members_of(issued, context)).to_json())


def members_of(issued: IssuedToken, context: Context) -> dict[str, Any]:
    """What is said to the bearer of a live token. Raises InsufficientScope."""
    if OPENID not in issued.token.scope or issued.subject is None:
        raise InsufficientScope("the access token lacks the scope openid")
    claims = claims_about(issued.subject.user, issued.token.scope, context)
    claims |= single_claims(issued.subject.user, issued.claims, context)
    claims |= told_roles(issued.subject, issued.client, granted_by(issued.token), context)
    return {"sub": issued.token.subject, **claims}


ENDPOINT = Endpoint(
    name="userinfo",
    path="/oauth/v2/userinfo",
    host=Host.BASE,
    methods=("GET", "POST"),
    advertised_as="userinfo_endpoint",
    writes=False,
    cross_origin=True,
    may_lag=True,
    handle=handle,
)
