"""Security 12.6: no input causes a 5xx; refusals follow the protocol, and nothing is stored partially."""

import string
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from identity.testing.fixtures import WorldCache
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import DISCOVERY_PATH, FORM_CONTENT_TYPE, JWT_BEARER, basic_auth_header
from identity.testing.world import CALLBACK_URI, CODE_VERIFIER, CredentialsOrClientId, ServiceUserProgram, World

fuzzing = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

#: Tables that refused requests may write: the audited refusal and the attempt counter.
_NOTES = {"audit", "audit_events", "attempts"}


def row_counts(world: World) -> dict[str, int]:
    """Row counts of all tables except audited refusals."""
    backend: Any = world.identity.backend
    if backend.name == "memory":
        counts = {name: len(rows) for name, rows in backend._committed.items()}
    else:
        from sqlalchemy import func, select

        from identity.plugins.sql.tables import metadata

        with backend.read_session() as storage:
            connection = storage.connection.core
            counts = {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in metadata.tables.items()
            }
    assert any(counts.values())
    return {name: count for name, count in counts.items() if count and name not in _NOTES}


texts = st.text(st.characters(codec="utf-8"), max_size=40)
awkward = st.sampled_from(
    ["", " ", "\0", "%", "%zz", "%00", "\ud7ff", "\U0010ffff", "..", "a.b.c", "null", "openid", "é" * 300, "x" * 20000]
)
names = st.sampled_from(["grant_type", "assertion", "scope", "client_id", "client_secret", "token"]) | texts
values = texts | awkward | st.just(JWT_BEARER)
forms = st.lists(st.tuples(names, values), max_size=8)
#: Bodies: encoded forms, incorrectly encoded forms, and arbitrary bytes.
bodies = st.one_of(
    forms.map(lambda pairs: "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()),
    forms.map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")),
    st.binary(max_size=200),
    values.map(lambda value: f"grant_type={quote_plus(JWT_BEARER)}&assertion={quote_plus(value)}".encode()),
)
header_texts = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
content_types = (
    st.sampled_from(
        [FORM_CONTENT_TYPE, f"{FORM_CONTENT_TYPE}; charset=utf-8", "application/json", "multipart/form-data", ""]
    )
    | header_texts
)
authorizations = st.one_of(
    header_texts,
    st.binary(max_size=40).map(basic_auth_header),
    header_texts.map(lambda text: f"Bearer {text}"),
    header_texts.map(lambda text: f"Basic {text}"),
)
queries = st.one_of(
    st.just(""), st.text(string.ascii_letters + string.digits + "%&=+;/?.[]", max_size=40), texts.map(quote_plus)
)
methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
claim_names = st.sampled_from(["iss", "sub", "aud", "iat", "exp", "nbf", "jti", "scope"]) | texts
header_names = st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "jku", "x5c", "b64", "zip"]) | texts


def check_protocol_answer(answer: Any) -> None:
    """A success or a protocol error, never a server error."""
    assert answer.status_int < 500, answer
    if answer.status_int == 200 or not answer.body:
        return
    assert answer.content_type == "application/json", answer
    members = answer.json
    assert members.keys() == {"error", "error_description"}, answer
    assert isinstance(members["error"], str)
    description = members["error_description"]
    assert description
    # RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E
    assert all(" " <= character <= "~" and character not in '"\\' for character in description), description
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.fixture
def robot(world_cache: WorldCache, storage_name: str) -> ServiceUserProgram:
    """A service user. hypothesis forbids the function-scoped ``world``."""
    return world_cache.shared_world(storage_name).make_service_user_program()


def test_any_token_request_is_answered(robot: ServiceUserProgram) -> None:
    world = robot.world
    robot.access_token()
    before = row_counts(world)
    address = world.client.discovery["token_endpoint"]

    @fuzzing
    @given(bodies, content_types, st.none() | authorizations, queries)
    @example(b"", "", None, "")
    @example(b"grant_type=%ff", FORM_CONTENT_TYPE, "Basic \xff", "%ff")
    def check(body: bytes, content_type: str, authorization: str | None, query: str) -> None:
        headers = {"Content-Type": content_type}
        if authorization is not None:
            headers["Authorization"] = authorization
        answer = world.client.request("POST", address, headers=headers, body=body, environ={"QUERY_STRING": query})
        assert answer.status_int in (400, 401, 413)
        check_protocol_answer(answer)

    check()
    assert row_counts(world) == before
    check_token_response(robot.request_token())


client_names = (
    st.sampled_from(["grant_type", "code", "redirect_uri", "code_verifier", "refresh_token", "scope", "client_id"])
    | texts
)
client_values = st.sampled_from(["authorization_code", "refresh_token", CALLBACK_URI, CODE_VERIFIER, "openid"]) | values


