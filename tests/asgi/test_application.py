"""The ASGI application itself: what it refuses, reads, queues and finishes."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from identity import password_hashing
from identity.asgi import AsgiApplication
from identity.asgi import application as applications
from identity.asgi.thread_pool import MAX_QUEUED_REQUESTS, MAX_REQUEST_THREADS, released_slot
from identity.http.large_documents import read_uploaded_document
from identity.provider.endpoints import token
from identity.testing.asgi_adapter import event_loop
from identity.testing.world import World
from tests.asgi.asgi_test_client import FORM, AsgiTestClient, Headers, wait_for


@pytest.fixture
def host(world: World) -> Headers:
    return [(b"host", world.issuer.removeprefix("https://").encode())]


@pytest.fixture
def application(world: World) -> AsgiApplication:
    return AsgiApplication(world.app)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("headers", "scope", "status"),
    [
        ([], {}, 400),
        ([(b"host", b"a"), (b"host", b"b")], {}, 400),
        ([(b"host", b"a"), (b"authorization", b"a"), (b"Authorization", b"b")], {}, 400),
        ([(b"host", b"a"), (b"dpop", b"a"), (b"dpop", b"b")], {}, 400),
        ([(b"host", b"a"), (b"x-forwarded-for", b"a"), (b"x-forwarded-for", b"b")], {}, 400),
        ([(b"host", b"a"), (b"x_forwarded_for", b"a")], {}, 400),
        ([(b"host", b"a"), (b"forwarded", b"for=a"), (b"forwarded", b"for=b")], {}, 400),
        ([(b"host", b"a"), (b"x-forwarded-proto", b"https"), (b"x-forwarded-proto", b"http")], {}, 400),
        ([(b"host", b"a"), (b"x-real-ip", b"a"), (b"x-real-ip", b"b")], {}, 400),
        ([(b"host", b"a"), (b"client-cert", b"a"), (b"client-cert", b"b")], {}, 400),
        ([(b"host", b"a"), (b"x-ssl-client-cert", b"a"), (b"x-ssl-client-cert", b"b")], {}, 400),
        ([(b"host", b"a"), (b"x-forwarded-client-cert", b"a"), (b"x-forwarded-client-cert", b"b")], {}, 400),
        ([(b"host", b"a"), (b"ssl_client_cert", b"a")], {}, 400),
        ([(b"host", b"a"), (b"content-length", b"1"), (b"content-length", b"1")], {}, 400),
        ([(b"host", b"a"), (b"content-length", b"+1")], {}, 400),
        ([(b"host", b"a"), (b"content-length", b"1" * 5000)], {}, 400),
        ([(b"host", b"a"), (b"content-length", b"1"), (b"transfer-encoding", b"chunked")], {}, 400),
        ([(b"host", b"a"), (b"transfer-encoding", b"gzip, chunked")], {}, 501),
        ([(b"host", b"a"), (b"transfer-encoding", b"chunked")], {"http_version": "1.0"}, 400),
        ([(b"host", b"a")], {"http_version": "2.0"}, 505),
        ([(b"host", b"a")], {"http_version": "0.9"}, 505),
    ],
)
def test_ambiguous_request_is_refused(
    application: AsgiApplication, headers: Headers, scope: dict[str, Any], status: int
) -> None:
    client = AsgiTestClient(application, "/healthz", headers, **scope)
    client.begin().result(30)
    assert client.status == status
    assert client.header("connection") == "close"


def test_http_1_0_needs_no_host(application: AsgiApplication) -> None:
    assert AsgiTestClient(application, "/healthz", [], http_version="1.0").ask().status == 200


def test_paths_are_decoded_as_in_wsgi(application: AsgiApplication, host: Headers) -> None:
    for raw in (b"/healthz", b"/%68ealthz", b"http://other/healthz", b"/healthz?x"):
        assert AsgiTestClient(application, "/", host, raw_path=raw, method="GET").ask().status == 200, raw
    for raw in (b"/healthz%2F", b"//healthz", b"*"):
        assert AsgiTestClient(application, "/", host, raw_path=raw, method="GET").ask().status == 404, raw


def test_oversized_body_is_refused_and_discarded(application: AsgiApplication, host: Headers) -> None:
    headers = [*host, (b"content-type", FORM), (b"content-length", b"100000")]
    for path in ("/oauth/v2/token", "/management/v1/organizations"):
        client = AsgiTestClient(application, path, headers)
        running = client.begin()
        wait_for(lambda: len(client.sent) == 2)  # noqa: B023
        assert client.received == 0
        assert client.header("connection") == "close"
        assert client.status in (401, 413)
        client.send(b"a" * 100_000)
        running.result(30)
        assert client.received == 100_000


def test_refused_body_gets_no_100_continue(application: AsgiApplication, host: Headers) -> None:
    headers = [*host, (b"expect", b"100-continue"), (b"content-length", b"100000")]
    client = AsgiTestClient(application, "/oauth/v2/token", headers)
    client.begin().result(30)
    assert client.status == 413


def test_chunks_over_the_limit_are_refused(application: AsgiApplication, host: Headers) -> None:
    client = AsgiTestClient(application, "/oauth/v2/token", [*host, (b"transfer-encoding", b"chunked")])
    for _ in range(3):
        client.send(b"a" * 30_000, more=True)
    running = client.begin()
    wait_for(lambda: len(client.sent) == 2)
    assert client.status == 413
    client.leave()
    running.result(30)


def test_slow_body_times_out(application: AsgiApplication, host: Headers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.asgi.request_body.BODY_TIMEOUT", 0.05)
    for path in ("/oauth/v2/token", "/login"):
        client = AsgiTestClient(application, path, [*host, (b"content-length", b"10")])
        client.send(b"a", more=True)
        client.begin().result(30)
        assert client.status == 408


def test_disconnect_before_body_gets_no_response(application: AsgiApplication, host: Headers) -> None:
    client = AsgiTestClient(application, "/oauth/v2/token", [*host, (b"content-length", b"10")])
    client.leave()
    client.begin().result(30)
    assert client.sent == []


def test_forwarded_address_needs_trusted_proxy(make_world: Any) -> None:
    world = make_world(**{"identity.trusted_proxy": "192.0.2.9"})
    application = AsgiApplication(world.app)
    requests: list[tuple[str, str | None]] = []

    def watch(request: Any, environ: Any) -> None:
        requests.append((environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR")))

    original = application._wsgi

    def wsgi(environ: Any, start_response: Any) -> Any:
        watch(None, environ)
        return original(environ, start_response)

    application._wsgi = wsgi
    host = (b"host", world.issuer.removeprefix("https://").encode())
    for peer in ("192.0.2.9", "192.0.2.8"):
        for header in (b"198.51.100.1", b"10.0.0.1, 198.51.100.1", b'"[2001:db8::1]:80"'):
            scope = {"client": (peer, 1), "method": "GET"}
            AsgiTestClient(application, "/nothing", [host, (b"x-forwarded-for", header)], **scope).ask()
    assert requests == [
        ("198.51.100.1", None),
        ("198.51.100.1", None),
        ("2001:db8::1", None),
        *[("192.0.2.8", None)] * 3,
    ]
    client = AsgiTestClient(application, "/nothing", [host, (b"x-forwarded-for", b"unknown")], client=("192.0.2.9", 1))
    assert client.ask().status == 400


@pytest.mark.thorough
@pytest.mark.parametrize("trusted", ["192.0.2.9", "none"])
def test_server_with_own_proxy_headers_is_refused(make_world: Any, trusted: str) -> None:
    """uvicorn reads forwarding headers itself without --no-proxy-headers."""
    world = make_world(**{"identity.trusted_proxy": trusted})
    host = (b"host", world.issuer.removeprefix("https://").encode())
    application = ProxyHeadersMiddleware(AsgiApplication(world.app), trusted_hosts="*")
    for peer in ("192.0.2.9", "192.0.2.8"):
        headers = [host, (b"x-forwarded-for", b"198.51.100.1")]
        answer = AsgiTestClient(application, "/healthz", headers, client=(peer, 1)).ask()
        assert (answer.status, b"must not read X-Forwarded-For" in answer.body) == (500, True)
        assert AsgiTestClient(application, "/healthz", [host], client=(peer, 1)).ask().status == 200


class StubPages:
    """Pages that block until released, stream a response, or read a request body."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.begun = 0
        self.closed: list[str] = []
        self.read: list[int] = []
        self.steps_aside = False
        self.limit = 200_000

    def wait(self, request: Request) -> Response:
        self.begun += 1
        with password_hashing.released_slot() if self.steps_aside else nullcontext():
            self.may_answer.wait(20)
        return Response(b"answered")

    def stream(self, request: Request) -> Response:
        def pieces() -> Iterator[bytes]:
            try:
                for _ in range(1000):
                    yield b"a" * 1000
                    if "wait" in request.GET:
                        self.begun += 1
                        self.may_answer.wait(20)
            finally:
                self.closed.append("stream")

        return Response(app_iter=pieces())

    def fail(self, request: Request) -> Response:
        def pieces() -> Iterator[bytes]:
            yield b"a"
            raise OSError("lost")

        return Response(app_iter=pieces())

    def take(self, request: Request) -> Response:
        if "refuse" in request.GET:
            return Response(status=403)
        body = read_uploaded_document(request, max_bytes=self.limit)
        if "wait" in request.GET:
            self.begun += 1
            self.may_answer.wait(20)
            self.read.append(len(body.read()))
        return Response(str(len(body.read())).encode())

    def split(self, request: Request) -> Response:
        response = Response(b"x")
        response.headerlist.append(("X-Said", "a\r\nSet-Cookie: b=c"))
        return response


