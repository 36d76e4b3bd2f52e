"""Security 18.2: every grant issues at most the access of its input and of the client.

The tests combine every grant, every kind of client and every relation of the organizations of user and client to a
project, and compare the token's access with a model.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.applications import ApplicationType
from identity.domain.users import TokenFormat
from identity.plugins.token_exchange import ACCESS_TOKEN
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE, Credentials
from identity.testing.world import BrowserSession, CredentialsOrClientId, PresentableCode, ServiceUserProgram, World
from tests.spec.shared_project_scenario import (
    APPLICATION,
    GRANTED,
    GRANTS,
    OF_USER,
    ROLES,
    AccessRight,
    SharedProjectScenario,
    TokenAccess,
    agree,
    make_application,
)

#: Relations of an organization to the shared project, and other owners of an application.
TO_PROJECT = ("owner", "holder", "foreign")
TO_USER = ("of the user", "of the instance")

#: Audiences beside openid: the shared project, the instance's project by id or alias, both.
AUDIENCES = ("", "shared", "own", "alias", "shared own")


def expected(
    house: SharedProjectScenario, right: AccessRight, audiences: str, *, of_subject: bool, roles: frozenset[str]
) -> TokenAccess | None:
    """The access by the model; None if the request is refused."""
    shared, own_project = "shared" in audiences, "own" in audiences or "alias" in audiences
    if (shared and right.roles is None) or (own_project and not right.own_project):
        return None
    projects = {house.shared.id} if shared else set()
    return TokenAccess(
        shared=shared,
        own_project=own_project,
        manages=own_project and of_subject,
        roles=roles & (right.roles or frozenset()) if shared else frozenset(),
        projects=frozenset(projects | ({house.world.instance.project_id} if own_project else set())),
    )


KINDS: Mapping[str, dict[str, Any]] = {
    "web": {"type": ApplicationType.WEB},
    "native": {"type": ApplicationType.NATIVE, "authentication_method": "none"},
    "browser": {
        "type": ApplicationType.BROWSER,
        "authentication_method": "none",
        "access_token_type": TokenFormat.JWT,
        "assert_roles_in_access_token": True,
    },
}


@pytest.fixture
def house(world: World) -> SharedProjectScenario:
    return SharedProjectScenario(world)


def by_code(world: World, session: BrowserSession, client: CredentialsOrClientId, scope: str) -> list[str] | str:
    """The access tokens of a code and of two refreshes; or the error."""
    answer = session.authorize(client, scope=f"{scope} offline_access", prompt="none")
    members = {name: item for name, [item] in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
    if "error" in members:
        return members["error"]
    redeemed = check_token_response(world.redeem(PresentableCode(members["code"]), client))
    tokens = [redeemed]
    for _ in range(2):
        tokens.append(check_token_response(world.refresh(tokens[-1]["refresh_token"], client)))
    return [token["access_token"] for token in tokens]


def by_front(world: World, session: BrowserSession, client: CredentialsOrClientId, scope: str) -> list[str] | str:
    """The access token of the implicit flow; or the error."""
    answer = session.authorize(
        client,
        scope=scope,
        prompt="none",
        response_type="id_token token",
        nonce="n",
        code_challenge=None,
        code_challenge_method=None,
    )
    members = {name: item for name, [item] in parse_qs(urlsplit(answer.headers["Location"]).fragment).items()}
    world.client.secrets |= {members[item] for item in ("access_token", "id_token") if item in members}
    return members["error"] if "error" in members else [members["access_token"]]


@pytest.mark.storages("memory")  # the rules are in the services; the storage contract covers their queries
@pytest.mark.parametrize("kind", ["web", pytest.param("native", marks=pytest.mark.thorough), "browser"])
@pytest.mark.parametrize("to_project", TO_PROJECT)
def test_user_token_is_limited_by_user_and_application(
    house: SharedProjectScenario, kind: str, to_project: str
) -> None:
    world, person = house.world, house.make_manager(to_project)
    session, wrong = world.make_browser_session(person), []
    of_user = house.right("user", to_project, own_project=True)
    for relation, may_manage in product((*TO_PROJECT, *TO_USER), (False, True)):
        members = {**APPLICATION, **KINDS[kind], "grant_types": GRANTS, "may_manage": may_manage}
        if members.get("authentication_method") == "none":
            members["grant_types"] = GRANTS - {"client_credentials"}
        project_id = house.project_for(relation, person)
        client = make_application(world, project_id, members)
        agree(world, person, client, [house.scope(audiences) for audiences in AUDIENCES])
        of_client = (
            replace(of_user, own_project=may_manage)
            if relation == "of the user"
            else house.right("client", "foreign" if relation in TO_USER else relation, own_project=may_manage)
        )
        # A project grant limits the roles of the grantee's clients, a user grant those of a user.
        if relation == "of the user" and to_project == "holder":
            of_client = replace(of_client, roles=GRANTED["user"])
        for audiences, flow in product(AUDIENCES, (by_code, by_front)):
            found = flow(world, session, client, house.scope(audiences))
            want = expected(house, of_user & of_client, audiences, of_subject=True, roles=OF_USER)
            asking = client if isinstance(client, Credentials) else None
            got = (
                [None if found == "invalid_scope" else found]
                if isinstance(found, str)
                else [house.opened(item, asking) for item in found]
            )
            if any(item != want for item in got):
                wrong.append((relation, may_manage, audiences, flow.__name__, got, want))
    assert wrong == []


@pytest.mark.storages("memory")  # as above
def test_application_token_is_limited_by_application(house: SharedProjectScenario) -> None:
    world, wrong = house.world, []
    for relation, may_manage in product((*TO_PROJECT, "of the instance"), (False, True)):
        members = {
            "type": ApplicationType.API,
            "grant_types": frozenset({"client_credentials"}),
            "may_manage": may_manage,
        }
        client = make_application(world, house.project_for(relation, None), members)
        of_client = house.right("client", "foreign" if relation in TO_USER else relation, own_project=may_manage)
        for audiences in AUDIENCES:
            form = {"grant_type": "client_credentials", "scope": house.scope(audiences)}
            answer = world.post_token_request(client, form).json
            want = expected(house, of_client, audiences, of_subject=False, roles=frozenset())
            got = None if answer.get("error") == "invalid_scope" else house.opened(answer["access_token"], client)
            if got != want:
                wrong.append((relation, may_manage, audiences, got, want))
    assert wrong == []


@pytest.mark.storages("memory")  # as above
@pytest.mark.parametrize(
    "to_project", ["holder", *(pytest.param(item, marks=pytest.mark.thorough) for item in ("owner", "foreign"))]
)
def test_exchanged_token_is_limited_by_subject_token_and_application(
    house: SharedProjectScenario, to_project: str
) -> None:
    """The subject token has what a user with these relations may have at an application that may manage."""
    world, person = house.world, house.make_manager(to_project)
    session, wrong = world.make_browser_session(person), []
    of_user = house.right("user", to_project, own_project=True)
    for relation, may_manage in product(("owner", "holder", *TO_USER), (False, True)):
        project_id = house.project_for(relation, person)
        page = make_application(world, project_id, {**APPLICATION, "may_manage": True, **KINDS["web"]})
        client = make_application(
            world, project_id, {"grant_types": frozenset({TOKEN_EXCHANGE}), "may_manage": may_manage}
        )
        for party in (page, client):
            agree(world, person, party, [house.scope(audiences) for audiences in AUDIENCES])
        of_client = replace(of_user, own_project=may_manage)
        if relation == "of the instance":
            of_client = house.right("client", "foreign", own_project=may_manage)
        elif to_project == "holder":
            of_client = replace(of_client, roles=GRANTED["user"])
        for audiences in ("", "alias", "shared own"):
            tokens = by_front(world, session, page, house.scope(audiences))
            if isinstance(tokens, str):
                continue
            form = {"grant_type": TOKEN_EXCHANGE, "subject_token": tokens[0], "subject_token_type": ACCESS_TOKEN}
            answer = world.post_token_request(client, form).json
            is_named = relation == "of the user" or (relation, to_project) == ("owner", "owner")
            if not (is_named or (relation == "of the instance" and audiences)):
                assert answer["error"] == "invalid_request", "the client is not in the audience of the user's token"
                continue
            want = expected(house, of_user & of_client, audiences, of_subject=True, roles=OF_USER)
            got = None if answer.get("error") == "invalid_scope" else house.opened(answer["access_token"], client)
            if got != want:
                wrong.append((relation, may_manage, audiences, got, want))
    assert wrong == []


def by_assertion(world: World, robot: ServiceUserProgram, scope: str) -> Any:
    return robot.request_token(scope).json


def by_secret(world: World, robot: ServiceUserProgram, scope: str) -> Any:
    return world.post_token_request(
        world.make_service_user_secret(robot), {"grant_type": "client_credentials", "scope": scope}
    ).json


@pytest.mark.storages("memory")  # as above
@pytest.mark.parametrize("flow", [by_assertion, by_secret])
@pytest.mark.parametrize("format", TokenFormat)
@pytest.mark.parametrize("to_project", TO_PROJECT)
def test_service_user_token_is_limited_by_service_user(
    house: SharedProjectScenario,
    flow: Callable[[World, ServiceUserProgram, str], Any],
    format: TokenFormat,
    to_project: str,
) -> None:
    for audiences in AUDIENCES:
        robot = house.world.make_service_user_program(house.organizations["user", to_project], token_format=format)
        house.give_roles(robot.user, to_project)
        answer = flow(house.world, robot, house.scope(audiences))
        right = house.right("user", to_project, own_project=True)
        want = expected(house, right, audiences, of_subject=True, roles=OF_USER)
        got = None if answer.get("error") == "invalid_scope" else house.opened(answer["access_token"], None)
        assert got == want, audiences


@pytest.mark.storages("memory")  # as above
def test_personal_access_token_is_limited_by_service_user(house: SharedProjectScenario) -> None:
    """It cannot be created with more access, and loses what its user loses."""
    world, robot = house.world, house.world.make_service_user_program(house.organizations["user", "holder"])
    house.give_roles(robot.user, "holder")
    token = world.make_personal_access_token(robot, project_ids=(house.shared.id,), scope=f"openid {ROLES}")
    right = house.right("user", "holder", own_project=True)
    want = expected(house, right, "shared own", of_subject=True, roles=OF_USER)
    assert want is not None
    assert house.opened(token, None) == want
    world.operator_services.project_grants.remove(house.grants["user"].id)
    token_access = replace(want, shared=False, roles=frozenset(), projects=frozenset({world.instance.project_id}))
    assert house.opened(token, None) == token_access
