"""/.well-known/webauthn: the origins that may use the service's passkeys (WebAuthn Level 3 §5.11)."""

import json
from collections.abc import Sequence

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

_PATH = "/.well-known/webauthn"
_MAX_AGE = 300


def add_related_origins_route(config: Configurator, origins: Sequence[str]) -> None:
    """Serve the document, unless there are no related origins."""
    if not origins:
        return
    body = json.dumps({"origins": list(origins)}).encode()

    def show(request: Request) -> Response:
        return Response(body, content_type="application/json", cache_control=f"public, max-age={_MAX_AGE}")

    config.add_route("passkeys.related_origins", _PATH, host="login", request_method="GET")
    config.add_view(show, route_name="passkeys.related_origins", permission=NO_PERMISSION_REQUIRED)
