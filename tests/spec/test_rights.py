"""Security 18.2: what a grant gives out lies within what came in and within the rights of the client, everywhere.

One test goes through every way to a token, every kind of client and every relation of the organizations of user and
client to a project, and compares what the token opens with a model of the rights. The other goes through every policy
and every grant.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import HumanUser, TokenFormat
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.projects import ChangeProject
from identity.testing.assertions import decoded
from identity.testing.responses import check_granted
from identity.testing.service_client import Credentials
from identity.testing.world import AnyClient, BrowserSession, Code, Robot, World

ROLES = "urn:service:iam:org:projects:roles"
OWN_BY_ALIAS = "urn:service:iam:org:project:id:service:aud"

#: The roles of the shared project, those that the user has, and those that a project grant gives on.
EVERY = frozenset({"reader", "writer", "auditor"})
OF_USER = frozenset({"reader", "writer"})
GRANTED = {"user": frozenset({"reader", "writer"}), "client": frozenset({"writer", "auditor"})}

#: How an organization stands to the shared project, and where else an application can belong.
TO_PROJECT = ("owner", "holder", "foreign")
TO_USER = ("of the user", "of the instance")

#: What is asked beside openid: the shared project, the own one by id or alias, both.
ASKED = ("", "shared", "own", "alias", "shared own")

_APPLICATION = {
    "response_types": frozenset({"code", "id_token token"}),
    "redirect_uris": ("https://app.example/callback",),
}
_GRANTS = frozenset({"authorization_code", "refresh_token", "client_credentials"})


@dataclass(frozen=True)
class Right:
    """What a party may have of the shared project, and whether the own project is for it."""

    roles: frozenset[str] | None
    own: bool

    def __and__(self, other: "Right") -> "Right":
        shared = None if self.roles is None or other.roles is None else self.roles & other.roles
        return Right(shared, self.own and other.own)


@dataclass
class House:
    """The shared project, and organizations of every relation to it."""

    world: World
    shared: Project = field(init=False)
    api: Credentials = field(init=False)
    organizations: dict[tuple[str, str], Organization] = field(default_factory=dict)
    grants: dict[str, ProjectGrant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner = self.world.an_organization()
        self.shared = self.world.a_project(owner, roles=EVERY)
        self.api = self.world.an_application(self.shared.id)
        for party in ("user", "client"):
            holder = self.world.an_organization()
            self.organizations |= {(party, "owner"): owner, (party, "holder"): holder}
            self.organizations[party, "foreign"] = self.world.an_organization()
            self.grants[party] = self.world.a_grant(self.shared, holder, roles=GRANTED[party])

    def right(self, party: str, relation: str, *, own: bool) -> Right:
        """Of the project, by the organization of the party."""
        return Right({"owner": EVERY, "holder": GRANTED[party], "foreign": None}[relation], own)

    def a_person(self, relation: str) -> HumanUser:
        """A manager with roles in the shared project, as far as the organization can give some."""
        person = self.world.a_person(self.organizations["user", relation])
        self.give_roles(person, relation)
        return person

    def give_roles(self, user: Any, relation: str) -> None:
        grant = self.grants["user"] if relation == "holder" else None
        self.world.a_user_grant(user, self.shared, *OF_USER, grant=grant)
        self.world.make_manager(user, "ORG_OWNER")

    def project_for(self, relation: str, person: HumanUser | None) -> str:
        """Where the application of this relation belongs."""
        if relation == "of the instance":
            return self.world.instance.project_id
        if relation == "of the user":
            assert person is not None
            with self.world.reading() as services:
                return self.world.a_project(services.organizations.get(person.organization_id)).id
        return self.world.a_project(self.organizations["client", relation]).id

    def scope(self, asked: str) -> str:
        """The scope with the audience words."""
        words = {
            "shared": self.world.audience_scope(self.shared.id),
            "own": self.world.audience_scope(),
            "alias": OWN_BY_ALIAS,
        }
        return " ".join(["openid", ROLES, *(words[one] for one in asked.split())])

    def opened(self, token: str, asking: Credentials | None) -> "Opened":
        """What the token opens: whoever may be told of it, and what they are told."""
        client = self.world.client
        claim = f"urn:service:iam:org:project:{self.shared.id}:roles"
        shown = [client.introspect(token, self.api).json, client.introspect(token, self.world.introspector).json]
        answers = [*shown] if asking is None else [*shown, client.introspect(token, asking).json]
        userinfo = client.userinfo(token)
        told = [one for one in answers if one["active"]] + ([userinfo.json] if userinfo.status_int == 200 else [])
        format = TokenFormat.JWT if token.count(".") == 2 else TokenFormat.OPAQUE  # noqa: A001
        if format is TokenFormat.JWT:
            told.append(decoded(token)[1])
        audiences = [frozenset(one["aud"]) for one in told if "aud" in one]
        return Opened(
            shared=shown[0]["active"],
            own=shown[1]["active"],
            manages=client.management("/me", token).status_int != 401,
            roles=frozenset(role for one in told for role in one.get(claim, {})),
            projects=frozenset(
                one for audience in audiences for one in audience & {self.shared.id, self.world.instance.project_id}
            ),
        )


@dataclass(frozen=True)
class Opened:
    """What a token opens."""

    shared: bool
    own: bool
    manages: bool
    roles: frozenset[str]
    projects: frozenset[str]


def expected(house: House, right: Right, asked: str, *, of_person: bool, roles: frozenset[str]) -> Opened | None:
    """What it should open by the model; None if the request is refused."""
    shared, own = "shared" in asked, "own" in asked or "alias" in asked
    if (shared and right.roles is None) or (own and not right.own):
        return None
    projects = {house.shared.id} if shared else set()
    return Opened(
        shared=shared,
        own=own,
        manages=own and of_person,
        roles=roles & (right.roles or frozenset()) if shared else frozenset(),
        projects=frozenset(projects | ({house.world.instance.project_id} if own else set())),
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
def house(world: World) -> House:
    return House(world)


def by_code(world: World, session: BrowserSession, client: AnyClient, scope: str) -> list[str] | str:
    """The access tokens of a code and of two refreshes; or the error."""
    answer = session.authorize(client, scope=f"{scope} offline_access", prompt="none")
    members = {name: one for name, [one] in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
    if "error" in members:
        return members["error"]
    redeemed = check_granted(world.redeem(Code(members["code"]), client))
    tokens = [redeemed]
    for _ in range(2):
        tokens.append(check_granted(world.refresh(tokens[-1]["refresh_token"], client)))
    return [one["access_token"] for one in tokens]


def by_front(world: World, session: BrowserSession, client: AnyClient, scope: str) -> list[str] | str:
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
    members = {name: one for name, [one] in parse_qs(urlsplit(answer.headers["Location"]).fragment).items()}
    world.client.secrets |= {members[one] for one in ("access_token", "id_token") if one in members}
    return members["error"] if "error" in members else [members["access_token"]]


@pytest.mark.storages("memory")  # the rules are the services'; what they look up is in the storage contract
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to_project", TO_PROJECT)
def test_a_person_s_token_opens_what_person_and_application_may(house: House, kind: str, to_project: str) -> None:
    world, person = house.world, house.a_person(to_project)
    session, wrong = world.a_session(person), []
    of_user = house.right("user", to_project, own=True)
    for relation, may_manage in product((*TO_PROJECT, *TO_USER), (False, True)):
        members = {**_APPLICATION, **KINDS[kind], "grant_types": _GRANTS, "may_manage": may_manage}
        if members.get("authentication_method") == "none":
            members["grant_types"] = _GRANTS - {"client_credentials"}
        project_id = house.project_for(relation, person)
        client = an_application(world, project_id, members)
        agree(world, person, client, [house.scope(asked) for asked in ASKED])
        of_client = (
            replace(of_user, own=may_manage)
            if relation == "of the user"
            else house.right("client", "foreign" if relation in TO_USER else relation, own=may_manage)
        )
        # A grant narrows the roles of whoever belongs to the holder, a user's by what the user was given.
        if relation == "of the user" and to_project == "holder":
            of_client = replace(of_client, roles=GRANTED["user"])
        for asked, way in product(ASKED, (by_code, by_front)):
            found = way(world, session, client, house.scope(asked))
            want = expected(house, of_user & of_client, asked, of_person=True, roles=OF_USER)
            asking = client if isinstance(client, Credentials) else None
            got = (
                [None if found == "invalid_scope" else found]
                if isinstance(found, str)
                else [house.opened(one, asking) for one in found]
            )
            if any(one != want for one in got):
                wrong.append((relation, may_manage, asked, way.__name__, got, want))
    assert wrong == []


@pytest.mark.storages("memory")  # as above
def test_an_application_s_own_token_opens_what_it_may(house: House) -> None:
    world, wrong = house.world, []
    for relation, may_manage in product((*TO_PROJECT, "of the instance"), (False, True)):
        members = {
            "type": ApplicationType.API,
            "grant_types": frozenset({"client_credentials"}),
            "may_manage": may_manage,
        }
        client = an_application(world, house.project_for(relation, None), members)
        of_client = house.right("client", "foreign" if relation in TO_USER else relation, own=may_manage)
        for asked in ASKED:
            form = {"grant_type": "client_credentials", "scope": house.scope(asked)}
            answer = world.as_client(client, form).json
            want = expected(house, of_client, asked, of_person=False, roles=frozenset())
            got = None if answer.get("error") == "invalid_scope" else house.opened(answer["access_token"], client)
            if got != want:
                wrong.append((relation, may_manage, asked, got, want))
    assert wrong == []


def by_assertion(world: World, robot: Robot, scope: str) -> Any:
    return robot.token(scope).json


def by_secret(world: World, robot: Robot, scope: str) -> Any:
    return world.as_client(world.a_secret(robot), {"grant_type": "client_credentials", "scope": scope}).json


@pytest.mark.storages("memory")  # as above
@pytest.mark.parametrize("way", [by_assertion, by_secret])
@pytest.mark.parametrize("format", TokenFormat)
@pytest.mark.parametrize("to_project", TO_PROJECT)
def test_a_service_user_s_token_opens_what_it_may(
    house: House,
    way: Callable[[World, Robot, str], Any],
    format: TokenFormat,  # noqa: A002
    to_project: str,
) -> None:
    for asked in ASKED:
        robot = house.world.a_robot(house.organizations["user", to_project], token_format=format)
        house.give_roles(robot.user, to_project)
        answer = way(house.world, robot, house.scope(asked))
        right = house.right("user", to_project, own=True)
        want = expected(house, right, asked, of_person=True, roles=OF_USER)
        got = None if answer.get("error") == "invalid_scope" else house.opened(answer["access_token"], None)
        assert got == want, asked


@pytest.mark.storages("memory")  # as above
def test_a_personal_access_token_opens_what_its_service_user_may(house: House) -> None:
    """It cannot be made with more, and loses what its user loses."""
    world, robot = house.world, house.world.a_robot(house.organizations["user", "holder"])
    house.give_roles(robot.user, "holder")
    token = world.a_personal_access_token(robot, project_ids=(house.shared.id,), scope=f"openid {ROLES}")
    right = house.right("user", "holder", own=True)
    want = expected(house, right, "shared own", of_person=True, roles=OF_USER)
    assert want is not None
    assert house.opened(token, None) == want
    with world.transaction() as services:
        services.project_grants.remove(house.grants["user"].id, by=THE_OPERATOR)
    left = replace(want, shared=False, roles=frozenset(), projects=frozenset({world.instance.project_id}))
    assert house.opened(token, None) == left


def an_application(world: World, project_id: str, members: dict[str, Any]) -> AnyClient:
    """The credentials of an application, or the id of a public one."""
    members = {"consent": ConsentRule.WHEN_FOREIGN} | members
    if members.get("authentication_method") == "none":
        return world.a_public_application(project_id, **members)
    return world.an_application(project_id, **members)


def agree(world: World, person: HumanUser, client: AnyClient, scopes: Iterable[str]) -> None:
    """The person agrees to all of it: consent is a policy, and brings no right."""
    words = tuple(dict.fromkeys(word for scope in scopes for word in (*scope.split(), "offline_access")))
    with world.transaction() as services:
        subject = services.storage.users.find_subject(person.id)
        found = services.applications.find_client(client if isinstance(client, str) else client.client_id)
        assert subject is not None
        assert found is not None
        services.consents.give(subject, found, words)


# --- policy × grant ---------------------------------------------------------------------------------------------------


class Scene:
    """A person and a service user with a role each, an application and an API that may use a project of others."""

    def __init__(self, world: World) -> None:
        self.world, self.house = world, House(world)
        self.home, self.owner = self.house.organizations["user", "holder"], self.house.organizations["client", "holder"]
        self.project = world.a_project(self.owner, roles=["user"])
        self.person = self.house.a_person("holder")
        self.robot = world.a_robot(self.home)
        self.house.give_roles(self.robot.user, "holder")
        self.given = world.a_user_grant(self.person, self.project, "user")
        self.session = world.a_session(self.person)
        members = {**_APPLICATION, "type": ApplicationType.WEB, "grant_types": _GRANTS, "may_manage": True}
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

Break = Callable[[Scene, Services], object]


def _deactivate_person(scene: Scene, services: Services) -> None:
    user = services.users.get(scene.person.id)
    services.storage.users.update(replace(user, active=False, version=user.version + 1))


def _withdraw_consent(scene: Scene, services: Services) -> None:
    subject = services.storage.users.find_subject(scene.person.id)
    assert subject is not None
    assert services.consents.withdraw(subject, scene.client.client_id)


def _check_roles(scene: Scene, services: Services) -> None:
    services.projects.change(scene.project.id, ChangeProject(check_roles=True), by=THE_OPERATOR)
    services.storage.user_grants.remove(scene.given.id)


def _may_not_manage(scene: Scene, services: Services) -> None:
    services.applications.change(scene.client.client_id, ChangeApplication(may_manage=False), by=THE_OPERATOR)


#: What stands against a token, and whom it concerns.
POLICIES: dict[str, tuple[Break, dict[str, Try]]] = {
    "role check": (_check_roles, OF_PEOPLE),
    "consent": (_withdraw_consent, OF_PEOPLE),
    "the mark to manage": (_may_not_manage, OF_PEOPLE | OF_APPLICATIONS),
    "person": (_deactivate_person, OF_PEOPLE),
    "service user": (
        lambda scene, services: services.service_users.deactivate(scene.robot.id, by=THE_OPERATOR),
        OF_SERVICE_USERS,
    ),
    "user's organization": (
        lambda scene, services: services.organizations.deactivate(scene.home.id, by=THE_OPERATOR),
        OF_PEOPLE | OF_SERVICE_USERS,
    ),
    "application": (
        lambda scene, services: services.applications.deactivate(scene.client.client_id, by=THE_OPERATOR),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "application's project": (
        lambda scene, services: services.projects.deactivate(scene.project.id, by=THE_OPERATOR),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "application's organization": (
        lambda scene, services: services.organizations.deactivate(scene.owner.id, by=THE_OPERATOR),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
    "shared project": (
        lambda scene, services: services.projects.deactivate(scene.house.shared.id, by=THE_OPERATOR),
        EVERYBODY,
    ),
    "shared project's organization": (
        lambda scene, services: services.organizations.deactivate(scene.house.shared.organization_id, by=THE_OPERATOR),
        EVERYBODY,
    ),
    "grant to the user's organization": (
        lambda scene, services: services.project_grants.deactivate(scene.house.grants["user"].id, by=THE_OPERATOR),
        OF_PEOPLE | OF_SERVICE_USERS,
    ),
    "grant to the application's organization": (
        lambda scene, services: services.project_grants.remove(scene.house.grants["client"].id, by=THE_OPERATOR),
        OF_PEOPLE | OF_APPLICATIONS,
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_stands_before_every_grant(world: World, policy: str) -> None:
    scene = Scene(world)
    broken, concerned = POLICIES[policy]
    with world.transaction() as services:
        broken(scene, services)
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
