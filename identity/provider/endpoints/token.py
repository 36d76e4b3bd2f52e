"""The token endpoint (service description §4.3, RFC 6749 §3.2)."""

from identity.domain.applications import Client
from identity.domain.parties import ServiceUserClient
from identity.provider.admission import admitted
from identity.provider.answers import json_answer
from identity.provider.assurance import refuse_without_factor
from identity.provider.consent import refuse_without_consent
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.errors import InvalidGrant, UnauthorizedClient, UnsupportedGrantType
from identity.provider.grant import ClientRule, Grant, TokenRequest
from identity.provider.issuing import issue
from identity.provider.parameters import Parameters, refuse_secrets
from identity.provider.request import ProtocolRequest, ProtocolResponse


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Exchange a grant for tokens: 200 with the members of service description §2.4. Raises OAuthError."""
    refuse_secrets(request.query)
    parameters = request.lenient_form()
    known = context.protocol.grants.get(parameters.get("grant_type", ""))
    parameters.refuse_repeated(but=() if known is None else known.repeatable)
    grant = _grant(parameters, context)
    token_request = _authenticated(request, parameters, grant, context)
    authorization = grant.authorize(token_request, context)
    granted = admitted(authorization, context, error=InvalidGrant)
    refuse_without_consent(authorization, granted, context)
    refuse_without_factor(authorization, context)
    tokens = issue(authorization, granted, context)
    from identity.provider.messages import AccessTokenResponse

    return json_answer(AccessTokenResponse(**{**authorization.answer, **tokens.members()}).to_json())


def _grant(parameters: Parameters, context: Context) -> Grant:
    grant = context.protocol.grants.get(parameters.required("grant_type"))
    if grant is None:
        raise UnsupportedGrantType(f"grant_type must be one of {', '.join(context.protocol.grants)}")
    context.told["grant_type"] = grant.grant_type
    return grant


def _authenticated(request: ProtocolRequest, parameters: Parameters, grant: Grant, context: Context) -> TokenRequest:
    if grant.client is ClientRule.NONE:
        return TokenRequest(parameters, None)
    party = context.provider.authenticate(request, parameters, context)
    if isinstance(party, ServiceUserClient):
        # Grant types are registered for applications alone: here the grant itself has to allow it.
        if grant.client is not ClientRule.OR_SERVICE_USER:
            raise UnauthorizedClient(f"service users may not use {grant.grant_type} with a secret")
        return TokenRequest(parameters, None, party)
    require_registered(grant.grant_type, party)
    return TokenRequest(parameters, party)


def require_registered(grant_type: str, client: Client) -> None:
    """Raise UnauthorizedClient unless the application is registered for the grant type."""
    if grant_type not in client.application.grant_types:
        raise UnauthorizedClient(f"this application may not use {grant_type}")


ENDPOINT = Endpoint(
    name="token",
    path="/oauth/v2/token",
    host=Host.BASE,
    methods=("POST",),
    advertised_as="token_endpoint",
    writes=True,
    cross_origin=True,
    handle=handle,
)
