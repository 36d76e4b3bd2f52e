"""Service description §4.1: discovery."""

from urllib.parse import urlsplit

import pytest

from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_oauth_error
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import World

ENDPOINTS = {
    "token_endpoint": "/oauth/v2/token",
    "introspection_endpoint": "/oauth/v2/introspect",
    "userinfo_endpoint": "/oauth/v2/userinfo",
    "revocation_endpoint": "/oauth/v2/revoke",
    "jwks_uri": "/oauth/v2/keys",
}
#: Endpoints on the login host.
FOR_BROWSERS = {"authorization_endpoint": "/oauth/v2/authorize", "end_session_endpoint": "/oauth/v2/endsession"}


@pytest.mark.shows("4.1.3", "9.1")
def test_discovery_lists_endpoints_on_their_hosts(world: World, three_host_world: World) -> None:
    for member, path in ENDPOINTS.items():
        assert world.client.discovery[member] == f"https://id.example.com{path}"
        assert three_host_world.client.discovery[member] == f"https://api.example.com{path}"
    for member, path in FOR_BROWSERS.items():
        assert world.client.discovery[member] == f"https://id.example.com{path}"
        assert three_host_world.client.discovery[member] == f"https://login.example.com{path}"


@pytest.mark.shows("4.1.3")
def test_listed_endpoints_answer(three_host_world: World) -> None:
    for member, address in three_host_world.client.discovery.items():
        if member.endswith("_endpoint") or member == "jwks_uri":
            assert three_host_world.client.get(address).status_int != 404, member


@pytest.mark.shows("1.7", "4.1.2")
def test_document_follows_openid_connect_discovery(world: World) -> None:
    """OpenID Connect Discovery §3: required members, and optional ones that are explicit."""
    document = world.client.discovery
    assert document["issuer"] == "https://id.example.com"
    assert document["subject_types_supported"] == ["public", "pairwise"]
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    assert "urn:ietf:params:oauth:grant-type:jwt-bearer" in document["grant_types_supported"]
    assert {"openid", "profile", "email", "phone", "address"} <= set(document["scopes_supported"])
    assert document["scopes_supported"][0] == "openid"
    for endpoint in ("token", "introspection", "revocation"):
        assert document[f"{endpoint}_endpoint_auth_methods_supported"][0] == "client_secret_basic"
    assert "none" not in document["request_object_signing_alg_values_supported"]
    assert document["request_uri_parameter_supported"] is False
    assert document["claims_parameter_supported"] is True
    assert {"sub", "name", "preferred_username", "updated_at"} <= set(document["claims_supported"])


@pytest.mark.shows("4.2.23")
def test_discovery_lists_only_supported_values(world: World) -> None:
    document = world.client.discovery
    # "implicit" is for response types; a token request cannot use it.
    for grant_type in set(document["grant_types_supported"]) - {"implicit"}:
        answer = world.client.request_token({"grant_type": grant_type})
        assert answer.json["error"] != "unsupported_grant_type"
    assert "none" not in str(document["id_token_signing_alg_values_supported"])


def test_discovery_ignores_host_header(world: World) -> None:
    """Security 12.1: URLs come from the configuration."""
    url = world.issuer + DISCOVERY_PATH
    plain = world.client.get(url)
    for name, value in (
        ("X-Forwarded-Host", "attacker.example"),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=attacker.example;proto=http"),
        ("X-Forwarded-Prefix", "/x"),
    ):
        assert world.client.get(url, {name: value}).body == plain.body
    for host in ("id.example.com:443", "ID.EXAMPLE.COM"):
        assert world.client.request("GET", url, environ={"HTTP_HOST": host}).body == plain.body


def test_discovery_is_cacheable(world: World) -> None:
    answer = world.client.get(world.issuer + DISCOVERY_PATH)
    assert answer.content_type == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    etag = answer.headers["ETag"]
    assert etag.startswith('"')
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        unchanged = world.client.get(world.issuer + DISCOVERY_PATH, {"If-None-Match": known})
        assert unchanged.status_int == 304
        assert unchanged.body == b""
        assert unchanged.headers["ETag"] == etag
        assert unchanged.headers["Cache-Control"] == "public, max-age=300"
        # RFC 9110 §8.6: only the length that a 200 would have, or none.
        assert unchanged.headers.get("Content-Length") in (None, str(len(answer.body)))
    assert world.client.get(world.issuer + DISCOVERY_PATH, {"If-None-Match": '"other"'}).status_int == 200


def test_head_is_get_without_body(world: World) -> None:
    get = world.client.get(world.issuer + DISCOVERY_PATH)
    head = world.client.request("HEAD", world.issuer + DISCOVERY_PATH)
    assert head.status_int == 200
    assert head.body == b""
    assert head.headers["ETag"] == get.headers["ETag"]


def test_other_methods_are_refused(world: World) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = world.client.request(method, world.issuer + DISCOVERY_PATH)
        check_oauth_error(answer, "invalid_request", status=405)
        assert "GET" in answer.headers["Allow"]


@pytest.mark.shows("1.8")
def test_authorization_server_metadata_is_not_provided(world: World) -> None:
    """§1: OpenID Connect Discovery replaces RFC 8414."""
    for path in (
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration/",
        "/.well-known/",
        "/.well-known",
    ):
        assert world.client.get(world.issuer + path).status_int == 404


@pytest.mark.shows("4.1.1")
def test_discovery_exists_on_issuer_host_only(three_host_world: World) -> None:
    answer = three_host_world.client.get(f"https://id.example.com{DISCOVERY_PATH}")
    assert (answer.status_int, answer.content_type) == (200, "application/json")
    assert answer.json["issuer"] == "https://id.example.com"
    for address in ("https://api.example.com", "https://login.example.com"):
        answer = three_host_world.client.get(address + DISCOVERY_PATH)
        assert answer.status_int == 404
        assert "https://id.example.com" in answer.json["message"]
        assert "identity.issuer_url" in answer.json["message"]


def test_discovery_urls_have_no_internal_port_or_path(world: World) -> None:
    for value in world.client.discovery.values():
        if isinstance(value, str) and value.startswith("https://"):
            assert urlsplit(value).netloc == "id.example.com"


@pytest.mark.storages("memory")
def test_server_metadata_is_there_with_its_plugin_alone(make_world: WorldFactory) -> None:
    """RFC 8414 §3: the same document, for clients of MCP."""
    path = "/.well-known/oauth-authorization-server"
    assert make_world().client.request("GET", f"https://id.example.com{path}").status_int == 404
    world = make_world(**{"identity.plugins": f"memory {DEFAULT_PLUGINS} mcp"})
    answer = world.client.get(world.issuer + path)
    assert answer.json == world.client.discovery
    assert answer.json["code_challenge_methods_supported"] == ["S256"]
    assert world.client.get(world.issuer + path, {"If-None-Match": answer.headers["ETag"]}).status_int == 304
