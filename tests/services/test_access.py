"""Roles add, vetoes subtract, the default is no; nobody gains power by managing others."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.app import Identity
from identity.domain.errors import Conflict, Denied, Invalid, NotFound
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import (
    HOLDER_PERMISSIONS,
    INSTANCE,
    PERMISSIONS,
    Level,
    Resource,
    ResourceKey,
    organization_resource,
    project_grant_resource,
    project_resource,
)
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import ServiceUser
from identity.plugins.manager_roles import ROLES
from identity.services.access import THE_OPERATOR, Access, Principal
from identity.services.bundle import Services
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import AddProjectGrant, CreateProject
from identity.services.commands.service_users import AddServiceUserKey, CreateServiceUser

ROLE = {role.name: role for role in ROLES}


class House:
    """Two organizations, a project of the first that is granted to the second, and service users."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.acme = self.organization("Acme")
        self.other = self.organization("Other")
        self.project: Project = services.projects.create(self.acme.id, CreateProject(name="Project"))
        self.grant: ProjectGrant = services.project_grants.add(
            self.project.id, AddProjectGrant(organization_id=self.other.id)
        )
        self.resources: dict[Level, Resource] = {
            Level.INSTANCE: INSTANCE,
            Level.ORGANIZATION: organization_resource(self.acme.id),
            Level.PROJECT: project_resource(self.project),
            Level.PROJECT_GRANT: project_grant_resource(self.grant, self.project),
        }

    def organization(self, name: str) -> Organization:
        return self.services.organizations.create(CreateOrganization(name=name))

    def user(self, name: str, *roles: str, at: Resource | None = None) -> ServiceUser:
        """A service user holding these roles, each at its level (or ``at``)."""
        user = self.services.service_users.create(self.acme.id, CreateServiceUser(user_name=name, display_name=name))
        by_level: dict[Level, set[str]] = {}
        for role in roles:
            by_level.setdefault(ROLE[role].level, set()).add(role)
        for level, names in by_level.items():
            command = AddManager(user_id=user.id, roles=frozenset(names))
            self.services.managers.add(at or self.resources[level], command, by=THE_OPERATOR)
        return user

    def principal(self, user: ServiceUser) -> Principal:
        subject = self.services.storage.users.find_subject(user.id)
        assert subject is not None
        return self.services.access.principal(subject)

    def manager_of(self, user: ServiceUser) -> Manager:
        return self.services.storage.managers.of_user(user.id)[0]


@pytest.fixture
def house(identity: Identity) -> Iterator[House]:
    with identity.transaction() as services:
        yield House(services)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_reaches_its_resource_and_what_lies_below(house: House, role: object) -> None:
    held = ROLE[role.name]  # type: ignore[attr-defined]
    principal = house.principal(house.user("u", held.name))
    order = [Level.INSTANCE, Level.ORGANIZATION, Level.PROJECT, Level.PROJECT_GRANT]
    for level, resource in house.resources.items():
        expected = held.permissions if order.index(level) >= order.index(held.level) else frozenset()
        assert house.services.access.permissions(principal, resource) == expected


