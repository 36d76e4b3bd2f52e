"""Service description §4.3: the refresh token grant (RFC 6749 §6, RFC 9700 §4.14, security 6)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from identity.domain.audit import AuditEvent
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_inactive_token, check_oauth_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, CredentialsOrClientId, World

pytestmark = pytest.mark.every_storage

SCOPE = "openid profile email offline_access"

#: Creates a client of one kind.
Kind = Callable[[World], CredentialsOrClientId]
KINDS: dict[str, Kind] = {
    "with a secret": lambda world: world.make_web_application(),
    "public": lambda world: world.make_public_application(),
}


def rotated(world: World, refresh_token: str, client: CredentialsOrClientId, **parameters: str) -> dict[str, Any]:
    """The members of a refresh response."""
    return check_token_response(world.refresh(refresh_token, client, **parameters))


def check_dead(world: World, members: dict[str, Any]) -> None:
    """Checks that the access token is inactive."""
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 401


def check_alive(world: World, members: dict[str, Any]) -> None:
    """Checks that the access token is active."""
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 200


def replays(world: World, client: Credentials) -> list[AuditEvent]:
    """The audit events of replays by this client."""
    events = world.audit_events(event="token.replayed")
    return [event for event in events if event.detail["client_id"] == client.client_id]


@pytest.mark.shows("2.4.4", "2.4.6", "4.3.13")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_refresh_issues_all_tokens(world: World, session: BrowserSession, kind: Kind) -> None:
    client = kind(world)
    first = world.obtain_tokens(client, session, scope=SCOPE)
    second = rotated(world, first["refresh_token"], client)
    assert set(second) == {"access_token", "token_type", "expires_in", "id_token", "scope", "refresh_token"}
    assert second["scope"] == SCOPE
    assert second["refresh_token"] != first["refresh_token"]
    assert second["access_token"] != first["access_token"]
    # The previous access token stays valid until it expires.
    check_alive(world, first)
    check_alive(world, second)
    rotated(world, second["refresh_token"], client)


def test_refreshed_id_token_keeps_sign_in(world: World, client: Credentials, session: BrowserSession) -> None:
    """OpenID Connect Core §12.2: iss, sub, aud, azp and auth_time are kept; iat is new; no nonce."""
    first = world.obtain_tokens(client, session, scope=SCOPE, nonce="n-0S6")
    world.clock.advance(hours=1)
    _, before = decode_jwt_unverified(first["id_token"])
    _, after = decode_jwt_unverified(rotated(world, first["refresh_token"], client)["id_token"])
    for name in ("iss", "sub", "aud", "azp", "auth_time", "sid"):
        assert after[name] == before[name], name
    assert after["iat"] == before["iat"] + 3600 == world.clock.seconds
    assert before["nonce"] == "n-0S6"
    assert "nonce" not in after


@pytest.mark.shows("2.4.6", "2.7.4")
def test_refresh_token_needs_offline_access(world: World, client: Credentials, session: BrowserSession) -> None:
    assert "refresh_token" not in world.obtain_tokens(client, session, scope="openid profile")


@pytest.mark.shows("4.3.10")
def test_grant_type_and_refresh_token_are_required(world: World, client: Credentials) -> None:
    """A malformed request consumes nothing."""
    form = {"grant_type": "refresh_token", "refresh_token": world.obtain_tokens(client)["refresh_token"]}
    for name in form:
        answer = world.post_token_request(client, {other: form[other] for other in form if other != name})
        check_oauth_error(answer, "invalid_request", description=f"parameter {name} is missing")
    check_token_response(world.post_token_request(client, form))


def test_offline_access_is_dropped_without_refresh_grant(world: World, session: BrowserSession) -> None:
    client = world.make_web_application(grant_types=frozenset({"authorization_code"}))
    members = world.obtain_tokens(client, session, scope="openid offline_access")
    assert members["scope"] == "openid"
    assert "refresh_token" not in members


def test_offline_access_is_dropped_without_code(world: World, session: BrowserSession) -> None:
    """OpenID Connect Core §11: the consent page does not mention offline access, either."""
    client = world.make_web_application(response_types=frozenset({"code", "id_token token"}))
    parameters = {
        "response_type": "id_token token",
        "scope": "openid offline_access",
        "nonce": "n",
        "code_challenge": None,
    }
    answer = session.authorize(client, **parameters, code_challenge_method=None)
    members = dict(parse_qsl(urlsplit(answer.headers["Location"]).fragment))
    world.client.secrets |= {members["access_token"], members["id_token"]}
    assert members["scope"] == "openid"
    with world.read_only_services() as services:
        assert [
            connected_application.offline
            for connected_application in services.users.list_connected_applications(session.user.id)
        ] == [False]


# --- scope ------------------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.3.11")
def test_refresh_scope_is_subset_of_first_scope(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 6.4."""
    members = world.obtain_tokens(client, session, scope=SCOPE)
    for scope in ("openid", "openid email", "email openid profile", None, "openid profile"):
        parameters = {} if scope is None else {"scope": scope}
        members = rotated(world, members["refresh_token"], client, **parameters)
        assert members["scope"] == (scope or SCOPE)
    claims = world.client.fetch_userinfo(members["access_token"]).json
    assert "given_name" in claims
    assert "email" not in claims


