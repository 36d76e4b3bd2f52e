"""The revocation endpoint (service description §4.6, RFC 7009)."""

from collections.abc import Iterable

from identity.api.endpoints import (
    Context,
    Endpoint,
    EndpointHost,
    InvalidGrant,
    Parameters,
    ProtocolRequest,
    ProtocolResponse,
)
from identity.api.entities import Denied
from identity.api.plugins import hookimpl


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Revoke a token of the client: 200 with an empty body, also for an unknown one.

    ``token_type_hint`` is not needed to find it. Raises InvalidGrant for another client's token, which stays live.
    """
    Parameters.refuse_secrets(request.query)
    parameters = request.parse_form()
    client = context.provider.authenticate(request, parameters, context)
    try:
        context.services.tokens.revoke_token(parameters.require_value("token"), client)
    except Denied as refusal:
        raise InvalidGrant("the token was issued to another client", reason=str(refusal)) from None
    return ProtocolResponse(200)


ENDPOINT = Endpoint(
    name="revoke",
    path="/oauth/v2/revoke",
    host=EndpointHost.BASE,
    methods=("POST",),
    discovery_member="revocation_endpoint",
    writes=True,
    allows_cors=True,
    authenticates_clients=True,
    handle=handle,
)


class RevocationPlugin:
    """Token revocation (RFC 7009) by clients."""

    hookspecs = 1

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        """The revocation endpoint."""
        return [ENDPOINT]