@pytest.fixture
def pages(isolated_world: World) -> StubPages:
    stub_pages = StubPages()
    with Configurator(registry=isolated_world.app.registry) as config:
        config.setup_registry = lambda *_: None  # type: ignore[method-assign]
        for name in ("wait", "stream", "fail", "take", "split"):
            config.add_route(f"try.{name}", f"/try/{name}")
            config.add_view(getattr(stub_pages, name), route_name=f"try.{name}", permission=NO_PERMISSION_REQUIRED)
    return stub_pages


@pytest.fixture
def client_factory(isolated_world: World) -> Callable[..., AsgiTestClient]:
    application = AsgiApplication(isolated_world.app)
    host = (b"host", isolated_world.issuer.removeprefix("https://").encode())

    def make(path: str, *headers: tuple[bytes, bytes], **scope: Any) -> AsgiTestClient:
        return AsgiTestClient(application, path, [host, *headers], **scope)

    return make


def test_requests_wait_for_threads_in_a_short_queue_and_healthz_waits_for_nothing(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient]
) -> None:
    most = MAX_REQUEST_THREADS + MAX_QUEUED_REQUESTS
    clients = [client_factory("/try/wait", method="GET") for _ in range(most)]
    running = [client.begin() for client in clients]
    wait_for(lambda: pages.begun == MAX_REQUEST_THREADS)
    assert client_factory("/try/wait", method="GET").ask().status == 503
    assert client_factory("/try/wait", method="GET").ask().header("retry-after") == "5"
    assert client_factory("/healthz", method="GET").ask().status == 200
    assert client_factory("/oauth/v2/keys", method="GET").ask().status == 200
    pages.may_answer.set()
    for item in running:
        item.result(30)
    assert {client.status for client in clients} == {200}
    assert pages.begun == most


