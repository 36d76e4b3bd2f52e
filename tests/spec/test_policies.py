"""Security 18.2: every policy stands before every grant."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.applications import ApplicationType
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.projects import ChangeProject
from identity.testing.service_client import Credentials
from identity.testing.world import World
from tests.spec.shared_project import APPLICATION, GRANTS, House, agree, an_application


class Scene:
    """A person and a service user with a role each, an application and an API that may use a project of others."""

    def __init__(self, world: World) -> None:
        self.world, self.house, self.operator = world, House(world), world.operator
        self.home, self.owner = self.house.organizations["user", "holder"], self.house.organizations["client", "holder"]
        self.project = world.a_project(self.owner, roles=["user"])
        self.person = self.house.a_person("holder")
        self.robot = world.a_robot(self.home)
        self.house.give_roles(self.robot.user, "holder")
        self.given = world.a_user_grant(self.person, self.project, "user")
        self.session = world.a_session(self.person)
        members = {**APPLICATION, "type": ApplicationType.WEB, "grant_types": GRANTS, "may_manage": True}
        client = an_application(world, self.project.id, members)
        assert isinstance(client, Credentials)
        self.client, self.scope = client, f"{self.house.scope('shared own')} offline_access"
        agree(world, self.person, self.client, [self.scope])
        self.secret = world.a_secret(self.robot)
        self.code = world.a_code(self.client, self.session, scope=self.scope)
        self.members = world.tokens(self.client, self.session, scope=self.scope)

    def client_credentials(self, client: Credentials) -> str:
        scope = self.house.scope("shared own")
        return outcome(self.world.as_client(client, {"grant_type": "client_credentials", "scope": scope}))

    def front(self, response_type: str) -> str:
        """The authorization endpoint's answer in one word."""
        parameters: dict[str, str | None] = {"response_type": response_type, "scope": self.scope, "prompt": "none"}
        if response_type != "code":
            parameters |= {"nonce": "n", "code_challenge": None, "code_challenge_method": None}
        answer = self.session.authorize(self.client, **parameters)
        if answer.status_int == 400:
            return "shown to the person"
        address = urlsplit(answer.headers["Location"])
        members = {name: one for name, [one] in parse_qs(address.query or address.fragment).items()}
        self.world.client.secrets |= {members[one] for one in ("access_token", "id_token", "code") if one in members}
        return members.get("error", GRANTED_WORD)


GRANTED_WORD = "granted"


def outcome(answer: Any) -> str:
    return str(answer.json.get("error", GRANTED_WORD))


Try = Callable[[Scene], str]


#: Every way to tokens, by whom it concerns.
OF_PEOPLE: dict[str, Try] = {
    "code": lambda scene: scene.front("code"),
    "implicit": lambda scene: scene.front("id_token token"),
    "authorization_code": lambda scene: outcome(scene.world.redeem(scene.code, scene.client)),
    "refresh_token": lambda scene: outcome(scene.world.refresh(scene.members["refresh_token"], scene.client)),
}


OF_APPLICATIONS: dict[str, Try] = {"client_credentials": lambda scene: scene.client_credentials(scene.client)}


OF_SERVICE_USERS: dict[str, Try] = {
    "urn:ietf:params:oauth:grant-type:jwt-bearer": lambda scene: outcome(
        scene.robot.token(scene.house.scope("shared own"))
    ),
    "client_credentials of a service user": lambda scene: scene.client_credentials(scene.secret),
}


EVERYBODY = OF_PEOPLE | OF_APPLICATIONS | OF_SERVICE_USERS


def _check_roles(scene: Scene) -> None:
    scene.world.operator.projects.change(scene.project.id, ChangeProject(check_roles=True))
    scene.world.operator.storage.user_grants.remove(scene.given.id)


def _withdraw_consent(scene: Scene) -> None:
    subject = scene.world.operator.storage.users.find_subject(scene.person.id)
    assert scene.world.operator.consents.withdraw(subject, scene.client.client_id)


def _deactivate_person(scene: Scene) -> None:
    user = scene.world.operator.users.get(scene.person.id)
    scene.world.operator.storage.users.update(replace(user, active=False, version=user.version + 1))


def _may_not_manage(scene: Scene) -> None:
    scene.world.operator.applications.change(scene.client.client_id, ChangeApplication(may_manage=False))


#: What stands against a token, and whom it concerns.
POLICIES: dict[str, tuple[Callable[[Scene], object], dict[str, Try]]] = {
    "role check": (_check_roles, OF_PEOPLE),
    "consent": (_withdraw_consent, OF_PEOPLE),
    "the mark to manage": (_may_not_manage, OF_PEOPLE | OF_APPLICATIONS),
    "person": (_deactivate_person, OF_PEOPLE),
    "service user": (lambda one: one.operator.service_users.deactivate(one.robot.id), OF_SERVICE_USERS),
    "user's organization": (
        lambda one: one.operator.organizations.deactivate(one.home.id),
        OF_PEOPLE | OF_SERVICE_USERS,
    ),
    "application": (
        lambda one: one.operator.applications.deactivate(one.client.client_id),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "application's project": (
        lambda one: one.operator.projects.deactivate(one.project.id),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "application's organization": (
        lambda one: one.operator.organizations.deactivate(one.owner.id),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "shared project": (lambda one: one.operator.projects.deactivate(one.house.shared.id), EVERYBODY),
    "shared project's organization": (
        lambda one: one.operator.organizations.deactivate(one.house.shared.organization_id),
        EVERYBODY,
    ),
    "grant to the user's organization": (
        lambda one: one.operator.project_grants.deactivate(one.house.grants["user"].id),
        OF_PEOPLE | OF_SERVICE_USERS,
    ),
    "grant to the application's organization": (
        lambda one: one.operator.project_grants.remove(one.house.grants["client"].id),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_stands_before_every_grant(world: World, policy: str) -> None:
    scene = Scene(world)
    broken, concerned = POLICIES[policy]
    broken(scene)
    answers = {name: attempt(scene) for name, attempt in EVERYBODY.items()}
    granted = {name for name, answer in answers.items() if answer == GRANTED_WORD}
    assert granted == EVERYBODY.keys() - concerned.keys(), answers


def test_with_no_policy_against_them_all_are_granted(world: World) -> None:
    scene = Scene(world)
    assert {attempt(scene) for attempt in EVERYBODY.values()} == {GRANTED_WORD}


def test_every_grant_is_in_the_table(world: World) -> None:
    protocol = world.identity.protocol
    assert protocol.grants.keys() <= EVERYBODY.keys()
    assert {*protocol.response_types} == {frozenset(one.split()) for one in ("code", "id_token", "id_token token")}
