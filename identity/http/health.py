"""/healthz: the process is alive. /readyz: storage, schema and signing key are ready, and plugins' checks pass."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.endpoint_routes import build_response
from identity.provider.protocol_request import ProtocolResponse

if TYPE_CHECKING:
    from identity.application import IdentityApplication


def healthz() -> ProtocolResponse:
    """200 as long as the process responds; checks nothing else."""
    return ProtocolResponse(200, b'{"status": "alive"}', headers={"Cache-Control": "no-store"})


#: Seconds after which a retry may succeed.
RETRY_AFTER = 5


def readyz(request: Request) -> Response:
    """200 if every readiness check passes, else 503 with the names of the failed ones; the log says what to fix.
    Overdue work is reported as ``degraded`` with a 200: other nodes share the storage and would do no better, and a
    node taken out of rotation would work nothing off."""
    identity: IdentityApplication = request.registry.application
    failed = sorted(identity.system_checks.failures(readiness_only=True))
    degraded = {} if failed else identity.background_monitor.degradations()
    members: dict[str, object] = {"status": "not ready" if failed else "degraded" if degraded else "ready"}
    members["failed"] = failed
    if degraded:
        members["degraded"] = degraded
    body, status = json.dumps(members).encode(), 503 if failed else 200
    response = Response(body, status=status, content_type="application/json", charset=None, cache_control="no-store")
    if failed:
        response.retry_after = RETRY_AFTER
    return response


@dataclass(frozen=True, slots=True)
class ImmediateResponse:
    """A response that waits for nothing, and its route. Without ``methods`` it responds to any method."""

    name: str
    pattern: str
    respond: Callable[[], ProtocolResponse]
    methods: frozenset[str] = frozenset()

    def accepts_method(self, method: str) -> bool:
        return not self.methods or method in self.methods


def add_immediate_response(config: Configurator, name: str, path: str, answer: Callable[[], ProtocolResponse]) -> None:
    """Directive: add a response, on any host and to any method, that waits for nothing. The event loop of an ASGI
    server calls ``answer`` itself, whatever storage and threads are doing."""
    config.registry.immediate_responses[path] = ImmediateResponse(name, path, answer)
    config.add_route(name, path)
    config.add_view(
        lambda request: build_response(request, answer()), route_name=name, permission=NO_PERMISSION_REQUIRED
    )


def includeme(config: Configurator) -> None:
    """Routes for any host: probes know an IP address, not a name."""
    config.registry.immediate_responses = {}
    config.add_directive("add_immediate_response", add_immediate_response)
    config.add_immediate_response("healthz", "/healthz", healthz)
    config.add_route("readyz", "/readyz")
    config.add_view(readyz, route_name="readyz", permission=NO_PERMISSION_REQUIRED)
