"""A transaction that conflicts with another is retried; one that cannot be committed reports an error."""

from io import BytesIO

import pytest

from identity.http.environ_keys import UNREAD_BODY_KEY
from identity.testing.world import World
from tests.http.transaction_conflicts import contend

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def contended(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The outcomes of the next commits; False is a conflict."""
    return contend(isolated_world, monkeypatch)


def test_conflicting_commit_is_retried(isolated_world: World, contended: list[bool]) -> None:
    robot = isolated_world.make_service_user_program()
    contended.extend([False] * 3)
    answer = robot.request_token()
    assert answer.status_int == 200
    assert contended == []
    assert isolated_world.client.fetch_userinfo(answer.json["access_token"]).status_int == 200


def test_last_attempt_answers_retry_after(isolated_world: World, contended: list[bool]) -> None:
    robot = isolated_world.make_service_user_program()
    contended.extend([False] * 4)
    answer = robot.request_token()
    assert (answer.status_int, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.headers["Retry-After"]
    assert robot.request_token().status_int == 200


def test_body_is_not_kept_without_write_conflicts(isolated_world: World, contended: list[bool]) -> None:
    robot = isolated_world.make_service_user_program()
    isolated_world.identity.backend.has_write_conflicts = False
    contended.append(False)
    assert robot.request_token().status_int == 503


def test_unread_body_is_refused_and_not_kept(isolated_world: World, contended: list[bool]) -> None:
    """Both servers mark a body over their limit in this way: Content-Length is set, and the input is empty."""
    unread = {"wsgi.input": BytesIO(), UNREAD_BODY_KEY: None}
    answer = isolated_world.client.app.request(
        f"{isolated_world.issuer}/oauth/v2/token",
        method="POST",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "99999999"},
        environ=unread,
        expect_errors=True,
    )
    assert contended == []
    assert answer.status_int == 413
