"""Service description §4.3: the authorization code grant (RFC 6749 §4.1.3, RFC 7636, security 5)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from identity.crypto.secrets import token_digest
from identity.domain.audit import AuditEvent
from identity.domain.users import TokenFormat
from identity.storage.contract import factories as make
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified, pkce_challenge
from identity.testing.response_checks import check_inactive_token, check_oauth_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import CALLBACK_URI, CODE_VERIFIER, BrowserSession, PresentableCode, World

pytestmark = pytest.mark.every_storage

#: Requested and granted scope of the code grant.
SCOPE = "openid profile offline_access"


def replays(world: World, client: Credentials) -> list[AuditEvent]:
    """The audit events of replays by this client."""
    events = world.audit_events(event="token.replayed")
    return [event for event in events if event.detail["client_id"] == client.client_id]


@pytest.mark.shows("2.4.2", "2.4.4", "2.4.6", "2.7.4")
def test_token_response_has_exact_members(world: World, client: Credentials, session: BrowserSession) -> None:
    """§2.4: a refresh token only for offline_access."""
    members = check_token_response(world.redeem(world.make_code(client, session, scope="openid profile"), client))
    assert set(members) == {"access_token", "token_type", "expires_in", "id_token", "scope"}
    assert (members["scope"], members["expires_in"]) == ("openid profile", 3600)
    members = check_token_response(world.redeem(world.make_code(client, session, scope=SCOPE), client))
    assert set(members) == {"access_token", "token_type", "expires_in", "id_token", "scope", "refresh_token"}
    assert members["scope"] == SCOPE


def test_tokens_name_user(world: World, client: Credentials, session: BrowserSession) -> None:
    members = world.obtain_tokens(client, session, scope=SCOPE)
    assert world.client.fetch_userinfo(members["access_token"]).json["sub"] == session.user.id
    answer = world.client.introspect(members["access_token"], client).json
    assert (answer["sub"], answer["client_id"]) == (session.user.id, client.client_id)
    assert client.client_id in answer["aud"]


def test_id_token_has_subject_auth_time_and_session(world: World, client: Credentials, session: BrowserSession) -> None:
    """OpenID Connect Core §2; decisions: sid."""
    signed_in_at = world.clock.seconds
    world.clock.advance(minutes=10)
    members = check_token_response(world.redeem(world.make_code(client, session, nonce="n-0S6"), client))
    _, claims = decode_jwt_unverified(members["id_token"])
    assert claims.pop("at_hash")
    assert claims == {
        "iss": world.issuer,
        "sub": session.user.id,
        "aud": client.client_id,
        "azp": client.client_id,
        "iat": world.clock.seconds,
        "exp": world.clock.seconds + 3600,
        "auth_time": signed_in_at,
        "nonce": "n-0S6",
        "amr": ["pwd"],
        "acr": "urn:service:iam:acr:1",
        "sid": session.id,
    }


def test_scope_parameter_is_ignored(world: World, client: Credentials, session: BrowserSession) -> None:
    """The scope was settled at the authorization endpoint."""
    code = world.make_code(client, session, scope="openid email")
    form = {"grant_type": "authorization_code", **code.form(), "scope": "openid profile"}
    assert check_token_response(world.post_token_request(client, form))["scope"] == "openid email"


def test_application_lifetimes_and_format_apply(world: World, session: BrowserSession) -> None:
    client = world.make_web_application(
        access_token_type=TokenFormat.JWT,
        access_token_lifetime=timedelta(minutes=2),
        id_token_lifetime=timedelta(minutes=3),
    )
    members = world.obtain_tokens(client, session)
    header, access = decode_jwt_unverified(members["access_token"])
    _, identity = decode_jwt_unverified(members["id_token"])
    assert header["typ"] == "at+jwt"
    assert (access["client_id"], access["sub"]) == (client.client_id, session.user.id)
    assert access["exp"] - access["iat"] == members["expires_in"] == 120
    assert identity["exp"] - identity["iat"] == 180


# --- lifetime and single use ------------------------------------------------------------------------------------------


def test_code_expires_after_sixty_seconds(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 5.1."""
    codes = [world.make_code(client, session) for _ in range(2)]
    world.clock.advance(59)
    check_token_response(world.redeem(codes[0], client))
    world.clock.advance(1)
    check_oauth_error(world.redeem(codes[1], client), "invalid_grant")


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_lifetime_is_a_setting(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.authorization_code_lifetime": "5m"})
    client = world.make_web_application()
    code = world.make_code(client)
    world.clock.advance(299)
    check_token_response(world.redeem(code, client))


def test_code_replay_revokes_tokens(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 5.3: committed despite the refusal, and audited once."""
    code, other = world.make_code(client, session, scope=SCOPE), world.obtain_tokens(client, session)
    members = check_token_response(world.redeem(code, client))
    refreshed = check_token_response(world.refresh(members["refresh_token"], client))
    for _ in range(3):
        check_oauth_error(world.redeem(code, client), "invalid_grant")
    for token in (members["access_token"], refreshed["access_token"]):
        assert world.client.fetch_userinfo(token).status_int == 401
        check_inactive_token(world.client.introspect(token, client))
    check_oauth_error(world.refresh(refreshed["refresh_token"], client), "invalid_grant")
    [event] = replays(world, client)
    assert (event.object_kind, event.organization_id) == ("authorization_code", _organization_of(world, client))
    # Another sign-in to the same application is not affected.
    assert world.client.fetch_userinfo(other["access_token"]).status_int == 200


def test_replay_of_expired_code_revokes_tokens(world: World, client: Credentials, session: BrowserSession) -> None:
    code = world.make_code(client, session, scope=SCOPE)
    members = check_token_response(world.redeem(code, client))
    world.clock.advance(days=2)
    world.identity.background_jobs.purge()
    check_oauth_error(world.redeem(code, client), "invalid_grant")
    check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")
    assert len(replays(world, client)) == 1


def _organization_of(world: World, client: Credentials) -> str:
    found = world.operator_services.applications.find_client(client.client_id)
    assert found is not None
    return found.organization.id


# --- checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("4.3.3")
def test_redirect_uri_must_equal_request(world: World, client: Credentials, session: BrowserSession) -> None:
    """A failed redemption consumes the code (security 5.3)."""
    for redirect_uri in (
        f"{CALLBACK_URI}/",
        CALLBACK_URI.upper(),
        f"{CALLBACK_URI}?",
        f"{CALLBACK_URI}#",
        CALLBACK_URI.replace("https", "http"),
        "x",
    ):
        code = world.make_code(client, session)
        check_oauth_error(world.redeem(code, client, redirect_uri=redirect_uri), "invalid_grant")
        check_oauth_error(world.redeem(code, client), "invalid_grant")


def test_other_registered_redirect_uri_is_refused(world: World, session: BrowserSession) -> None:
    client = world.make_web_application(redirect_uris=(CALLBACK_URI, "https://app.example/other"))
    code = world.make_code(client, session, redirect_uri="https://app.example/other")
    check_oauth_error(world.redeem(code, client, redirect_uri=CALLBACK_URI), "invalid_grant")


@pytest.mark.shows("4.3.2", "4.3.3")
def test_grant_type_code_and_redirect_uri_are_required(
    world: World, client: Credentials, session: BrowserSession
) -> None:
    """A malformed request consumes nothing."""
    for name in ("grant_type", "code", "redirect_uri"):
        code = world.make_code(client, session)
        form = {"grant_type": "authorization_code", **code.form()}
        del form[name]
        check_oauth_error(
            world.post_token_request(client, form), "invalid_request", description=f"parameter {name} is missing"
        )
        check_token_response(world.redeem(code, client))


def test_verifier_must_match_challenge(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 4.5 and 5.3: applies to confidential clients, too; a failure consumes the code."""
    for verifier in (
        None,
        "x" * 43,
        CODE_VERIFIER.upper(),
        CODE_VERIFIER[:-1],
        f"{CODE_VERIFIER}x",
        f" {CODE_VERIFIER}",
        f"{CODE_VERIFIER}\n",
        f"{CODE_VERIFIER}=",
        "ü" * 43,
        CODE_VERIFIER[:-1] + "\x7f",
    ):
        code = world.make_code(client, session)
        check_oauth_error(world.redeem(code, client, code_verifier=verifier), "invalid_grant")
        check_oauth_error(world.redeem(code, client), "invalid_grant")


def test_verifier_of_wrong_length_is_refused(world: World, session: BrowserSession) -> None:
    """RFC 7636 §4.1: 43 to 128 characters, even if its hash is right."""
    for length in (42, 129):
        verifier = "v" * length
        client = world.make_public_application()
        code = world.make_code(client, session, code_challenge=pkce_challenge(verifier))
        check_oauth_error(world.redeem(code, client, code_verifier=verifier), "invalid_grant")


def test_confidential_client_needs_no_pkce(world: World, client: Credentials, session: BrowserSession) -> None:
    code = world.make_code(client, session, code_challenge=None, code_challenge_method=None)
    check_token_response(world.redeem(code, client))


def test_verifier_without_challenge_is_refused(world: World, client: Credentials, session: BrowserSession) -> None:
    """Security 4.5: PKCE downgrade; an attacker has removed the challenge (RFC 9700 §4.8.2)."""
    code = world.make_code(client, session, code_challenge=None, code_challenge_method=None)
    check_oauth_error(world.redeem(code, client, code_verifier=CODE_VERIFIER), "invalid_grant")


def test_public_client_redeems_code_with_pkce(world: World, session: BrowserSession) -> None:
    client = world.make_public_application()
    members = check_token_response(world.redeem(world.make_code(client, session, scope=SCOPE), client))
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 200
    check_token_response(world.refresh(members["refresh_token"], client))


def test_public_client_needs_pkce(world: World, session: BrowserSession) -> None:
    """The authorization endpoint issues no such code; the token endpoint would refuse it, too."""
    client = world.make_public_application()
    now, text = world.clock(), "a-code-that-somebody-else-could-have-taken"
    family = make.token_family(
        client_id=client, user_id=session.user.id, started_at=now, ends_at=now + timedelta(days=1)
    )
    stored = make.authorization_code(
        family,
        digest=token_digest(text),
        redirect_uri=CALLBACK_URI,
        issued_at=now,
        expires_at=now + timedelta(minutes=1),
        authenticated_at=now,
    )
    world.operator_services.tokens.store_family(family, stored)
    for verifier in (None, CODE_VERIFIER):
        check_oauth_error(world.redeem(PresentableCode(text, verifier=verifier), client), "invalid_grant")


MUTATIONS: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[:-1],
    "extended": lambda text: f"{text}A",
    "in other case": lambda text: text.swapcase(),
    "with a space": lambda text: f"{text} ",
    "beyond ASCII": lambda text: f"{text}ü",
}


@pytest.mark.shows("4.3.2")
def test_unissued_code_is_refused(world: World, client: Credentials, session: BrowserSession) -> None:
    for mutation in MUTATIONS.values():
        code = world.make_code(client, session)
        check_oauth_error(world.redeem(code, client, code=mutation(code.text)), "invalid_grant")
        check_token_response(world.redeem(code, client))


def test_application_needs_grant_enabled(world: World, session: BrowserSession) -> None:
    """Security 3.4."""
    client = world.make_web_application(grant_types=frozenset())
    check_oauth_error(world.redeem(world.make_code(client, session), client), "unauthorized_client")


# --- changes between sign-in and redemption ---------------------------------------------------------------------------


def test_sign_out_ends_codes(world: World, client: Credentials, session: BrowserSession) -> None:
    code = world.make_code(client, session, scope=SCOPE)
    with world.transaction_services() as services:
        services.storage.sessions.end(session.id, services.now)
    check_oauth_error(world.redeem(code, client), "invalid_grant")


def test_scope_project_is_rechecked(world: World, session: BrowserSession) -> None:
    """Decisions, namespaces: scopes are checked at redemption too."""
    organization_id = session.user.organization_id
    organization = world.operator_services.organizations.get(organization_id)
    project, client = world.make_project(), world.make_web_application(world.make_project(organization).id)
    grant = world.make_project_grant(project, organization)
    code = world.make_code(client, session, scope=f"openid {world.audience_scope(project.id)}")
    world.operator_services.project_grants.remove(grant.id)
    check_oauth_error(world.redeem(code, client), "invalid_scope")


def test_role_check_is_repeated(world: World) -> None:
    """Decisions, namespaces: invalid_grant here, access_denied at the authorization endpoint."""
    project = world.make_project(roles=["reader"], check_roles=True)
    client = world.make_web_application(project.id)
    person = world.make_human_user()
    session = world.make_browser_session(person)
    denied = session.authorize(client)
    assert "error=access_denied" in denied.headers["Location"]
    user_grant = world.make_user_grant(person, project, "reader")
    code = world.make_code(client, session)
    check_token_response(world.redeem(world.make_code(client, session), client))
    world.operator_services.storage.user_grants.delete(user_grant.id)
    check_oauth_error(world.redeem(code, client), "invalid_grant")
