"""Security 20.12: a begun request is finished though its client left, and touches nobody else's answer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import create_engine, text
from tests.asgi.test_application import FORM, Client, wait_for

from identity.asgi import Application
from identity.provider.endpoints import token
from identity.testing.world import World

pytestmark = pytest.mark.storages("sqlite", "postgresql")

_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@contextmanager
def writes_held_up(world: World) -> Iterator[None]:
    """Lock what tokens are written to from another connection meanwhile."""
    engine = create_engine(world.settings["identity.plugin.sql.url"])
    is_sqlite = engine.dialect.name == "sqlite"
    lock = "BEGIN IMMEDIATE" if is_sqlite else "LOCK TABLE access_tokens IN EXCLUSIVE MODE"
    with engine.connect() as connection:
        connection.execute(text(lock))
        yield
        connection.rollback()
    engine.dispose()


def stored_tokens(world: World) -> int:
    engine = create_engine(world.settings["identity.plugin.sql.url"])
    with engine.connect() as connection:
        found: int = connection.execute(text("SELECT count(*) FROM access_tokens")).scalar_one()
    engine.dispose()
    return found


def test_requests_are_finished_though_every_second_client_leaves_while_a_batch_waits(
    own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(own_world.app)
    many = min(16, own_world.identity.backend.max_greenlets) // 2 * 2
    robot = own_world.a_robot()
    before = stored_tokens(own_world)
    begun: list[object] = []
    handler = own_world.app.registry.endpoint_handlers["protocol.token"]
    handle = token.ENDPOINT.handle

    class Counting:
        def handle(self, *arguments: Any) -> Any:
            begun.append(arguments)
            return handle(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(token.ENDPOINT, name)

    monkeypatch.setattr(handler, "endpoint", Counting())
    host = (b"host", own_world.issuer.removeprefix("https://").encode())
    assertions = [robot.assertion(jti=f"assertion-{number}") for number in range(many)]
    scope, clients = f"openid {own_world.audience_scope()}", []
    with writes_held_up(own_world):
        running = []
        for assertion in assertions:
            body = urlencode({"grant_type": _GRANT, "scope": scope, "assertion": assertion}).encode()
            headers = [host, (b"content-type", FORM), (b"content-length", str(len(body)).encode())]
            client = Client(application, "/oauth/v2/token", headers)
            client.send(body)
            clients.append(client)
            running.append(client.begin())
        wait_for(lambda: len(begun) >= many)
        assert [client.sent for client, one in zip(clients, running, strict=True) if one.done()] == []
        for one in running[::2]:
            one.cancel()
    for one in running[1::2]:
        one.result(30)
    loop = application._loop
    assert loop is not None
    wait_for(lambda: loop.greenlets.busy == 0)
    answers = [json.loads(client.body) for client in clients[1::2]]
    assert [client.sent for client in clients[::2]] == [[]] * (many // 2)
    assert stored_tokens(own_world) - before == many
    assert len({answer["access_token"] for answer in answers}) == many // 2
    for answer in answers:
        assert own_world.client.introspect(answer["access_token"], own_world.introspector).json["active"]
    # Each assertion was used, those of the clients that left, too.
    for assertion in assertions:
        assert own_world.client.assertion(assertion, "openid").status_int == 400
