"""The device authorization endpoint (RFC 8628 §3.1, §3.2).

A request::

    POST /oauth/v2/device_authorization
    Content-Type: application/x-www-form-urlencoded

    client_id=…&scope=openid%20offline_access
"""

import json
from functools import partial
from urllib.parse import urlencode

from identity.api.endpoints import (
    Context,
    Endpoint,
    EndpointHost,
    OAuthError,
    Parameters,
    ProtocolRequest,
    ProtocolResponse,
    UnauthorizedClient,
)
from identity.api.entities import ApplicationClient, DomainError
from identity.api.grants import CodeGrantType, Scope, join_resources, requested_resources
from identity.api.services import RecordNamespace
from identity.plugins.device_authorization.device_requests import (
    INTERVAL,
    LIFETIME,
    DeviceRequestStore,
    format_user_code,
)

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"

#: The page on which people enter the code.
PAGE_PATH = "/device"
USER_CODE_PARAMETER = "user_code"


class TooManyDeviceRequests(OAuthError):
    """Too many requests of public clients from one network address."""

    status = 429
    error = "slow_down"


def handle(request: ProtocolRequest, context: Context, *, namespace: RecordNamespace) -> ProtocolResponse:
    """Start a request: 200 with a code for the device and one for the person. Raises OAuthError."""
    Parameters.refuse_secrets(request.query)
    parameters = join_resources(request.parse_lenient_form(), context)
    parameters.refuse_repeated()
    client = context.provider.authenticate(request, parameters, context)
    if not isinstance(client, ApplicationClient) or GRANT_TYPE not in client.application.grant_types:
        raise UnauthorizedClient(f"this client may not use {GRANT_TYPE}")
    scope = parameters.get_space_delimited("scope") or (Scope.OPENID,)
    CodeGrantType.require_scopes(scope, context)
    resources = requested_resources(parameters, context)
    if client.application.is_public:
        _count(context)
    address = context.services.audit.actor.client_address or ""
    device_code, user_code = DeviceRequestStore(context.services, namespace).add(client, scope, resources, address)
    page, formatted_code = context.settings.login_url + PAGE_PATH, format_user_code(user_code)
    members = {
        "device_code": device_code,
        "user_code": formatted_code,
        "verification_uri": page,
        "verification_uri_complete": f"{page}?{urlencode({USER_CODE_PARAMETER: formatted_code})}",
        "expires_in": LIFETIME.seconds,
        "interval": INTERVAL.seconds,
    }
    return ProtocolResponse.from_json(json.dumps(members))


def _count(context: Context) -> None:
    """Anyone can send a public client's requests, so they are limited per network address."""
    try:
        context.services.attempts.count_request()
    except DomainError:
        raise TooManyDeviceRequests("too many requests from this network address") from None


def build_endpoint(namespace: RecordNamespace) -> Endpoint:
    return Endpoint(
        name="device_authorization",
        path="/oauth/v2/device_authorization",
        host=EndpointHost.BASE,
        methods=("POST",),
        discovery_member="device_authorization_endpoint",
        writes=True,
        authenticates_clients=True,
        handle=partial(handle, namespace=namespace),
    )
