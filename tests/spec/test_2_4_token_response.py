"""Service description §2.4: the token response of the JWT bearer grant, and of grants for human users."""

import re
import time
from typing import Any

import pytest
from authlib.oauth2.rfc6750.errors import InvalidTokenError
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc import jwk, jwt

from identity.domain.users import TokenFormat
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified, left_half_hash
from identity.testing.response_checks import check_token_response
from identity.testing.world import ServiceUserProgram, World


class TokenResourceServer(JWTBearerTokenValidator):  # type: ignore[misc]
    """An API that verifies JWT access tokens with authlib."""

    def __init__(self, world: World, audience: str) -> None:
        super().__init__(issuer=world.issuer, resource_server=audience)
        self._world = world

    def get_jwks(self) -> Any:
        return jwk.KeySet.import_key_set(self._world.client.fetch_jwks().json)


@pytest.mark.shows("2.4.2")
def test_token_response_has_exact_members(robot: ServiceUserProgram) -> None:
    """No refresh token, even for offline_access; the granted scope may differ from the requested one."""
    members = check_token_response(robot.request_token("openid profile offline_access sing dance"))
    assert set(members) == {"access_token", "token_type", "expires_in", "id_token", "scope"}
    assert (members["token_type"], members["scope"]) == ("Bearer", "openid profile")


@pytest.mark.shows("2.4.3", "8.2")
def test_expires_in_is_exact(world: World, robot: ServiceUserProgram) -> None:
    """Security 7.3."""
    members = check_token_response(robot.request_token())
    assert members["expires_in"] == 3600
    world.clock.advance(members["expires_in"] - 1)
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 200
    world.clock.advance(1)
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 401


@pytest.mark.shows("8.2")
@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_lifetime_setting_is_at_least_ten_minutes(make_world: WorldFactory) -> None:
    """Decisions, lifetimes: common clients renew five minutes early."""
    for setting, expires_in in (("12h", 43200), ("1m", 600)):
        robot = make_world(**{"identity.access_token_lifetime": setting}).make_service_user_program()
        assert check_token_response(robot.request_token())["expires_in"] == expires_in


@pytest.mark.shows("2.4.1")
def test_opaque_access_token_is_random(robot: ServiceUserProgram) -> None:
    """Security 7.1: 256 random bits."""
    tokens = [robot.access_token() for _ in range(3)]
    assert len(set(tokens)) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9]{43}", token) for token in tokens)


@pytest.mark.shows("2.4.1")
def test_jwt_access_token_follows_rfc_9068(world: World) -> None:
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    members = check_token_response(robot.request_token("openid profile"))
    header, claims = decode_jwt_unverified(members["access_token"])
    assert header["typ"] == "at+jwt"
    assert header["alg"] == "RS256"
    assert header["kid"] in [key["kid"] for key in world.client.fetch_jwks().json["keys"]]
    now = world.clock.seconds
    jti = claims.pop("jti")
    assert isinstance(jti, str)
    assert claims == {
        "iss": world.issuer,
        "sub": robot.id,
        "aud": [world.issuer],
        "client_id": robot.id,
        "scope": "openid profile",
        "iat": now,
        "exp": now + members["expires_in"],
    }


@pytest.mark.shows("4.8.1")
def test_resource_server_verifies_jwt_access_token(world: World) -> None:
    """Verified by authlib (RFC 9068 §4)."""
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    project = world.make_project(robot.organization)
    token = robot.access_token(f"openid {world.audience_scope(project.id)}")
    server = TokenResourceServer(world, project.id)
    found = server.authenticate_token(token)
    server.validate_token(found, ["openid"], None)
    assert found["sub"] == robot.id
    another = TokenResourceServer(world, "another-api")
    with pytest.raises(InvalidTokenError):
        another.validate_token(another.authenticate_token(token), ["openid"], None)
    with pytest.raises(InvalidTokenError):
        server.authenticate_token(token[:-8] + "AAAAAAAA")


def test_jwt_access_token_can_be_introspected(world: World) -> None:
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    token = robot.management_token()
    assert world.client.fetch_userinfo(token).json["sub"] == robot.id
    answer = world.client.introspect(token, world.introspector).json
    _, claims = decode_jwt_unverified(token)
    assert answer["active"] is True
    assert {name: answer[name] for name in claims} == claims


def test_concurrent_jwt_access_tokens_differ(world: World) -> None:
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    assert robot.access_token() != robot.access_token()


@pytest.mark.shows("2.4.4")
def test_id_token_names_service_user(world: World, robot: ServiceUserProgram) -> None:
    """Decisions, tokens: client_id, aud and azp are the service user's id."""
    members = check_token_response(robot.request_token())
    header, claims = decode_jwt_unverified(members["id_token"])
    assert header["alg"] == "RS256"
    assert header.get("typ", "JWT") == "JWT"
    now = world.clock.seconds
    assert claims.pop("at_hash")
    assert claims == {
        "iss": world.issuer,
        "sub": robot.id,
        "aud": robot.id,
        "azp": robot.id,
        "iat": now,
        "exp": now + 3600,
        "auth_time": now,
    }


