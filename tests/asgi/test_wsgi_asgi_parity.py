"""Pyramid and the ASGI application give the same responses: status, headers and body, except for random values."""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from webtest import TestApp

from identity.asgi import AsgiApplication
from identity.http.endpoint_handler import MAX_BODY_BYTES
from identity.storage.errors import StorageUnavailable
from identity.testing.asgi_adapter import WsgiToAsgiAdapter
from identity.testing.fixtures import WorldFactory
from identity.testing.service_test_client import FORM_CONTENT_TYPE, ServiceTestClient, bearer_headers, encode_form
from identity.testing.world import ServiceUserProgram, World

#: Ids, tokens and digests: values that differ between two responses of one server, too.
_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{16,}(\.[A-Za-z0-9_-]+){0,4}")
_AUTHORIZE = "/oauth/v2/authorize"

Ask = tuple[str, str, Mapping[str, str], bytes]


@pytest.fixture
def clients(world: World) -> tuple[ServiceTestClient, ServiceTestClient]:
    """A client of Pyramid, and a client of the ASGI application."""
    wsgi, asgi = TestApp(world.app), TestApp(WsgiToAsgiAdapter(AsgiApplication(world.app)))
    return ServiceTestClient(wsgi, world.issuer), ServiceTestClient(asgi, world.issuer)


def comparable(answer: Any, *, exact: bool = False) -> tuple[int, list[tuple[str, str]], str]:
    """The parts of a response that must be equal. ``exact``: only the request id is random."""
    # A body that was not read ends the connection; WSGI servers add that header themselves.
    headers = sorted((name.lower(), value) for name, value in answer.headerlist if name.lower() != "connection")
    masked = [(name, value if exact and name != "x-request-id" else _masked(value)) for name, value in headers]
    body = answer.body.decode("latin-1")
    return answer.status_int, masked, body if exact else _masked(body)


def _masked(text: str) -> str:
    return _RANDOM.sub("*", text)


def alike(clients: tuple[ServiceTestClient, ServiceTestClient], make: Callable[[], Ask]) -> int:
    """The status from both applications; ``make`` makes the request for each of them."""
    answers = []
    for client in clients:
        method, path, headers, body = make()
        url = client.issuer_url + path if path.startswith("/") else path
        answers.append(comparable(client.request(method, url, headers=headers, body=body)))
    assert answers[0] == answers[1]
    return answers[0][0]


def _post(path: str, form: Mapping[str, str], **headers: str) -> Ask:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return "POST", path, {"Content-Type": FORM_CONTENT_TYPE, **named}, encode_form(form)


@pytest.mark.sampled(51)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/oauth/v2/keys",
        "/oauth/v2/token",
        "/oauth/v2/introspect",
        "/oauth/v2/revoke",
        "/oauth/v2/userinfo",
        _AUTHORIZE,
        f"{_AUTHORIZE}/nothing",
        "/oauth/v2/endsession",
        "/healthz",
        "/readyz",
        "/",
        "/login",
        "/management/v1/organizations",
        "/nothing",
    ],
)
def test_methods_and_paths_match(clients: tuple[ServiceTestClient, ServiceTestClient], method: str, path: str) -> None:
    alike(clients, lambda: (method, path, {}, b""))
    alike(clients, lambda: (method, path, {"Origin": "https://app.example", "Accept": "text/html"}, b""))
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    alike(clients, lambda: (method, path, preflight, b""))


@pytest.mark.parametrize(
    "raw",
    [
        "/oauth/v2/token/",
        "//oauth/v2/token",
        "/oauth//v2/token",
        "/oauth/v2/%74oken",
        "/oauth/v2/token%0a",
        "/oauth/v2/token%00",
        "/oauth/v2%2Ftoken",
        "/oauth/v2/token;x",
        "/oauth/v2/../v2/token",
        "/oauth/v2/TOKEN",
        "/oauth/v2/authorize/%ff",
        "/oauth/v2/authorize/%C3%A4",
        "/oauth/v2/authorize/a/b",
        "/oauth/v2/authorize/",
        "/healthz/",
        "/%ff",
        "/static/%2e%2e/x",
    ],
)
def test_unusual_paths_match(clients: tuple[ServiceTestClient, ServiceTestClient], raw: str) -> None:
    alike(clients, lambda: ("POST", raw, {"Content-Type": FORM_CONTENT_TYPE}, b"grant_type=x"))
    alike(clients, lambda: ("GET", raw, {}, b""))


