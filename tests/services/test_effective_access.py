"""Effective access: roles with their source, and why they have no effect."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from identity.application import IdentityApplication
from identity.domain.effective_access import AccessEntry, AccessKind, AccessProblem
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupGrant, AddGroupManager, AddGroupMember
from identity.services.commands.projects import ChangeProjectGrant
from identity.services.commands.user_grants import ChangeUserGrant
from identity.services.container import Services
from identity.testing.clock import FakeClock
from tests.services.factories import subject_of
from tests.services.test_access_control import House
from tests.services.test_user_grants import Shop

OPERATOR = Principal.OPERATOR
DAY = timedelta(days=1)


def entries_of(services: Services, user: HumanUser, principal: Principal = OPERATOR) -> tuple[AccessEntry, ...]:
    return services.effective_access.list_entries(subject_of(services, user), principal=principal)


#: What makes the roles of a derived user grant have no effect. Each is called with shop, user and id of the grant.
CAUSES: dict[AccessProblem, Callable[[Shop, HumanUser, str], object]] = {
    AccessProblem.ENDED: lambda shop, user, grant_id: shop.services.user_grants.change(
        grant_id, ChangeUserGrant(until=shop.services.now + DAY / 2), principal=OPERATOR
    ),
    AccessProblem.DEACTIVATED: lambda shop, user, grant_id: shop.services.user_grants.deactivate(
        grant_id, principal=OPERATOR
    ),
    AccessProblem.NO_ROLES: lambda shop, user, grant_id: shop.services.project_grants.change(
        shop.grant.id, ChangeProjectGrant(roles=frozenset()), principal=OPERATOR
    ),
    AccessProblem.PROJECT_GRANT_ENDED: lambda shop, user, grant_id: shop.services.project_grants.change(
        shop.grant.id, ChangeProjectGrant(until=shop.services.now + DAY / 2), principal=OPERATOR
    ),
    AccessProblem.PROJECT_GRANT_DEACTIVATED: lambda shop, user, grant_id: shop.services.project_grants.deactivate(
        shop.grant.id, principal=OPERATOR
    ),
    AccessProblem.PROJECT_DEACTIVATED: lambda shop, user, grant_id: shop.services.projects.deactivate(
        shop.project.id, principal=OPERATOR
    ),
    AccessProblem.OWNER_DEACTIVATED: lambda shop, user, grant_id: shop.services.organizations.deactivate(
        shop.acme.id, principal=OPERATOR
    ),
    AccessProblem.USER_DEACTIVATED: lambda shop, user, grant_id: shop.services.users.deactivate(
        user.id, principal=OPERATOR
    ),
}


@pytest.mark.parametrize("problem", CAUSES)
def test_roles_without_effect_have_the_reason(
    identity: IdentityApplication, clock: FakeClock, problem: AccessProblem
) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        user = shop.person(shop.other)
        grant = shop.give(user, "reader")
        [entry] = entries_of(services, user)
        assert entry.is_effective
        assert [role.key for role in entry.roles] == ["reader"]
        assert (entry.project_grant_id, entry.owner_id) == (shop.grant.id, shop.acme.id)
        CAUSES[problem](shop, user, grant.id)
    clock.advance(days=1)
    with identity.transaction() as services:
        [entry] = entries_of(services, user)
        assert entry.problem is problem
        if problem is AccessProblem.NO_ROLES:
            assert (entry.roles, entry.withheld_roles) == ((), ("reader",))


def test_manager_roles_at_ended_project_grant_have_no_effect(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        subject = shop.manager("PROJECT_GRANT_OWNER", shop.of_grant, shop.other).subject
        command = ChangeProjectGrant(until=services.now + DAY)
        services.project_grants.change(shop.grant.id, command, principal=OPERATOR)
    assert subject is not None
    for days, problem in ((0, None), (1, AccessProblem.PROJECT_GRANT_ENDED)):
        clock.advance(days=days)
        with identity.transaction() as services:
            [entry] = services.effective_access.list_entries(subject, principal=OPERATOR)
            assert entry.problem is problem


def test_end_is_the_earlier_one_of_grant_and_project_grant(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        user = shop.person(shop.other)
        grant = shop.give(user, "reader")
        near, far = services.now + DAY, services.now + 2 * DAY
        for of_user, of_project in ((near, far), (far, near)):
            services.user_grants.change(grant.id, ChangeUserGrant(until=of_user), principal=OPERATOR)
            services.project_grants.change(shop.grant.id, ChangeProjectGrant(until=of_project), principal=OPERATOR)
            assert [entry.until for entry in entries_of(services, user)] == [near]


def test_manager_roles_have_readable_names(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        house = House(services)
        robot = house.user("robot", "IAM_OWNER_VIEWER", "ORG_OWNER", "PROJECT_OWNER", "PROJECT_GRANT_OWNER")
        subject = subject_of(services, robot)
        found = services.effective_access.list_entries(subject, principal=OPERATOR)
        assert {(entry.resource.level, entry.resource_name) for entry in found} == {
            ("instance", ""),
            ("organization", "Acme"),
            ("project", "Project"),
            ("project_grant", "Project"),
        }
        assert all(role.name and role.name != role.key for entry in found for role in entry.roles)


def test_caller_sees_only_what_they_may_read(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        user = shop.person(shop.acme)
        shop.give(user, "reader")
        stranger = shop.manager("ORG_OWNER", Resource.of_organization(shop.third.id))
        owner = shop.manager("ORG_OWNER", Resource.of_organization(shop.acme.id), shop.acme)
        subject = owner.subject
        assert subject is not None
        assert [entry.kind for entry in entries_of(services, user, owner)] == [AccessKind.PROJECT_ROLES]
        assert entries_of(services, user, stranger) == ()
        managed = services.effective_access.list_entries(subject, principal=owner)
        assert [entry.kind for entry in managed] == [AccessKind.MANAGER_ROLES]
        assert services.effective_access.list_entries(subject, principal=stranger) == ()


def test_roles_through_groups_name_the_group(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        user = shop.person(shop.acme)
        group = services.groups.add(shop.acme.id, AddGroup(name="Sales"), principal=OPERATOR)
        until = services.now + DAY
        services.group_members.add(group.id, AddGroupMember(user_id=user.id, until=until), principal=OPERATOR)
        grant = AddGroupGrant(project_id=shop.project.id, roles=frozenset({"reader"}))
        services.group_grants.add(group.id, grant, principal=OPERATOR)
        at = AddGroupManager(
            level=ManagerLevel.ORGANIZATION, resource_id=shop.acme.id, roles=frozenset({"ORG_OWNER_VIEWER"})
        )
        services.group_managers.add(group.id, at, principal=OPERATOR)
        found = entries_of(services, user)
        assert [entry.kind for entry in found] == [AccessKind.MANAGER_ROLES, AccessKind.PROJECT_ROLES]
        for entry in found:
            assert entry.group == group
            assert entry.until == until
            assert entry.is_effective
        services.groups.deactivate(group.id, principal=OPERATOR)
        assert {entry.problem for entry in entries_of(services, user)} == {AccessProblem.GROUP_DEACTIVATED}
