"""Contract of the manager store."""

from dataclasses import replace

import pytest

from identity.domain.managers import Manager
from identity.domain.permissions import INSTANCE_KEY, ManagerLevel, ResourceKey
from identity.domain.users import HumanUser
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.paging import PageRequest, RowTotal


class ManagerContract(ContractBase):
    """A user is manager of a resource once; a resource is identified by level and id."""

    @pytest.fixture
    def resource(self, on: StorageHarness) -> ResourceKey:
        return ResourceKey(ManagerLevel.ORGANIZATION, on.organization.id)

    @pytest.fixture
    def manager(self, on: StorageHarness, resource: ResourceKey) -> Manager:
        return on.store_value(
            make.manager(on.human_user, resource, roles=frozenset({"ORG_OWNER"}), organization_id=resource.id)
        )

    def test_managers_of_user_holds_everything_of_the_user_alone(self, on: StorageHarness, manager: Manager) -> None:
        stranger = make.human_user(on.organization)
        on_project = make.manager(on.human_user, ResourceKey(ManagerLevel.PROJECT, make_id()))
        on_instance = make.manager(on.human_user)
        on.store(stranger, on_project, on_instance, make.manager(stranger))
        managers = on.read.managers.list_for_user(on.human_user.id)
        assert on.read.managers.list_for_user(make_id()) == ()
        assert sorted(managers, key=_by_id) == sorted((manager, on_project, on_instance), key=_by_id)

    def test_managers_of_users_of_holds_everything_of_those_users_alone(
        self, on: StorageHarness, manager: Manager
    ) -> None:
        other_organization = make.organization()
        robot, stranger = make.service_user(on.organization), make.human_user(other_organization)
        on_instance = make.manager(robot)
        resource_key = ResourceKey(ManagerLevel.ORGANIZATION, on.organization.id)
        on.store(other_organization, robot, stranger, on_instance, make.manager(stranger, resource_key))
        managers = on.read.managers.list_for_users_of_organization(on.organization.id, NOW)
        assert on.read.managers.list_for_users_of_organization(make_id(), NOW) == ()
        assert sorted(managers, key=_by_id) == sorted((manager, on_instance), key=_by_id)

    def test_managers_page_within_holds_users_of_those_organizations_alone(
        self, on: StorageHarness, manager: Manager, resource: ResourceKey
    ) -> None:
        other_organization = make.organization()
        stranger = make.human_user(other_organization)
        foreign = make.manager(stranger, resource)
        on.store(other_organization, stranger, foreign)
        counted = PageRequest(limit=1, with_total=True)
        for within, expected_managers in (
            (frozenset({on.organization.id}), {manager.id}),
            (frozenset({other_organization.id}), {foreign.id}),
            (frozenset({on.organization.id, other_organization.id}), {manager.id, foreign.id}),
            (frozenset(), set()),
        ):
            result_page = on.read.managers.page(resource, organization_ids=within)
            assert {manager.id for manager in result_page} == expected_managers
            page = on.read.managers.page(resource, counted, organization_ids=within)
            assert page.total == RowTotal(len(expected_managers))
            assert (page.next_cursor is not None) == (len(expected_managers) > 1)

    def test_managers_effective_lacks_what_has_ended(
        self, on: StorageHarness, manager: Manager, resource: ResourceKey
    ) -> None:
        other = ResourceKey(ManagerLevel.PROJECT, on.project.id)
        ending = on.store_value(make.manager(on.human_user, other, until=NOW + SECOND))
        organization_id, user_id = on.organization.id, on.human_user.id
        for at, expected in ((NOW, [manager, ending]), (NOW + SECOND, [manager])):
            for managers in (
                on.read.managers.list_effective(user_id, at),
                on.read.managers.list_for_users_of_organization(organization_id, at),
            ):
                assert sorted(managers, key=_by_id) == sorted(expected, key=_by_id)
        assert len(on.read.managers.list_for_user(user_id)) == 2, "what has ended is still listed"

    def test_managers_effective_end_with_their_project_grant(self, on: StorageHarness) -> None:
        project = make.project(on.other_organization)
        grant = make.project_grant(project, on.organization, until=NOW + DAY)
        at_grant = ResourceKey(ManagerLevel.PROJECT_GRANT, grant.id)
        endless, shorter = make.manager(on.human_user, at_grant), make.human_user(on.organization)
        on.store(project, grant, endless, shorter, make.manager(shorter, at_grant, until=NOW + SECOND))
        read = on.read.managers.list_effective
        assert read(on.human_user.id, NOW) == (replace(endless, until=NOW + DAY),)
        assert read(on.human_user.id, NOW + DAY) == ()
        assert [item.until for item in read(shorter.id, NOW)] == [NOW + SECOND]
        assert on.read.managers.find(endless.id) == endless, "the stored manager keeps its end"

    def test_managers_ending_are_listed_soonest_first(self, on: StorageHarness, manager: Manager) -> None:
        users = [make.human_user(on.organization) for _ in range(3)]
        late, soon, past = (
            make.manager(user, until=NOW + days * DAY) for user, days in zip(users, (7, 1, -1), strict=True)
        )
        soon = replace(soon, organization_id=on.organization.id)
        on.store(*users, late, soon, past)
        read = on.read.managers.list_ending
        assert read(NOW, NOW + 7 * DAY, 10, organization_id=on.organization.id) == (soon,)
        assert read(NOW, NOW + 7 * DAY, 10) == (soon, late)
        assert read(NOW, NOW + 6 * DAY, 10) == (soon,)
        assert read(None, NOW + 7 * DAY, 2) == (past, soon)

    def test_managers_lock_holders_returns_active_users_who_hold_the_role_there(self, on: StorageHarness) -> None:
        closed = make.organization(active=False)
        owner, other_owner = make.human_user(on.organization), make.service_user(on.organization)
        idle, locked_out = make.human_user(on.organization, active=False), make.human_user(closed)
        viewer, other_organization = make.human_user(on.organization), make.human_user(on.organization)
        both = frozenset({"IAM_OWNER", "IAM_OWNER_VIEWER"})
        holders = [make.manager(owner), make.manager(other_owner, roles=both)]
        on.store(closed, owner, other_owner, idle, locked_out, viewer, other_organization, *holders)
        on.store(
            make.manager(idle),
            make.manager(locked_out),
            make.manager(viewer, roles=frozenset({"IAM_OWNER_VIEWER"})),
            make.manager(other_organization, ResourceKey(ManagerLevel.ORGANIZATION, on.organization.id)),
        )
        on.store(make.manager(make_stored_user(on), until=NOW + DAY))
        with on.transaction() as storage:
            managers = storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")
            nobody = storage.managers.lock_by_role(INSTANCE_KEY, "IAM")
        assert sorted(managers, key=_by_id) == sorted(holders, key=_by_id)
        assert nobody == (), "a role is its whole name"


def make_stored_user(on: StorageHarness) -> HumanUser:
    return on.store_value(make.human_user(on.organization))


def _by_id(manager: Manager) -> str:
    return manager.id
