"""/healthz: the process lives. /readyz: storage, schema and signing key are in place, and plugins' checks hold."""

import json
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

if TYPE_CHECKING:
    from identity.process import Identity


def healthz(request: Request) -> Response:
    """200 as long as the process answers; asks nothing else."""
    return _answer(200, {"status": "alive"})


#: Seconds after which asking again may help, as everywhere while the storage is away.
RETRY_AFTER = 5


def readyz(request: Request) -> Response:
    """200 if every check of readiness holds, else 503 with the names of those that do not; the log says what to fix.

    What waits for too long is told beside 200, as ``degraded``: other nodes have the same storage and would do it no
    better, and a node that is taken out answers nobody and works nothing off.
    """
    identity: Identity = request.registry.identity
    failed = sorted(identity.checks.failed(of_readiness=True))
    degraded = {} if failed else identity.backlogs.degraded()
    members: dict[str, object] = {"status": "not ready" if failed else "degraded" if degraded else "ready"}
    members["failed"] = failed
    if degraded:
        members["degraded"] = degraded
    answer = _answer(503 if failed else 200, members)
    if failed:
        answer.retry_after = RETRY_AFTER
    return answer


def _answer(status: int, members: dict[str, object]) -> Response:
    response = Response(json.dumps(members).encode(), status=status, content_type="application/json", charset=None)
    response.cache_control = "no-store"
    return response


def includeme(config: Configurator) -> None:
    """Routes for any host: who probes knows an address, not a name."""
    for name, view in (("healthz", healthz), ("readyz", readyz)):
        config.add_route(name, f"/{name}")
        config.add_view(view, route_name=name, permission=NO_PERMISSION_REQUIRED)
