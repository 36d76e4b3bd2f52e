"""Ending everything: which access ends, what stays, who is left out, and who may."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.domain.errors import Denied
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.testing.browser import Browser
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")


def principal_of(world: World, user_id: str) -> Principal:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(user_id)
        assert subject is not None
        return services.access_control.load_principal(subject)


def events(world: World, object_id: str) -> list[Any]:
    return [event for event in world.audit_events(object_id=object_id) if event.event.endswith(".access_revoked")]


def revoke(world: World, name: str, id: str, principal: Principal = Principal.OPERATOR) -> Any:
    with world.transaction_services() as services:
        return getattr(services.access_revocations, f"revoke_{name}")(id, principal=principal)


def test_person_keeps_the_account_and_loses_all_access(world: World) -> None:
    page, person = world.make_web_application(), world.make_human_user()
    session = world.make_browser_session(person)
    tokens, code = world.obtain_tokens(page, session), world.make_code(page, session)
    revoked = revoke(world, "user", person.id)
    assert (revoked.sessions, revoked.left_out) == (1, ())
    assert revoked.tokens >= 2
    assert world.client.fetch_userinfo(tokens["access_token"]).status_int == 401
    assert world.refresh(tokens["refresh_token"], page).json["error"] == "invalid_grant"
    assert world.redeem(code, page).json["error"] == "invalid_grant"
    [event] = events(world, person.id)
    assert event.detail == {"sessions": 1, "tokens": revoked.tokens, "left_out": []}
    assert world.obtain_tokens(page, world.make_browser_session(person))["access_token"]
    assert revoke(world, "user", world.make_human_user().id) == type(revoked)(0, 0)


def test_service_user_keeps_keys_and_loses_tokens(world: World) -> None:
    robot = world.make_service_user_program()
    tokens = [robot.access_token(), world.make_personal_access_token(robot)]
    assert revoke(world, "service_user", robot.id).tokens == 2
    assert {world.client.fetch_userinfo(token).status_int for token in tokens} == {401}
    with world.read_only_services() as services:
        assert not services.service_users.page_personal_access_tokens(robot.id).items
    assert world.client.fetch_userinfo(robot.access_token()).status_int == 200
    assert len(events(world, robot.id)) == 1


def test_application_loses_the_tokens_of_everyone(world: World) -> None:
    page, other = world.make_web_application(), world.make_web_application()
    session = world.make_browser_session()
    tokens, other_tokens = world.obtain_tokens(page, session), world.obtain_tokens(other, session)
    assert revoke(world, "application", page.client_id).sessions == 0
    assert world.client.fetch_userinfo(tokens["access_token"]).status_int == 401
    assert world.refresh(tokens["refresh_token"], page).json["error"] == "invalid_grant"
    assert world.client.fetch_userinfo(other_tokens["access_token"]).status_int == 200
    before = len(events(world, page.client_id))
    revoke(world, "application", page.client_id)
    assert len(events(world, page.client_id)) == before == 1


def test_organization_leaves_out_whoever_has_more_rights(world: World) -> None:
    organization = world.make_organization()
    people = {name: world.make_human_user(organization) for name in ("member", "owner", "holder", "caller")}
    world.assign_manager_role(people["caller"], "ORG_OWNER")
    world.assign_manager_role(people["owner"], "ORG_OWNER")
    world.assign_manager_role(people["holder"], "IAM_OWNER", resource=Resource.INSTANCE)
    page = world.make_web_application()
    tokens = {
        name: world.obtain_tokens(page, world.make_browser_session(person))["access_token"]
        for name, person in people.items()
    }
    revoked = revoke(world, "organization", organization.id, principal_of(world, people["caller"].id))
    alive = {name for name, token in tokens.items() if world.client.fetch_userinfo(token).status_int == 200}
    assert alive == {"holder", "caller"}
    assert [subject.user.id for subject in revoked.left_out] == [people["holder"].id]
    assert revoked.sessions == 2
    [event] = events(world, organization.id)
    assert event.detail["left_out"] == [people["holder"].id]
    assert revoke(world, "organization", organization.id).sessions == 2, "an operator leaves out no one"


def test_nobody_ends_the_access_of_a_user_with_more_rights(world: World) -> None:
    organization = world.make_organization()
    caller, holder = world.make_human_user(organization), world.make_human_user(organization)
    robot = world.make_service_user_program(organization)
    world.assign_manager_role(caller, "ORG_OWNER")
    for user in (holder, robot.user):
        world.assign_manager_role(user, "IAM_OWNER", resource=Resource.INSTANCE)
    principal = principal_of(world, caller.id)
    attempts: list[Callable[[], Any]] = [
        lambda: revoke(world, "user", holder.id, principal),
        lambda: revoke(world, "service_user", robot.id, principal),
    ]
    for attempt in attempts:
        with pytest.raises(Denied):
            attempt()


def test_console_and_management_api_end_everything(world: World) -> None:
    organization = world.make_organization()
    owner, person = world.make_human_user(organization), world.make_human_user(organization)
    world.assign_manager_role(owner, "ORG_OWNER")
    robot = world.make_service_user_program(organization)
    world.assign_manager_role(robot.user, "ORG_OWNER")
    page = world.make_web_application()

    def open_session(user: HumanUser) -> str:
        return str(world.obtain_tokens(page, world.make_browser_session(user))["access_token"])

    token = open_session(person)
    browser = Browser(world)
    browser.start_session(owner)
    browser.open(f"/console/users/{person.id}/revoke-access")
    assert "1 session" in browser.page.text
    browser.submit({"confirm_name": "wrong"})
    assert world.client.fetch_userinfo(token).status_int == 200
    browser.submit({"confirm_name": person.user_name})
    assert "All sessions and tokens have ended." in browser.page.text
    assert world.client.fetch_userinfo(token).status_int == 401
    token = open_session(person)
    path = f"/organizations/{organization.id}/revoke-access"
    answer = world.client.call_management_api(path, robot.management_token(), "POST")
    assert answer.status_int == 200, answer
    assert answer.json["sessions"] >= 1
    assert answer.json["left_out"] == []
    assert world.client.fetch_userinfo(token).status_int == 401
