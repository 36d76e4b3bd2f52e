"""Security 14.4: no sequence of calls grants more permissions than the caller holds, or gains any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import UnionType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.application import IdentityApplication
from identity.crypto.signature_keys import PrivateKey
from identity.domain.audit import OPERATOR
from identity.domain.errors import Denied, DomainError
from identity.domain.managers import Manager, ManagerRole
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, project_grant_resource, project_resource
from identity.domain.users import HumanUser, ServiceUser, User
from identity.plugins.manager_roles import ROLES
from identity.services.access_control import Principal
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
from identity.services.container import Services
from identity.transaction_manager import ExplicitTransactionManager
from tests.services.factories import holding, make_human_user, make_organization, make_service_user

_MY_KEY = UploadServiceUserKey(public_key=PrivateKey.generate().public_key().to_pem())
_A_KEY, _MY_TOKEN = AddServiceUserKey(), AddPersonalAccessToken(name="Mine")
_MY_ADDRESS, _MY_NAME = ChangeHumanUser(email="mine@example.com"), ChangeServiceUser(display_name="Mine")
_MANAGER_WRITE = {
    ManagerLevel.INSTANCE: "instance_manager.write",
    ManagerLevel.ORGANIZATION: "organization_manager.write",
    ManagerLevel.PROJECT: "project_manager.write",
    ManagerLevel.PROJECT_GRANT: "project_grant_manager.write",
}

#: Roles that a plugin could offer: they manage managers or users without holding those permissions.
_CLERKS = (
    *(
        ManagerRole(name=f"{level.upper()}_CLERK", level=level, permissions=frozenset({permission}))
        for level, permission in _MANAGER_WRITE.items()
    ),
    ManagerRole(
        name="USER_CLERK", level=ManagerLevel.ORGANIZATION, permissions=frozenset({"user.write", "service_user.write"})
    ),
)
_ROLE = {role.name: role for role in (*ROLES, *_CLERKS)}
_NAMES = {level: [role.name for role in _ROLE.values() if role.level is level] for level in ManagerLevel}


def _concerns(resource: Resource, user: User) -> bool:
    """True for the instance, and for resources that belong to the user's organization or were granted to it."""
    holder = None if resource.grantee is None else resource.grantee.id
    return resource.organization_id is None or user.organization_id in (resource.organization_id, holder)


