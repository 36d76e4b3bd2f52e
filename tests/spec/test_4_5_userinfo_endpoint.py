"""Service description §4.5: the userinfo endpoint (OpenID Connect Core §5.3, RFC 6750)."""

from dataclasses import replace
from typing import Any

import pytest

from identity.domain.users import Address, Profile
from identity.testing.response_checks import check_not_cacheable, check_oauth_error
from identity.testing.service_test_client import FORM_CONTENT_TYPE, basic_auth_header, bearer_headers
from identity.testing.world import BrowserSession, ServiceUserProgram, World


def challenge(answer: Any) -> str:
    value: str = answer.headers["WWW-Authenticate"]
    return value


def check_unauthorized(answer: Any) -> None:
    """HTTP 401 with the error in the challenge, as for invalid and expired tokens."""
    check_oauth_error(answer, "invalid_token", status=401)
    assert challenge(answer).startswith("Bearer ")
    assert 'error="invalid_token"' in challenge(answer)


@pytest.fixture
def address(world: World) -> str:
    """The URL of the endpoint."""
    found: str = world.client.discovery["userinfo_endpoint"]
    return found


@pytest.mark.shows("4.5.1", "4.5.3", "5.3.5")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_token_in_header_is_accepted(world: World, robot: ServiceUserProgram, method: str) -> None:
    answer = world.client.fetch_userinfo(robot.access_token(), method)
    assert answer.status_int == 200
    assert answer.content_type == "application/json"
    assert answer.json["sub"] == robot.id
    check_not_cacheable(answer)


@pytest.mark.shows("4.5.2")
def test_token_in_header_of_post_is_accepted(world: World, robot: ServiceUserProgram, address: str) -> None:
    answer = world.client.post(address, {}, bearer_headers(robot.access_token()))
    assert answer.json["sub"] == robot.id


@pytest.mark.shows("4.5.2")
def test_token_in_form_body_is_accepted(world: World, robot: ServiceUserProgram, address: str) -> None:
    """RFC 6750 §2.2."""
    assert world.client.post(address, {"access_token": robot.access_token()}).json["sub"] == robot.id


def test_token_in_other_body_is_ignored(world: World, robot: ServiceUserProgram, address: str) -> None:
    body = f"access_token={robot.access_token()}".encode()
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}):
        assert world.client.request("POST", address, headers=headers, body=body).status_int == 401


def test_scheme_is_case_insensitive(world: World, robot: ServiceUserProgram, address: str) -> None:
    for scheme in ("Bearer", "bearer", "BEARER", "Bearer  "):
        headers = {"Authorization": f"{scheme} {robot.access_token()}"}
        assert world.client.get(address, headers).status_int == 200


def test_token_in_query_is_refused(world: World, robot: ServiceUserProgram, address: str) -> None:
    """Security 7.5, with or without a token in the header."""
    token = robot.access_token()
    for headers in ({}, bearer_headers(token)):
        answer = world.client.get(f"{address}?access_token={token}", headers)
        check_oauth_error(answer, "invalid_request")
        assert 'error="invalid_request"' in challenge(answer)


def test_token_must_be_sent_once(world: World, robot: ServiceUserProgram, address: str) -> None:
    """RFC 6750 §2."""
    token = robot.access_token()
    check_oauth_error(world.client.post(address, {"access_token": token}, bearer_headers(token)), "invalid_request")
    twice = [("access_token", token), ("access_token", token)]
    check_oauth_error(world.client.post(address, twice), "invalid_request")


@pytest.mark.shows("5.3.5")
def test_missing_token_challenge_names_no_error(world: World, address: str) -> None:
    """RFC 6750 §3.1."""
    for headers in (
        {},
        {"Authorization": basic_auth_header("client:secret")},
        {"Authorization": "Bearer"},
        {"Authorization": "Digest x"},
    ):
        for method in ("GET", "POST"):
            answer = world.client.request(method, address, headers=headers)
            assert answer.status_int == 401
            assert challenge(answer) == 'Bearer realm="identity"'


@pytest.mark.shows("4.5.5", "7.7")
def test_unknown_token_is_unauthorized(world: World, address: str) -> None:
    for token in ("rubbish", "a.b.c", "ü", "';DROP/**/TABLE/**/access_tokens;--", "x" * 8000, '"'):
        check_unauthorized(world.client.get(address, bearer_headers(token.encode().decode("latin-1"))))
        check_unauthorized(world.client.post(address, {"access_token": token}))