def test_no_role_reaches_another_organization(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER", "PROJECT_OWNER", "PROJECT_GRANT_OWNER"))
    elsewhere = house.services.projects.create(house.other.id, CreateProject(name="Theirs"))
    for resource in (organization_resource(house.other.id), project_resource(elsewhere), INSTANCE):
        assert house.services.access.permissions(principal, resource) == frozenset()


def test_the_holder_of_a_grant_uses_it_and_cannot_widen_it(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER", at=organization_resource(house.other.id)))
    held = house.services.access.permissions(principal, house.resources[Level.PROJECT_GRANT])
    assert held == HOLDER_PERMISSIONS
    assert "project_grant.write" not in held
    assert house.services.access.permissions(principal, house.resources[Level.PROJECT]) == frozenset()


def test_who_holds_nothing_may_nothing(house: House) -> None:
    principal = house.principal(house.user("u"))
    for resource in house.resources.values():
        assert not [one for one in PERMISSIONS if house.services.access.may(principal, one, resource)]


def test_a_deactivated_manager_may_nothing(house: House) -> None:
    user = house.user("u", "IAM_OWNER")
    house.user("another", "IAM_OWNER")
    house.services.service_users.deactivate(user.id, by=THE_OPERATOR)
    assert house.services.access.permissions(house.principal(user), INSTANCE) == frozenset()


def test_a_role_that_no_plugin_offers_any_more_brings_nothing(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER"))
    without_roles = Access(house.services.storage, {}, None)
    assert without_roles.permissions(principal, house.resources[Level.ORGANIZATION]) == frozenset()


def test_a_veto_subtracts_and_says_why(house: House) -> None:
    def deny(principal: Principal, permission: str, resource: Resource, lookup: object) -> str | None:
        return None if permission.endswith(".read") else "Changes are frozen."

    access = Access(house.services.storage, ROLE, deny)
    principal = house.principal(house.user("u", "ORG_OWNER"))
    resource = house.resources[Level.ORGANIZATION]
    access.require(principal, "organization.read", resource)
    with pytest.raises(Denied, match="Changes are frozen"):
        access.require(principal, "organization.write", resource)
    assert access.may(THE_OPERATOR, "organization.write", resource)


def test_nobody_grants_more_than_they_hold(house: House) -> None:
    resource = house.resources[Level.ORGANIZATION]
    target = house.user("target")
    viewer = house.principal(house.user("viewer", "ORG_OWNER_VIEWER", "ORG_USER_MANAGER"))
    command = AddManager(user_id=target.id, roles=frozenset({"ORG_OWNER"}))
    with pytest.raises(Denied, match="You cannot grant ORG_OWNER"):
        house.services.managers.add(resource, command, by=viewer)
    owner = house.principal(house.user("owner", "ORG_OWNER"))
    manager = house.services.managers.add(resource, command, by=owner)
    with pytest.raises(Denied):
        house.services.managers.change(manager.id, ChangeManager(roles=frozenset({"ORG_USER_MANAGER"})), by=viewer)
    with pytest.raises(Denied):
        house.services.managers.remove(manager.id, by=viewer)


def test_whoever_manages_users_gains_no_power_over_higher_ones(house: House) -> None:
    owner = house.user("owner", "ORG_OWNER")
    clerk = house.principal(house.user("clerk", "ORG_USER_MANAGER"))
    users = house.services.service_users
    for attempt in (
        lambda: users.add_key(owner.id, AddServiceUserKey(), by=clerk),
        lambda: users.deactivate(owner.id, by=clerk),
        lambda: users.reactivate(owner.id, by=clerk),
        lambda: users.remove(owner.id, by=clerk),
    ):
        with pytest.raises(Denied, match="beyond your own"):
            attempt()
    plain = house.user("plain")
    users.deactivate(plain.id, by=clerk)


def test_roles_have_their_level(house: House) -> None:
    user = house.user("u")
    for name in ("IAM_OWNER", "PROJECT_OWNER", "NO_SUCH_ROLE"):
        with pytest.raises(Invalid, match=f"{name} is no role of this level"):
            house.services.managers.add(
                house.resources[Level.ORGANIZATION],
                AddManager(user_id=user.id, roles=frozenset({name})),
                by=THE_OPERATOR,
            )


def test_the_last_owner_stays(house: House) -> None:
    first, second = house.user("first", "IAM_OWNER"), house.user("second", "IAM_OWNER")
    house.services.managers.remove(house.manager_of(first).id, by=THE_OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.managers.remove(house.manager_of(second).id, by=THE_OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.managers.change(
            house.manager_of(second).id, ChangeManager(roles=frozenset({"IAM_OWNER_VIEWER"})), by=THE_OPERATOR
        )


def test_the_last_owner_is_neither_deactivated_nor_removed(house: House) -> None:
    owner = house.user("owner", "IAM_OWNER")
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.service_users.deactivate(owner.id, by=THE_OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.service_users.remove(owner.id, by=THE_OPERATOR)


def test_unknown_resources_are_not_found(house: House) -> None:
    for level in (Level.ORGANIZATION, Level.PROJECT, Level.PROJECT_GRANT):
        with pytest.raises(NotFound):
            house.services.access.resource(ResourceKey(level, "nothing"))
        key = house.resources[level].key
        assert house.services.access.resource(key) == house.resources[level]


role_sets = st.sets(st.sampled_from(sorted(ROLE)), max_size=3)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_over_random_role_graphs_no_grant_adds_power(identity: Identity, data: st.DataObject) -> None:
    """Whatever somebody may grant, the granted roles hold nothing that the grantor lacks at that resource."""
    identity.transactions.begin()
    try:
        services = identity.services(lambda: identity.backend.writing(identity.transactions), _actor())
        house = House(services)
        granting = house.user("granting", *data.draw(role_sets))
        target = house.user("target")
        role = ROLE[data.draw(st.sampled_from(sorted(ROLE)))]
        resource = house.resources[role.level]
        principal = house.principal(granting)
        before = services.access.permissions(principal, resource)
        command = AddManager(user_id=target.id, roles=frozenset({role.name}))
        try:
            services.managers.add(resource, command, by=principal)
        except Denied:
            assert not role.permissions <= before
        else:
            assert services.access.permissions(house.principal(target), resource) <= before
    finally:
        identity.transactions.abort()


def _actor() -> object:
    from identity.domain.audit import OPERATOR

    return OPERATOR
