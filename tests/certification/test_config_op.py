"""Profile Config OP: the discovery document and the key set, compared with the endpoints' behaviour."""

import base64
from typing import Any
from urllib.parse import urlsplit

import pytest

from identity.testing.assembled_service import THREE_HOST_SETTINGS
from identity.testing.fixtures import WorldCache
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import World

pytestmark = [
    pytest.mark.storages("sqlite"),  # the suite is independent of the storage
    pytest.mark.modules("oidcc-discovery-endpoint-verification"),
]


@pytest.fixture(params=["one host", "three hosts"])
def provider(world_cache: WorldCache, storage_name: str, request: pytest.FixtureRequest) -> World:
    """The provider on one host, and on three."""
    return world_cache.shared_world(storage_name, None if request.param == "one host" else THREE_HOST_SETTINGS)


@pytest.fixture
def document(provider: World) -> dict[str, Any]:
    """The discovery document."""
    return provider.client.discovery


def test_discovery_document_is_json(provider: World) -> None:
    answer = provider.client.get(provider.issuer + DISCOVERY_PATH)
    assert answer.status_int == 200
    assert answer.content_type == "application/json"
    assert answer.json["issuer"] == provider.issuer
    assert not provider.issuer.endswith("/")


def test_required_metadata_is_present(document: dict[str, Any]) -> None:
    """OpenID Connect Discovery §3: the required members, and the recommended ones that the service supports."""
    assert document.keys() >= {
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "userinfo_endpoint",
        "jwks_uri",
        "scopes_supported",
        "response_types_supported",
        "subject_types_supported",
        "id_token_signing_alg_values_supported",
        "claims_supported",
        "end_session_endpoint",
        "introspection_endpoint",
        "revocation_endpoint",
    }


def test_endpoints_use_https_and_answer(provider: World, document: dict[str, Any]) -> None:
    addresses = {name: url for name, url in document.items() if name.endswith(("_endpoint", "_uri"))}
    for name, url in addresses.items():
        parts = urlsplit(url)
        assert (parts.scheme, parts.query, parts.fragment) == ("https", "", ""), name
        assert provider.client.get(url).status_int != 404, name


def test_supported_features_are_announced(document: dict[str, Any]) -> None:
    """The values that the profiles in this folder rely on."""
    assert set(document["response_types_supported"]) >= {"code", "id_token", "id_token token"}
    assert set(document["response_modes_supported"]) >= {"query", "fragment", "form_post"}
    assert set(document["grant_types_supported"]) >= {"authorization_code", "implicit", "refresh_token"}
    assert "public" in document["subject_types_supported"]
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    assert set(document["scopes_supported"]) >= {"openid", "profile", "email", "address", "phone", "offline_access"}
    methods = set(document["token_endpoint_auth_methods_supported"])
    assert methods >= {"client_secret_basic", "client_secret_post", "none"}
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True


def test_unsupported_features_are_announced(document: dict[str, Any]) -> None:
    """Absent, request_uri_parameter_supported would mean true (OpenID Connect Discovery §3)."""
    assert document["request_uri_parameter_supported"] is False
    assert "registration_endpoint" not in document


def test_prompt_values_are_announced(document: dict[str, Any]) -> None:
    """Initiating User Registration via OpenID Connect §4."""
    assert set(document["prompt_values_supported"]) == {"none", "login", "consent", "select_account", "create"}


def test_claims_supported_are_returned(suite: Any, claims_of: dict[str, set[str]]) -> None:
    document = suite.world.client.discovery
    tokens = suite.tokens(scope="openid profile email address phone")
    claim_names = set(suite.first.fetch_userinfo(tokens)) | {"iss", "aud", "exp", "iat", "auth_time"}
    assert claim_names <= set(document["claims_supported"])
    assert set().union(*claims_of.values()) <= set(document["claims_supported"])


def test_metadata_has_no_empty_member(document: dict[str, Any]) -> None:
    """OpenID Connect Discovery §4.2: elements with zero values are left out."""
    assert all(value not in ([], "", None) for value in document.values())


def test_key_set_is_valid(provider: World, document: dict[str, Any]) -> None:
    """RSA signing keys with unique kids and only public members."""
    answer = provider.client.get(document["jwks_uri"])
    assert answer.content_type in ("application/json", "application/jwk-set+json")
    keys = answer.json["keys"]
    assert len({key["kid"] for key in keys}) == len(keys) >= 1
    for key in keys:
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
        assert not set(key) & {"d", "p", "q", "dp", "dq", "qi", "k", "oth"}
        modulus = base64.urlsafe_b64decode(key["n"] + "=" * (-len(key["n"]) % 4))
        assert len(modulus) * 8 >= 2048
        assert modulus[0] != 0


def test_authorization_server_metadata_is_not_found(provider: World) -> None:
    """Service description §1: OpenID Connect Discovery replaces it."""
    assert provider.client.get(f"{provider.issuer}/.well-known/oauth-authorization-server").status_int == 404


@pytest.mark.modules("oidcc-server-rotate-keys")
@pytest.mark.shows("4.8.2")
def test_emergency_key_rotation_is_published(own_suite: Any) -> None:
    """A new key with another kid is published before its first use."""
    world = own_suite.world
    before = {item["kid"] for item in world.client.fetch_jwks().json["keys"]}
    world.operator_services.signing_keys.rotate()
    world.clock.advance(30)
    announced = {item["kid"] for item in world.client.fetch_jwks().json["keys"]}
    assert announced > before
    own_suite.tokens()
    world.clock.advance(minutes=6)
    own_suite.tokens(prompt="none")
    assert {item["kid"] for item in world.client.fetch_jwks().json["keys"]} == announced