def test_any_form_of_known_client_is_answered(robot: ServiceUserProgram) -> None:
    """A client that may use codes and refresh tokens, but has none, obtains nothing; its own credentials stay valid."""
    world = robot.world
    client, public = world.make_web_application(), world.make_public_application()
    members = world.obtain_tokens(client)
    before = row_counts(world)

    @fuzzing
    @given(
        st.sampled_from(["authorization_code", "refresh_token"]),
        st.dictionaries(client_names, client_values, max_size=6),
        st.sampled_from([client, public]),
    )
    @example("authorization_code", {"code": "x", "redirect_uri": CALLBACK_URI, "code_verifier": "ü" * 43}, public)
    @example("refresh_token", {"refresh_token": "\0"}, client)
    def check(grant_type: str, form: Mapping[str, str], credentials: CredentialsOrClientId) -> None:
        answer = world.post_token_request(credentials, {"grant_type": grant_type, **form})
        assert answer.status_int in (400, 401)
        check_protocol_answer(answer)

    check()
    assert row_counts(world) == before
    check_token_response(world.refresh(members["refresh_token"], client))


@pytest.mark.thorough
def test_any_validly_signed_assertion_is_answered(robot: ServiceUserProgram) -> None:
    """The sender owns the key and can sign any claims and headers."""
    world = robot.world
    robot.access_token()
    before = row_counts(world)

    @fuzzing
    @given(
        st.dictionaries(claim_names, json_values, max_size=5),
        st.dictionaries(header_names, json_values, max_size=2),
        st.none() | texts,
    )
    def check(claims: Mapping[str, Any], header: Mapping[str, Any], scope: str | None) -> None:
        assertion = sign_assertion(robot.claims(**claims), robot.key, key_id=robot.key_id, header=header)
        answer = world.client.exchange_assertion(assertion, scope)
        check_protocol_answer(answer)
        if answer.status_int == 200:
            world.client.revoke(answer.json["access_token"], world.introspector)

    world.introspector  # noqa: B018 - made before rows are counted
    before = row_counts(world)
    check()
    after = row_counts(world)
    # A granted request stored a token and, with a jti, its record; refusals are counted.
    assert {name for name in after if after[name] != before.get(name, 0)} <= {
        "attempts",
        "tokens",
        "access_tokens",
        "assertions",
        "used_assertions",
    }
    check_token_response(robot.request_token())


def test_any_assertion_like_text_is_answered(robot: ServiceUserProgram) -> None:
    world = robot.world
    robot.access_token()
    before = row_counts(world)
    part = st.text(string.ascii_letters + string.digits + "-_=", max_size=30)
    shaped = st.one_of(
        st.tuples(part, part, part).map(".".join),
        st.tuples(st.binary(max_size=60), st.binary(max_size=60)).map(
            lambda parts: sign_assertion(parts[1], robot.key, key_id=robot.key_id, header=parts[0])
        ),
        st.binary(max_size=80).map(lambda claims: sign_assertion(claims, robot.key, key_id=robot.key_id)),
        st.integers(0, 600).map(lambda at: robot.assertion()[:at]),
    )

    @fuzzing
    @given(shaped)
    def check(assertion: str) -> None:
        answer = world.client.exchange_assertion(assertion)
        assert answer.status_int == 400
        check_protocol_answer(answer)

    check()
    assert row_counts(world) == before
    check_token_response(robot.request_token())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "endpoint", ["introspection_endpoint", "revocation_endpoint", "userinfo_endpoint", "jwks_uri", "discovery"]
)
def test_any_request_to_other_endpoints_is_answered(robot: ServiceUserProgram, endpoint: str) -> None:
    world = robot.world
    token = robot.management_token()
    good = [world.introspector.header, f"Bearer {token}"]
    before = row_counts(world)
    address = world.client.discovery.get(endpoint, world.issuer + DISCOVERY_PATH)

    @fuzzing
    @given(methods, bodies, content_types, st.none() | authorizations | st.sampled_from(good), queries)
    def check(method: str, body: bytes, content_type: str, authorization: str | None, query: str) -> None:
        headers = {"Content-Type": content_type, "If-None-Match": content_type}
        if authorization is not None:
            headers["Authorization"] = authorization
        environ = {"QUERY_STRING": query}
        check_protocol_answer(world.client.request(method, address, headers=headers, body=body, environ=environ))

    check()
    assert row_counts(world) == before
    assert world.client.introspect(token, world.introspector).json["active"] is True


@pytest.mark.thorough
def test_any_management_api_request_is_answered(robot: ServiceUserProgram) -> None:
    world = robot.world
    world.assign_manager_role(robot, "ORG_OWNER")
    token = robot.management_token()
    before = row_counts(world)
    paths = st.one_of(
        st.sampled_from(["/management/v1/me", "/management/v1/instance", "/management/v1", "/healthz", "/"]),
        st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=30).map(
            lambda path: f"/management/v1/{path}"
        ),
        st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=30).map(lambda path: f"/{path}"),
    )

    @fuzzing
    @given(methods, paths, bodies, st.none() | authorizations | st.just(f"Bearer {token}"), queries)
    def check(method: str, path: str, body: bytes, authorization: str | None, query: str) -> None:
        headers = {} if authorization is None else {"Authorization": authorization}
        environ = {"QUERY_STRING": query, "PATH_INFO": path}
        answer = world.client.request(method, world.issuer, headers=headers, body=body, environ=environ)
        assert answer.status_int < 500
        if answer.status_int >= 400 and answer.body:
            assert answer.json["error"]
            assert answer.json["request_id"]

    check()
    assert row_counts(world) == before
    assert world.client.call_management_api("/me", token).status_int == 200
