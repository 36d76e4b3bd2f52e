"""From a service to its statement there are few calls of ours: each costs as much as a good part of a statement."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from webtest import TestApp

import identity
from identity.testing.responses import check_granted
from identity.testing.service_client import ServiceClient
from identity.testing.world import World

pytestmark = pytest.mark.every_storage

#: Frames of ours from a method of a service to the driver.
MOST = 8

_OURS = str(Path(identity.__file__).parent)
_DRIVER = re.compile("/(psycopg|pymysql)/").search
_SERVICES = str(Path(_OURS, "services"))


@pytest.fixture(autouse=True)
def in_this_thread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are looked at in this thread alone; an event loop has one of its own."""
    monkeypatch.setitem(world.__dict__, "client", ServiceClient(TestApp(world.app), world.issuer))


@contextmanager
def statements() -> Iterator[list[list[str]]]:
    """For each statement that services send, the frames of ours from the first service down."""
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
    longest = max(found, key=len)
    assert len(longest) <= MOST, "\n".join(longest)


@pytest.fixture
def world(world: World) -> World:
    if world.identity.backend.name != "sql":
        pytest.skip("it has no statements")
    return world


def test_token_calls_few_functions_for_each_statement(world: World) -> None:
    robot = world.a_robot()
    robot.token()
    with statements() as found:
        check_granted(robot.token())
    check(found)


def test_introspection_calls_few_functions_for_each_statement(world: World) -> None:
    token = world.a_robot().access_token()
    world.client.introspect(token, world.introspector)
    with statements() as found:
        world.client.introspect(token, world.introspector)
    check(found)


def test_refresh_calls_few_functions_for_each_statement(world: World) -> None:
    client = world.a_web_application()
    members = world.tokens(client, world.a_session(), scope="openid offline_access")
    members = check_granted(world.refresh(members["refresh_token"], client))
    with statements() as found:
        check_granted(world.refresh(members["refresh_token"], client))
    check(found)