@pytest.mark.shows("4.3.11")
def test_wider_scope_is_refused_and_keeps_token(world: World, client: Credentials, session: BrowserSession) -> None:
    for scope in ("openid phone", f"{SCOPE} address", "openid unheard_of", "openid OPENID"):
        members = world.obtain_tokens(client, session, scope=SCOPE)
        check_oauth_error(world.refresh(members["refresh_token"], client, scope=scope), "invalid_scope")
        rotated(world, members["refresh_token"], client)


def test_refresh_scope_must_include_openid(world: World, client: Credentials, session: BrowserSession) -> None:
    """§2.7: in every request with a scope."""
    members = world.obtain_tokens(client, session, scope=SCOPE)
    check_oauth_error(world.refresh(members["refresh_token"], client, scope="profile"), "invalid_scope")


# --- rotation ---------------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.3.10")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_refresh_replay_revokes_family(world: World, session: BrowserSession, kind: Kind) -> None:
    """Security 6.3: the refusal commits the revocation; other sign-ins are not affected."""
    client = kind(world)
    first, other = world.obtain_tokens(client, session), world.obtain_tokens(client, session)
    second = rotated(world, first["refresh_token"], client)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    check_dead(world, first)
    check_dead(world, second)
    check_oauth_error(world.refresh(second["refresh_token"], client), "invalid_grant")
    check_alive(world, other)
    rotated(world, other["refresh_token"], client)


def test_replay_is_audited_once(world: World, client: Credentials, session: BrowserSession) -> None:
    first = world.obtain_tokens(client, session)
    rotated(world, first["refresh_token"], client)
    for _ in range(3):
        check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    [event] = replays(world, client)
    assert event.object_kind == "refresh_token"
    assert event.organization_id is not None


def test_replay_is_detected_after_expiry(world: World, client: Credentials, session: BrowserSession) -> None:
    """Decisions: purge keeps rotated tokens until their family has ended."""
    members = world.obtain_tokens(client, session)
    first = members["refresh_token"]
    for _ in range(4):
        members = rotated(world, members["refresh_token"], client)
        world.clock.advance(days=20)
    world.identity.background_jobs.purge()
    members = rotated(world, members["refresh_token"], client)
    check_oauth_error(world.refresh(first, client), "invalid_grant")
    check_dead(world, members)
    check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")