def test_waiting_thread_releases_its_slot(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_factory("/healthz")
    loop = asyncio.run_coroutine_threadsafe(_loop_of(client._application), event_loop()).result(5)
    monkeypatch.setattr(password_hashing, "released_slot", released_slot)
    pages.steps_aside = True
    running = [client_factory("/try/wait", method="GET").begin() for _ in range(3 * MAX_REQUEST_THREADS)]
    wait_for(lambda: pages.begun == 3 * MAX_REQUEST_THREADS)
    assert client_factory("/login", method="GET").ask().status == 303
    pages.may_answer.set()
    for item in running:
        item.result(30)
    assert loop.thread_pool.active_count == 0
    wait_for(lambda: loop.thread_pool._busy == 0)


async def _loop_of(application: AsgiApplication) -> Any:
    return application._loop_state()


def test_disconnect_does_not_cancel_started_request(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient]
) -> None:
    clients = [client_factory("/try/wait", method="GET") for _ in range(MAX_REQUEST_THREADS + 1)]
    running = [client.begin() for client in clients]
    wait_for(lambda: pages.begun == MAX_REQUEST_THREADS)
    for item in running:
        item.cancel()
    pages.may_answer.set()
    wait_for(lambda: client_factory("/try/wait", method="GET").ask().status == 200)


