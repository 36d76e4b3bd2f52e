"""The badge endpoint: an authenticated application requests a user's badge."""

import json

from badges.records import Badges
from identity.api.endpoints import Context, Endpoint, EndpointHost, ProtocolRequest, ProtocolResponse


def badge_endpoint(badges: Badges) -> Endpoint:
    """``POST /oauth/v2/badge`` with ``user_id``."""

    def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
        parameters = request.parse_form()
        context.provider.authenticate(request, parameters, context)
        badge = badges.find(context.services, parameters.require_value("user_id"))
        return ProtocolResponse(200, json.dumps({"badge": badge}).encode())

    return Endpoint(
        name="badge",
        path="/oauth/v2/badge",
        host=EndpointHost.BASE,
        methods=("POST",),
        discovery_member="badge_endpoint",
        writes=False,
        authenticates_clients=True,
        handle=handle,
    )