def test_token_endpoints_match(clients: tuple[ServiceTestClient, ServiceTestClient], world: World) -> None:
    robot: ServiceUserProgram = world.make_service_user_program()
    client = world.introspector
    person = world.obtain_tokens(world.make_web_application())
    token = person["access_token"]
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    def token_request(**changed: str) -> Ask:
        form = {"grant_type": grant, "assertion": robot.assertion(), "scope": "openid", **changed}
        return _post("/oauth/v2/token", form)

    assert alike(clients, token_request) == 200
    assert alike(clients, lambda: token_request(scope="openid nothing")) in (200, 400)
    assert alike(clients, lambda: token_request(assertion="x.y.z")) == 400
    assert alike(clients, lambda: token_request(grant_type="nothing")) == 400
    assert alike(clients, lambda: ("POST", "/oauth/v2/token", {"Content-Type": "text/plain"}, b"x")) == 400
    assert (
        alike(clients, lambda: ("POST", "/oauth/v2/token", {"Content-Type": FORM_CONTENT_TYPE}, b"a" * 70_000)) == 413
    )
    assert alike(
        clients, lambda: _post("/oauth/v2/token", {"grant_type": "client_credentials"}, Authorization="Basic x")
    )
    for path in ("introspect", "revoke"):
        for text in (token, "nothing"):
            form = {"token": text}
            if path == "introspect" or text == "nothing":
                found = alike(clients, lambda: _post(f"/oauth/v2/{path}", form, Authorization=client.header))  # noqa: B023
                assert found == 200
        assert alike(clients, lambda: _post(f"/oauth/v2/{path}", {"token": token})) == 401  # noqa: B023
    assert alike(clients, lambda: ("GET", "/oauth/v2/userinfo", bearer_headers(token), b"")) == 200
    assert alike(clients, lambda: ("GET", "/oauth/v2/userinfo", bearer_headers("nothing"), b"")) == 401
    assert (
        alike(
            clients,
            lambda: ("GET", "/oauth/v2/userinfo", {**bearer_headers(token), "Origin": "https://x.example"}, b""),
        )
        == 200
    )


def test_authorization_responses_match(clients: tuple[ServiceTestClient, ServiceTestClient], world: World) -> None:
    client, session = world.make_web_application(), world.make_browser_session()
    query = (
        f"client_id={client.client_id}&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback&response_type=code"
        "&scope=openid&code_challenge=a4ukh_JgMEK0VaMXX5nMTbVmnRiPR7LJOSGB6vWuGls&code_challenge_method=S256"
    )

    def ask(more: str = "", headers: Mapping[str, str] | None = None) -> int:
        return alike(clients, lambda: ("GET", f"{_AUTHORIZE}?{query}{more}", headers or {}, b""))

    assert ask(headers=session.headers) == 303
    assert ask() == 303
    assert ask("&response_mode=form_post", session.headers) == 200
    assert ask("&response_mode=form_post&prompt=none") == 200
    assert ask("&prompt=none") == 303
    assert ask("&ui_locales=de&client_id=x") == 400
    assert ask("&redirect_uri=https%3A%2F%2Fother.example") == 400
    body = query.encode() + b"&state=" + b"a" * 70_000
    assert alike(clients, lambda: ("POST", _AUTHORIZE, {"Content-Type": FORM_CONTENT_TYPE}, body)) == 413
    assert alike(clients, lambda: ("GET", "/oauth/v2/endsession", session.headers, b"")) in (200, 303)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_static_files_match(clients: tuple[ServiceTestClient, ServiceTestClient], world: World, method: str) -> None:
    for found in world.app.registry.pages.static:
        path = f"/static/{found.name}"
        answers = [
            comparable(client.request(method, client.issuer_url + path), exact=method != "POST") for client in clients
        ]
        assert answers[0] == answers[1]
        assert (answers[0][0] == 200) is (method != "POST")


