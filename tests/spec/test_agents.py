"""Agents: they act for their owner alone, have at most the owner's rights at each use, and stop with the owner."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity.crypto.secrets import new_id, new_token, token_digest
from identity.domain.errors import Denied, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import PERMISSIONS, Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.agent_rules import WITHHELD_PERMISSIONS
from identity.services.commands.managers import ChangeManager
from identity.services.commands.service_users import (
    AddFederatedCredential,
    AddPersonalAccessToken,
    AddServiceUserKey,
    ChangeServiceUser,
)
from identity.services.container import Services
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import ServiceUserProgram, World

pytestmark = pytest.mark.storages("memory")

ROOT = Path(__file__).parents[2]
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def owner(world: World, organization: Organization) -> HumanUser:
    return world.make_human_user(organization)


@pytest.fixture
def agent(world: World, owner: HumanUser) -> ServiceUserProgram:
    return world.make_agent(owner)


def run(world: World, action: Callable[[Services], Any]) -> Any:
    with world.transaction_services() as services:
        return action(services)


def confirm(world: World, owner: HumanUser, agent: ServiceUserProgram) -> None:
    session = world.make_browser_session(owner)

    def confirm_it(services: Services) -> None:
        account = services.sessions.find_live(session.id)
        assert account is not None
        services.agents.confirm(account, agent.id)

    run(world, confirm_it)


def mark(world: World, agent: ServiceUserProgram) -> None:
    command = ChangeServiceUser(may_manage=True)
    run(world, lambda services: services.service_users.change(agent.id, command, principal=Principal.OPERATOR))


def is_live(world: World, token: str) -> bool:
    return bool(world.client.fetch_userinfo(token).status_int == 200)


def test_agent_has_a_project_role_while_its_owner_has_it(
    world: World, organization: Organization, owner: HumanUser, agent: ServiceUserProgram
) -> None:
    project = world.make_project(organization, roles=("reader", "writer"), assert_roles=True)
    api, scope = world.make_application(project.id), f"openid {world.audience_scope(project.id)}"

    def roles(token: str) -> Any:
        found = world.client.introspect(token, api).json
        name = f"urn:service:iam:org:project:{project.id}:roles"
        return set(found.get(name, {})) if found["active"] else None

    agent_grant = world.make_user_grant(agent.user, project, "reader", "writer")
    # A project in which the owner has no role is no audience.
    check_oauth_error(agent.request_token(scope), "invalid_scope")
    grant = world.make_user_grant(owner, project, "reader", "admin")
    token = agent.access_token(scope)
    assert roles(token) == {"reader"}
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(agent.id)
        assert subject is not None
        [entry] = services.effective_access.list_entries(subject, principal=Principal.OPERATOR)
    assert ([role.key for role in entry.roles], entry.withheld_roles) == (["reader"], ("writer",))
    assert entry.id == agent_grant.id
    run(world, lambda services: services.user_grants.remove(grant.id, principal=Principal.OPERATOR))
    assert roles(token) is None, "the role and the audience are judged at each use"


def test_agent_manages_only_if_marked_and_what_its_owner_manages(
    world: World, organization: Organization, owner: HumanUser, agent: ServiceUserProgram
) -> None:
    path = f"/organizations/{organization.id}/users"
    manager = world.assign_manager_role(owner, "ORG_OWNER")
    world.assign_manager_role(agent, "ORG_OWNER")
    check_oauth_error(agent.request_token(f"openid {world.audience_scope()}"), "invalid_scope")
    mark(world, agent)
    token = agent.management_token()
    assert world.client.call_management_api(path, token).status_int == 200
    run(world, lambda services: services.managers.remove(manager.id, principal=Principal.OPERATOR))
    assert world.client.call_management_api(path, token).status_int == 403
    less = world.assign_manager_role(owner, "ORG_USER_MANAGER")
    assert world.client.call_management_api(path, token).status_int == 403, "the role of the agent holds more"
    more = ChangeManager(roles=frozenset({"ORG_OWNER"}))
    run(world, lambda services: services.managers.change(less.id, more, principal=Principal.OPERATOR))
    assert world.client.call_management_api(path, token).status_int == 200
    command = ChangeServiceUser(may_manage=False)
    run(world, lambda services: services.service_users.change(agent.id, command, principal=Principal.OPERATOR))
    assert world.client.call_management_api(path, token).status_int == 401, "the mark is read at each use"


def test_only_instance_write_marks_an_agent_and_no_agent_has_roles_at_the_instance(
    world: World, organization: Organization, agent: ServiceUserProgram
) -> None:
    boss = world.make_human_user(organization)
    world.assign_manager_role(boss, "ORG_OWNER")

    def mark_as(services: Services, user_id: str) -> None:
        principal = services.access_control.load_principal(services.storage.users.find_subject(user_id))  # type: ignore[arg-type]
        services.service_users.change(agent.id, ChangeServiceUser(may_manage=True), principal=principal)

    with pytest.raises(Denied):
        run(world, lambda services: mark_as(services, boss.id))
    with pytest.raises(Invalid):
        world.assign_manager_role(agent, "IAM_OWNER", resource=Resource.INSTANCE)
    robot = world.make_service_user_program(organization)
    with pytest.raises(Invalid):
        mark(world, robot)


def test_agent_creates_no_credentials(world: World, organization: Organization, owner: HumanUser) -> None:
    agent, robot = world.make_agent(owner), world.make_service_user_program(organization)
    application = world.make_application(world.make_project(organization).id)
    for user in (owner, agent):
        world.assign_manager_role(user, "ORG_OWNER")
    mark(world, agent)
    assert WITHHELD_PERMISSIONS <= PERMISSIONS
    token = agent.management_token()
    refused = {
        f"/organizations/{organization.id}/service-users": {"user_name": "x", "display_name": "x"},
        f"/service-users/{robot.id}/keys": {},
        f"/service-users/{robot.id}/secrets": {},
        f"/service-users/{robot.id}/personal-access-tokens": {"name": "x"},
        f"/service-users/{agent.id}/keys": {},
        f"/applications/{application.client_id}/secrets": {},
        f"/users/{world.make_human_user(organization).id}/password-link": {},
    }
    for path, body in refused.items():
        answer = world.client.call_management_api(path, token, "POST", body)
        assert answer.status_int == 403, (path, answer)


def test_only_the_owner_creates_keys_of_an_agent(world: World, agent: ServiceUserProgram, owner: HumanUser) -> None:
    operator = Principal.OPERATOR
    federated = AddFederatedCredential.build(
        name="CI", issuer="https://token.ci.example", conditions=("sub = repo:acme/app",)
    )
    attempts: tuple[Callable[[Any], Any], ...] = (
        lambda services: services.service_users.add_key(agent.id, AddServiceUserKey(), principal=operator),
        lambda services: services.service_users.add_secret(agent.id, principal=operator),
        lambda services: services.service_users.add_personal_access_token(
            agent.id, AddPersonalAccessToken(name="x"), principal=operator
        ),
        lambda services: services.federated_credentials.add(agent.id, federated, principal=operator),
        lambda services: services.service_users.change(
            agent.id, ChangeServiceUser.build(jwks_uri="https://keys.example/jwks"), principal=operator
        ),
    )
    for attempt in attempts:
        with pytest.raises((Denied, Invalid)):
            run(world, lambda services, attempt=attempt: attempt(services))
    eve = world.make_browser_session()

    def add(services: Services, session_id: str) -> Any:
        account = services.sessions.find_live(session_id)
        assert account is not None
        return services.agents.add_key(account, agent.id)

    with pytest.raises(NotFound):
        run(world, lambda services: add(services, eve.id))
    assert run(world, lambda services: add(services, world.make_browser_session(owner).id)).user_id == agent.id
    [event] = [item for item in world.audit_events(object_id=agent.id) if item.event == "agent.key_added"]
    assert event.user_id == owner.id


STOPS: dict[str, Callable[[Services, str], Any]] = {
    "one-time password": lambda services, id_: services.passwords.set_one_time_password(id_),
    "this was not me": lambda services, id_: services.account_recovery.report_compromise(
        services.storage.users.find_subject(id_)  # type: ignore[arg-type]
    ),
    "deactivation": lambda services, id_: (
        services.users.deactivate(id_, principal=Principal.OPERATOR),
        services.users.reactivate(id_, principal=Principal.OPERATOR),
    ),
    "end everything": lambda services, id_: services.access_revocations.revoke_user(id_, principal=Principal.OPERATOR),
    "one switch": lambda services, id_: services.agents.stop_all_of(id_, principal=Principal.OPERATOR),
}


@pytest.mark.parametrize("name", STOPS)
def test_agents_stop_with_their_owner_until_the_owner_confirms(
    world: World, owner: HumanUser, agent: ServiceUserProgram, name: str
) -> None:
    token, other = agent.access_token(), world.make_agent(world.make_human_user())
    other_token = other.access_token()
    run(world, lambda services: STOPS[name](services, owner.id))
    assert not is_live(world, token)
    check_oauth_error(agent.request_token(), "invalid_grant")
    assert is_live(world, other_token)
    confirm(world, owner, agent)
    assert not is_live(world, token), "what was issued before stays revoked"
    assert is_live(world, agent.access_token())
    events = [event.event for event in world.audit_events(involved_id=owner.id)]
    assert {"agent.created", "agent.stopped", "agent.confirmed"} <= set(events)


def test_agent_of_an_owner_without_access_is_dead_whatever_its_own_row_says(
    world: World, owner: HumanUser, agent: ServiceUserProgram
) -> None:
    token = agent.access_token()
    run(world, lambda services: services.users.deactivate(owner.id, principal=Principal.OPERATOR))
    with world.transaction_services() as services:
        stored = services.agents.list_by_owner(owner.id)[0]
        services.service_users.confirm_agent(stored)
    assert not is_live(world, token)
    check_oauth_error(agent.request_token(), "invalid_grant")


def test_agents_are_removed_with_their_owner(world: World, owner: HumanUser, agent: ServiceUserProgram) -> None:
    token = agent.access_token()
    run(world, lambda services: services.users.remove(owner.id, principal=Principal.OPERATOR))
    assert not is_live(world, token)
    with pytest.raises(NotFound), world.read_only_services() as services:
        services.service_users.get(agent.id)


def test_agent_acts_for_its_owner_alone_and_never_at_the_management_api(
    world: World, organization: Organization, owner: HumanUser, agent: ServiceUserProgram
) -> None:
    project = world.make_project(organization, roles=("reader",))
    page = world.make_web_application(project.id, may_manage=True)
    gateway = world.make_application(project.id, grant_types=frozenset({TOKEN_EXCHANGE}), may_manage=True)
    for user in (owner, agent.user):
        world.make_user_grant(user, project, "reader")
    world.assign_manager_role(owner, "ORG_OWNER")
    scope = f"openid {world.audience_scope()}"
    actor = agent.access_token(f"openid {world.audience_scope(project.id)}")

    def exchange(person: HumanUser) -> Any:
        session = world.make_browser_session(person)
        with world.transaction_services() as services:
            subject = services.storage.users.find_subject(person.id)
            client = services.applications.find_client(page.client_id)
            assert subject is not None
            assert client is not None
            services.consents.grant_consent(subject, client, tuple(scope.split()))
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": world.obtain_tokens(page, session, scope=scope)["access_token"],
            "subject_token_type": ACCESS_TOKEN,
            "actor_token": actor,
            "actor_token_type": ACCESS_TOKEN,
        }
        return world.post_token_request(gateway, form)

    token = check_token_response(exchange(owner))["access_token"]
    found = world.client.introspect(token, gateway).json
    assert (found["sub"], found["act"]) == (owner.id, {"sub": agent.id})
    assert world.instance.project_id not in found["aud"]
    path = f"/organizations/{organization.id}/users"
    assert world.client.call_management_api(path, token).status_int == 401
    for ancestors, status in ((True, 401), (False, 200)):
        text = new_token()
        with world.transaction_services() as services:
            issued = services.storage.tokens.find_access_token(token_digest(token))
            assert issued is not None
            stored = replace(
                issued.token,
                id=new_id(),
                digest=token_digest(text),
                audience=(*issued.token.audience, world.instance.project_id),
                ancestors=issued.token.ancestors if ancestors else None,
            )
            services.storage.tokens.add_access_token(stored)
        answer = world.client.call_management_api(path, text)
        assert answer.status_int == status, "the actor is judged at each use, too"
    check_oauth_error(exchange(world.make_human_user(organization)), "invalid_request")
    run(world, lambda services: services.agents.stop_all_of(owner.id, principal=Principal.OPERATOR))
    assert not is_live(world, token), "it ends with the agent"


def test_session_that_has_ended_confirms_nothing(world: World, owner: HumanUser) -> None:
    session = world.make_browser_session(owner)

    def stale(services: Services) -> None:
        account = services.sessions.find_live(session.id)
        assert account is not None
        services.sessions.end(account)
        services.agents.confirm(account, "any")

    with pytest.raises(Denied):
        run(world, stale)


def test_how_to_page_exchanges_the_token_of_the_owner(
    world: World, organization: Organization, owner: HumanUser, agent: ServiceUserProgram
) -> None:
    page = (ROOT / "docs" / "how-to" / "application-developers" / "agents.rst").read_text()
    project = world.make_project(organization, roles=("reader",))
    for user in (owner, agent.user):
        world.make_user_grant(user, project, "reader")
    gateway = world.make_application(project.id, grant_types=frozenset({TOKEN_EXCHANGE}))
    web, session = world.make_web_application(project.id), world.make_browser_session(owner)
    variables = {
        '"$OWNER_TOKEN"': world.obtain_tokens(web, session)["access_token"],
        '"$AGENT_TOKEN"': agent.access_token(f"openid {world.audience_scope(project.id)}"),
    }
    pairs = (line.removesuffix(" \\").partition("=") for line in re.findall(r"--data (.*)", page))
    form = {name: variables.get(value, value) for name, _, value in pairs}
    token = check_token_response(world.post_token_request(gateway, form))["access_token"]
    [block] = re.findall(r'\{"sub": "<id of the owner>".*', page)
    expected = json.loads(block.replace("<id of the owner>", owner.id).replace("<id of the agent>", agent.id))
    found = world.client.introspect(token, gateway).json
    assert {name: found[name] for name in expected} == expected
