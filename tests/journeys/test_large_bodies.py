"""Bodies over the server's limit are read only from authorized clients, over a real connection."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.storage.paging import iterate_rows
from identity.storage.stores.users import UserKind
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import Browser
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.world import World
from tests.asgi_server import serving_asgi, serving_in_worker
from tests.http_server import loopback_socket

pytestmark = pytest.mark.thorough

PATH = "/management/v1/organizations/import"
#: About 2 MB, twice the limit of other requests.
PEOPLE = 8000


@pytest.fixture(scope="module", params=[serving_in_worker, serving_asgi], ids=["identity-serve", "uvicorn"])
def serving(request: pytest.FixtureRequest) -> Any:
    """With both servers, the application itself must ensure that a client which is still sending gets the response."""
    return request.param


@pytest.fixture(scope="module")
def port(server: World, bound: socket.socket, serving: Any) -> Iterator[int]:
    address: int = bound.getsockname()[1]
    with serving(server.app, bound):
        yield address


@pytest.fixture(scope="module")
def bound(serving: Any) -> socket.socket:
    return loopback_socket()


@pytest.fixture(scope="module")
def server(database_factory: DatabaseFactory, key_pool: RsaKeyPool, bound: socket.socket) -> Iterator[World]:
    issuer = f"http://127.0.0.1:{bound.getsockname()[1]}"
    settings = {"identity.issuer_url": issuer, "identity.development": "true", "identity.import_limit": "3"}
    world = World(database_factory.new_database_settings("sqlite") | settings, clock=TickingClock(), key_pool=key_pool)
    world.bootstrap()
    yield world
    world.close()


@pytest.fixture
def token(server: World) -> str:
    return server.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()


def document(domain: str, people: int = PEOPLE) -> bytes:
    user = {"given_name": "A" * 100, "family_name": "B" * 100}
    users = [{"user_name": f"u{number}", **user} for number in range(people)]
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    return json.dumps({**head, "organization": {"name": "Large", "primary_domain": domain, "users": users}}).encode()


class RawConnection:
    """A connection for handwritten HTTP."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._heard = self._socket.makefile("rb")
        self._port = port

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self._socket.sendall(part)

    def ask(self, *headers: str, path: str = PATH) -> None:
        lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}", *headers]
        if not any(header.startswith("Content-Type") for header in headers):
            lines.append("Content-Type: application/json")
        self.send("\r\n".join([*lines, "", ""]).encode())

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        status = int(self._heard.readline().split()[1])
        headers = {}
        while line := self._heard.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self._heard.read(int(headers.get("content-length", 0)))

    def end_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._heard.close()
        self._socket.close()

    def is_over(self) -> bool:
        return self._heard.read(1) == b""


Connect = Callable[[], RawConnection]


@pytest.fixture
def connect(port: int) -> Iterator[Connect]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(RawConnection(port)))


def count(server: World, domain: str) -> int | None:
    with server.read_only_services() as services:
        organization = services.storage.organizations.find_by_domain(domain)
        if organization is None:
            return None
        return sum(1 for _ in iterate_rows(partial(services.storage.users.page, organization.id, UserKind.HUMAN)))


def chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 50_000):
        part = body[start : start + 50_000]
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


@pytest.mark.exhaustive
def test_authorized_import_of_a_large_body_keeps_the_connection(server: World, connect: Connect, token: str) -> None:
    connection = connect()
    for domain in ("first.localhost", "second.localhost"):
        body = document(domain)
        connection.ask(f"Authorization: Bearer {token}", f"Content-Length: {len(body)}")
        connection.send(body)
        status, headers, _ = connection.answer()
        assert (status, headers.get("connection")) == (201, None)
        assert count(server, domain) == PEOPLE


@pytest.mark.exhaustive
def test_chunked_large_body_is_imported(server: World, connect: Connect, token: str) -> None:
    connection = connect()
    connection.ask(f"Authorization: Bearer {token}", "Transfer-Encoding: chunked")
    connection.send(*chunks(document("chunks.localhost")))
    assert connection.answer()[0] == 201
    assert count(server, "chunks.localhost") == PEOPLE


def test_expect_continue_is_answered_after_authorization(server: World, connect: Connect, token: str) -> None:
    """RFC 9110 §10.1.1; curl does this with every large body."""
    body = document("expected.localhost")
    connection = connect()
    connection.ask(f"Authorization: Bearer {token}", f"Content-Length: {len(body)}", "Expect: 100-continue")
    assert connection.answer()[0] == 100
    connection.send(body)
    assert connection.answer()[0] == 201
    assert count(server, "expected.localhost") == PEOPLE


