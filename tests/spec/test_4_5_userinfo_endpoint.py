"""Service description §4.5: the userinfo endpoint (OpenID Connect Core §5.3, RFC 6750)."""

from typing import Any

import pytest

from identity.testing.relying_party import FORM, basic, bearer
from identity.testing.responses import check_private, check_refused
from identity.testing.world import Robot, World


def challenge(answer: Any) -> str:
    value: str = answer.headers["WWW-Authenticate"]
    return value


def check_unauthorized(answer: Any) -> None:
    """HTTP 401 for a token that is invalid or expired, with the error in the challenge."""
    check_refused(answer, "invalid_token", status=401)
    assert challenge(answer).startswith("Bearer ")
    assert 'error="invalid_token"' in challenge(answer)


@pytest.fixture
def address(world: World) -> str:
    """The endpoint."""
    found: str = world.client.discovery["userinfo_endpoint"]
    return found


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_token_in_the_header(world: World, robot: Robot, method: str) -> None:
    answer = world.client.userinfo(robot.access_token(), method)
    assert answer.status_int == 200
    assert answer.content_type == "application/json"
    assert answer.json["sub"] == robot.id
    check_private(answer)


def test_the_token_in_the_header_of_a_form_encoded_post(world: World, robot: Robot, address: str) -> None:
    answer = world.client.post(address, {}, bearer(robot.access_token()))
    assert answer.json["sub"] == robot.id


def test_the_token_in_the_body_of_a_form_encoded_post(world: World, robot: Robot, address: str) -> None:
    """RFC 6750 §2.2."""
    assert world.client.post(address, {"access_token": robot.access_token()}).json["sub"] == robot.id


def test_a_body_that_is_no_form_carries_no_token(world: World, robot: Robot, address: str) -> None:
    body = f"access_token={robot.access_token()}".encode()
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}):
        assert world.client.request("POST", address, headers=headers, body=body).status_int == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_case_insensitive(world: World, robot: Robot, address: str, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {robot.access_token()}"}
    assert world.client.get(address, headers).status_int == 200


def test_the_token_is_refused_in_the_address(world: World, robot: Robot, address: str) -> None:
    """Security 7.5, with or without one in the header."""
    token = robot.access_token()
    for headers in ({}, bearer(token)):
        answer = world.client.get(f"{address}?access_token={token}", headers)
        check_refused(answer, "invalid_request")
        assert 'error="invalid_request"' in challenge(answer)


def test_the_token_is_sent_once(world: World, robot: Robot, address: str) -> None:
    """RFC 6750 §2."""
    token = robot.access_token()
    check_refused(world.client.post(address, {"access_token": token}, bearer(token)), "invalid_request")
    twice = [("access_token", token), ("access_token", token)]
    check_refused(world.client.post(address, twice), "invalid_request")


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": basic("client:secret")}, {"Authorization": "Bearer"}, {"Authorization": "Digest x"}],
    ids=["nothing", "another scheme", "a scheme alone", "an unknown scheme"],
)
def test_without_a_token_the_challenge_names_no_error(world: World, address: str, headers: dict[str, str]) -> None:
    """RFC 6750 §3.1."""
    for method in ("GET", "POST"):
        answer = world.client.request(method, address, headers=headers)
        assert answer.status_int == 401
        assert challenge(answer) == 'Bearer realm="identity"'


@pytest.mark.parametrize("token", ["rubbish", "a.b.c", "ü", "';DROP/**/TABLE/**/access_tokens;--", "x" * 8000, '"'])
def test_an_unknown_token_is_unauthorized(world: World, address: str, token: str) -> None:
    check_unauthorized(world.client.get(address, bearer(token.encode().decode("latin-1"))))
    check_unauthorized(world.client.post(address, {"access_token": token}))


def test_an_expired_token_is_unauthorized(world: World, robot: Robot) -> None:
    token = robot.access_token()
    world.clock.advance(3599)
    assert world.client.userinfo(token).status_int == 200
    world.clock.advance(1)
    check_unauthorized(world.client.userinfo(token))


def test_a_revoked_token_is_unauthorized(world: World, robot: Robot) -> None:
    token = robot.managing_token()
    world.client.revoke(token, world.introspector)
    check_unauthorized(world.client.userinfo(token))


def test_neither_id_token_nor_refresh_token_nor_assertion_is_an_access_token(world: World, robot: Robot) -> None:
    """Security 7.1."""
    refresh_token = world.an_authorization(world.a_person(), world.an_application()).refresh_token
    for token in (robot.token().json["id_token"], refresh_token, robot.assertion()):
        check_unauthorized(world.client.userinfo(token))


def test_a_token_without_openid_lacks_the_scope(world: World) -> None:
    """Security 7.5."""
    issued = world.an_authorization(world.a_person(), world.an_application(), scope=("profile",))
    answer = world.client.userinfo(issued.access_token)
    check_refused(answer, "insufficient_scope", status=403)
    assert 'error="insufficient_scope"' in challenge(answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(world: World, robot: Robot, address: str, method: str) -> None:
    answer = world.client.request(method, address, headers=bearer(robot.access_token()))
    check_refused(answer, "invalid_request", status=405)
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(", "))


def test_a_malformed_form_is_an_invalid_request(world: World, address: str) -> None:
    for body in (b"access_token=%zz", b"access_token=%ff", b"access_token=%00"):
        answer = world.client.request("POST", address, headers={"Content-Type": FORM}, body=body)
        check_refused(answer, "invalid_request")
