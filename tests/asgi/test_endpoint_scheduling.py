"""Requests that have to wait do not delay requests that do not."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from identity import concurrency
from identity.asgi import AsgiApplication
from identity.asgi.thread_pool import MAX_REQUEST_THREADS, RequestThreadPool, released_slot
from identity.testing.world import World
from tests.asgi.asgi_test_client import FORM, AsgiTestClient, Headers, wait_for

DISCOVERY, KEYS, TOKEN, AUTHORIZE = (
    "/.well-known/openid-configuration",
    "/oauth/v2/keys",
    "/oauth/v2/token",
    "/oauth/v2/authorize",
)


@pytest.fixture
def host(isolated_world: World) -> Headers:
    return [(b"host", isolated_world.issuer.removeprefix("https://").encode())]


class BlockedCall:
    """Blocks each caller until it is released."""

    def __init__(self) -> None:
        self.came = 0
        self._may_go = concurrency.Event()

    def wait(self) -> None:
        self.came += 1
        self._may_go.wait(20)

    def release(self) -> None:
        self._may_go.set()


@pytest.fixture
def blocked_call() -> Iterator[BlockedCall]:
    blocked_call = BlockedCall()
    yield blocked_call
    blocked_call.release()


def blocking(blocked_call: BlockedCall, function: Any) -> Any:
    def wait(*arguments: Any, **named: Any) -> Any:
        blocked_call.wait()
        return function(*arguments, **named)

    return wait


@pytest.mark.thorough
def test_queued_pages_do_not_delay_endpoints(
    isolated_world: World, host: Headers, blocked_call: BlockedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused authorization request is answered by a page, which is rendered in a thread."""
    monkeypatch.setattr(isolated_world.identity.backend, "max_greenlets", 2)
    application = AsgiApplication(isolated_world.app)
    monkeypatch.setattr(application, "_wsgi", blocking(blocked_call, application._wsgi))
    pages = [AsgiTestClient(application, AUTHORIZE, host, method="GET") for _ in range(10)]
    running = [client.begin() for client in pages]
    wait_for(lambda: blocked_call.came == MAX_REQUEST_THREADS)
    form = [*host, (b"content-type", FORM), (b"content-length", b"12")]
    assert AsgiTestClient(application, TOKEN, form).ask(b"grant_type=x").status == 400
    assert AsgiTestClient(application, KEYS, host, method="GET").ask().status == 200
    blocked_call.release()
    for item in running:
        item.result(30)
    assert {client.status for client in pages} == {400}
    assert not application._loop_state()._is_busy


def test_endpoint_without_storage_does_not_wait_for_storage(
    isolated_world: World, host: Headers, blocked_call: BlockedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = isolated_world.identity.backend
    monkeypatch.setattr(backend, "max_greenlets", 2)
    application = AsgiApplication(isolated_world.app)
    monkeypatch.setattr(backend, "read_session", blocking(blocked_call, backend.read_session))
    bearer = [*host, (b"authorization", b"Bearer unknown")]
    waiting = [AsgiTestClient(application, "/oauth/v2/userinfo", bearer, method="GET") for _ in range(3)]
    running = [client.begin() for client in waiting]
    wait_for(lambda: blocked_call.came == 2)
    for path in (DISCOVERY, "/healthz"):
        assert AsgiTestClient(application, path, host, method="GET").ask().status == 200
    blocked_call.release()
    for item in running:
        item.result(30)
    assert {client.status for client in waiting} == {401}


@pytest.mark.thorough
@pytest.mark.storages("memory", "sqlite", "postgresql")
def test_cross_origin_request_does_not_block_the_loop(
    isolated_world: World, host: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint itself needs no storage, but checking the origin of a cross-origin request does."""
    threads: list[str] = []
    backend = isolated_world.identity.backend
    reading = backend.read_session

    def noting() -> Any:
        is_waited_for = concurrency.in_greenlet() and backend.max_greenlets
        threads.append("greenlet" if is_waited_for else threading.current_thread().name)
        return reading()

    application = AsgiApplication(isolated_world.app)
    monkeypatch.setattr(backend, "read_session", noting)
    origin = (b"origin", b"https://app.example")
    preflight = (b"access-control-request-method", b"GET")
    assert AsgiTestClient(application, DISCOVERY, host, method="GET").ask().status == 200
    assert threads == []
    assert AsgiTestClient(application, DISCOVERY, [*host, origin], method="GET").ask().status == 200
    assert AsgiTestClient(application, DISCOVERY, [*host, origin, preflight], method="OPTIONS").ask().status == 204
    assert len(threads) == 2
    assert all(thread == "greenlet" or thread.startswith("identity-request") for thread in threads)
    assert ("greenlet" in threads) is (backend.max_greenlets > 0)


def test_nested_slot_release_frees_one_slot() -> None:
    async def main() -> None:
        threads, may_end, aside = RequestThreadPool(1, 8), threading.Event(), threading.Event()

        def wait() -> None:
            with released_slot(), released_slot():
                aside.set()
                may_end.wait(20)

        waiting = asyncio.ensure_future(threads.run(wait))
        while not aside.is_set():
            await asyncio.sleep(0.001)
        order: list[str] = []
        slow = asyncio.ensure_future(threads.run(lambda: (time.sleep(0.1), order.append("first"))))
        await asyncio.sleep(0.02)
        await threads.run(lambda: order.append("second"))
        await slow
        assert order == ["first", "second"]
        may_end.set()
        await waiting
        assert (threads._busy, threads.active_count) == (0, 0)
        threads.close()

    asyncio.run(main())


def test_greenlet_releases_its_slot_like_a_thread() -> None:
    async def main() -> None:
        greenlets, may_end = concurrency.GreenletPool(1), concurrency.Event()

        def wait() -> None:
            with released_slot():
                may_end.wait()

        waiting = [asyncio.ensure_future(greenlets.run(wait)) for _ in range(3)]
        await asyncio.sleep(0)
        assert await greenlets.run(lambda: "answered") == "answered"
        assert greenlets.active_count == 3
        may_end.set()
        await asyncio.gather(*waiting)
        assert greenlets.active_count == greenlets._busy == 0

    asyncio.run(main())
