"""A transaction that lost against another is tried again; one that cannot be committed is told as such."""

from io import BytesIO

import pytest

from identity.http.environ import UNREAD_BODY
from identity.testing.world import World
from tests.http.contention import contend

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def contended(own_world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Outcomes of the next commits of the world: False loses."""
    return contend(own_world, monkeypatch)


def test_a_commit_that_lost_is_tried_again(own_world: World, contended: list[bool]) -> None:
    robot = own_world.a_robot()
    contended.extend([False] * 3)
    answer = robot.token()
    assert answer.status_int == 200
    assert contended == []
    assert own_world.client.userinfo(answer.json["access_token"]).status_int == 200


def test_after_the_last_attempt_the_client_is_told_to_come_back(own_world: World, contended: list[bool]) -> None:
    robot = own_world.a_robot()
    contended.extend([False] * 4)
    answer = robot.token()
    assert (answer.status_int, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.headers["Retry-After"]
    assert robot.token().status_int == 200


def test_where_transactions_never_lose_nothing_is_kept_for_another_attempt(
    own_world: World, contended: list[bool]
) -> None:
    robot = own_world.a_robot()
    own_world.identity.backend.contends = False
    contended.append(False)
    assert robot.token().status_int == 503


def test_a_body_that_the_server_has_not_read_is_refused_and_not_kept_for_another_attempt(
    own_world: World, contended: list[bool]
) -> None:
    """As both servers ask for the refusal of a body over their limit: its length is told, and it is empty."""
    unread = {"wsgi.input": BytesIO(), UNREAD_BODY: None}
    answer = own_world.client.app.request(
        f"{own_world.issuer}/oauth/v2/token",
        method="POST",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "99999999"},
        environ=unread,
        expect_errors=True,
    )
    assert contended == []
    assert answer.status_int == 413
