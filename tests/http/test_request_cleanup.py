"""What remains of a request after its response, and the log context of a request."""

import gc

import pytest

from identity.http.request import IdentityRequest
from identity.services.container import Services
from identity.testing.world import World


@pytest.mark.thorough
def test_requests_leave_no_reference_cycles(world: World) -> None:
    robot, client = world.make_service_user_program(), world.introspector
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        token = robot.access_token()
        assert world.client.introspect(token, client).status_int == 200
        assert world.client.fetch_userinfo(token).status_int == 200
        gc.collect()
        assert [item for item in gc.garbage if isinstance(item, IdentityRequest | Services)] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(("path", "status"), [("", 200), ("/more", 404), ("/@@x", 404)])
def test_forwarded_root_does_not_affect_routing(world: World, path: str, status: int) -> None:
    for headers in ({}, {"X-Vhm-Root": "/elsewhere"}, {"X-Vhm-Root": "/\xff"}):
        answer = world.client.request("GET", world.client.discovery["jwks_uri"] + path, headers=headers)
        assert answer.status_int == status
