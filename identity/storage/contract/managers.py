"""What is demanded of the manager store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.managers import Manager
from identity.domain.permissions import INSTANCE_KEY, Level, ResourceKey
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_human_user, a_manager, a_service_user, an_id, an_organization
from identity.storage.contract.paging import Fetch, check_insertion, check_order, check_ties, fetching
from identity.storage.errors import Duplicate, Missing, Stale


class ManagerContract(ContractBase):
    """A user is manager of a resource once; a resource is its level and its id together."""

    @pytest.fixture
    def resource(self, on: On) -> ResourceKey:
        """``organization`` as a resource."""
        return ResourceKey(Level.ORGANIZATION, on.organization.id)

    @pytest.fixture
    def manager(self, on: On, resource: ResourceKey) -> Manager:
        """``human_user`` as a stored manager of ``organization``."""
        manager = a_manager(on.human_user, resource, roles=frozenset({"ORG_OWNER"}), organization_id=resource.id)
        on.save(manager)
        return manager

    @pytest.fixture
    def managers(self, on: On, resource: ResourceKey) -> Fetch[Manager]:
        """The list of the managers of ``organization``."""
        return fetching(on.reading, lambda storage, request: storage.managers.page(resource, request))

    @pytest.mark.parametrize("level", list(Level))
    def test_managers_find_returns_what_was_added(self, on: On, level: Level) -> None:
        manager = a_manager(
            on.human_user,
            ResourceKey(level, "instance" if level is Level.INSTANCE else an_id()),
            roles=frozenset({"A_ROLE", "B_ROLE"}),
            organization_id=None if level is Level.INSTANCE else on.organization.id,
            version=2,
        )
        on.save(manager)
        with on.reading() as storage:
            assert storage.managers.find(manager.id) == manager
            assert storage.managers.find(an_id()) is None

    def test_managers_find_for_compares_level_and_id(self, on: On, manager: Manager, resource: ResourceKey) -> None:
        human_user = on.human_user
        with on.reading() as storage:
            assert storage.managers.find_for(human_user.id, resource) == manager
            assert storage.managers.find_for(human_user.id, ResourceKey(Level.PROJECT, resource.id)) is None
            assert storage.managers.find_for(human_user.id, ResourceKey(Level.ORGANIZATION, an_id())) is None
            assert storage.managers.find_for(an_id(), resource) is None

    def test_managers_of_user_holds_everything_of_the_user_alone(self, on: On, manager: Manager) -> None:
        stranger = a_human_user(on.organization)
        on_project, on_instance = (
            a_manager(on.human_user, ResourceKey(Level.PROJECT, an_id())),
            a_manager(on.human_user),
        )
        on.save(stranger, on_project, on_instance, a_manager(stranger))
        with on.reading() as storage:
            held = storage.managers.of_user(on.human_user.id)
            assert storage.managers.of_user(an_id()) == ()
        assert len(held) == 3
        assert {each.id: each for each in held} == {each.id: each for each in (manager, on_project, on_instance)}

    def test_managers_of_users_of_holds_everything_of_those_users_alone(self, on: On, manager: Manager) -> None:
        elsewhere = an_organization()
        robot, stranger = a_service_user(on.organization), a_human_user(elsewhere)
        on_instance = a_manager(robot)
        here = ResourceKey(Level.ORGANIZATION, on.organization.id)
        on.save(elsewhere, robot, stranger, on_instance, a_manager(stranger, here))
        with on.reading() as storage:
            held = storage.managers.of_users_of(on.organization.id)
            assert storage.managers.of_users_of(an_id()) == ()
        assert {each.id: each for each in held} == {each.id: each for each in (manager, on_instance)}

    def test_managers_a_second_row_for_user_and_resource_is_refused(
        self, on: On, manager: Manager, resource: ResourceKey
    ) -> None:
        human_user = on.human_user
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.managers.add(a_manager(human_user, resource))
        assert refusal.value.field == "user_id"

    def test_managers_a_manager_needs_its_user(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.managers.add(a_manager())

    def test_managers_update_replaces_the_value(self, on: On, manager: Manager) -> None:
        changed = replace(
            manager,
            roles=frozenset({"ORG_OWNER_VIEWER", "ORG_USER_MANAGER"}),
            changed_at=manager.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.managers.update(changed)
        with on.reading() as storage:
            assert storage.managers.find(manager.id) == changed
            assert storage.managers.of_user(manager.user_id) == (changed,)

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_managers_update_of_another_version_is_stale(self, on: On, manager: Manager, version: int) -> None:
        with pytest.raises(Stale), on.writing() as storage:
            storage.managers.update(replace(manager, roles=frozenset({"LOST"}), version=version))
        with on.reading() as storage:
            assert storage.managers.find(manager.id) == manager

    def test_managers_update_of_an_unknown_manager(self, on: On) -> None:
        human_user = on.human_user
        with pytest.raises(Missing), on.writing() as storage:
            storage.managers.update(a_manager(human_user, version=2))

    def test_managers_remove(self, on: On, manager: Manager) -> None:
        other = a_manager(on.human_user)
        on.save(other)
        with on.writing() as storage:
            storage.managers.remove(manager.id)
        with on.reading() as storage:
            assert storage.managers.of_user(on.human_user.id) == (other,)

    def test_managers_remove_of_an_unknown_manager(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.managers.remove(an_id())

    def test_managers_page_shows_the_resource_alone_and_newest_first(
        self, on: On, managers: Fetch[Manager], resource: ResourceKey
    ) -> None:
        users = [a_human_user(on.organization) for _ in range(4)]
        ordered = [a_manager(user, resource, created_at=NOW - timedelta(seconds=age)) for age, user in enumerate(users)]
        elsewhere = [
            a_manager(users[0]),
            a_manager(users[0], ResourceKey(Level.PROJECT, resource.id)),
            a_manager(users[0], ResourceKey(Level.ORGANIZATION, an_id())),
        ]
        on.save(*users, *reversed(ordered), *elsewhere)
        check_order(managers, ordered)

    def test_managers_page_in_the_same_second(self, on: On, managers: Fetch[Manager], resource: ResourceKey) -> None:
        users = [a_service_user(on.organization) for _ in range(5)]
        rows = [a_manager(user, resource) for user in users]
        on.save(*users, *rows)
        check_ties(managers, rows)

    def test_managers_page_while_rows_come(self, on: On, managers: Fetch[Manager], resource: ResourceKey) -> None:
        users = [a_human_user(on.organization) for _ in range(7)]
        rows = [a_manager(user, resource, created_at=NOW - timedelta(seconds=age)) for age, user in enumerate(users)]
        on.save(*users, *rows[::2])
        check_insertion(managers, lambda: on.save(*rows[1::2]), rows[::2])

    def test_managers_lock_holders_returns_active_users_who_hold_the_role_there(self, on: On) -> None:
        organization = on.organization
        closed = an_organization(active=False)
        owner, other_owner, idle, locked_out, viewer, elsewhere = (
            a_human_user(organization),
            a_service_user(organization),
            a_human_user(organization, active=False),
            a_human_user(closed),
            a_human_user(organization),
            a_human_user(organization),
        )
        both = frozenset({"IAM_OWNER", "IAM_OWNER_VIEWER"})
        holders = [a_manager(owner), a_manager(other_owner, roles=both)]
        on.save(closed, owner, other_owner, idle, locked_out, viewer, elsewhere, *holders)
        on.save(
            a_manager(idle),
            a_manager(locked_out),
            a_manager(viewer, roles=frozenset({"IAM_OWNER_VIEWER"})),
            a_manager(elsewhere, ResourceKey(Level.ORGANIZATION, organization.id)),
        )
        with on.writing() as storage:
            found = storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")
            nobody = storage.managers.lock_holders(INSTANCE_KEY, "IAM")
        assert len(found) == 2
        assert {each.id: each for each in found} == {each.id: each for each in holders}
        assert nobody == (), "a role is its whole name"
