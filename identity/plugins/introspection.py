"""The introspection endpoint (service description §4.4, RFC 7662)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from identity.api.endpoints import Context, Endpoint, EndpointHost, Parameters, ProtocolRequest, ProtocolResponse
from identity.api.entities import ServiceUser, Subject
from identity.api.grants import Scope
from identity.api.plugins import hookimpl
from identity.domain.expirations import NEVER
from identity.domain.tokens import PresentedAccessToken
from identity.provider.access_token_formats import actor_claim, authentication_claims
from identity.provider.claim_reasons import ClaimsCarrier
from identity.provider.claims import scope_claims
from identity.provider.client_authentication import require_application
from identity.provider.endpoint import ClaimsPreview
from identity.provider.responses import json_response
from identity.provider.role_claims import response_role_claims
from identity.provider.scope import scopes_from_token

_INACTIVE = replace(json_response('{"active": false}'), is_negative=True)


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Respond whether an access token is live and meant for the requesting client; only ``active`` if not. Raises
    OAuthError.
    """
    Parameters.refuse_secrets(request.query)
    parameters = request.parse_form()
    client = require_application(context.provider.authenticate(request, parameters, context))
    issued = context.services.tokens.find_live_access_token(parameters.require_value("token"))
    if issued is None or not context.services.tokens.is_in_audience(issued, client):
        return _INACTIVE
    from identity.provider.pyoidc_messages import TokenIntrospectionResponse

    return json_response(TokenIntrospectionResponse(**introspection_members(issued, context)).to_json())


def introspection_members(issued: PresentedAccessToken, context: Context) -> dict[str, Any]:
    """Response members for a live token, to a client that it is meant for."""
    token = issued.token
    members: dict[str, Any] = {
        "active": True,
        "scope": " ".join(token.scope),
        "client_id": token.client_id,
        "token_type": "Bearer",
        "iss": context.issuer,
        "sub": token.subject,
        "aud": list(token.audience),
        "iat": int(token.issued_at.timestamp()),
        "jti": token.id,
        **actor_claim(token),
    }
    if token.expires_at != NEVER:
        members["exp"] = int(token.expires_at.timestamp())
    if issued.methods and issued.authenticated_at is not None:
        members |= {**authentication_claims(issued), "auth_time": int(issued.authenticated_at.timestamp())}
    if issued.subject is not None:
        if _discloses_user_name(issued.subject, token.scope, context):
            members["username"] = issued.subject.login_name
        if Scope.OPENID in token.scope:
            members |= scope_claims(issued.subject.user, token.scope, context)
        members |= response_role_claims(issued.subject, issued.client, scopes_from_token(token), context)
    return members


def _discloses_user_name(subject: Subject, scopes: tuple[str, ...], context: Context) -> bool:
    """True for service users, and for people who consented to disclose a name."""
    if isinstance(subject.user, ServiceUser):
        return True
    return (
        Scope.OPENID in scopes and context.protocol.scopes.find_opening_scope("preferred_username", scopes) is not None
    )


ENDPOINT = Endpoint(
    name="introspect",
    path="/oauth/v2/introspect",
    host=EndpointHost.BASE,
    methods=("POST",),
    discovery_member="introspection_endpoint",
    writes=False,
    allows_stale_reads=True,
    authenticates_clients=True,
    refuses_public_clients=True,
    claims_preview=ClaimsPreview(ClaimsCarrier.INTROSPECTION, introspection_members),
    handle=handle,
)


class IntrospectionPlugin:
    """Token introspection (RFC 7662) for applications in the token's audience."""

    hookspecs = 1

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        """The introspection endpoint."""
        return [ENDPOINT]
