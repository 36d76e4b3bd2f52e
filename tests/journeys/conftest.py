"""What the journeys share: a service behind a real HTTP server, and several processes of one service."""

from collections.abc import Iterator

import pytest

from identity.testing.clock import RunningClock
from identity.testing.fixtures import Databases
from identity.testing.nodes import Nodes
from identity.testing.post import Post
from identity.testing.service import KeyPool
from identity.testing.serving import loopback_socket, serving
from identity.testing.world import World


@pytest.fixture
def served(databases: Databases, key_pool: KeyPool, storage_name: str) -> Iterator[World]:
    """A service that is reached by its issuer address over HTTP, and whose clock runs."""
    bound = loopback_socket()
    settings = databases.settings(storage_name) | {
        "identity.development": "true",
        "identity.issuer_url": f"http://127.0.0.1:{bound.getsockname()[1]}",
    }
    world = World(settings, clock=RunningClock(), key_pool=key_pool)
    world.bootstrap()
    with serving(world.app, bound):
        yield world
    world.close()
    databases.drop(settings)


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Processes that stand ready for races."""
    nodes = Nodes()
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Post]:
    """A mail server."""
    post = Post()
    post.open()
    yield post
    post.close()


@pytest.fixture
def post(server: Post) -> Post:
    """The same, with nothing in it."""
    server.letters.clear()
    server.recipients.clear()
    server.answer = "250 OK"
    return server
