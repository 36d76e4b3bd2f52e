"""Security 14.4: by no sequence of calls does anybody grant more than they hold, or gain more than they had."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import UnionType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.crypto.keys import generate_private_key
from identity.domain.audit import OPERATOR
from identity.domain.errors import Denied, DomainError
from identity.domain.managers import Manager, Role
from identity.domain.organizations import Organization
from identity.domain.permissions import (
    INSTANCE,
    Level,
    Resource,
    organization_resource,
    project_grant_resource,
    project_resource,
)
from identity.domain.users import HumanUser, ServiceUser, User
from identity.plugins.manager_roles import ROLES
from identity.process import Identity
from identity.services.access import THE_OPERATOR, Principal
from identity.services.bundle import Services
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.projects import AddProjectGrant, CreateProject
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    AddServiceUserKey,
    ChangeServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.user_grants import AddUserGrant
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.transactions import Transactions
from tests.services.people import a_person, a_program, an_organization, holding

_MY_KEY = UploadServiceUserKey(public_key=generate_private_key().public_key().to_pem())
_A_KEY, _MY_TOKEN = AddServiceUserKey(), AddPersonalAccessToken(name="Mine")
_MY_ADDRESS, _MY_NAME = ChangeHumanUser(email="mine@example.com"), ChangeServiceUser(display_name="Mine")
_MANAGER_WRITE = {
    Level.INSTANCE: "instance_manager.write",
    Level.ORGANIZATION: "organization_manager.write",
    Level.PROJECT: "project_manager.write",
    Level.PROJECT_GRANT: "project_grant_manager.write",
}

#: Roles as a plugin may offer them: somebody manages managers, or users, without holding what they hold.
_CLERKS = (
    *(
        Role(name=f"{level.upper()}_CLERK", level=level, permissions=frozenset({permission}))
        for level, permission in _MANAGER_WRITE.items()
    ),
    Role(name="USER_CLERK", level=Level.ORGANIZATION, permissions=frozenset({"user.write", "service_user.write"})),
)
_ROLE = {role.name: role for role in (*ROLES, *_CLERKS)}
_NAMES = {level: [role.name for role in _ROLE.values() if role.level is level] for level in Level}


def _concerns(resource: Resource, user: User) -> bool:
    """True for the instance, and what belongs or was granted to the user's organization."""
    holder = None if resource.holder is None else resource.holder.id
    return resource.organization_id is None or user.organization_id in (resource.organization_id, holder)


