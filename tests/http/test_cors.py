"""Cross-origin requests (security 11.4): registered origins may read responses of the token and similar endpoints,
and no others."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from identity.domain.applications import ApplicationType
from identity.testing.service_test_client import Credentials, bearer_headers
from identity.testing.world import World

REGISTERED = "https://spa.example:8443"
STRANGER = "https://elsewhere.example"


@pytest.fixture
def client(world: World) -> Iterator[Credentials]:
    credentials = world.make_application(
        type=ApplicationType.WEB,
        redirect_uris=(f"{REGISTERED}/callback", "https://SPA.example/other"),
        response_types=frozenset({"code"}),
        grant_types=frozenset({"authorization_code"}),
    )
    yield credentials
    world.operator_services.applications.remove(credentials.client_id)


def endpoints(world: World) -> dict[str, str]:
    named = {
        name: address
        for name, address in world.client.discovery.items()
        if name.endswith("_endpoint") or name == "jwks_uri"
    }
    return {"metadata": f"{world.issuer}/.well-known/openid-configuration", **named}


READABLE = ("metadata", "jwks_uri", "token_endpoint", "userinfo_endpoint", "revocation_endpoint")
CLOSED = ("introspection_endpoint", "authorization_endpoint", "end_session_endpoint")


def allowed(answer: Any) -> str | None:
    assert "Access-Control-Allow-Credentials" not in answer.headers
    origin: str | None = answer.headers.get("Access-Control-Allow-Origin")
    return origin


@pytest.mark.parametrize("name", READABLE)
def test_only_registered_origins_are_allowed(world: World, client: Credentials, name: str) -> None:
    method = "POST" if name in ("token_endpoint", "revocation_endpoint") else "GET"
    for origin, expected in (
        (REGISTERED, REGISTERED),
        (STRANGER, None),
        ("null", None),
        ("https://spa.example:8444", None),
    ):
        answer = world.client.request(method, endpoints(world)[name], headers={"Origin": origin})
        assert allowed(answer) == expected, origin
        assert "Origin" in answer.headers["Vary"]
    assert allowed(world.client.request(method, endpoints(world)[name])) is None


@pytest.mark.parametrize("name", READABLE)
def test_preflight(world: World, client: Credentials, name: str) -> None:
    preflight_headers = {
        "Origin": REGISTERED,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    answer = world.client.request("OPTIONS", endpoints(world)[name], headers=preflight_headers)
    assert answer.status_int == 204
    assert allowed(answer) == REGISTERED
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert (
        allowed(
            world.client.request("OPTIONS", endpoints(world)[name], headers=preflight_headers | {"Origin": STRANGER})
        )
        is None
    )


@pytest.mark.parametrize("name", CLOSED)
def test_other_endpoints_allow_no_origin(world: World, client: Credentials, name: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        headers = {"Origin": REGISTERED, "Access-Control-Request-Method": "POST"}
        assert allowed(world.client.request(method, endpoints(world)[name], headers=headers)) is None


def test_management_api_allows_no_origin(world: World, client: Credentials) -> None:
    token = world.make_manager_program().management_token()
    answer = world.client.request(
        "GET", f"{world.client.management_url}/me", headers={"Origin": REGISTERED, **bearer_headers(token)}
    )
    assert answer.status_int == 200
    assert allowed(answer) is None


def test_deactivated_application_allows_no_origin(world: World, client: Credentials) -> None:
    world.operator_services.applications.deactivate(client.client_id)
    assert allowed(world.client.request("GET", endpoints(world)["jwks_uri"], headers={"Origin": REGISTERED})) is None


def test_origins_are_compared_as_browsers_send_them(world: World, client: Credentials) -> None:
    keys = endpoints(world)["jwks_uri"]
    assert (
        allowed(world.client.request("GET", keys, headers={"Origin": "https://spa.example"})) == "https://spa.example"
    )
    for origin in (
        "https://spa.example/",
        "https://spa.example:443",
        "HTTPS://SPA.EXAMPLE",
        f"{REGISTERED}.evil.example",
    ):
        assert allowed(world.client.request("GET", keys, headers={"Origin": origin})) is None, origin


@pytest.mark.parametrize(
    "origin", ["", " ", "https://" + "x" * 5000, "https://a\x00b", "https://ü.example", "javascript:1"]
)
def test_malformed_origins_are_harmless(world: World, origin: str) -> None:
    path = urlsplit(endpoints(world)["jwks_uri"]).path
    answer = world.client.request("GET", world.issuer + path, environ={"HTTP_ORIGIN": origin})
    assert answer.status_int == 200
    assert allowed(answer) is None
