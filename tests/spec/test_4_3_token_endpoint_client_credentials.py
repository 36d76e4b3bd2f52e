"""Decisions, tokens: the client credentials grant (RFC 6749 §4.4), for applications and service users with a secret."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from identity.domain.errors import Conflict
from identity.domain.users import TokenFormat
from identity.provider.scope import Scope
from identity.services.access_control import Principal
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import (
    check_inactive_token,
    check_oauth_error,
    check_token_response,
    comparable_headers,
)
from identity.testing.service_test_client import Credentials, basic_auth_header
from identity.testing.world import CredentialsOrClientId, ServiceUserProgram, World

pytestmark = pytest.mark.every_storage

GRANT = "client_credentials"
GRANTS = frozenset({GRANT})


def ask(world: World, client: CredentialsOrClientId, scope: str | None = None) -> Any:
    """The response to a client credentials request."""
    form = {"grant_type": GRANT} if scope is None else {"grant_type": GRANT, "scope": scope}
    return world.post_token_request(client, form)


def token_of(world: World, client: CredentialsOrClientId, scope: str | None = None) -> str:
    """The access token that such a request obtains."""
    token: str = check_token_response(ask(world, client, scope))["access_token"]
    return token


@pytest.fixture
def client(world: World) -> Credentials:
    """An API application that may obtain tokens for itself."""
    return world.make_application(grant_types=GRANTS)


def test_client_credentials_issue_only_access_token(world: World, client: Credentials) -> None:
    """Even with openid and offline_access in the scope."""
    for scope in (None, "openid offline_access"):
        members = check_token_response(ask(world, client, scope))
        assert set(members) <= {"access_token", "token_type", "expires_in", "scope"}
        assert members["expires_in"] == 3600
        assert "offline_access" not in members.get("scope", "")


def test_client_credentials_need_no_openid(world: World) -> None:
    project = world.make_project()
    client = world.make_application(project.id, grant_types=GRANTS)
    check_token_response(ask(world, client, world.audience_scope(project.id)))


def test_token_belongs_to_application(world: World) -> None:
    client = world.make_application(grant_types=GRANTS, access_token_type=TokenFormat.JWT)
    token = token_of(world, client)
    _, claims = decode_jwt_unverified(token)
    assert (claims["sub"], claims["client_id"]) == (client.client_id, client.client_id)
    answer = world.client.introspect(token, client).json
    assert answer["active"] is True
    assert (answer["sub"], answer["client_id"]) == (client.client_id, client.client_id)
    assert "username" not in answer


def test_application_token_has_no_user(world: World, client: Credentials) -> None:
    """Userinfo has no subject, and the management API accepts users only."""
    check_oauth_error(ask(world, client, f"openid {world.audience_scope()}"), "invalid_scope")
    token = token_of(world, client, "openid")
    check_oauth_error(world.client.fetch_userinfo(token), "insufficient_scope", status=403)
    assert world.client.call_management_api("/me", token).status_int == 401
    check_inactive_token(world.client.introspect(token, world.introspector))


def test_application_needs_grant_enabled(world: World) -> None:
    """Security 3.4."""
    check_oauth_error(ask(world, world.make_web_application()), "unauthorized_client")


def test_public_client_has_no_credentials(world: World) -> None:
    """RFC 6749 §4.4: even if it is registered with the grant."""
    client = world.make_public_application()
    before = world.operator_services.applications.get(client)
    world.operator_services.storage.applications.update(replace(before, grant_types=GRANTS, version=before.version + 1))
    check_oauth_error(ask(world, client), "unauthorized_client")


def test_application_revokes_its_token(world: World, client: Credentials) -> None:
    token = token_of(world, client)
    stranger = world.make_application(grant_types=GRANTS)
    check_oauth_error(world.client.revoke(token, stranger), "invalid_grant")
    assert world.client.introspect(token, client).json["active"] is True
    assert world.client.revoke(token, client).status_int == 200
    check_inactive_token(world.client.introspect(token, client))


def test_token_ends_with_its_secret(world: World) -> None:
    """Security 3.2, 7.4: tokens obtained with a leaked secret end with it. Tokens of human users stay."""
    client = world.make_web_application(grant_types=GRANTS | {"authorization_code"})
    of_a_person = world.obtain_tokens(client)["access_token"]
    known = token_of(world, client)
    [old] = world.operator_services.applications.list_secrets(client.client_id)
    _, text = world.operator_services.applications.add_secret(client.client_id)
    renewed = replace(client, secret=text)
    new = token_of(world, renewed)
    world.operator_services.applications.remove_secret(client.client_id, old.id)
    check_inactive_token(world.client.introspect(known, renewed))
    assert world.client.introspect(new, renewed).json["active"] is True
    assert world.client.introspect(of_a_person, renewed).json["active"] is True
    check_oauth_error(ask(world, client), "invalid_client", status=401)


def test_token_ends_with_its_application(world: World) -> None:
    """Security 7.9: another application of the same project introspects the token."""
    project = world.make_project()
    client, api = world.make_application(project.id, grant_types=GRANTS), world.make_application(project.id)
    token = token_of(world, client)
    assert world.client.introspect(token, api).json["active"] is True
    world.operator_services.applications.deactivate(client.client_id)
    check_inactive_token(world.client.introspect(token, api))
    check_oauth_error(ask(world, client), "invalid_client", status=401)


# --- service users with a secret --------------------------------------------------------------------------------------


@pytest.fixture
def secret(world: World, robot: ServiceUserProgram) -> Credentials:
    """The id and a secret of ``robot``."""
    return world.make_service_user_secret(robot)


def test_service_user_gets_client_credentials_token(world: World, secret: Credentials) -> None:
    """Neither ID token nor refresh token, even with openid and offline_access; needs no registered grant type."""
    for scope, granted in ((None, ""), ("openid offline_access", "openid"), ("profile unheard_of", "profile")):
        members = check_token_response(ask(world, secret, scope))
        assert set(members) - {"scope"} == {"access_token", "token_type", "expires_in"}
        assert members["expires_in"] == 3600
        assert members.get("scope", "") == granted


def test_service_user_can_use_both_authentication_methods(
    world: World, robot: ServiceUserProgram, secret: Credentials
) -> None:
    check_token_response(ask(world, secret))
    check_token_response(ask(world, world.make_service_user_secret(robot, in_form=True)))
    form = {"grant_type": GRANT, "client_id": robot.id}
    check_token_response(world.client.request_token(form, {"Authorization": secret.header}))
    differing = {**form, "client_id": world.make_service_user_program().id}
    check_oauth_error(world.client.request_token(differing, {"Authorization": secret.header}), "invalid_request")


def test_token_names_service_user(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    """Decisions, tokens: the claims equal those of the JWT bearer grant."""
    scope = f"openid {world.audience_scope()}"
    by_secret = world.client.introspect(token_of(world, secret, scope), world.introspector)
    by_key = world.client.introspect(robot.access_token(scope), world.introspector)
    members, expected = by_secret.json, by_key.json
    assert members.pop("jti") != expected.pop("jti")
    assert members == expected
    assert (members["sub"], members["client_id"]) == (robot.id, robot.id)
    assert members["username"] == f"{robot.user.user_name}@{robot.organization.primary_domain}"


def test_service_user_token_format_is_honored(world: World) -> None:
    """RFC 9068."""
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    project = world.make_project(robot.organization)
    token = token_of(world, world.make_service_user_secret(robot), world.audience_scope(project.id))
    header, claims = decode_jwt_unverified(token)
    assert header["typ"] == "at+jwt"
    assert (claims["sub"], claims["client_id"], claims["aud"]) == (robot.id, robot.id, [project.id])
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["scope"] == world.audience_scope(project.id)
    assert world.client.introspect(token, world.make_application(project.id)).json["active"] is True


def test_default_audience_is_issuer(world: World) -> None:
    token = token_of(
        world, world.make_service_user_secret(world.make_service_user_program(token_format=TokenFormat.JWT))
    )
    assert decode_jwt_unverified(token)[1]["aud"] == [world.issuer]


@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_service_user_token_has_minimum_lifetime(make_world: WorldFactory) -> None:
    """Decisions, lifetimes: at least 10 minutes, while an application's may be shorter."""
    world = make_world(**{"identity.access_token_lifetime": "1m"})
    assert (
        check_token_response(ask(world, world.make_service_user_secret(world.make_service_user_program())))[
            "expires_in"
        ]
        == 600
    )
    assert check_token_response(ask(world, world.make_application(grant_types=GRANTS)))["expires_in"] == 60