def test_id_token_outlives_revoked_family(make_world: WorldFactory) -> None:
    """Even if tokens are purged right after expiry: everything of the family has expired by then."""
    world = make_world(**{"identity.token_retention": "0"})
    client = world.make_web_application(access_token_lifetime=MAX_TOKEN_LIFETIME)
    members = world.obtain_tokens(client)
    for _ in range(4):
        world.clock.advance(days=20)
        members = rotated(world, members["refresh_token"], client)
    world.clock.advance(days=10, seconds=-1)
    members = rotated(world, members["refresh_token"], client)
    world.clock.advance(hours=12, seconds=-1)
    world.identity.background_jobs.purge()
    check_alive(world, members)
    world.clock.advance(days=1)
    purged = world.identity.background_jobs.purge()
    assert (purged["token families"], purged["refresh tokens"]) == (1, 6)


@pytest.fixture
def graceful(make_world: WorldFactory) -> World:
    """A service with a refresh grace period of 30 seconds."""
    return make_world(**{"identity.refresh_token_grace": "30"})


def test_refresh_can_be_repeated_within_grace_period(graceful: World) -> None:
    """Decisions, tokens: the unused successor is revoked; presenting it does not revoke the family."""
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)
    lost = rotated(world, first["refresh_token"], client)
    world.clock.advance(30)
    again = rotated(world, first["refresh_token"], client)
    assert again["refresh_token"] != lost["refresh_token"]
    check_oauth_error(world.refresh(lost["refresh_token"], client), "invalid_grant")
    check_alive(world, again)
    rotated(world, again["refresh_token"], client)
    assert replays(world, client) == []


def test_refresh_can_be_repeated_often_within_grace_period(graceful: World) -> None:
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)
    chain = [rotated(world, first["refresh_token"], client) for _ in range(4)]
    for lost in chain[:-1]:
        check_oauth_error(world.refresh(lost["refresh_token"], client), "invalid_grant")
    rotated(world, chain[-1]["refresh_token"], client)


def test_repetition_after_grace_period_is_replay(graceful: World) -> None:
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)
    second = rotated(world, first["refresh_token"], client)
    world.clock.advance(31)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    check_dead(world, second)
    check_oauth_error(world.refresh(second["refresh_token"], client), "invalid_grant")
    assert len(replays(world, client)) == 1


def test_repetition_does_not_extend_grace_period(graceful: World) -> None:
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)
    rotated(world, first["refresh_token"], client)
    world.clock.advance(20)
    last = rotated(world, first["refresh_token"], client)
    world.clock.advance(11)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    check_dead(world, last)


def test_older_generation_revokes_family(graceful: World) -> None:
    """Security 6.3: R1, R2, R3, then R1 again within the grace period."""
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)
    second = rotated(world, first["refresh_token"], client)
    third = rotated(world, second["refresh_token"], client)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    for members in (first, second, third):
        check_dead(world, members)
        check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")
    assert len(replays(world, client)) == 1


def test_repetition_without_grace_period_is_replay(world: World, client: Credentials) -> None:
    first = world.obtain_tokens(client)
    second = rotated(world, first["refresh_token"], client)
    third = rotated(world, second["refresh_token"], client)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    check_dead(world, third)


# --- lifetime ---------------------------------------------------------------------------------------------------------


def test_idle_refresh_token_expires_after_thirty_days(world: World, client: Credentials) -> None:
    """Security 6.1. An expired token is no replay, so nothing else ends."""
    first, second = world.obtain_tokens(client), world.obtain_tokens(client)
    world.clock.advance(days=30, seconds=-1)
    rotated(world, first["refresh_token"], client)
    world.clock.advance(1)
    check_oauth_error(world.refresh(second["refresh_token"], client), "invalid_grant")
    assert replays(world, client) == []


def test_refresh_token_family_expires_after_ninety_days(world: World, client: Credentials) -> None:
    """Security 6.1: successors inherit the absolute expiry."""
    members = world.obtain_tokens(client)
    for _ in range(4):
        world.clock.advance(days=22)
        members = rotated(world, members["refresh_token"], client)
    world.clock.advance(days=2, seconds=-1)
    members = rotated(world, members["refresh_token"], client)
    world.clock.advance(1)
    check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")


