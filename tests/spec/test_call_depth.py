"""Only a few function calls lie between a service and its statement, since each costs a good part of a statement."""

import asyncio
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from webtest import TestApp

import identity
from identity.asgi import AsgiApplication
from identity.testing.asgi_adapter import request_in_loop, scope_from_environ
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import ServiceTestClient
from identity.testing.world import World

pytestmark = pytest.mark.every_storage

#: The maximum number of our frames between a method of a service and the driver.
MOST = 8
#: The same for a batched statement on PostgreSQL, where each request runs its part.
MOST_SHARED = 10
_SHARED = "plugins/sql/query_batching.py:execute"

_OURS = str(Path(identity.__file__).parent)
_DRIVER = re.compile("/(psycopg|pymysql)/").search
_SERVICES = str(Path(_OURS, "services"))


class InThisThread:
    """Runs the ASGI application in an event loop of this thread, together with ``beside`` requests."""

    def __init__(self, application: AsgiApplication) -> None:
        self.registry = application.registry
        self.loop = asyncio.new_event_loop()
        #: Makes the body of another request from the body of a request.
        self.beside: Callable[[bytes], bytes] | None = None
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        body, scope = environ["wsgi.input"].read(), scope_from_environ(environ)

        bodies = [body] if self.beside is None else [body, self.beside(body)]

        async def together() -> Any:
            return await asyncio.gather(*(request_in_loop(self._application, dict(scope), body) for body in bodies))

        (status, headers, content), *_ = self.loop.run_until_complete(together())
        start_response(f"{status} OK", headers)
        return [content]


@pytest.fixture(params=["threads", "greenlets"], autouse=True)
def transport(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application in this thread, because tracing covers one thread only. Greenlets share statements."""
    if request.param == "greenlets" and not world.identity.backend.max_greenlets:
        pytest.skip("its endpoints run in threads")
    wsgi_app: Any = world.app if request.param == "threads" else InThisThread(AsgiApplication(world.app))
    monkeypatch.setitem(world.__dict__, "client", ServiceTestClient(TestApp(wsgi_app), world.issuer))
    yield wsgi_app
    if isinstance(wsgi_app, InThisThread):
        wsgi_app.loop.close()


@contextmanager
def statements() -> Iterator[list[list[str]]]:
    """Our frames from the first service down, for each statement that services send."""
    found: list[list[str]] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        is_sqlite = event == "c_call" and getattr(argument, "__name__", "") == "execute"
        is_driver = event == "call" and frame.f_code.co_name == "execute" and _DRIVER(frame.f_code.co_filename)
        if not (is_sqlite or is_driver):
            return
        frames: list[str] = []
        above: FrameType | None = frame
        length = 0
        while above is not None:
            if above.f_code.co_filename.startswith(_OURS):
                frames.append(f"{above.f_code.co_filename[len(_OURS) + 1 :]}:{above.f_code.co_name}")
                if above.f_code.co_filename.startswith(_SERVICES):
                    length = len(frames)
            above = above.f_back
        if length:
            found.append(frames[:length][::-1])

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


def check(found: list[list[str]]) -> None:
    assert found
    for frames in found:
        assert len(frames) <= (MOST_SHARED if _SHARED in frames else MOST), "\n".join(frames)


@pytest.fixture
def world(world: World) -> World:
    if world.identity.backend.name != "sql":
        pytest.skip("it has no statements")
    return world


def test_token_calls_few_functions_for_each_statement(world: World, transport: Any) -> None:
    robot = world.make_service_user_program()
    robot.request_token()
    transport.beside = bytes
    with statements() as found:
        check_token_response(robot.request_token())
    check(found)


def test_introspection_calls_few_functions_for_each_statement(world: World, transport: Any) -> None:
    tokens = [world.make_service_user_program().access_token() for _ in range(2)]
    world.client.introspect(tokens[0], world.introspector)
    transport.beside = lambda body: body.replace(*(token.encode() for token in tokens))
    with statements() as found:
        world.client.introspect(tokens[0], world.introspector)
    check(found)


def test_refresh_calls_few_functions_for_each_statement(world: World, transport: Any) -> None:
    client = world.make_web_application()
    tokens = [
        world.refresh(world.obtain_tokens(client, world.make_browser_session())["refresh_token"], client).json[
            "refresh_token"
        ]
        for _ in range(2)
    ]
    transport.beside = lambda body: body.replace(*(token.encode() for token in tokens))
    with statements() as found:
        check_token_response(world.refresh(tokens[0], client))
    check(found)
