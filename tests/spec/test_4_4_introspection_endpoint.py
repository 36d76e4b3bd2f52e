"""Service description §4.4: the introspection endpoint (RFC 7662)."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.users import TokenFormat
from identity.testing.fixtures import WorldCache
from identity.testing.response_checks import check_inactive_token, check_not_cacheable, check_oauth_error
from identity.testing.service_test_client import FORM_CONTENT_TYPE, bearer_headers
from identity.testing.world import ServiceUserProgram, World
from identity.transaction_manager import ExplicitTransactionManager


@pytest.fixture
def token(robot: ServiceUserProgram) -> str:
    """A token whose audience is the instance's project."""
    return robot.management_token()


@pytest.mark.shows("1.5", "4.4.1", "4.4.2", "4.4.5")
def test_audience_client_can_introspect_live_token(world: World, robot: ServiceUserProgram, token: str) -> None:
    answer = world.client.introspect(token, world.introspector)
    assert answer.status_int == 200
    assert answer.content_type == "application/json"
    check_not_cacheable(answer)
    now = world.clock.seconds
    members = answer.json
    assert isinstance(members.pop("jti"), str)
    assert members == {
        "active": True,
        "scope": f"openid {world.audience_scope()}",
        "client_id": robot.id,
        "token_type": "Bearer",
        "iss": world.issuer,
        "sub": robot.id,
        "aud": [world.instance.project_id],
        "iat": now,
        "exp": now + 3600,
        "username": f"{robot.user.user_name}@{robot.organization.primary_domain}",
        "name": robot.user.display_name,
        "preferred_username": robot.user.user_name,
        "updated_at": int(robot.user.changed_at.timestamp()),
    }


@pytest.mark.shows("4.4.2")
def test_jwt_introspection_equals_opaque_token(world: World) -> None:
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    assert world.client.introspect(robot.management_token(), world.introspector).json["sub"] == robot.id