def test_userinfo_of_service_user_needs_openid(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    token = token_of(world, secret, "openid")
    assert world.client.fetch_userinfo(token).json == {
        "sub": robot.id,
        "name": robot.user.display_name,
        "preferred_username": robot.user.user_name,
        "updated_at": int(robot.user.changed_at.timestamp()),
    }
    bare = token_of(world, secret)
    check_oauth_error(world.client.fetch_userinfo(bare), "insufficient_scope", status=403)


@pytest.mark.parametrize("kind", ["application", "service user"])
def test_audience_projects_belong_to_client_organization(world: World, robot: ServiceUserProgram, kind: str) -> None:
    """Decisions: audience scopes are checked against the client's organization, at issue and at introspection."""
    project, foreign = world.make_project(robot.organization), world.make_project()
    client = (
        world.make_service_user_secret(robot)
        if kind == "service user"
        else world.make_application(project.id, grant_types=GRANTS)
    )
    token = token_of(world, client, world.audience_scope(world.make_project(robot.organization).id))
    for outsider in (world.make_application(foreign.id), world.introspector):
        check_inactive_token(world.client.introspect(token, outsider))
    scope = world.audience_scope(foreign.id)
    unknown, refused = ask(world, client, world.audience_scope("no-such-project")), ask(world, client, scope)
    check_oauth_error(refused, "invalid_scope")
    check_oauth_error(unknown, "invalid_scope")
    assert refused.json["error_description"].replace(foreign.id, "no-such-project") == unknown.json["error_description"]
    grant, api = world.make_project_grant(foreign, robot.organization), world.make_application(foreign.id)
    token = token_of(world, client, scope)
    assert world.client.introspect(token, api).json["active"] is True
    world.operator_services.project_grants.remove(grant.id)
    check_inactive_token(world.client.introspect(token, api))
    check_oauth_error(ask(world, client, scope), "invalid_scope")


@pytest.mark.parametrize("scope", ['"quoted"', "ü"])
def test_malformed_scope_of_service_user_is_refused(world: World, secret: Credentials, scope: str) -> None:
    check_oauth_error(ask(world, secret, scope), "invalid_scope")


def test_organization_scope_must_match_service_user(
    world: World, robot: ServiceUserProgram, secret: Credentials
) -> None:
    """Decisions, namespaces."""
    check_token_response(ask(world, secret, f"urn:service:iam:org:id:{robot.organization.id}"))
    check_oauth_error(ask(world, secret, f"urn:service:iam:org:id:{world.make_organization().id}"), "invalid_scope")


def test_role_claims_equal_those_of_assertion_grant(
    world: World, robot: ServiceUserProgram, secret: Credentials
) -> None:
    project = world.make_project(robot.organization, roles=("reader",))
    world.make_user_grant(robot.user, project, "reader")
    scope = f"{world.audience_scope(project.id)} urn:service:iam:org:projects:roles"
    token = token_of(world, secret, scope)
    claims = world.client.introspect(token, world.make_application(project.id)).json
    assert claims["urn:service:iam:org:project:roles"] == {
        "reader": {robot.organization.id: robot.organization.primary_domain}
    }


def test_manager_secret_opens_management_api(world: World) -> None:
    """Security 14.3: needs both the instance's project in the audience and a manager role."""
    manager, robot = world.make_manager_program(), world.make_service_user_program()
    secret = world.make_service_user_secret(manager)
    token = token_of(world, secret, world.audience_scope())
    answer = world.client.call_management_api("/me", token)
    assert answer.status_int == 200
    assert answer.json["id"] == manager.id
    other_token = token_of(world, secret, "openid")
    assert world.client.call_management_api("/me", other_token).status_int == 401
    without_role = token_of(world, world.make_service_user_secret(robot), world.audience_scope())
    assert world.client.call_management_api("/roles", without_role).status_int == 403


def test_secret_rotation_has_no_gap(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    """Security 3.2. Removing a secret revokes the tokens obtained with it, as with a key."""
    second = world.make_service_user_secret(robot)
    with pytest.raises(Conflict):
        world.make_service_user_secret(robot)
    scope = f"openid {world.audience_scope()}"
    tokens = [token_of(world, credentials, scope) for credentials in (secret, second)]
    tokens.append(robot.access_token(scope))
    with world.transaction_services() as services:
        [oldest, _] = services.service_users.list_secrets(robot.id)
        services.service_users.remove_secret(robot.id, oldest.id, principal=Principal.OPERATOR)
    check_oauth_error(ask(world, secret), "invalid_client", status=401)
    check_token_response(ask(world, second))
    assert [world.client.fetch_userinfo(token).status_int for token in tokens] == [401, 200, 200]
    check_inactive_token(world.client.introspect(tokens[0], world.introspector))


def test_secret_removed_during_request_is_refused(
    world: World, robot: ServiceUserProgram, secret: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credential may be deleted between look-up and issue."""

    def remove() -> None:
        with world.transaction_services() as services:
            [stored] = services.service_users.list_secrets(robot.id)
            services.service_users.remove_secret(robot.id, stored.id, principal=Principal.OPERATOR)

    def remove_meanwhile(arguments: tuple[str, ...]) -> None:
        # Another request, and so another thread and transaction.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(remove).result()

    monkeypatch.setattr(Scope, "require_syntax", remove_meanwhile)
    check_oauth_error(ask(world, secret), "invalid_grant")


def test_service_user_revokes_its_token(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    """RFC 7009 §2.1: only the client that obtained the token, by secret or by assertion."""
    scope = f"openid {world.audience_scope()}"
    tokens = [token_of(world, secret, scope), robot.access_token(scope)]
    stranger = world.make_service_user_secret(world.make_service_user_program())
    for token in tokens:
        for client in (stranger, world.make_application(grant_types=GRANTS)):
            check_oauth_error(world.client.revoke(token, client), "invalid_grant")
        assert world.client.fetch_userinfo(token).status_int == 200
        assert world.client.revoke(token, secret).status_int == 200
        assert world.client.fetch_userinfo(token).status_int == 401
    application = world.make_application(grant_types=GRANTS)
    token = token_of(world, application)
    check_oauth_error(world.client.revoke(token, secret), "invalid_grant")
    assert world.client.introspect(token, application).json["active"] is True
    assert world.client.revoke("unknown", secret).status_int == 200


def test_instance_api_application_revokes_token(world: World, secret: Credentials) -> None:
    token = token_of(world, secret, "openid")
    assert world.client.revoke(token, world.introspector).status_int == 200
    assert world.client.fetch_userinfo(token).status_int == 401


def test_service_user_cannot_introspect(world: World, secret: Credentials) -> None:
    token = token_of(world, secret, world.audience_scope())
    check_oauth_error(world.client.introspect(token, secret), "invalid_client", status=401)


@pytest.mark.parametrize("grant_type", ["authorization_code", "refresh_token"])
def test_service_user_secret_works_for_client_credentials_only(
    world: World, secret: Credentials, grant_type: str
) -> None:
    """Security 3.4: also with live artifacts of other clients."""
    client, session = world.make_web_application(), world.make_browser_session()
    code, members = world.make_code(client, session), world.obtain_tokens(client, session)
    form = {"grant_type": grant_type, "refresh_token": members["refresh_token"], **code.form()}
    check_oauth_error(world.post_token_request(secret, form), "unauthorized_client")
    check_token_response(world.redeem(code, client))
    check_token_response(world.refresh(members["refresh_token"], client))


def wrong(secret: Credentials, world: World) -> dict[str, str]:
    program, application = world.make_service_user_program(), world.make_application(grant_types=GRANTS)
    return {
        "wrong secret": f"{secret.client_id}:wrong",
        "no secret": f"{secret.client_id}:",
        "cut off": f"{secret.client_id}:{secret.secret[:-1]}",
        "in other case": f"{secret.client_id}:{secret.secret.swapcase()}",
        "id in capitals": f"{secret.client_id.upper()}:{secret.secret}",
        "id without dashes": f"{secret.client_id.replace('-', '')}:{secret.secret}",
        "unknown id": f"01980000-0000-7000-8000-000000000000:{secret.secret}",
        "without a secret of its own": f"{program.id}:{secret.secret}",
        "a key id": f"{program.id}:{program.key_id}",
        "a person": f"{world.make_human_user().id}:{secret.secret}",
        "of another service user": f"{world.make_service_user_secret(program).client_id}:{secret.secret}",
        "of an application": f"{secret.client_id}:{application.secret}",
        "for an application": f"{application.client_id}:{secret.secret}",
    }


def test_service_user_failures_equal_application_failures(world: World, secret: Credentials) -> None:
    """Security 3.2: in header and form; errors do not reveal which ids are service users."""
    expected = world.client.request_token({"grant_type": GRANT}, {"Authorization": basic_auth_header("nobody:wrong")})
    check_oauth_error(expected, "invalid_client", status=401)
    for case, credentials in wrong(secret, world).items():
        client_id, _, text = credentials.partition(":")
        answers = [world.client.request_token({"grant_type": GRANT}, {"Authorization": basic_auth_header(credentials)})]
        if text:
            in_form = {"grant_type": GRANT, "client_id": client_id, "client_secret": text}
            answers.append(world.client.request_token(in_form))
        for answer in answers:
            assert answer.status_int == 401, case
            assert (answer.body, comparable_headers(answer)) == (expected.body, comparable_headers(expected)), case
    check_token_response(ask(world, secret))


def test_deactivated_service_user_looks_unknown(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    expected = world.client.request_token({"grant_type": GRANT}, {"Authorization": basic_auth_header("nobody:wrong")})
    world.operator_services.service_users.deactivate(robot.id)
    answer = ask(world, secret)
    assert answer.status_int == 401
    assert (answer.body, comparable_headers(answer)) == (expected.body, comparable_headers(expected))


def test_service_user_uses_one_authentication_method(
    world: World, robot: ServiceUserProgram, secret: Credentials
) -> None:
    """Security 3.3: whichever of them is correct."""
    headers = {"Authorization": secret.header}
    in_form = {"grant_type": GRANT, "client_id": robot.id, "client_secret": secret.secret}
    check_oauth_error(world.client.request_token(in_form, headers), "invalid_request")
    check_oauth_error(
        world.client.request_token(in_form, {"Authorization": basic_auth_header("nobody:wrong")}), "invalid_request"
    )
    form = {"grant_type": GRANT, "client_assertion": robot.assertion()}
    check_oauth_error(world.client.request_token(form, headers), "invalid_request")


def test_service_user_name_alone_is_refused(world: World, robot: ServiceUserProgram, secret: Credentials) -> None:
    """A service user is no public client."""
    check_oauth_error(
        world.client.request_token({"grant_type": GRANT, "client_id": robot.id}), "invalid_client", status=401
    )


@pytest.mark.thorough
def test_audit_distinguishes_refused_service_user_from_application(isolated_world: World) -> None:
    """Security 9.2."""
    secret = isolated_world.make_service_user_secret(isolated_world.make_service_user_program())
    isolated_world.client.request_token(
        {"grant_type": GRANT}, {"Authorization": basic_auth_header(f"{secret.client_id}:wrong")}
    )
    [event] = isolated_world.audit_events(event="authentication.refused")
    assert (event.object_kind, event.object_id) == ("service_user", None)
    assert event.reason == "unknown service user, wrong secret or deactivated"