@pytest.mark.parametrize("expects", [(), ("Expect: 100-continue",)])
@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("sender", ["nobody", "a wrong token", "a manager of another kind"])
def test_unauthorized_large_body_is_not_read(
    server: World, connect: Connect, sender: str, framing: str, expects: tuple[str, ...]
) -> None:
    tokens = {
        "nobody": [],
        "a wrong token": ["Authorization: Bearer wrong"],
        "a manager of another kind": [
            f"Authorization: Bearer {server.make_manager_program('ORG_OWNER').management_token()}"
        ],
    }
    connection = connect()
    length = "Content-Length: 3000000" if framing == "length" else "Transfer-Encoding: chunked"
    connection.ask(*tokens[sender], length, *expects)
    if framing == "chunks":
        if expects:
            # The length of a chunked body is not known in advance.
            assert connection.answer()[0] == 100
        connection.send(*(b"8000\r\n" + b"x" * 32_768 + b"\r\n" for _ in range(33)))
    status, headers, content = connection.answer()
    assert status == (403 if "manager" in sender else 401)
    assert headers["connection"] == "close"
    assert "request_id" in json.loads(content)
    assert connection.is_over()


@pytest.mark.exhaustive
def test_console_form_imports_a_large_file(server: World, connect: Connect) -> None:
    """The body is read if the session is valid, and processed if the form token is valid."""
    person, browser = server.make_human_user(), Browser(server)
    server.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser.start_session(person)
    browser.open("/console/organizations/import")
    fields = dict(browser.find_form("page-form").submit_fields())
    cookie = browser.cookies.header(browser.url, server.clock(), method="POST", site="same-origin")
    for domain, token, cookies, status in (
        ("stranger.localhost", fields["csrf_token"], "", 303),
        ("forged.localhost", "x" * 43, cookie, 422),
        ("form.localhost", fields["csrf_token"], cookie, 303),
    ):
        sent = [("csrf_token", token), ("once", fields["once"])]
        files = [("document", "large.json", document(domain))]
        kind, body = server.client.app.encode_multipart(sent, files)
        connection = connect()
        connection.ask(
            f"Content-Length: {len(body)}",
            f"Content-Type: {kind}",
            f"Cookie: {cookies}",
            "Accept: text/html",
            "Sec-Fetch-Site: same-origin",
            path="/console/organizations/import",
        )
        with suppress(OSError):
            connection.send(body)
        assert connection.answer()[0] == status, domain
        assert count(server, domain) == (PEOPLE if domain == "form.localhost" else None)


def test_other_addresses_take_no_more_than_before(connect: Connect, token: str) -> None:
    for path in ("/management/v1/organizations", "/oauth/v2/token", "/management/v1/organizations/import/x"):
        connection = connect()
        connection.ask(f"Authorization: Bearer {token}", "Content-Length: 3000000", "Expect: 100-continue", path=path)
        status, headers, _ = connection.answer()
        assert status in (404, 413), path
        assert headers["connection"] == "close"


def test_body_over_the_limit_is_refused_unread(connect: Connect, token: str) -> None:
    connection = connect()
    connection.ask(f"Authorization: Bearer {token}", "Content-Length: 3145729")
    status, _, content = connection.answer()
    assert (status, json.loads(content)["message"]) == (413, "The body is larger than 3145728 bytes.")
    assert connection.is_over()


def test_chunked_body_over_the_limit_is_refused(server: World, connect: Connect, token: str) -> None:
    connection = connect()
    connection.ask(f"Authorization: Bearer {token}", "Transfer-Encoding: chunked")
    with suppress(OSError):
        connection.send(*chunks(document("beyond.localhost", people=3 * PEOPLE)))
    assert connection.answer()[0] == 413
    assert count(server, "beyond.localhost") is None


def test_incomplete_body_leaves_nothing(server: World, connect: Connect, token: str) -> None:
    body = document("cut.localhost")
    connection = connect()
    connection.ask(f"Authorization: Bearer {token}", f"Content-Length: {len(body)}")
    connection.send(body[:-1000])
    connection.end_sending()
    assert connection.is_over()
    assert count(server, "cut.localhost") is None