class Graph:
    """Two organizations with users, a project each, one project grant, and random manager roles.

    The first user is the attacker, who also controls every user whose credentials a call has returned.
    """

    def __init__(self, services: Services, random: Random) -> None:
        self.services = services
        self.random = random
        self.organizations = [make_organization(services, name) for name in ("Acme", "Other")]
        acme, organization = self.organizations
        self.projects = [
            services.projects.create(item.id, CreateProject(name=item.name), principal=Principal.OPERATOR)
            for item in (acme, organization)
        ]
        grant = services.project_grants.add(
            self.projects[0].id, AddProjectGrant(organization_id=organization.id), principal=Principal.OPERATOR
        )
        self.resources: list[Resource] = [
            Resource.INSTANCE,
            *(Resource.of_organization(item.id) for item in self.organizations),
            *(project_resource(project) for project in self.projects),
            project_grant_resource(grant, self.projects[0]),
        ]
        self.users: list[User] = [self._user(number, acme if number < 4 else organization) for number in range(6)]
        for user in self.users:
            # The organization of a resource decides on roles of outside users.
            home = [resource for resource in self.resources if _concerns(resource, user)]
            for resource in random.sample(home, 2 if user is self.users[0] else random.randint(0, 2)):
                command = AddManager(user_id=user.id, roles=self._roles(resource))
                services.managers.add(
                    resource, command, principal=Principal.OPERATOR, allow_without_sign_in_method=True
                )
        self.controlled = {self.users[0].id}
        self.at_first = {resource: self.power(resource) for resource in self.resources}

    def _user(self, number: int, organization: Organization) -> User:
        return (make_human_user if number % 2 else make_service_user)(self.services, organization, f"u{number}")

    def _roles(self, resource: Resource) -> frozenset[str]:
        return frozenset(self.random.sample(_NAMES[resource.key.level], self.random.randint(1, 2)))

    def principal(self, user_id: str) -> Principal | None:
        subject = self.services.storage.users.find_subject(user_id)
        return None if subject is None else self.services.access_control.load_principal(subject)

    def power(self, resource: Resource) -> frozenset[str]:
        """The permissions at the resource of all controlled users together."""
        principals = [self.principal(user_id) for user_id in sorted(self.controlled)]
        managers = [
            self.services.access_control.list_permissions(principal, resource)
            for principal in principals
            if principal is not None
        ]
        return frozenset().union(*managers)

    def step(self) -> None:
        """Try one random call of a controlled user with the checks of its route."""
        known = (self.principal(user_id) for user_id in sorted(self.controlled))
        managing = [item for item in known if item is not None and item.manager_entries]
        if not managing:
            return
        principal = self.random.choice(managing)
        call = self.random.choice(CALLS)
        target = self.random.choice(self.users)
        resource = self.random.choice(self.resources)
        roles = self._roles(resource)
        before = {resource: self._permissions(target, resource) for resource in self.resources}
        try:
            gained = call(self, principal, target, resource, roles)
        except DomainError:
            gained = False
        for item in self.resources:
            added = self._permissions(target, item) - before[item]
            assert added <= self.services.access_control.list_permissions(principal, item), "granted more than held"
        if gained:
            self.controlled.add(target.id)
        for item in self.resources:
            assert self.power(item) <= self.at_first[item], f"gained at {item.key.level} by {call.__name__}"

    def _permissions(self, user: User, resource: Resource) -> frozenset[str]:
        """The permissions that the user's roles contain at the resource, even if the user is inactive."""
        managers = [
            manager
            for manager in self.services.storage.managers.list_for_user(user.id)
            if manager.resource in resource.lineage
        ]
        return frozenset().union(*(_ROLE[name].permissions for manager in managers for name in manager.roles))

    def require(self, principal: Principal, permission: str, resource: Resource) -> None:
        self.services.access_control.require(principal, permission, resource)

    def require_at_home(self, principal: Principal, user: User, action: str) -> Any:
        """Check the permission as the user's route does; returns the service for this kind of user."""
        kind = "user" if isinstance(user, HumanUser) else "service_user"
        self.require(principal, f"{kind}.{action}", Resource.of_organization(user.organization_id))
        return self.services.users if isinstance(user, HumanUser) else self.services.service_users

    def manager(self, target: User, resource: Resource, principal: Principal) -> Manager:
        self.require(principal, _MANAGER_WRITE[resource.key.level], resource)
        managers = self.services.storage.managers.list_for_user(target.id)
        found = next((manager for manager in managers if manager.resource == resource.key), None)
        if found is None:
            raise Denied("no manager")
        return found


#: Arguments: graph, caller, target, resource and roles. True if the call returned credentials of the target.
Call = Callable[[Graph, Principal, User, Resource, frozenset[str]], bool]


