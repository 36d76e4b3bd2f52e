"""The revocation endpoint (service description §4.6, RFC 7009)."""

from identity.domain.errors import Denied
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.errors import InvalidGrant
from identity.provider.parameters import refuse_secrets
from identity.provider.request import ProtocolRequest, ProtocolResponse


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Revoke a token of the client: 200 with an empty body, also for an unknown one.

    ``token_type_hint`` is not needed to find it. Raises InvalidGrant for another client's token, which stays live.
    """
    refuse_secrets(request.query)
    parameters = request.form()
    client = context.provider.authenticate(request, parameters, context)
    try:
        context.services.tokens.revoke(parameters.required("token"), client)
    except Denied as refusal:
        raise InvalidGrant("the token was issued to another client", reason=str(refusal)) from None
    return ProtocolResponse(200)


ENDPOINT = Endpoint(
    name="revoke",
    path="/oauth/v2/revoke",
    host=Host.BASE,
    methods=("POST",),
    advertised_as="revocation_endpoint",
    writes=True,
    cross_origin=True,
    handle=handle,
)
