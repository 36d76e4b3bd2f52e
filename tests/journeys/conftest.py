"""What the journeys share: a service behind a real HTTP server, and several processes of one service."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from identity.testing.browser import Browser
from identity.testing.clock import RunningClock
from identity.testing.fixtures import Databases, Worlds
from identity.testing.nodes import Nodes
from identity.testing.post import Post, link_in
from identity.testing.service import KeyPool
from identity.testing.serving import loopback_socket
from identity.testing.world import World
from tests.asgi_serving import serving_asgi


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
    with serving_asgi(world.app, bound):
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


@pytest.fixture
def mailing(worlds: Worlds, storage_name: str, post: Post) -> Iterator[World]:
    """Its clock only goes forward: who may send mails, who was written to, and since when, is noted with the time."""
    world = worlds.shared(storage_name, post.settings)
    yield world
    world.clock.advance(hours=2)
    while world.identity.senders["mail"].run() is not None:
        world.clock.advance(hours=2)


def next_link(world: World, post: Post) -> str:
    """The link in the one mail that waits."""
    world.identity.senders["mail"].send_due()
    return link_in(post.only())


def shape(browser: Browser) -> list[Any]:
    """All that a stranger sees of the answers, but for what is random in every one."""
    seen = []
    for answer in browser.answers:
        headers = {name: value for name, value in answer.headers.items() if name not in ("Set-Cookie", "X-Request-ID")}
        cookies = [one.partition("=")[0] for one in answer.headers.getall("Set-Cookie")]
        if "Location" in headers:
            headers["Location"] = mask(headers["Location"])
        seen.append((answer.status_int, headers, cookies, mask(answer.text)))
    return seen


def mask(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|value=\"[A-Za-z0-9_-]{43}\"", "…", text)
