"""The token endpoint (service description §4.3, RFC 6749 §3.2)."""

from functools import partial

from identity.domain.applications import ApplicationClient
from identity.domain.clients import ServiceUserClient
from identity.provider.access_token_formats import SigningKeyGetter
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.client_authentication import require_application
from identity.provider.consent import refuse_without_consent
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.errors import InvalidGrant, UnauthorizedClient, UnsupportedGrantType
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, TokenRequest
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.provider.resource_indicators import PARAMETER, join_resources, with_requested_resources
from identity.provider.sender_constraint import bind_to_sender, find_confirmation
from identity.provider.step_up import refuse_without_factor
from identity.provider.token_issuance import MintedTokens, mint_tokens, store_tokens


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Exchange a grant for tokens: 200 with the members of service description §2.4. Raises OAuthError."""
    Parameters.refuse_secrets(request.query)
    parameters = join_resources(request.parse_lenient_form(), context)
    known = context.protocol.grant_types.get(parameters.get("grant_type", ""))
    parameters.refuse_repeated(allowed=() if known is None else known.repeatable_parameters)
    grant = _grant(parameters, context)
    # First: a client that has to send its proof again must not have used up its code or assertion.
    confirmation = find_confirmation(request, context)
    token_request = _authenticated(request, parameters, grant, context)
    key = context.services.signing_keys.current_signing_key
    authorization = bind_to_sender(grant.authorize(token_request, context), request, confirmation, context)
    if PARAMETER not in grant.parameters:
        authorization = with_requested_resources(authorization, parameters, context)
    minted = mint_granted_tokens(authorization, context, key=key)
    store_tokens(minted, context)
    from identity.provider.pyoidc_messages import AccessTokenResponse

    return ProtocolResponse.from_json(
        AccessTokenResponse(**{**minted.authorization.response_members, **minted.tokens.response_members()}).to_json()
    )


def mint_granted_tokens(
    authorization: Authorization, context: Context, *, key: SigningKeyGetter, has_interacted: bool = False
) -> MintedTokens:
    """The tokens for what a grant decided, not stored yet. The token preview ends here. ``has_interacted`` supposes
    that the user gave all consent and proofs that their pages ask for. Raises OAuthError."""
    granted = check_and_resolve_scopes(authorization, context, error=InvalidGrant)
    if not has_interacted:
        refuse_without_consent(authorization, granted, context)
        refuse_without_factor(authorization, context)
    return mint_tokens(authorization, granted, context, key=key)


def _grant(parameters: Parameters, context: Context) -> GrantType:
    grant = context.protocol.grant_types.get(parameters.require_value("grant_type"))
    if grant is None:
        raise UnsupportedGrantType(f"grant_type must be one of {', '.join(context.protocol.grant_types)}")
    context.metric_labels["grant_type"] = grant.grant_type
    return grant


def _authenticated(
    request: ProtocolRequest, parameters: Parameters, grant: GrantType, context: Context
) -> TokenRequest:
    if grant.client_requirement is ClientRequirement.NONE:
        return TokenRequest(
            parameters, None, authenticate_client=partial(_authenticate_application, request, parameters, context)
        )
    party = context.provider.authenticate(request, parameters, context)
    if isinstance(party, ServiceUserClient):
        # Only applications register grant types: for service users the grant itself decides.
        if grant.client_requirement is not ClientRequirement.OR_SERVICE_USER:
            raise UnauthorizedClient(f"service users may not use {grant.grant_type} with a secret")
        return TokenRequest(parameters, None, party)
    require_grant_type(grant.grant_type, party)
    return TokenRequest(parameters, party)


def _authenticate_application(request: ProtocolRequest, parameters: Parameters, context: Context) -> ApplicationClient:
    return require_application(context.provider.authenticate(request, parameters, context))


def require_grant_type(grant_type: str, client: ApplicationClient) -> None:
    """Raise UnauthorizedClient unless the application is registered for the grant type."""
    if grant_type not in client.application.grant_types:
        raise UnauthorizedClient(f"this application may not use {grant_type}")


ENDPOINT = Endpoint(
    name="token",
    path="/oauth/v2/token",
    host=EndpointHost.BASE,
    methods=("POST",),
    discovery_member="token_endpoint",
    writes=True,
    allows_cors=True,
    authenticates_clients=True,
    handle=handle,
)
