"""Service description §4.6: the revocation endpoint (RFC 7009)."""

from typing import Any

import pytest

from identity.testing.response_checks import (
    check_inactive_token,
    check_not_cacheable,
    check_oauth_error,
    check_token_response,
)
from identity.testing.service_test_client import FORM_CONTENT_TYPE
from identity.testing.world import ServiceUserProgram, World

pytestmark = pytest.mark.every_storage


def check_revoked(answer: Any) -> None:
    """Decisions, errors: 200 with an empty body."""
    assert answer.status_int == 200
    assert answer.body == b""
    check_not_cacheable(answer)


@pytest.mark.shows("4.4.4")
def test_instance_api_application_revokes_service_user_token(world: World) -> None:
    """Decisions, tokens: service users cannot authenticate here. Only that token is revoked, at every endpoint."""
    robot = world.make_manager_program()
    token, other = robot.management_token(), robot.management_token()
    assert world.client.call_management_api("/me", token).status_int == 200
    check_revoked(world.client.revoke(token, world.introspector))
    assert world.client.fetch_userinfo(token).status_int == 401
    assert world.client.call_management_api("/me", token).status_int == 401
    check_inactive_token(world.client.introspect(token, world.introspector))
    assert world.client.fetch_userinfo(other).status_int == 200


@pytest.mark.shows("4.6.1", "4.6.2", "4.6.5")
def test_refresh_token_revocation_revokes_access_tokens(world: World) -> None:
    for hint in (None, "refresh_token", "access_token", "anything"):
        client = world.make_application()
        person = world.make_human_user()
        issued, issued_authorization = (
            world.make_authorization(person, client),
            world.make_authorization(person, client),
        )
        check_revoked(
            world.client.revoke(issued.refresh_token, client, **({} if hint is None else {"token_type_hint": hint}))
        )
        assert world.client.fetch_userinfo(issued.access_token).status_int == 401
        check_inactive_token(world.client.introspect(issued.access_token, client))
        assert (
            world.operator_services.tokens.find_refresh_token(issued.refresh_token).family.revoked_at == world.clock()
        )
        assert world.client.fetch_userinfo(issued_authorization.access_token).status_int == 200


