"""Pyramid and the ASGI application answer alike: status, headers and body, apart from what is random."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from webtest import TestApp

from identity.asgi import Application
from identity.testing.over_asgi import OverASGI
from identity.testing.service_client import FORM, ServiceClient, bearer, form_encoded
from identity.testing.world import Robot, World

#: Ids, tokens, digests, and Host names' order of nothing else: what two answers of one server do not share either.
_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{16,}(\.[A-Za-z0-9_-]+){0,4}")
_AUTHORIZE = "/oauth/v2/authorize"

Ask = tuple[str, str, Mapping[str, str], bytes]


@pytest.fixture
def ways(world: World) -> tuple[ServiceClient, ServiceClient]:
    """A client of Pyramid, and one of the ASGI application."""
    wsgi, asgi = TestApp(world.app), TestApp(OverASGI(Application(world.app)))
    return ServiceClient(wsgi, world.issuer), ServiceClient(asgi, world.issuer)


def shown(answer: Any, *, exact: bool = False) -> tuple[int, list[tuple[str, str]], str]:
    """What has to be alike; ``exact`` for answers that hold nothing random but the request's id."""
    # A body that was not read ends the connection, which WSGI servers say by themselves.
    headers = sorted((name.lower(), value) for name, value in answer.headerlist if name.lower() != "connection")
    masked = [(name, value if exact and name != "x-request-id" else _masked(value)) for name, value in headers]
    body = answer.body.decode("latin-1")
    return answer.status_int, masked, body if exact else _masked(body)


def _masked(text: str) -> str:
    return _RANDOM.sub("*", text)


def alike(ways: tuple[ServiceClient, ServiceClient], make: Callable[[], Ask]) -> int:
    """The status with which both answer a request, which is made for each of them anew."""
    answers = []
    for way in ways:
        method, path, headers, body = make()
        url = way.issuer_url + path if path.startswith("/") else path
        answers.append(shown(way.request(method, url, headers=headers, body=body)))
    assert answers[0] == answers[1]
    return answers[0][0]


def _post(path: str, form: Mapping[str, str], **headers: str) -> Ask:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return "POST", path, {"Content-Type": FORM, **named}, form_encoded(form)


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
def test_any_method_at_any_address(ways: tuple[ServiceClient, ServiceClient], method: str, path: str) -> None:
    alike(ways, lambda: (method, path, {}, b""))
    alike(ways, lambda: (method, path, {"Origin": "https://app.example", "Accept": "text/html"}, b""))
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    alike(ways, lambda: (method, path, preflight, b""))


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
def test_odd_paths_lead_to_the_same(ways: tuple[ServiceClient, ServiceClient], raw: str) -> None:
    alike(ways, lambda: ("POST", raw, {"Content-Type": FORM}, b"grant_type=x"))
    alike(ways, lambda: ("GET", raw, {}, b""))


def test_tokens_and_what_is_asked_of_them(ways: tuple[ServiceClient, ServiceClient], world: World) -> None:
    robot: Robot = world.a_robot()
    client = world.introspector
    person = world.tokens(world.a_web_application())
    token = person["access_token"]
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    def asked(**changed: str) -> Ask:
        form = {"grant_type": grant, "assertion": robot.assertion(), "scope": "openid", **changed}
        return _post("/oauth/v2/token", form)

    assert alike(ways, asked) == 200
    assert alike(ways, lambda: asked(scope="openid nothing")) in (200, 400)
    assert alike(ways, lambda: asked(assertion="x.y.z")) == 400
    assert alike(ways, lambda: asked(grant_type="nothing")) == 400
    assert alike(ways, lambda: ("POST", "/oauth/v2/token", {"Content-Type": "text/plain"}, b"x")) == 400
    assert alike(ways, lambda: ("POST", "/oauth/v2/token", {"Content-Type": FORM}, b"a" * 70_000)) == 413
    assert alike(ways, lambda: _post("/oauth/v2/token", {"grant_type": "client_credentials"}, Authorization="Basic x"))
    for path in ("introspect", "revoke"):
        for text in (token, "nothing"):
            form = {"token": text}
            if path == "introspect" or text == "nothing":
                found = alike(ways, lambda: _post(f"/oauth/v2/{path}", form, Authorization=client.header))  # noqa: B023
                assert found == 200
        assert alike(ways, lambda: _post(f"/oauth/v2/{path}", {"token": token})) == 401  # noqa: B023
    assert alike(ways, lambda: ("GET", "/oauth/v2/userinfo", bearer(token), b"")) == 200
    assert alike(ways, lambda: ("GET", "/oauth/v2/userinfo", bearer("nothing"), b"")) == 401
    assert (
        alike(ways, lambda: ("GET", "/oauth/v2/userinfo", {**bearer(token), "Origin": "https://x.example"}, b"")) == 200
    )


def test_codes_and_pages_of_authorization(ways: tuple[ServiceClient, ServiceClient], world: World) -> None:
    client, session = world.a_web_application(), world.a_session()
    query = (
        f"client_id={client.client_id}&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback&response_type=code"
        "&scope=openid&code_challenge=a4ukh_JgMEK0VaMXX5nMTbVmnRiPR7LJOSGB6vWuGls&code_challenge_method=S256"
    )

    def ask(more: str = "", headers: Mapping[str, str] | None = None) -> int:
        return alike(ways, lambda: ("GET", f"{_AUTHORIZE}?{query}{more}", headers or {}, b""))

    assert ask(headers=session.headers) == 303
    assert ask() == 303
    assert ask("&response_mode=form_post", session.headers) == 200
    assert ask("&response_mode=form_post&prompt=none") == 200
    assert ask("&prompt=none") == 303
    assert ask("&ui_locales=de&client_id=x") == 400
    assert ask("&redirect_uri=https%3A%2F%2Fother.example") == 400
    body = query.encode() + b"&state=" + b"a" * 70_000
    assert alike(ways, lambda: ("POST", _AUTHORIZE, {"Content-Type": FORM}, body)) == 413
    assert alike(ways, lambda: ("GET", "/oauth/v2/endsession", session.headers, b"")) in (200, 303)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_static_files(ways: tuple[ServiceClient, ServiceClient], world: World, method: str) -> None:
    for found in world.app.registry.pages.static:
        path = f"/static/{found.name}"
        answers = [shown(way.request(method, way.issuer_url + path), exact=method != "POST") for way in ways]
        assert answers[0] == answers[1]
        assert (answers[0][0] == 200) is (method != "POST")


def test_wrong_hosts(ways: tuple[ServiceClient, ServiceClient]) -> None:
    for path in ("/oauth/v2/token", _AUTHORIZE, "/healthz", "/nothing"):
        for accept in ("text/html", "*/*"):
            alike(ways, lambda: ("GET", "https://other.example" + path, {"Accept": accept}, b""))  # noqa: B023


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/oauth/v2/keys"])
def test_documents_that_are_known_already(ways: tuple[ServiceClient, ServiceClient], path: str) -> None:
    tag = ways[0].get(ways[0].issuer_url + path).headers["ETag"]
    answers = [shown(way.get(way.issuer_url + path, {"If-None-Match": tag}), exact=True) for way in ways]
    assert answers[0] == answers[1]
    assert answers[0][0] == 304
    answers = [shown(way.get(way.issuer_url + path), exact=True) for way in ways]
    assert answers[0] == answers[1]