def add_manager(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.require(principal, _MANAGER_WRITE[resource.key.level], resource)
    graph.services.managers.add(resource, AddManager(user_id=target.id, roles=roles), principal=principal)
    return False


def change_manager(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    manager = graph.manager(target, resource, principal)
    graph.services.managers.change(manager.id, ChangeManager(roles=roles), principal=principal)
    return False


def remove_manager(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    graph.services.managers.remove(graph.manager(target, resource, principal).id, principal=principal)
    return False


def invite(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if resource.key.level is not ManagerLevel.ORGANIZATION:
        return False
    graph.require(principal, "user.write", resource)
    name = f"invited-{len(graph.users)}"
    command = InviteHumanUser(user_name=name, given_name="A", family_name="B")
    user, _ = graph.services.users.invite(resource.key.id, command, principal=principal)
    graph.users.append(user)
    graph.controlled.add(user.id)
    return False


def create_project(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    if resource.key.level is not ManagerLevel.ORGANIZATION:
        return False
    graph.require(principal, "project.create", resource)
    graph.services.projects.create(resource.key.id, CreateProject(name="Mine"), principal=principal)
    return False


def grant_roles(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
    command = AddUserGrant(user_id=target.id, project_id=graph.projects[0].id)
    graph.services.user_grants.add(command, principal=principal)
    return False


#: Actions on an account: the kinds of users, the permission, and whether it yields credentials. Setting an email
#: address yields the next password link; a changed service user yields nothing.
DONE: dict[str, tuple[type[User] | UnionType, str, bool, Callable[[Any, User, Principal], object]]] = {
    "deactivate": (User, "write", False, lambda users, user, principal: users.deactivate(user.id, principal=principal)),
    "reactivate": (User, "write", False, lambda users, user, principal: users.reactivate(user.id, principal=principal)),
    "remove": (User, "delete", False, lambda users, user, principal: users.remove(user.id, principal=principal)),
    "change": (
        HumanUser,
        "write",
        True,
        lambda users, user, principal: users.change(user.id, _MY_ADDRESS, principal=principal),
    ),
    "change_program": (
        ServiceUser,
        "write",
        False,
        lambda users, user, principal: users.change(user.id, _MY_NAME, principal=principal),
    ),
    "password_link": (
        HumanUser,
        "write",
        True,
        lambda users, user, principal: users.issue_password_link(user.id, principal=principal),
    ),
    "one_time_password": (
        HumanUser,
        "write",
        True,
        lambda users, user, principal: users.set_one_time_password(user.id, principal=principal),
    ),
    "unlock": (HumanUser, "write", False, lambda users, user, principal: users.unlock(user.id, principal=principal)),
    "reset_factors": (
        HumanUser,
        "write",
        False,
        lambda users, user, principal: users.reset_factors(user.id, principal=principal),
    ),
    "end_sessions": (
        HumanUser,
        "write",
        False,
        lambda users, user, principal: users.end_sessions(user.id, principal=principal),
    ),
    "end_session": (
        HumanUser,
        "write",
        False,
        lambda users, user, principal: users.end_session(user.id, "x", principal=principal),
    ),
    "end_connection": (
        HumanUser,
        "write",
        False,
        lambda users, user, principal: users.disconnect_application_as_manager(user.id, "x", principal=principal),
    ),
    "upload_key": (
        ServiceUser,
        "write",
        True,
        lambda users, user, principal: users.upload_key(user.id, _MY_KEY, principal=principal),
    ),
    "add_key": (
        ServiceUser,
        "write",
        True,
        lambda users, user, principal: users.add_key(user.id, _A_KEY, principal=principal),
    ),
    "add_secret": (
        ServiceUser,
        "write",
        True,
        lambda users, user, principal: users.add_secret(user.id, principal=principal),
    ),
    "add_token": (
        ServiceUser,
        "write",
        True,
        lambda users, user, principal: users.add_personal_access_token(user.id, _MY_TOKEN, principal=principal),
    ),
    "remove_key": (
        ServiceUser,
        "write",
        False,
        lambda users, user, principal: users.remove_key(user.id, "x", principal=principal),
    ),
    "remove_secret": (
        ServiceUser,
        "write",
        False,
        lambda users, user, principal: users.remove_secret(user.id, "x", principal=principal),
    ),
    "remove_token": (
        ServiceUser,
        "write",
        False,
        lambda users, user, principal: users.remove_personal_access_token(user.id, "x", principal=principal),
    ),
}


def to_an_account(name: str) -> Call:
    kind, permission, gains, do = DONE[name]

    def call(graph: Graph, principal: Principal, target: User, resource: Resource, roles: frozenset[str]) -> bool:
        if isinstance(target, kind):
            do(graph.require_at_home(principal, target, permission), target, principal)
        return gains and isinstance(target, kind)

    call.__name__ = name
    return call


#: Generating a key takes long, and adds nothing to uploading one.
CALLS: tuple[Call, ...] = (
    *(add_manager, change_manager, remove_manager, invite, create_project, grant_roles),
    *(to_an_account(name) for name in DONE if name != "add_key"),
)


@contextmanager
def undone(identity: IdentityApplication) -> Iterator[Services]:
    """Services whose changes are rolled back."""
    transactions = ExplicitTransactionManager()
    transactions.begin()
    try:
        yield identity.create_services(lambda: identity.backend.join_transaction(transactions), OPERATOR)
    finally:
        transactions.abort()


@pytest.mark.thorough
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 150))
def test_random_calls_gain_no_permissions(identity: IdentityApplication, seed: int, steps: int) -> None:
    identity.process_state.hasher.hash = lambda password: "hash"  # type: ignore[method-assign]
    identity.process_state.manager_roles = _ROLE
    with undone(identity) as services:
        graph = Graph(services, Random(seed))  # noqa: S311 - what is drawn can be drawn again
        for _ in range(steps):
            graph.step()


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", DONE)
def test_user_manager_cannot_act_on_owner(services: Services, name: str) -> None:
    """Each action by itself, against the account and the credentials of a user with more permissions."""
    organization = make_organization(services)
    principal = holding(services, make_service_user(services, organization, "clerk"), "ORG_USER_MANAGER")
    kind, _, _, do = DONE[name]
    for owner in (
        make_human_user(services, organization, "owner"),
        make_service_user(services, organization, "robot-owner"),
    ):
        if isinstance(owner, kind):
            holding(services, owner, "ORG_OWNER")
            with pytest.raises(Denied, match="beyond your own"):
                do(services.users if isinstance(owner, HumanUser) else services.service_users, owner, principal)
