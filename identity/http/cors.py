"""Cross-origin requests (security 11.4): scripts of registered applications may call the token-style endpoints.

An origin is registered if an active application has a redirect URI of it. Credentials are never allowed.
"""

from typing import TYPE_CHECKING

from identity.provider.protocol_request import ProtocolResponse
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.provider.endpoint import Endpoint
    from identity.services.container import Services

_MAX_ORIGIN_LENGTH = 300
_PREFLIGHT_MAX_AGE = 600


def preflight_response(endpoint: "Endpoint") -> ProtocolResponse:
    """What scripts may send to the endpoint (Fetch §3.2.2); ``cors_headers`` decides whether they may at all."""
    headers = {
        "Access-Control-Allow-Methods": ", ".join(endpoint.methods),
        "Access-Control-Allow-Headers": "Authorization, Content-Type, DPoP",
        "Access-Control-Max-Age": str(_PREFLIGHT_MAX_AGE),
    }
    return ProtocolResponse(204, headers=headers)


def cors_headers(origin: str, services: "Services") -> list[tuple[str, str]]:
    """The headers that let a registered origin read the response; none for others."""
    headers = [("Vary", "Origin")]
    if _is_registered(origin, services):
        headers.append(("Access-Control-Allow-Origin", origin))
        headers.append(("Access-Control-Expose-Headers", "WWW-Authenticate, DPoP-Nonce"))
    return headers


def _is_registered(origin: str, services: "Services") -> bool:
    if len(origin) > _MAX_ORIGIN_LENGTH or not origin.startswith(("https://", "http://")):
        return False
    try:
        return bool(services.applications.is_web_origin(origin))
    except StorageError:
        return False