@pytest.mark.shows("4.5.5", "7.7")
def test_expired_token_is_unauthorized(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    world.clock.advance(3599)
    assert world.client.fetch_userinfo(token).status_int == 200
    world.clock.advance(1)
    check_unauthorized(world.client.fetch_userinfo(token))


@pytest.mark.shows("4.5.5")
def test_revoked_token_is_unauthorized(world: World, robot: ServiceUserProgram) -> None:
    token = robot.management_token()
    world.client.revoke(token, world.introspector)
    check_unauthorized(world.client.fetch_userinfo(token))


def test_other_token_kinds_are_refused(world: World, robot: ServiceUserProgram) -> None:
    """Security 7.1."""
    refresh_token = world.make_authorization(world.make_human_user(), world.make_application()).refresh_token
    for token in (robot.request_token().json["id_token"], refresh_token, robot.assertion()):
        check_unauthorized(world.client.fetch_userinfo(token))


def test_token_without_openid_has_insufficient_scope(world: World) -> None:
    """Security 7.5."""
    issued = world.make_authorization(world.make_human_user(), world.make_application(), scope=("profile",))
    answer = world.client.fetch_userinfo(issued.access_token)
    check_oauth_error(answer, "insufficient_scope", status=403)
    assert 'error="insufficient_scope"' in challenge(answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(world: World, robot: ServiceUserProgram, address: str, method: str) -> None:
    answer = world.client.request(method, address, headers=bearer_headers(robot.access_token()))
    check_oauth_error(answer, "invalid_request", status=405)
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(", "))


def test_malformed_form_is_an_invalid_request(world: World, address: str) -> None:
    for body in (b"access_token=%zz", b"access_token=%ff", b"access_token=%00"):
        answer = world.client.request("POST", address, headers={"Content-Type": FORM_CONTENT_TYPE}, body=body)
        check_oauth_error(answer, "invalid_request")


# --- claims of human users, by granted scopes -------------------------------------------------------------------------

PROFILE = Profile(
    given_name="Ada",
    family_name="Lovelace",
    middle_name="King",
    nickname="Enchantress",
    display_name="Ada, Countess of Lovelace",
    profile="https://people.example/ada",
    picture="https://people.example/ada.png",
    website="https://ada.example",
    gender="female",
    birthdate="1815-12-10",
    zoneinfo="Europe/London",
    locale="en-GB",
    email="ada@example.com",
    email_verified=True,
    phone="+44 20 7946 0000",
    phone_verified=False,
    address=Address(street_address="12 St James's Square", locality="London", country="GB"),
)

#: Scope → the claims that it opens (OpenID Connect Core §5.4).
CLAIMS: dict[str, dict[str, Any]] = {
    "openid": {},
    "profile": {
        "name": "Ada, Countess of Lovelace",
        "given_name": "Ada",
        "family_name": "Lovelace",
        "middle_name": "King",
        "nickname": "Enchantress",
        "profile": "https://people.example/ada",
        "picture": "https://people.example/ada.png",
        "website": "https://ada.example",
        "gender": "female",
        "birthdate": "1815-12-10",
        "zoneinfo": "Europe/London",
        "locale": "en-GB",
    },
    "email": {"email": "ada@example.com", "email_verified": True},
    "phone": {"phone_number": "+44 20 7946 0000", "phone_number_verified": False},
    "address": {"address": {"street_address": "12 St James's Square", "locality": "London", "country": "GB"}},
}


@pytest.fixture
def session(world: World) -> BrowserSession:
    """The session of a user with a complete profile."""
    person = world.make_human_user()
    known = replace(person, profile=PROFILE, version=person.version + 1)
    world.operator_services.storage.users.update(known)
    return world.make_browser_session(known)


def claims_of(session: BrowserSession, scope: str) -> dict[str, Any]:
    """The claims of a scope; the user name and updated_at always have values."""
    person = session.user
    of_user = {"preferred_username": person.user_name, "updated_at": int(person.changed_at.timestamp())}
    return CLAIMS[scope] | (of_user if scope == "profile" else {})


@pytest.mark.shows("2.7.2", "4.5.4")
@pytest.mark.parametrize("scope", CLAIMS)
def test_each_scope_returns_its_claims_only(world: World, session: BrowserSession, scope: str) -> None:
    """In userinfo and introspection alike; sub is always returned."""
    client = world.make_web_application()
    token = world.obtain_tokens(client, session, scope=f"openid {scope}")["access_token"]
    expected = {"sub": session.user.id, **claims_of(session, scope)}
    assert world.client.fetch_userinfo(token).json == expected
    introspected = world.client.introspect(token, client).json
    for name, value in expected.items():
        assert introspected[name] == value
    unexpected = {name for claim in CLAIMS for name in claims_of(session, claim)} - set(expected)
    assert unexpected.isdisjoint(introspected)


@pytest.mark.shows("4.5.4")
def test_scopes_combine_their_claims(world: World, session: BrowserSession) -> None:
    client = world.make_web_application()
    token = world.obtain_tokens(client, session, scope=" ".join(CLAIMS))["access_token"]
    expected = {name: value for scope in CLAIMS for name, value in claims_of(session, scope).items()}
    assert world.client.fetch_userinfo(token).json == {"sub": session.user.id, **expected}


def test_unknown_claims_are_omitted(world: World) -> None:
    """OpenID Connect Core §5.3.2: never null, never empty."""
    session = world.make_browser_session()
    token = world.obtain_tokens(world.make_web_application(), session, scope=" ".join(CLAIMS))["access_token"]
    claims = world.client.fetch_userinfo(token).json
    assert set(claims) == {"sub", "name", "given_name", "family_name", "preferred_username", "updated_at"}


def test_profile_change_appears_at_next_request(world: World, session: BrowserSession) -> None:
    """Security 7.4: even for a token that was issued before."""
    token = world.obtain_tokens(world.make_web_application(), session, scope="openid email")["access_token"]
    person = world.operator_services.users.get(session.user.id)
    profile = replace(person.profile, email="countess@example.com", email_verified=False)
    world.operator_services.storage.users.update(replace(person, profile=profile, version=person.version + 1))
    claims = world.client.fetch_userinfo(token).json
    assert (claims["email"], claims["email_verified"]) == ("countess@example.com", False)