def test_unknown_hosts_match(clients: tuple[ServiceTestClient, ServiceTestClient]) -> None:
    for path in ("/oauth/v2/token", _AUTHORIZE, "/healthz", "/nothing"):
        for accept in ("text/html", "*/*"):
            alike(clients, lambda: ("GET", "https://other.example" + path, {"Accept": accept}, b""))  # noqa: B023


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/oauth/v2/keys"])
def test_conditional_requests_match(clients: tuple[ServiceTestClient, ServiceTestClient], path: str) -> None:
    tag = clients[0].get(clients[0].issuer_url + path).headers["ETag"]
    answers = [
        comparable(client.get(client.issuer_url + path, {"If-None-Match": tag}), exact=True) for client in clients
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 304
    answers = [comparable(client.get(client.issuer_url + path), exact=True) for client in clients]
    assert answers[0] == answers[1]


@pytest.mark.thorough
def test_bodies_match(clients: tuple[ServiceTestClient, ServiceTestClient], world: World) -> None:
    bodies = (
        b"",
        b"grant_type=x&grant_type=y",
        b"%ff=%ff",
        b"\xff\0",
        b"token=abc",
        b"a" * MAX_BODY_BYTES,
        b"a" * 70_000,
    )
    for endpoint in world.identity.protocol_registry.endpoints:
        if "{" in endpoint.path:
            continue
        for authorization in ({}, {"Authorization": world.introspector.header}):
            for media_type in (FORM_CONTENT_TYPE, "application/json", f"{FORM_CONTENT_TYPE}; charset=utf-8"):
                headers = {"Content-Type": media_type, **authorization}
                for body in bodies:
                    alike(clients, lambda: ("POST", endpoint.path, headers, body))  # noqa: B023


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "x" * 500},
        {"Authorization": "Basic !"},
        {"Cookie": "__Host-session-a=b; \xff", "User-Agent": "\xff\x01"},
        {"If-None-Match": '"a", *'},
        {"Accept-Language": "de, en;q=0.5", "Accept": "text/html"},
        {"Host": "ID.Example.COM"},
        {"Host": "id.example.com:443"},
        {"Host": "id.example.com:80"},
        {"Host": "[::1]"},
    ],
    ids=lambda headers: " ".join(headers),
)
def test_unusual_headers_match(
    clients: tuple[ServiceTestClient, ServiceTestClient], world: World, headers: Mapping[str, str]
) -> None:
    for endpoint in world.identity.protocol_registry.endpoints:
        path = endpoint.path.replace("{request}", "01a22020-bfda-77a8-a5e0-765a2c752e4b")
        for method in (*endpoint.methods, "BREW"):
            alike(clients, lambda: (method, path, headers, b""))  # noqa: B023


def test_three_hosts_match(three_host_world: World) -> None:
    settings = three_host_world.identity.settings
    apps = three_host_world.app, WsgiToAsgiAdapter(AsgiApplication(three_host_world.app))
    first, second = (ServiceTestClient(TestApp(app), three_host_world.issuer) for app in apps)
    for url in (settings.issuer_url, settings.base_url, settings.login_url):
        for endpoint in three_host_world.identity.protocol_registry.endpoints:
            alike((first, second), lambda: ("GET", url + endpoint.path, {}, b""))  # noqa: B023


@pytest.mark.thorough
@pytest.mark.parametrize("error", [StorageUnavailable("away"), RuntimeError("a mistake")], ids=["away", "mistake"])
def test_failures_match(isolated_world: World, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise error

    client = isolated_world.make_web_application()
    query = urlencode({"client_id": client.client_id, "redirect_uri": "https://app.example/callback"})
    first, second = isolated_world.app, WsgiToAsgiAdapter(AsgiApplication(isolated_world.app))
    clients = (
        ServiceTestClient(TestApp(first), isolated_world.issuer),
        ServiceTestClient(TestApp(second), isolated_world.issuer),
    )
    monkeypatch.setattr(isolated_world.identity.backend, "read_session", fail)
    monkeypatch.setattr(isolated_world.identity.backend, "join_transaction", fail)
    form = b"grant_type=client_credentials&token=x"
    for endpoint in isolated_world.identity.protocol_registry.endpoints:
        path = endpoint.path.replace("{request}", "unknown")
        for method in endpoint.methods:
            for headers in ({}, bearer_headers("some-token"), {"Accept": "text/html"}):
                body = form if method == "POST" else b""
                sent = {"Content-Type": FORM_CONTENT_TYPE, **headers}
                answers = [_sent(client, method, isolated_world.issuer + path, sent, body) for client in clients]
                assert answers[0] == answers[1], (method, path)
        answers = [_sent(client, "GET", f"{isolated_world.issuer}{path}?{query}", {}, b"") for client in clients]
        assert answers[0] == answers[1], path


def _sent(client: ServiceTestClient, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Any:
    """The response, or the class of the exception that reaches the server."""
    try:
        return comparable(client.request(method, url, headers=headers, body=body))
    except RuntimeError as mistake:
        return type(mistake)


def test_access_log_has_one_line_per_request(make_world: WorldFactory, caplog: pytest.LogCaptureFixture) -> None:
    name = "identity.http.access_log"
    # The application decides at its creation whether it writes access log lines.
    caplog.set_level(logging.INFO, logger=name)
    world = make_world()
    for app in (world.app, WsgiToAsgiAdapter(AsgiApplication(world.app))):
        caplog.clear()
        client = ServiceTestClient(TestApp(app), world.issuer)
        for path in ("/healthz", "/oauth/v2/keys", "/readyz", _AUTHORIZE, "/nothing"):
            client.get(world.issuer + path)
        assert [record.getMessage().rpartition(",")[0] for record in caplog.records if record.name == name] == [
            "GET /healthz 200",
            "GET /oauth/v2/keys 200",
            "GET /readyz 200",
            f"GET {_AUTHORIZE} 400",
            "GET no route 404",
        ]
