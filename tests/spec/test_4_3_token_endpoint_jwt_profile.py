"""Service description §4.3: the token endpoint, JWT profile grant."""

from urllib.parse import quote, urlencode

import pytest

from identity.domain.service_user_keys import ServiceUserKey
from identity.testing.jwt_assertions import OMITTED
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import FORM_CONTENT_TYPE, JWT_BEARER, basic_auth_header
from identity.testing.world import ServiceUserProgram, World

pytestmark = pytest.mark.every_storage


def form(robot: ServiceUserProgram, **changes: object) -> dict[str, str]:
    """The fields of a valid request with these changes."""
    right = {"grant_type": JWT_BEARER, "assertion": robot.assertion(), "scope": "openid"}
    return {name: str(value) for name, value in (right | changes).items() if value is not OMITTED}


def post(world: World, body: bytes, content_type: str | None = FORM_CONTENT_TYPE, **headers: str) -> object:
    sent = headers if content_type is None else {"Content-Type": content_type, **headers}
    return world.client.request("POST", world.client.discovery["token_endpoint"], headers=sent, body=body)


@pytest.mark.shows("1.3", "1.4", "4.3.9", "5.1.3")
def test_signed_assertion_gets_token(world: World, robot: ServiceUserProgram) -> None:
    """HTTP 200, application/json, body of §2.4, never cached."""
    answer = world.client.request_token(form(robot))
    check_token_response(answer)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Strict-Transport-Security"]
    assert "Set-Cookie" not in answer.headers


@pytest.mark.shows("4.3.5")
def test_grant_type_and_assertion_are_required(world: World, robot: ServiceUserProgram) -> None:
    for value in (OMITTED, ""):
        for name in ("grant_type", "assertion"):
            answer = world.client.request_token(form(robot, **{name: value}))
            check_oauth_error(answer, "invalid_request", description=f"parameter {name} is missing")


@pytest.mark.shows("4.2.23", "4.3.14")
def test_other_grant_types_are_not_supported(world: World, robot: ServiceUserProgram) -> None:
    """RFC 6749 §5.2."""
    for grant_type in (
        "password",
        "implicit",
        JWT_BEARER.upper(),
        f"{JWT_BEARER} ",
        "jwt-bearer",
        "\u2603",
        "x" * 9000,
    ):
        answer = world.client.request_token(form(robot, grant_type=grant_type))
        check_oauth_error(answer, "unsupported_grant_type")
        assert JWT_BEARER in answer.json["error_description"]


def test_unknown_parameters_are_ignored(world: World, robot: ServiceUserProgram) -> None:
    """RFC 6749 §3.2."""
    check_token_response(
        world.client.request_token(form(robot, resources="https://api.example", nonce="1", **{"": "nameless"}))
    )


@pytest.mark.shows("4.3.8")
def test_client_authentication_is_ignored(world: World, robot: ServiceUserProgram) -> None:
    """§5.3: the signed assertion authenticates the service user."""
    for header in (world.introspector.header, basic_auth_header("nobody:nothing"), "Basic", "Bearer x", "Digest x"):
        check_token_response(world.client.request_token(form(robot), {"Authorization": header}))


@pytest.mark.shows("4.3.1")
def test_other_methods_are_refused(world: World) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = world.client.request(method, world.client.discovery["token_endpoint"])
        assert answer.status_int == 405
        assert answer.headers["Allow"] == "POST"
        if method != "HEAD":
            check_oauth_error(answer, "invalid_request", status=405)


@pytest.mark.shows("4.0.1")
def test_content_type_parameters_are_ignored(world: World, robot: ServiceUserProgram) -> None:
    for content_type in (
        FORM_CONTENT_TYPE,
        f"{FORM_CONTENT_TYPE}; charset=UTF-8",
        FORM_CONTENT_TYPE.upper(),
        f"{FORM_CONTENT_TYPE};charset=iso-8859-1",
        f" {FORM_CONTENT_TYPE} ;x=y",
    ):
        check_token_response(post(world, urlencode(form(robot)).encode(), content_type))


@pytest.mark.shows("4.0.1")
def test_other_content_types_are_refused(world: World, robot: ServiceUserProgram) -> None:
    """§4: form-encoded bodies. Security 12.2."""
    for content_type in (None, "", "application/json", "text/plain", "multipart/form-data; boundary=x", "application"):
        answer = post(world, urlencode(form(robot)).encode(), content_type)
        check_oauth_error(answer, "invalid_request", description="the body must be application/x-www-form-urlencoded")


def test_empty_body_lacks_grant_type(world: World) -> None:
    check_oauth_error(post(world, b""), "invalid_request", description="parameter grant_type is missing")


