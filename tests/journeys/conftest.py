"""Fixtures: a service behind a real HTTP server, several processes of one service, and a mail server."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import Browser
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory, WorldCache
from identity.testing.world import World
from tests.asgi_server import serving_asgi
from tests.http_server import loopback_socket
from tests.mail_server import ReceivingMailServer, extract_one_time_link
from tests.nodes import NodePool


@pytest.fixture
def served_settings() -> dict[str, str]:
    """Settings of ``served`` that a module overrides."""
    return {}


@pytest.fixture
def served(
    database_factory: DatabaseFactory, key_pool: RsaKeyPool, storage_name: str, served_settings: dict[str, str]
) -> Iterator[World]:
    """A service that clients reach over HTTP at its issuer URL; its clock runs."""
    bound = loopback_socket()
    settings = database_factory.new_database_settings(storage_name) | {
        "identity.development": "true",
        "identity.issuer_url": f"http://127.0.0.1:{bound.getsockname()[1]}",
        **served_settings,
    }
    world = World(settings, clock=TickingClock(), key_pool=key_pool)
    world.bootstrap()
    with serving_asgi(world.app, bound):
        yield world
    world.close()
    database_factory.drop(settings)


@pytest.fixture(scope="session")
def nodes() -> Iterator[NodePool]:
    """Worker processes for races."""
    nodes = NodePool()
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ReceivingMailServer]:
    post = ReceivingMailServer()
    post.start()
    yield post
    post.stop()


@pytest.fixture
def post(server: ReceivingMailServer) -> ReceivingMailServer:
    """The mail server without earlier messages."""
    server.received_messages.clear()
    server.recipients.clear()
    server.rcpt_response = "250 OK"
    return server


@pytest.fixture
def mailing(world_cache: WorldCache, storage_name: str, post: ReceivingMailServer) -> Iterator[World]:
    """A shared world with the mail server. Its clock never goes back, because mail limits store times."""
    world = world_cache.shared_world(storage_name, post.settings)
    yield world
    world.clock.advance(hours=2)
    while world.identity.senders["mail"].run() is not None:
        world.clock.advance(hours=2)


def next_link(world: World, post: ReceivingMailServer) -> str:
    """The link in the only queued mail."""
    world.identity.senders["mail"].send_due()
    return extract_one_time_link(post.pop_only_message())


def shape(browser: Browser) -> list[Any]:
    """All that a client can compare in the responses, without their random values."""
    intercepted = []
    for answer in browser.answers:
        headers = {name: value for name, value in answer.headers.items() if name not in ("Set-Cookie", "X-Request-ID")}
        cookies = [item.partition("=")[0] for item in answer.headers.getall("Set-Cookie")]
        if "Location" in headers:
            headers["Location"] = mask(headers["Location"])
        intercepted.append((answer.status_int, headers, cookies, mask(answer.text)))
    return intercepted


def mask(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|value=\"[A-Za-z0-9_-]{43}\"", "…", text)