@pytest.mark.parametrize("token_format", TokenFormat)
def test_id_token_verifies_and_has_at_hash(world: World, token_format: TokenFormat) -> None:
    """OpenID Connect Core §3.1.3.6: at_hash is the left half of the hash of the access token."""
    members = check_token_response(world.make_service_user_program(token_format=token_format).request_token())
    verified = jwt.decode(
        members["id_token"], jwk.KeySet.import_key_set(world.client.fetch_jwks().json), algorithms=["RS256"]
    )
    assert verified.claims["iss"] == world.issuer
    assert verified.claims["at_hash"] == left_half_hash(members["access_token"])


@pytest.mark.parametrize("token_format", TokenFormat)
def test_id_token_omits_scope_claims(world: World, token_format: TokenFormat) -> None:
    """§2.7: with an access token, claims are fetched from userinfo."""
    robot = world.make_service_user_program(token_format=token_format)
    _, claims = decode_jwt_unverified(
        check_token_response(robot.request_token("openid profile email phone address"))["id_token"]
    )
    assert not set(claims) & {"name", "preferred_username", "updated_at", "email", "phone_number", "address"}


def test_token_times_use_service_clock(world: World, robot: ServiceUserProgram) -> None:
    """Token times come from the service's clock, never from a library's."""
    world.clock.advance(days=40)
    _, claims = decode_jwt_unverified(check_token_response(robot.request_token())["id_token"])
    assert claims["iat"] == world.clock.seconds > time.time() + 39 * 86400


# --- tokens of human users --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token_format", TokenFormat)
def test_user_id_token_verifies_and_has_at_hash(world: World, token_format: TokenFormat) -> None:
    """Verified by an independent library, after the code and the refresh grant."""
    client = world.make_web_application(access_token_type=token_format)
    first = world.obtain_tokens(client)
    for members in (first, check_token_response(world.refresh(first["refresh_token"], client))):
        keys = jwk.KeySet.import_key_set(world.client.fetch_jwks().json)
        verified = jwt.decode(members["id_token"], keys, algorithms=["RS256"])
        assert verified.claims["at_hash"] == left_half_hash(members["access_token"])
        assert verified.claims["aud"] == verified.claims["azp"] == client.client_id


def test_user_jwt_access_token_follows_rfc_9068(world: World) -> None:
    project = world.make_project()
    client = world.make_web_application(project.id, access_token_type=TokenFormat.JWT)
    session = world.make_browser_session()
    members = world.obtain_tokens(client, session, scope="openid profile")
    header, claims = decode_jwt_unverified(members["access_token"])
    assert header["typ"] == "at+jwt"
    assert isinstance(claims.pop("jti"), str)
    assert claims == {
        "iss": world.issuer,
        "sub": session.user.id,
        "aud": [client.client_id, project.id],
        "client_id": client.client_id,
        "scope": "openid profile",
        "iat": world.clock.seconds,
        "exp": world.clock.seconds + 3600,
        "auth_time": world.clock.seconds,
        "amr": ["pwd"],
        "acr": "urn:service:iam:acr:1",
    }


@pytest.mark.shows("2.7.3")
def test_id_token_user_claims_need_application_setting(world: World) -> None:
    """§2.7: with an access token, claims are fetched from userinfo, except with id_token_userinfo_assertion."""
    scope, session = "openid profile email", world.make_browser_session()
    _, claims = decode_jwt_unverified(
        world.obtain_tokens(world.make_web_application(), session, scope=scope)["id_token"]
    )
    assert claims.keys().isdisjoint({"name", "given_name", "preferred_username", "updated_at"})
    wanting = world.make_web_application(id_token_userinfo_assertion=True)
    members = world.obtain_tokens(wanting, session, scope=scope)
    _, claims = decode_jwt_unverified(members["id_token"])
    userinfo = world.client.fetch_userinfo(members["access_token"]).json
    assert userinfo["given_name"] == "Ada"
    assert {name: claims[name] for name in userinfo} == userinfo


def test_jwt_user_claims_follow_application_setting(world: World) -> None:
    """The JWT has the claims of userinfo for the same scopes, and they override none of the token's claims."""
    session = world.make_browser_session()
    for in_id_token in (True, False):
        client = world.make_web_application(
            access_token_type=TokenFormat.JWT, access_token_userinfo_assertion=in_id_token
        )
        for scope in ("openid", "openid profile email"):
            members = world.obtain_tokens(client, session, scope=scope)
            _, claims = decode_jwt_unverified(members["access_token"])
            userinfo = (
                world.client.fetch_userinfo(members["access_token"]).json if in_id_token else {"sub": session.user.id}
            )
            assert {name: claims[name] for name in userinfo} == userinfo
            assert claims["scope"] == scope
            assert ("given_name" in claims) is (in_id_token and "profile" in scope)


@pytest.mark.shows("2.4.6")
def test_refresh_token_is_opaque(world: World) -> None:
    """Security 6.1: 256 random bits."""
    client = world.make_web_application(access_token_type=TokenFormat.JWT)
    assert re.fullmatch(r"[A-Za-z0-9]{43}", world.obtain_tokens(client)["refresh_token"])


def test_id_token_and_access_token_are_not_interchangeable(world: World) -> None:
    """Security 7.1."""
    client, session = world.make_web_application(access_token_type=TokenFormat.JWT), world.make_browser_session()
    members = world.obtain_tokens(client, session)
    assert world.client.fetch_userinfo(members["id_token"]).status_int == 401
    answer = session.authorize(client, id_token_hint=members["access_token"])
    assert "error=invalid_request" in answer.headers["Location"]