def test_introspection_is_read_only(
    world: World, robot: ServiceUserProgram, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last use of a secret or a personal access token is kept in memory."""
    introspector, text = world.introspector, world.make_personal_access_token(robot)
    world.identity.process_state.last_used_tracker.drain()

    def refuse(*_: object) -> None:
        raise AssertionError("a transaction began")

    monkeypatch.setattr(world.identity.backend, "join_transaction", refuse)
    monkeypatch.setattr(ExplicitTransactionManager, "begin", refuse)
    assert world.client.introspect(token, introspector).json["active"] is True
    check_inactive_token(world.client.introspect("unknown", introspector))
    assert world.client.fetch_userinfo(token).status_int == 200
    assert world.client.fetch_userinfo(text).status_int == 200
    assert {kind for kind, _ in world.identity.process_state.last_used_tracker.drain()} == {
        "client_secret",
        "personal_access_token",
    }


@pytest.mark.shows("4.4.5")
def test_client_outside_audience_sees_inactive_token(world: World, robot: ServiceUserProgram, token: str) -> None:
    """Security 7.6: a token is active only for clients in its audience."""
    own_project = world.make_project(robot.organization)
    for client in (world.make_application(), world.make_application(own_project.id)):
        check_inactive_token(world.client.introspect(token, client))
    check_inactive_token(world.client.introspect(robot.access_token(), world.introspector))


def test_every_audience_project_application_can_introspect(world: World, robot: ServiceUserProgram) -> None:
    """Decisions, tokens: a client is in the audience if aud contains its client id or its project's id."""
    project = world.make_project(robot.organization)
    token = robot.access_token(f"openid {world.audience_scope(project.id)}")
    for client in (world.make_application(project.id), world.make_web_application(project.id)):
        assert world.client.introspect(token, client).json["active"] is True
    check_inactive_token(world.client.introspect(token, world.introspector))


@pytest.mark.shows("2.7.2")
def test_receiving_application_sees_claims_of_granted_scopes(world: World) -> None:
    client = world.make_application()
    person = world.make_human_user()
    bare = world.make_authorization(person, client, scope=("openid",)).access_token
    profile = world.make_authorization(person, client, scope=("openid", "profile")).access_token
    assert world.client.introspect(bare, client).json.keys().isdisjoint({"name", "given_name", "username"})
    claims = world.client.introspect(profile, client).json
    assert claims["given_name"] == "Ada"
    assert claims["username"].partition("@")[0] == person.user_name == claims["preferred_username"]
    check_inactive_token(world.client.introspect(profile, world.make_application()))


@pytest.mark.shows("4.4.6")
def test_user_token_introspection_has_all_members(world: World) -> None:
    client = world.make_web_application()
    session = world.make_browser_session()
    members = world.obtain_tokens(client, session, scope="openid offline_access")
    answer = world.client.introspect(members["access_token"], client).json
    wider = world.obtain_tokens(client, session, scope="openid profile")["access_token"]
    claims = world.client.introspect(wider, client).json
    assert (claims["scope"], claims["given_name"]) == ("openid profile", "Ada")
    found = world.operator_services.applications.find_client(client.client_id)
    assert isinstance(answer.pop("jti"), str)
    assert answer == {
        "active": True,
        "acr": "urn:service:iam:acr:1",
        "amr": ["pwd"],
        "auth_time": world.clock.seconds,
        "scope": "openid offline_access",
        "client_id": client.client_id,
        "token_type": "Bearer",
        "iss": world.issuer,
        "sub": session.user.id,
        "aud": [client.client_id, found.project.id],
        "iat": world.clock.seconds,
        "exp": world.clock.seconds + 3600,
    }


def test_api_of_application_project_can_introspect(world: World) -> None:
    """An API of another project needs that project in the token's audience."""
    organization = world.make_organization()
    project, other = world.make_project(organization), world.make_project(organization)
    client, session = (
        world.make_web_application(project.id),
        world.make_browser_session(world.make_human_user(organization)),
    )
    api, other_api = world.make_application(project.id), world.make_application(other.id)
    bare = world.obtain_tokens(client, session, scope="openid")["access_token"]
    assert world.client.introspect(bare, api).json["active"] is True
    check_inactive_token(world.client.introspect(bare, other_api))
    both = world.obtain_tokens(client, session, scope=f"openid {world.audience_scope(other.id)}")["access_token"]
    assert world.client.introspect(both, other_api).json["active"] is True


def test_public_client_cannot_introspect(world: World) -> None:
    """RFC 7662 §2.1: the endpoint requires authentication, which a public client lacks, even for its own token."""
    client = world.make_public_application()
    token = world.obtain_tokens(client)["access_token"]
    answer = world.client.post(world.client.discovery["introspection_endpoint"], {"token": token, "client_id": client})
    check_oauth_error(answer, "invalid_client", status=401)


@pytest.mark.shows("4.4.5")
def test_expired_token_is_inactive(world: World, token: str) -> None:
    world.clock.advance(3599)
    assert world.client.introspect(token, world.introspector).json["active"] is True
    world.clock.advance(1)
    check_inactive_token(world.client.introspect(token, world.introspector))


#: Modified tokens.
UNKNOWN: tuple[Callable[[str], str], ...] = (
    lambda token: "rubbish",
    lambda token: "..",
    lambda token: token[:-1],
    lambda token: token + "A",
    lambda token: token.swapcase(),
    lambda token: " " + token,
    lambda token: token + "\n",
    lambda token: "ü" + token,
    lambda token: "a" * 16000,
)


def test_unissued_token_is_inactive(world: World, token: str) -> None:
    """Security 7.2."""
    for change in UNKNOWN:
        check_inactive_token(world.client.introspect(change(token), world.introspector))


def test_other_token_kinds_are_inactive(world: World, robot: ServiceUserProgram) -> None:
    """Security 7.6."""
    client = world.make_application()
    check_inactive_token(
        world.client.introspect(world.make_authorization(world.make_human_user(), client).refresh_token, client)
    )
    check_inactive_token(world.client.introspect(robot.request_token().json["id_token"], world.introspector))
    check_inactive_token(world.client.introspect(robot.assertion(), world.introspector))


def test_token_type_hint_is_ignored(world: World, token: str) -> None:
    for hint in ("access_token", "refresh_token", "anything"):
        answer = world.client.introspect(token, world.introspector, token_type_hint=hint)
        assert answer.json["active"] is True


@pytest.mark.shows("4.4.2")
def test_token_is_required(world: World) -> None:
    check_oauth_error(world.client.introspect("", world.introspector), "invalid_request")


@pytest.mark.shows("4.4.7")
def test_bearer_token_does_not_authenticate_client(world: World, token: str) -> None:
    address = world.client.discovery["introspection_endpoint"]
    check_oauth_error(world.client.post(address, {"token": token}, bearer_headers(token)), "invalid_client", status=401)


def test_token_in_query_is_refused(world: World, token: str) -> None:
    """Security 3.3."""
    address = f"{world.client.discovery['introspection_endpoint']}?token={token}"
    headers = {"Authorization": world.introspector.header}
    check_oauth_error(world.client.post(address, {"token": token}, headers), "invalid_request")
    check_oauth_error(world.client.post(address, {}, headers), "invalid_request")


@pytest.mark.shows("4.4.1")
def test_other_methods_are_refused(world: World, token: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        headers = {"Authorization": world.introspector.header, "Content-Type": FORM_CONTENT_TYPE}
        answer = world.client.request(method, world.client.discovery["introspection_endpoint"], headers=headers)
        check_oauth_error(answer, "invalid_request", status=405)
        assert answer.headers["Allow"] == "POST"


@pytest.mark.shows("4.0.1")
def test_other_content_types_are_refused(world: World, token: str) -> None:
    headers = {"Authorization": world.introspector.header, "Content-Type": "application/json"}
    answer = world.client.request(
        "POST", world.client.discovery["introspection_endpoint"], headers=headers, body=b'{"token": "x"}'
    )
    check_oauth_error(answer, "invalid_request")


@pytest.mark.parametrize("token_format", TokenFormat)
@pytest.mark.parametrize("storage", ["memory"])  # every storage looks up only a digest
def test_mutated_token_is_inactive(world_cache: WorldCache, storage: str, token_format: TokenFormat) -> None:
    """Security 7.2: truncated, extended, flipped bits, changed case, white space."""
    world = world_cache.shared_world(storage)
    token = world.make_service_user_program(token_format=token_format).management_token()
    positions = st.integers(0, len(token) - 1)
    pieces = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
    mutations = st.one_of(
        positions.map(lambda at: token[:at]),
        positions.map(lambda at: token[at + 1 :]),
        pieces.map(lambda piece: token + piece),
        pieces.map(lambda piece: piece + token),
        st.tuples(positions, pieces).map(lambda item: token[: item[0]] + item[1] + token[item[0] + len(item[1]) :]),
        st.tuples(positions, positions).map(lambda item: token[: min(item)] + token[max(item) :]),
        positions.map(lambda at: token[:at] + token[at].swapcase() + token[at + 1 :]),
        positions.map(lambda at: token[at:] + token[:at]),
    )

    @settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
    @given(mutations.filter(lambda mutation: mutation not in (token, "")))
    def check(mutation: str) -> None:
        check_inactive_token(world.client.introspect(mutation, world.introspector))
        answer = world.client.post(world.client.discovery["userinfo_endpoint"], {"access_token": mutation})
        assert answer.status_int == 401

    check()
    assert world.client.introspect(token, world.introspector).json["active"] is True
