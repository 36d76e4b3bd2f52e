"""scim2-tester, which no one here wrote, against the running service."""

from collections.abc import Iterator

import pytest
from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from identity.testing.fixtures import WorldFactory
from tests.http_server import loopback_socket, running_http_server
from tests.plugins.scim.scim_client import ScimClient

# The exchange does not depend on the storage.
pytestmark = [pytest.mark.storages("memory"), pytest.mark.thorough]


@pytest.fixture
def served(make_world: WorldFactory) -> Iterator[ScimClient]:
    """A client of a server on a loopback port."""
    bound = loopback_socket()
    url = f"http://localhost:{bound.getsockname()[1]}"
    world = make_world(**{"identity.issuer_url": url, "identity.development": "true"})
    with running_http_server(world.app, bound):
        yield ScimClient.for_program(world.make_manager_program("ORG_USER_PROVISIONER"))


def test_scim2_tester_finds_no_errors(served: ScimClient) -> None:
    with Client(base_url=served.base_url, headers={"Authorization": f"Bearer {served.token}"}) as client:
        results = check_server(SyncSCIMClient(client))
    failed = [
        f"{result.title}: {result.reason}"
        for result in results
        if result.status not in (Status.SUCCESS, Status.COMPLIANT, Status.ACCEPTABLE, Status.SKIPPED)
    ]
    assert len(results) > 50
    assert failed == []