# --- early end of a family --------------------------------------------------------------------------------------------


def test_revocation_of_any_generation_revokes_family(world: World, client: Credentials) -> None:
    """Security 6.5: the revocation is final."""
    first = world.obtain_tokens(client)
    second = rotated(world, first["refresh_token"], client)
    assert world.client.revoke(first["refresh_token"], client).status_int == 200
    check_dead(world, second)
    for _ in range(2):
        check_oauth_error(world.refresh(second["refresh_token"], client), "invalid_grant")
        world.clock.advance(hours=-1)
    check_dead(world, second)
    check_inactive_token(world.client.introspect(second["access_token"], client))


def test_replay_keeps_revocation_time(world: World, client: Credentials) -> None:
    """Security 6.5."""
    first = world.obtain_tokens(client)
    rotated(world, first["refresh_token"], client)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    revoked_at = world.operator_services.tokens.find_refresh_token(first["refresh_token"]).family.revoked_at
    assert revoked_at == world.clock()
    world.clock.advance(hours=1)
    check_oauth_error(world.refresh(first["refresh_token"], client), "invalid_grant")
    assert world.operator_services.tokens.find_refresh_token(first["refresh_token"]).family.revoked_at == revoked_at


def test_sign_out_ends_access_tokens_and_keeps_offline_access(
    world: World, client: Credentials, session: BrowserSession
) -> None:
    """Decisions, end session. Tokens refreshed afterwards are not bound to the session."""
    first = world.obtain_tokens(client, session)
    online = world.obtain_tokens(client, session, scope="openid")
    with world.transaction_services() as services:
        services.storage.sessions.end(session.id, services.now)
    for members in (first, online):
        check_dead(world, members)
        check_inactive_token(world.client.introspect(members["access_token"], client))
    second = rotated(world, first["refresh_token"], client)
    check_alive(world, second)
    assert "sid" not in decode_jwt_unverified(second["id_token"])[1]
    check_alive(world, rotated(world, second["refresh_token"], client))
    # A refresh does not revive revoked tokens.
    check_dead(world, first)


def test_password_change_revokes_refresh_tokens(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 6.4."""
    members, code = world.obtain_tokens(client, session), world.make_code(client, session)
    subject = world.operator_services.storage.users.find_subject(session.user.id)
    world.operator_services.passwords.change(subject, "a hash of the new one", except_session=session.id)
    check_dead(world, members)
    check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")
    check_oauth_error(world.redeem(code, client), "invalid_grant")


@pytest.mark.storages("memory")  # a setting; another test covers that everything is revoked
def test_revocation_on_password_change_is_a_setting(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.password_change_ends_access": "false"})
    client, session = world.make_web_application(), world.make_browser_session()
    members = world.obtain_tokens(client, session)
    subject = world.operator_services.storage.users.find_subject(session.user.id)
    world.operator_services.passwords.change(subject, "a hash of the new one")
    # The session ended, and its access tokens with it.
    check_dead(world, members)
    check_alive(world, rotated(world, members["refresh_token"], client))


def test_application_needs_grant_enabled(world: World, session: BrowserSession) -> None:
    """Security 3.4."""
    client = world.make_application()
    issued = world.make_authorization(session.user, client)
    check_oauth_error(world.refresh(issued.refresh_token, client), "unauthorized_client")


@pytest.mark.shows("4.3.10")
def test_other_tokens_are_refused_as_refresh_token(world: World, client: Credentials) -> None:
    code = world.make_code(client)
    members = world.obtain_tokens(client)
    for token in (members["access_token"], members["id_token"], code.text):
        check_oauth_error(world.refresh(token, client), "invalid_grant")
    check_alive(world, members)
