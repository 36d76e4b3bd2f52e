"""The id of a request: who may set it, and where it appears."""

import http.client
import json
import logging
from io import StringIO
from typing import Any

import pytest

from identity.http.environ_keys import PEER_KEY
from identity.log_formatters import JsonFormatter
from identity.testing.fixtures import WorldFactory
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import World
from tests.asgi_server import serving_asgi
from tests.http_server import loopback_socket

PROXY = "192.0.2.7"
SENT = "an-id-of-the-proxy.1:2"


def send_request(world: World, sent: str | None = SENT, peer: str = PROXY) -> Any:
    headers = {} if sent is None else {"X-Request-ID": sent}
    return world.client.request("GET", f"{world.issuer}/nowhere", headers=headers, environ={PEER_KEY: peer})


def ids_of(answer: Any) -> set[str]:
    return {answer.json["request_id"], *answer.headers.getall("X-Request-ID")}


def test_request_id_is_unique(world: World) -> None:
    found = [world.client.get(f"{world.issuer}{path}") for path in (DISCOVERY_PATH, "/healthz", "/nowhere", "/login")]
    ids = [item for answer in found for item in answer.headers.getall("X-Request-ID")]
    assert len(set(ids)) == len(found)


def test_request_id_of_client_is_ignored(world: World) -> None:
    assert SENT not in ids_of(send_request(world))


def test_request_id_of_trusted_proxy_is_used(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.trusted_proxy": PROXY})
    assert ids_of(send_request(world)) == {SENT}
    assert SENT not in ids_of(send_request(world, peer="192.0.2.8"))
    assert len(ids_of(send_request(world, sent=None))) == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sent", ["short", "x" * 65, "with space in it", "ümlautümlaut", "semi;colon;;", "\u0661" * 9, ""]
)
def test_malformed_request_id_is_ignored(make_world: WorldFactory, sent: str) -> None:
    world = make_world(**{"identity.trusted_proxy": PROXY})
    [found] = ids_of(send_request(world, sent=sent.encode().decode("latin-1")))
    assert found != sent


def test_log_lines_have_the_request_id(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def wake(*_: object) -> None:
        logging.getLogger("some.plugin").warning("in the middle of it")

    output = StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonFormatter())
    monkeypatch.setattr(type(world.identity.background_worker), "wake", wake)
    logging.getLogger("some.plugin").addHandler(handler)
    answers = [world.client.get(f"{world.issuer}{DISCOVERY_PATH}") for _ in range(2)]
    wake()
    logging.getLogger("some.plugin").removeHandler(handler)
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line.get("request_id") for line in lines] == [*(answer.headers["X-Request-ID"] for answer in answers), None]


@pytest.mark.thorough
@pytest.mark.parametrize("proxy", ["127.0.0.1", "192.0.2.7"])
def test_only_trusted_proxy_request_id_is_kept(make_world: WorldFactory, proxy: str) -> None:
    world = make_world(**{"identity.trusted_proxy": proxy})
    bound = loopback_socket()
    host, port = bound.getsockname()
    with serving_asgi(world.app, bound):
        connection = http.client.HTTPConnection(host, port, timeout=30)
        found = []
        for number in range(2):
            sent = {"Host": "id.example.com", "X-Request-ID": f"{SENT}{number}", "X-Forwarded-For": "192.0.2.7"}
            connection.request("GET", "/healthz", headers=sent)
            answer = connection.getresponse()
            answer.read()
            found.append(answer.headers["X-Request-ID"])
        connection.close()
    assert (found == [f"{SENT}0", f"{SENT}1"]) is (proxy == "127.0.0.1")