def test_duplicate_parameter_is_refused(world: World, robot: ServiceUserProgram) -> None:
    """RFC 6749 §3.2; even with equal values."""
    for name in ("grant_type", "assertion", "scope", "unknown"):
        pairs = [*form(robot).items(), ("unknown", "x")]
        answer = world.client.request_token([*pairs, *(pair for pair in pairs if pair[0] == name)])
        check_oauth_error(answer, "invalid_request", description=f"parameter {name} was given twice")


def test_secrets_in_query_are_refused(world: World, robot: ServiceUserProgram) -> None:
    """Security 3.3: URLs appear in logs and browser histories."""
    for name in ("assertion", "client_secret", "code", "refresh_token", "token", "access_token"):
        address = f"{world.client.discovery['token_endpoint']}?{urlencode({name: robot.assertion()})}"
        for body in (form(robot), form(robot, assertion=OMITTED)):
            check_oauth_error(world.client.post(address, body), "invalid_request")


def test_query_parameters_are_ignored(world: World, robot: ServiceUserProgram) -> None:
    address = f"{world.client.discovery['token_endpoint']}?{urlencode({'grant_type': JWT_BEARER, 'scope': 'profile'})}"
    check_oauth_error(world.client.post(address, form(robot, grant_type=OMITTED)), "invalid_request")
    assert check_token_response(world.client.post(address, form(robot)))["scope"] == "openid"


MALFORMED = {
    "percent at the end": b"grant_type=%",
    "percent and one digit": b"grant_type=%4",
    "percent and no digits": b"grant_type=%zz",
    "bytes that are not UTF-8": b"grant_type=%ff%fe",
    "overlong UTF-8": b"grant_type=%c0%af",
    "a lone surrogate": b"grant_type=%ed%a0%80",
    "raw bytes": b"grant_type=\xc3\xa9",
    "NUL in a value": b"grant_type=a%00b",
    "NUL in a value nobody reads": b"other=%00",
    "too many parameters": b"&".join(b"a%d=1" % number for number in range(101)),
    "too many separators": b"&" * 101,
    "a long value": b"grant_type=" + b"a" * (16 * 1024 + 1),
    "a long value nobody reads": b"other=" + b"a" * (16 * 1024 + 1),
}


@pytest.mark.shows("4.3.14")
def test_malformed_form_is_an_invalid_request(world: World) -> None:
    """Security 12.2."""
    for body in MALFORMED.values():
        check_oauth_error(post(world, body), "invalid_request")


def test_parameter_limits_are_enforced(world: World, robot: ServiceUserProgram) -> None:
    few = form(robot)
    check_token_response(world.client.request_token({**few, **{f"a{number}": "1" for number in range(97)}}))
    check_token_response(world.client.request_token({**few, "other": "a" * 16 * 1024}))


def test_body_of_64_kilobytes_is_accepted(world: World) -> None:
    """Security 12.2; test_8_limits refuses larger ones."""
    at_limit = b"&".join(b"a%d=" % number + b"x" * 16000 for number in range(4)).ljust(65536, b"&")[:65536]
    assert post(world, at_limit).status_int == 400  # type: ignore[attr-defined]


def test_error_description_repeats_no_input(world: World) -> None:
    """RFC 6749 §5.2 restricts its characters; responses do not repeat untrusted input."""
    for body in (b"%22%3Cscript%3E=1&%22%3Cscript%3E=2", b"a%0d%0ab=1&a%0d%0ab=1", "ü=1&ü=1".encode()):
        answer = post(world, body if body.isascii() else quote(body, safe="=&").encode())
        check_oauth_error(answer, "invalid_request")
        description = answer.json["error_description"]  # type: ignore[attr-defined]
        assert "script" not in description
        assert all(" " <= character <= "~" and character not in '"\\' for character in description)


@pytest.mark.shows("4.3.1")
def test_endpoint_path_must_match_exactly(world: World, robot: ServiceUserProgram) -> None:
    address = world.client.discovery["token_endpoint"]
    for other in (f"{address}/", f"{address}x", address.upper().replace("HTTPS", "https"), address.replace("v2", "v1")):
        assert world.client.post(other, form(robot)).status_int == 404


def test_refused_request_stores_nothing(world: World, robot: ServiceUserProgram) -> None:
    """Security 9.1: neither a token nor the key's last use."""
    check_oauth_error(robot.request_token("openid urn:service:iam:org:project:id:none:aud"), "invalid_scope")
    check_oauth_error(robot.request_token(jti="x", aud="elsewhere"), "invalid_grant")
    key = world.operator_services.storage.credentials.find(ServiceUserKey, robot.key_id, robot.id)
    assert key.last_used_at is None