class Graph:
    """Two organizations with people and programs, a project each, one of them granted, and random manager roles.

    The first user is the one who tries; whoever's credentials come out of a call is theirs from then on.
    """

    def __init__(self, services: Services, random: Random) -> None:
        self.services = services
        self.random = random
        self.organizations = [an_organization(services, name) for name in ("Acme", "Other")]
        acme, other = self.organizations
        self.projects = [
            services.projects.create(one.id, CreateProject(name=one.name), by=THE_OPERATOR) for one in (acme, other)
        ]
        grant = services.project_grants.add(
            self.projects[0].id, AddProjectGrant(organization_id=other.id), by=THE_OPERATOR
        )
        self.resources: list[Resource] = [
            INSTANCE,
            *(organization_resource(one.id) for one in self.organizations),
            *(project_resource(one) for one in self.projects),
            project_grant_resource(grant, self.projects[0]),
        ]
        self.users: list[User] = [self._user(number, acme if number < 4 else other) for number in range(6)]
        for user in self.users:
            # What somebody holds elsewhere is their own organization's to decide over.
            home = [one for one in self.resources if _concerns(one, user)]
            for resource in random.sample(home, 2 if user is self.users[0] else random.randint(0, 2)):
                command = AddManager(user_id=user.id, roles=self._roles(resource))
                services.managers.add(resource, command, by=THE_OPERATOR, recovering=True)
        self.controlled = {self.users[0].id}
        self.at_first = {resource: self.power(resource) for resource in self.resources}

    def _user(self, number: int, organization: Organization) -> User:
        return (a_person if number % 2 else a_program)(self.services, organization, f"u{number}")

    def _roles(self, resource: Resource) -> frozenset[str]:
        return frozenset(self.random.sample(_NAMES[resource.key.level], self.random.randint(1, 2)))

    def principal(self, user_id: str) -> Principal | None:
        subject = self.services.storage.users.find_subject(user_id)
        return None if subject is None else self.services.access.principal(subject)

    def power(self, resource: Resource) -> frozenset[str]:
        """What those whom the trying user controls may do at the resource, all together."""
        principals = [self.principal(user_id) for user_id in sorted(self.controlled)]
        held = [self.services.access.permissions(one, resource) for one in principals if one is not None]
        return frozenset().union(*held)

    def step(self) -> None:
        """One call by one of the controlled users, made if a route would let it through."""
        known = (self.principal(user_id) for user_id in sorted(self.controlled))
        managing = [one for one in known if one is not None and one.held]
        if not managing:
            return
        by = self.random.choice(managing)
        call = self.random.choice(CALLS)
        target = self.random.choice(self.users)
        resource = self.random.choice(self.resources)
        roles = self._roles(resource)
        before = {one: self._held(target, one) for one in self.resources}
        try:
            gained = call(self, by, target, resource, roles)
        except DomainError:
            gained = False
        for one in self.resources:
            added = self._held(target, one) - before[one]
            assert added <= self.services.access.permissions(by, one), "granted more than held"
        if gained:
            self.controlled.add(target.id)
        for one in self.resources:
            assert self.power(one) <= self.at_first[one], f"gained at {one.key.level} by {call.__name__}"

    def _held(self, user: User, resource: Resource) -> frozenset[str]:
        """What the user's roles hold at the resource, whether or not it is active."""
        managers = [one for one in self.services.storage.managers.of_user(user.id) if one.resource in resource.chain]
        return frozenset().union(*(_ROLE[name].permissions for manager in managers for name in manager.roles))

    def require(self, by: Principal, permission: str, resource: Resource) -> None:
        self.services.access.require(by, permission, resource)

    def require_at_home(self, by: Principal, user: User, action: str) -> Any:
        """Let it through as the user's route does; returns the service for this kind of user."""
        kind = "user" if isinstance(user, HumanUser) else "service_user"
        self.require(by, f"{kind}.{action}", organization_resource(user.organization_id))
        return self.services.users if isinstance(user, HumanUser) else self.services.service_users

    def manager(self, target: User, resource: Resource, by: Principal) -> Manager:
        self.require(by, _MANAGER_WRITE[resource.key.level], resource)
        held = self.services.storage.managers.of_user(target.id)
        found = next((one for one in held if one.resource == resource.key), None)
        if found is None:
            raise Denied("no manager")
        return found


#: By whom, to whom, where, with which roles; true if somebody else's credentials came out.
Call = Callable[[Graph, Principal, User, Resource, frozenset[str]], bool]


