"""Security 14.4: by no sequence of calls does anybody grant more than they hold, or gain more than they had."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.crypto.keys import generate_private_key
from identity.domain.audit import OPERATOR
from identity.domain.errors import Conflict, Denied, DomainError, Invalid
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
from identity.domain.users import HumanUser, User
from identity.plugins.manager_roles import ROLES
from identity.process import Identity
from identity.services.access import THE_OPERATOR, Principal
from identity.services.bundle import Services
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import AddProjectGrant, CreateProject
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    ChangeServiceUser,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.user_grants import AddUserGrant
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser, InviteHumanUser

_PUBLIC_KEY = generate_private_key().public_key().to_pem()
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


class Graph:
    """Two organizations with people and programs, a project each, one of them granted, and random manager roles.

    The first user is the one who tries; whoever's credentials come out of a call is theirs from then on.
    """

    def __init__(self, services: Services, random: Random) -> None:
        self.services = services
        self.random = random
        create = services.organizations.create
        self.organizations = [create(CreateOrganization(name=name)) for name in ("Acme", "Other")]
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
            for resource in random.sample(self.resources, 2 if user is self.users[0] else random.randint(0, 2)):
                command = AddManager(user_id=user.id, roles=self._roles(resource))
                services.managers.add(resource, command, by=THE_OPERATOR)
        self.controlled = {self.users[0].id}
        self.at_first = {resource: self.power(resource) for resource in self.resources}

    def _user(self, number: int, organization: Organization) -> User:
        if number % 2:
            person = CreateHumanUser(user_name=f"u{number}", given_name="A", family_name="B")
            return self.services.users.create(organization.id, person)
        robot = CreateServiceUser(user_name=f"u{number}", display_name="R")
        return self.services.service_users.create(organization.id, robot)

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


def deactivate(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require_at_home(by, target, "write").deactivate(target.id, by=by)
    return False


def reactivate(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require_at_home(by, target, "write").reactivate(target.id, by=by)
    return False


def remove(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require_at_home(by, target, "delete").remove(target.id, by=by)
    return False


def change(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    """Whoever chooses a person's address gets their next password link; a changed program is nobody's."""
    service = graph.require_at_home(by, target, "write")
    if isinstance(target, HumanUser):
        service.change(target.id, ChangeHumanUser(email="mine@example.com"), by=by)
        return True
    service.change(target.id, ChangeServiceUser(display_name="Mine"), by=by)
    return False


def password_link(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if not isinstance(target, HumanUser):
        return False
    graph.require_at_home(by, target, "write").new_password_link(target.id, by=by)
    return True


def one_time_password(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if not isinstance(target, HumanUser):
        return False
    graph.require_at_home(by, target, "write").one_time_password(target.id, by=by)
    return True


def upload_key(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    service = graph.require_at_home(by, target, "write")
    graph.services.service_users.get(target.id)
    service.upload_key(target.id, UploadServiceUserKey(public_key=_PUBLIC_KEY), by=by)
    return True


def add_secret(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require_at_home(by, target, "write")
    graph.services.service_users.add_secret(target.id, by=by)
    return True


def add_token(graph: Graph, by: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require_at_home(by, target, "write")
    graph.services.service_users.add_token(target.id, AddPersonalAccessToken(name="Mine"), by=by)
    return True


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


CALLS: tuple[Call, ...] = (
    add_manager,
    change_manager,
    remove_manager,
    deactivate,
    reactivate,
    remove,
    change,
    password_link,
    one_time_password,
    upload_key,
    add_secret,
    add_token,
    invite,
    create_project,
    grant_roles,
)


@contextmanager
def undone(identity: Identity) -> Iterator[Services]:
    """Services whose changes are forgotten."""
    identity.transactions.begin()
    try:
        yield identity.services(lambda: identity.backend.writing(identity.transactions), OPERATOR)
    finally:
        identity.transactions.abort()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 150))
def test_nobody_gains_more_than_they_hold(identity: Identity, seed: int, steps: int) -> None:
    identity.process.hasher.hash = lambda password: "hash"  # type: ignore[method-assign]
    identity.process.roles = _ROLE
    with undone(identity) as services:
        graph = Graph(services, Random(seed))  # noqa: S311 - what is drawn can be drawn again
        for _ in range(steps):
            graph.step()


@pytest.mark.parametrize("call", CALLS[3:12], ids=lambda call: call.__name__)
def test_a_user_manager_has_no_power_over_an_owner(identity: Identity, call: Call) -> None:
    """Each way by itself: the state and the credentials of somebody who holds more."""
    with identity.transaction() as services:
        organization = services.organizations.create(CreateOrganization(name="Acme"))
        resource = organization_resource(organization.id)
        person = CreateHumanUser(user_name="owner", given_name="A", family_name="B")
        robot = CreateServiceUser(user_name="robot-owner", display_name="R")
        clerk = services.service_users.create(
            organization.id, CreateServiceUser(user_name="clerk", display_name="Clerk")
        )
        owners = [
            services.users.create(organization.id, person),
            services.service_users.create(organization.id, robot),
        ]
        for user, role in ((clerk, "ORG_USER_MANAGER"), *((owner, "ORG_OWNER") for owner in owners)):
            services.managers.add(resource, AddManager(user_id=user.id, roles=frozenset({role})), by=THE_OPERATOR)
        graph = Graph.__new__(Graph)
        graph.services = services
        subject = services.storage.users.find_subject(clerk.id)
        assert subject is not None
        by = services.access.principal(subject)
        denied = 0
        for owner in owners:
            try:
                done = call(graph, by, owner, resource, frozenset())
            except Denied as refusal:
                denied += "beyond your own" in str(refusal)
            except (Invalid, Conflict, DomainError):
                continue
            else:
                assert not done
        assert denied
