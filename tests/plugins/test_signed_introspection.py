"""Signed introspection responses (RFC 9701)."""

from typing import Any

import pytest

from identity.testing.jwt_assertions import verify_jwt
from identity.testing.response_checks import check_not_cacheable, check_oauth_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

SIGNED = "application/token-introspection+jwt"


def introspect(world: World, token: str, accept: str, client: Credentials) -> Any:
    url = world.client.discovery["introspection_endpoint"]
    return world.client.post(url, {"token": token}, {"Authorization": client.header, "Accept": accept})


@pytest.mark.parametrize("accept", [SIGNED, f"application/json, {SIGNED.upper()}; q=0.5"])
def test_response_is_signed_for_the_client(world: World, accept: str) -> None:
    client = world.introspector
    live, unknown = world.make_service_user_program().management_token(), "unknown"
    for token in (live, unknown):
        answer = introspect(world, token, accept, client)
        assert answer.content_type == SIGNED
        check_not_cacheable(answer)
        header, claims = verify_jwt(answer.text, world.client.fetch_jwks().json["keys"])
        assert header["typ"] == "token-introspection+jwt"
        assert claims == {
            "iss": world.issuer,
            "aud": client.client_id,
            "iat": world.clock.seconds,
            "token_introspection": world.client.introspect(token, client).json,
        }
        # It is no token of another kind.
        assert not world.client.introspect(answer.text, client).json["active"]
    assert header["alg"] in world.client.discovery["introspection_signing_alg_values_supported"]


@pytest.mark.parametrize("accept", ["*/*", "application/*", "application/json", "", "application/jwt", ",;,"])
def test_response_is_json_without_the_type_of_signed_ones(world: World, accept: str) -> None:
    answer = introspect(world, "unknown", accept, world.introspector)
    assert (answer.content_type, answer.json) == ("application/json", {"active": False})


def test_error_is_json(world: World) -> None:
    wrong = Credentials(world.introspector.client_id, "wrong")
    check_oauth_error(introspect(world, "unknown", SIGNED, wrong), "invalid_client", status=401)
