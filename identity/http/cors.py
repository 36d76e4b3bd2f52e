"""Cross-origin requests (security 11.4): scripts of registered applications may call the token-style endpoints.

Registered is the origin of any active application's redirect URI. Cookies play no part: credentials are never allowed.
"""

from typing import TYPE_CHECKING

from pyramid.request import Request

from identity.provider.request import ProtocolResponse
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.provider.endpoint import Endpoint

_LONGEST_ORIGIN = 300
_PREFLIGHT_AGE = 600


def is_preflight(request: Request) -> bool:
    """True if a browser asks beforehand whether a script may send a request (Fetch §3.2.2)."""
    return request.method == "OPTIONS" and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.environ


def preflight(endpoint: "Endpoint") -> ProtocolResponse:
    """What scripts may send to the endpoint; whether they may at all is told by ``origin_headers``."""
    headers = {
        "Access-Control-Allow-Methods": ", ".join(endpoint.methods),
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": str(_PREFLIGHT_AGE),
    }
    return ProtocolResponse(204, headers=headers)


def origin_headers(request: Request) -> list[tuple[str, str]]:
    """The headers that let a registered origin read the answer; none for others, and none if nobody asks."""
    origin = request.environ.get("HTTP_ORIGIN")
    if origin is None:
        return []
    headers = [("Vary", "Origin")]
    if _is_registered(request, origin):
        headers.append(("Access-Control-Allow-Origin", origin))
        headers.append(("Access-Control-Expose-Headers", "WWW-Authenticate"))
    return headers


def _is_registered(request: Request, origin: str) -> bool:
    if len(origin) > _LONGEST_ORIGIN or not origin.startswith(("https://", "http://")):
        return False
    try:
        return bool(request.services.applications.is_origin(origin))
    except StorageError:
        return False