def test_streamed_response_is_complete_and_closed(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient]
) -> None:
    client = client_factory("/try/stream", method="GET").ask()
    assert client.body == b"a" * 1_000_000
    assert len(client.sent) > 100
    assert pages.closed == ["stream"]


@pytest.mark.thorough
def test_stream_ends_when_client_disconnects(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    client = client_factory("/try/stream", method="GET")
    client.leave()
    client.begin().result(30)
    assert len(client.body) < 1_000_000
    assert pages.closed == ["stream"]


def test_stream_ends_when_client_stops_reading(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.asgi.wsgi_adapter.CHUNK_TIMEOUT", 0.05)
    client = client_factory("/try/stream", method="GET")
    client.takes = 10
    client.ask()
    assert client.sent[-1]["more_body"]
    assert pages.closed == ["stream"]


def test_cancelled_stream_is_closed(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    client = client_factory("/try/stream", method="GET", query_string=b"wait=1")
    running = client.begin()
    wait_for(lambda: pages.begun == 1)
    client.leave()
    running.cancel()
    wait_for(running.done)
    assert pages.closed == []
    pages.may_answer.set()
    wait_for(lambda: pages.closed == ["stream"])


def test_failed_stream_is_not_terminated_normally(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient]
) -> None:
    client = client_factory("/try/fail", method="GET")
    client.send()
    with pytest.raises(OSError, match="lost"):
        client.begin().result(30)
    assert client.sent[-1]["more_body"]


@pytest.mark.thorough
def test_header_with_line_break_is_not_sent(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    client = client_factory("/try/split", method="GET")
    client.send()
    with pytest.raises(ValueError, match="line break"):
        client.begin().result(30)
    assert client.sent == []


@pytest.mark.thorough
@pytest.mark.parametrize("framing", [(b"content-length", b"150000"), (b"transfer-encoding", b"chunked")])
def test_large_body_is_read_when_the_view_requests_it(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient], framing: tuple[bytes, bytes]
) -> None:
    client = client_factory("/try/take", framing)
    for number in range(5):
        client.send(b"a" * 30_000, more=number < 4)
    client.begin().result(30)
    assert (client.status, client.body) == (200, b"150000")


def test_unrequested_large_body_is_not_read(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    client = client_factory("/try/take", (b"content-length", b"150000"), query_string=b"refuse=1")
    running = client.begin()
    wait_for(lambda: len(client.sent) == 2)
    assert (client.status, client.received) == (403, 0)
    client.leave()
    running.result(30)


@pytest.mark.thorough
@pytest.mark.parametrize("framing", [(b"content-length", b"300000"), (b"transfer-encoding", b"chunked")])
def test_large_body_over_its_limit_is_refused(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient], framing: tuple[bytes, bytes]
) -> None:
    client = client_factory("/try/take", framing)
    for number in range(10):
        client.send(b"a" * 30_000, more=number < 9)
    client.begin().result(30)
    assert client.status == 413


def test_large_body_is_read_completely_after_disconnect(
    pages: StubPages, client_factory: Callable[..., AsgiTestClient]
) -> None:
    """Security 20.12: applies even if the server cancels the task."""
    client = client_factory("/try/take", (b"content-length", b"150000"), query_string=b"wait=1")
    client.send(b"a" * 150_000)
    running = client.begin()
    wait_for(lambda: pages.begun == 1)
    client.leave()
    running.cancel()
    pages.may_answer.set()
    wait_for(lambda: pages.read == [150_000])


def test_large_body_uploads_are_shared_fairly(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    """Security 20.6: bodies of slow clients occupy disk space."""

    def sender(network: int) -> AsgiTestClient:
        client = client_factory("/try/take", (b"content-length", b"150000"), client=(f"198.51.{network}.1", 1))
        client.send(b"a" * 100_000, more=True)
        return client

    slow = [sender(1) for _ in range(8)]
    running = [client.begin() for client in slow]
    wait_for(lambda: all(client.received == 100_000 for client in slow))
    refused = sender(1)
    refusal = refused.begin()
    wait_for(lambda: bool(refused.sent))
    assert (refused.status, refused.header("retry-after")) == (503, "5")
    refused.leave()
    refusal.result(30)
    asgi_test_client = sender(2)
    asgi_test_client.send(b"a" * 50_000)
    asgi_test_client.begin().result(30)
    assert (asgi_test_client.status, asgi_test_client.body) == (200, b"150000")
    for item in slow:
        item.send(b"a" * 50_000)
    for entry in running:
        entry.result(30)
    assert {client.status for client in slow} == {200}


def test_slow_bodies_block_no_thread(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    """Security 20.13."""
    slow = [client_factory("/try/wait", (b"content-length", b"2")) for _ in range(300)]
    for client in slow:
        client.send(b"a", more=True)
    running = [client.begin() for client in slow]
    wait_for(lambda: all(client.received for client in slow))
    assert pages.begun == 0
    assert client_factory("/login", method="GET").ask().status == 303
    for client in slow:
        client.leave()
    for item in running:
        item.result(30)
    assert [client.sent for client in slow] == [[]] * 300
    assert pages.begun == 0


@pytest.mark.thorough
def test_slow_readers_block_no_thread(pages: StubPages, client_factory: Callable[..., AsgiTestClient]) -> None:
    """Security 20.13."""
    slow = [client_factory("/try/stream", method="GET") for _ in range(300)]
    for client in slow:
        client.takes = 3
        client.send()
    running = []
    try:
        # As many requests as may be queued for a thread.
        for at in range(0, len(slow), MAX_QUEUED_REQUESTS):
            running += [client.begin() for client in slow[at : at + MAX_QUEUED_REQUESTS]]
            wait_for(lambda: all(len(client.sent) == 3 for client in slow[: len(running)]))  # noqa: B023
        assert client_factory("/login", method="GET").ask().status == 303
    finally:
        for client in slow:
            client.leave()
    for item in running:
        item.result(30)
    assert pages.closed == ["stream"] * 300


def test_endpoints_run_in_threads_where_the_storage_blocks(
    isolated_world: World, client_factory: Callable[..., AsgiTestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    handle = token.ENDPOINT.handle
    handler = isolated_world.app.registry.endpoint_handlers["protocol.token"]

    class Noting:
        def __init__(self) -> None:
            self.handle = self._handle

        def _handle(self, *arguments: Any) -> Any:
            names.append(threading.current_thread().name)
            return handle(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(token.ENDPOINT, name)

    monkeypatch.setattr(handler, "endpoint", Noting())
    for limit, expected in ((0, "identity-request"), (8, "event-loop")):
        monkeypatch.setattr(isolated_world.identity.backend, "max_greenlets", limit, raising=False)
        client_factory("/healthz")._application._loop = None
        assert (
            client_factory("/oauth/v2/token", (b"content-type", FORM), (b"content-length", b"12"))
            .ask(b"grant_type=x")
            .status
        )
        assert names.pop().startswith(expected)


def test_lifespan_follows_the_process(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(type(isolated_world.identity), "close", lambda _: steps.append("closed"))
    application = AsgiApplication(isolated_world.app)

    async def live() -> None:
        stop = asyncio.Event()
        messages = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, Any]:
            message = next(messages)
            if message == "lifespan.shutdown":
                await stop.wait()
            return {"type": message}

        async def send(message: Any) -> None:
            steps.append(message["type"])
            stop.set()

        await application({"type": "lifespan"}, receive, send)

    asyncio.run_coroutine_threadsafe(live(), event_loop()).result(30)
    assert steps == ["lifespan.startup.complete", "closed", "lifespan.shutdown.complete"]
    assert password_hashing.released_slot is nullcontext
    assert applications.log.name == "identity.asgi.application"