@pytest.mark.shows("4.6.6")
def test_revocation_is_idempotent(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    client = world.make_application()
    issued = world.make_authorization(world.make_human_user(), client)
    for _ in range(2):
        check_revoked(world.client.revoke(token, world.introspector))
        check_revoked(world.client.revoke(issued.refresh_token, client))
        world.clock.advance(hours=2)


@pytest.mark.shows("4.6.6")
def test_unknown_token_is_no_error(world: World) -> None:
    """RFC 7009 §2.2."""
    for token in ("unknown", "a.b.c", "ü", "x" * 16000):
        check_revoked(world.client.revoke(token, world.introspector))


@pytest.mark.shows("4.6.2")
def test_foreign_token_is_refused_and_stays_live(world: World, robot: ServiceUserProgram) -> None:
    """Security 3.4 and 7.7."""
    client, credentials = world.make_application(), world.make_application()
    issued = world.make_authorization(world.make_human_user(), client)
    for token in (issued.access_token, issued.refresh_token):
        for stranger in (credentials, world.introspector):
            check_oauth_error(world.client.revoke(token, stranger), "invalid_grant")
    assert world.client.introspect(issued.access_token, client).json["active"] is True
    assert world.operator_services.tokens.find_refresh_token(issued.refresh_token).family.revoked_at is None


def test_service_user_token_is_foreign_to_other_applications(world: World, robot: ServiceUserProgram) -> None:
    project = world.make_project(robot.organization)
    token = robot.access_token(f"openid {world.audience_scope(project.id)} {world.audience_scope()}")
    in_audience = world.make_application(project.id)
    own_web = world.make_web_application(world.instance.project_id)
    for client in (in_audience, own_web, world.make_application()):
        check_oauth_error(world.client.revoke(token, client), "invalid_grant")
    assert world.client.fetch_userinfo(token).status_int == 200


@pytest.mark.shows("4.6.2")
def test_token_is_required(world: World) -> None:
    check_oauth_error(world.client.revoke("", world.introspector), "invalid_request")


def test_token_in_query_is_refused(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    address = f"{world.client.discovery['revocation_endpoint']}?token={token}"
    answer = world.client.post(address, {"token": token}, {"Authorization": world.introspector.header})
    check_oauth_error(answer, "invalid_request")
    assert world.client.fetch_userinfo(token).status_int == 200


@pytest.mark.shows("4.0.1")
def test_other_content_types_are_refused(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    for content_type, body in (("application/json", f'{{"token": "{token}"}}'), ("text/plain", f"token={token}")):
        headers = {"Authorization": world.introspector.header, "Content-Type": content_type}
        address = world.client.discovery["revocation_endpoint"]
        check_oauth_error(world.client.request("POST", address, headers=headers, body=body.encode()), "invalid_request")
    assert world.client.fetch_userinfo(token).status_int == 200


@pytest.mark.shows("4.6.1")
def test_other_methods_are_refused(world: World) -> None:
    for method in ("GET", "PUT", "DELETE"):
        headers = {"Authorization": world.introspector.header, "Content-Type": FORM_CONTENT_TYPE}
        answer = world.client.request(method, world.client.discovery["revocation_endpoint"], headers=headers)
        check_oauth_error(answer, "invalid_request", status=405)
        assert answer.headers["Allow"] == "POST"


def test_revocation_is_audited_with_client(world: World, robot: ServiceUserProgram) -> None:
    """Security 9.2."""
    token = robot.management_token()
    jti = world.client.introspect(token, world.introspector).json["jti"]
    world.client.revoke(token, world.introspector)
    [event] = world.audit_events(event="token.revoked", object_id=jti)
    assert event.detail["client_id"] == world.introspector.client_id
    assert event.actor.client_address == "192.0.2.1"
    assert event.actor.request_id


def test_refresh_token_revocation_revokes_family(world: World) -> None:
    """All access tokens of the family, whichever of its refresh tokens is revoked; another sign-in is not affected."""
    client, session = world.make_web_application(), world.make_browser_session()
    other = world.obtain_tokens(client, session)
    for index in (0, 1, 2):
        chain = [world.obtain_tokens(client, session)]
        for _ in range(2):
            chain.append(check_token_response(world.refresh(chain[-1]["refresh_token"], client)))
        check_revoked(world.client.revoke(chain[index]["refresh_token"], client))
        for members in chain:
            assert world.client.fetch_userinfo(members["access_token"]).status_int == 401
            check_inactive_token(world.client.introspect(members["access_token"], client))
            check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_grant")
    assert world.client.fetch_userinfo(other["access_token"]).status_int == 200
    check_token_response(world.refresh(other["refresh_token"], client))


@pytest.mark.shows("4.6.2", "4.6.4")
def test_access_token_revocation_keeps_refresh_token(world: World) -> None:
    client = world.make_web_application()
    members = world.obtain_tokens(client)
    check_revoked(world.client.revoke(members["access_token"], client))
    again = check_token_response(world.refresh(members["refresh_token"], client))
    assert world.client.fetch_userinfo(again["access_token"]).status_int == 200
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 401


def test_public_client_revokes_its_tokens(world: World) -> None:
    """RFC 7009 §2.1: it sends its client_id; tokens of other clients are not affected."""
    client, stranger = world.make_public_application(), world.make_public_application()
    address = world.client.discovery["revocation_endpoint"]
    for name in ("access_token", "refresh_token"):
        members = world.obtain_tokens(client)
        check_oauth_error(world.client.post(address, {"token": members[name], "client_id": stranger}), "invalid_grant")
        assert world.client.fetch_userinfo(members["access_token"]).status_int == 200
        check_revoked(world.client.post(address, {"token": members[name], "client_id": client}))
        assert world.client.fetch_userinfo(members["access_token"]).status_int == 401


def test_code_cannot_be_revoked(world: World) -> None:
    """RFC 7009 is about tokens: a code counts as an unknown token, and can still be redeemed."""
    client = world.make_web_application()
    code = world.make_code(client)
    check_revoked(world.client.revoke(code.text, client))
    check_token_response(world.redeem(code, client))