def add_manager(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require(by, _MANAGER_WRITE[resource.key.level], resource)
    graph.services.managers.add(resource, AddManager(user_id=target.id, roles=roles), by=by)
    return False


def change_manager(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    manager = graph.manager(target, resource, by)
    graph.services.managers.change(manager.id, ChangeManager(roles=roles), by=by)
    return False


def remove_manager(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.services.managers.remove(graph.manager(target, resource, by).id, by=by)
    return False


def invite(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if resource.key.level is not Level.ORGANIZATION:
        return False
    graph.require(by, "user.write", resource)
    name = f"invited-{len(graph.users)}"
    command = InviteHumanUser(user_name=name, given_name="A", family_name="B")
    user, _ = graph.services.users.invite(resource.key.id, command, by=by)
    graph.users.append(user)
    graph.controlled.add(user.id)
    return False


def create_project(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if resource.key.level is not Level.ORGANIZATION:
        return False
    graph.require(by, "project.create", resource)
    graph.services.projects.create(resource.key.id, CreateProject(name="Mine"), by=by)
    return False


def grant_roles(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    command = AddUserGrant(user_id=target.id, project_id=graph.projects[0].id)
    graph.services.user_grants.add(command, by=by)
    return False


#: What is done to an account: for which kinds, with which permission, and whether its credentials come out. Whoever
#: chooses a person's address gets their next password link; a changed program is nobody's.
DONE: dict[str, tuple[type[User] | UnionType, str, bool, Callable[[Any, User, Principal], object]]] = {
    "deactivate": (User, "write", False, lambda users, user, by: users.deactivate(user.id, by=by)),
    "reactivate": (User, "write", False, lambda users, user, by: users.reactivate(user.id, by=by)),
    "remove": (User, "delete", False, lambda users, user, by: users.remove(user.id, by=by)),
    "change": (HumanUser, "write", True, lambda users, user, by: users.change(user.id, _MY_ADDRESS, by=by)),
    "change_program": (ServiceUser, "write", False, lambda users, user, by: users.change(user.id, _MY_NAME, by=by)),
    "password_link": (HumanUser, "write", True, lambda users, user, by: users.new_password_link(user.id, by=by)),
    "one_time_password": (HumanUser, "write", True, lambda users, user, by: users.one_time_password(user.id, by=by)),
    "unlock": (HumanUser, "write", False, lambda users, user, by: users.unlock(user.id, by=by)),
    "reset_factors": (HumanUser, "write", False, lambda users, user, by: users.reset_factors(user.id, by=by)),
    "end_sessions": (HumanUser, "write", False, lambda users, user, by: users.end_sessions(user.id, by=by)),
    "end_session": (HumanUser, "write", False, lambda users, user, by: users.end_session(user.id, "x", by=by)),
    "end_connection": (HumanUser, "write", False, lambda users, user, by: users.end_connection(user.id, "x", by=by)),
    "upload_key": (ServiceUser, "write", True, lambda users, user, by: users.upload_key(user.id, _MY_KEY, by=by)),
    "add_key": (ServiceUser, "write", True, lambda users, user, by: users.add_key(user.id, _A_KEY, by=by)),
    "add_secret": (ServiceUser, "write", True, lambda users, user, by: users.add_secret(user.id, by=by)),
    "add_token": (ServiceUser, "write", True, lambda users, user, by: users.add_token(user.id, _MY_TOKEN, by=by)),
    "remove_key": (ServiceUser, "write", False, lambda users, user, by: users.remove_key(user.id, "x", by=by)),
    "remove_secret": (ServiceUser, "write", False, lambda users, user, by: users.remove_secret(user.id, "x", by=by)),
    "remove_token": (ServiceUser, "write", False, lambda users, user, by: users.remove_token(user.id, "x", by=by)),
}


def to_an_account(name: str) -> Call:
    kind, permission, gains, do = DONE[name]

    def call(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
        if isinstance(target, kind):
            do(graph.require_at_home(by, target, permission), target, by)
        return gains and isinstance(target, kind)

    call.__name__ = name
    return call


#: Generating a key takes long, and is like uploading one.
CALLS: tuple[Call, ...] = (
    *(add_manager, change_manager, remove_manager, invite, create_project, grant_roles),
    *(to_an_account(name) for name in DONE if name != "add_key"),
)


@contextmanager
def undone(identity: Identity) -> Iterator[Services]:
    """Services whose changes are forgotten."""
    transactions = Transactions()
    transactions.begin()
    try:
        yield identity.services(lambda: identity.backend.writing(transactions), OPERATOR)
    finally:
        transactions.abort()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 150))
def test_nobody_gains_more_than_they_hold(identity: Identity, seed: int, steps: int) -> None:
    identity.process.hasher.hash = lambda password: "hash"  # type: ignore[method-assign]
    identity.process.roles = _ROLE
    with undone(identity) as services:
        graph = Graph(services, Random(seed))  # noqa: S311 - what is drawn can be drawn again
        for _ in range(steps):
            graph.step()


@pytest.mark.parametrize("name", DONE)
def test_a_user_manager_has_no_power_over_an_owner(services: Services, name: str) -> None:
    """Each way by itself: the state and the credentials of somebody who holds more."""
    organization = an_organization(services)
    by = holding(services, a_program(services, organization, "clerk"), "ORG_USER_MANAGER")
    kind, _, _, do = DONE[name]
    for owner in (a_person(services, organization, "owner"), a_program(services, organization, "robot-owner")):
        if isinstance(owner, kind):
            holding(services, owner, "ORG_OWNER")
            with pytest.raises(Denied, match="beyond your own"):
                do(services.users if isinstance(owner, HumanUser) else services.service_users, owner, by)
