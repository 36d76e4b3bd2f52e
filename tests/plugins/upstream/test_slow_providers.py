"""Security 20.6 through the ASGI application: slow providers do not delay other pages."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from identity import password_hashing
from identity.asgi import AsgiApplication
from identity.asgi.thread_pool import MAX_REQUEST_THREADS, RequestThreadPool, released_slot
from identity.fair_semaphore import FairSemaphore
from identity.outbound_http import OutboundResponse
from identity.plugins.upstream.http_client import ProviderHttpClient
from identity.testing.asgi_adapter import WsgiToAsgiAdapter, event_loop
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import CLIENT_ID, SECRET, FakeProvider

pytestmark = pytest.mark.storages("memory", "sqlite", "postgresql")


class SlowProviderClient:
    """An HTTP client for which providers at https://slow-… respond only after ``release``."""

    def __init__(self, fake_provider: FakeProvider) -> None:
        self.waiting = 0
        self.may_answer = threading.Event()
        self._fake_provider = fake_provider
        self._lock = threading.Lock()

    def send(self, method: str, url: str, **options: Any) -> OutboundResponse:
        if not url.startswith("https://slow-"):
            return self._fake_provider.send(method, url, **options)
        with self._lock:
            self.waiting += 1
        self.may_answer.wait(30)
        raise OSError("no answer")

    def release(self) -> None:
        self.may_answer.set()


@pytest.fixture
def world(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """An isolated world, requested through the ASGI application."""
    application = AsgiApplication(isolated_world.app)
    monkeypatch.setitem(isolated_world.__dict__, "web_application", WsgiToAsgiAdapter(application))
    monkeypatch.setattr(password_hashing, "released_slot", released_slot)
    return isolated_world


@pytest.fixture
def slow(world: World, fake_provider: FakeProvider) -> Iterator[SlowProviderClient]:
    slow_client = SlowProviderClient(fake_provider)
    world.app.registry.upstream._http_client = ProviderHttpClient(slow_client)
    yield slow_client
    slow_client.release()


def provider_slots(world: World) -> FairSemaphore:
    fair_semaphore: FairSemaphore = world.app.registry.upstream._http_client._slots
    return fair_semaphore


def page_threads(world: World) -> RequestThreadPool:
    async def found() -> Any:
        return world.web_application.application._loop_state().thread_pool

    threads: RequestThreadPool = asyncio.run_coroutine_threadsafe(found(), event_loop()).result(5)
    return threads


def provider_choices(world: World, organizations: int, providers: int, browsers: int) -> list[Callable[[], Any]]:
    """Requests of browsers that choose a slow provider."""
    requests: list[Callable[[], Any]] = []
    for number in range(organizations):
        tenant = world.make_organization()
        party = RelyingParty.register(world, project_id=world.make_project(tenant).id)
        for which in range(providers):
            issuer = f"https://slow-{number}-{which}.example"
            provider = world.make_upstream_provider(tenant, issuer=issuer, client_id=CLIENT_ID, client_secret=SECRET)
            for _ in range(browsers):
                browser = Browser(world)
                party.open_request(browser, scope="openid")
                requests.append(lambda browser=browser, name=provider.name: browser.click(f"Sign in with {name}"))
    return requests


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "that took too long"
        time.sleep(0.01)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("organizations", "providers", "browsers", "most"),
    [(1, 4, 6, 8), (12, 1, 4, 32)],
    ids=["of one organization", "of many organizations"],
)
def test_slow_providers_do_not_delay_other_pages(
    world: World,
    scene: UpstreamScenario,
    slow: SlowProviderClient,
    organizations: int,
    providers: int,
    browsers: int,
    most: int,
) -> None:
    asking = provider_choices(world, organizations, providers, browsers)
    robot, threads = world.make_service_user_program(), page_threads(world)
    with ThreadPoolExecutor(len(asking)) as pool:
        running: list[Future[Any]] = [pool.submit(item) for item in asking]
        # The others were refused at once because too many requests wait.
        until(lambda: slow.waiting + sum(future.done() for future in running) == len(asking))
        assert MAX_REQUEST_THREADS < slow.waiting <= most
        until(lambda: threads._busy == 0)
        for _ in range(2 * MAX_REQUEST_THREADS):
            assert world.client.get(f"{world.issuer}/healthz").status_int == 200
            assert Browser(world).open("/login").status_int == 200
            assert robot.request_token().status_int == 200
        if organizations == 1:
            authorization = scene.ask()
            assert scene.party.obtain_tokens(scene.sign_in(), authorization)
        slow.release()
        wait(running, 30)
    assert [future.exception() for future in running] == [None] * len(asking)
    until(lambda: (threads._busy, threads.active_count) == (0, 0))
    assert provider_slots(world)._all.free == 32
