"""What is demanded of the manager store."""

import pytest

from identity.domain.managers import Manager
from identity.domain.permissions import INSTANCE_KEY, Level, ResourceKey
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_human_user, a_manager, a_service_user, an_id, an_organization
from identity.storage.paging import PageRequest, Total


class ManagerContract(ContractBase):
    """A user is manager of a resource once; a resource is its level and its id together."""

    @pytest.fixture
    def resource(self, on: On) -> ResourceKey:
        """``organization`` as a resource."""
        return ResourceKey(Level.ORGANIZATION, on.organization.id)

    @pytest.fixture
    def manager(self, on: On, resource: ResourceKey) -> Manager:
        """``human_user`` as a stored manager of ``organization``."""
        return on.saved(a_manager(on.human_user, resource, roles=frozenset({"ORG_OWNER"}), organization_id=resource.id))

    def test_managers_of_user_holds_everything_of_the_user_alone(self, on: On, manager: Manager) -> None:
        stranger = a_human_user(on.organization)
        on_project, on_instance = (
            a_manager(on.human_user, ResourceKey(Level.PROJECT, an_id())),
            a_manager(on.human_user),
        )
        on.save(stranger, on_project, on_instance, a_manager(stranger))
        held = on.read.managers.of_user(on.human_user.id)
        assert on.read.managers.of_user(an_id()) == ()
        assert len(held) == 3
        assert {each.id: each for each in held} == {each.id: each for each in (manager, on_project, on_instance)}

    def test_managers_of_users_of_holds_everything_of_those_users_alone(self, on: On, manager: Manager) -> None:
        elsewhere = an_organization()
        robot, stranger = a_service_user(on.organization), a_human_user(elsewhere)
        on_instance = a_manager(robot)
        here = ResourceKey(Level.ORGANIZATION, on.organization.id)
        on.save(elsewhere, robot, stranger, on_instance, a_manager(stranger, here))
        held = on.read.managers.of_users_of(on.organization.id)
        assert on.read.managers.of_users_of(an_id()) == ()
        assert {each.id: each for each in held} == {each.id: each for each in (manager, on_instance)}

    def test_managers_page_within_holds_users_of_those_organizations_alone(
        self, on: On, manager: Manager, resource: ResourceKey
    ) -> None:
        elsewhere = an_organization()
        stranger = a_human_user(elsewhere)
        theirs = a_manager(stranger, resource)
        on.save(elsewhere, stranger, theirs)
        counted = PageRequest(limit=1, counted=True)
        for within, wanted in (
            (frozenset({on.organization.id}), {manager.id}),
            (frozenset({elsewhere.id}), {theirs.id}),
            (frozenset({on.organization.id, elsewhere.id}), {manager.id, theirs.id}),
            (frozenset(), set()),
        ):
            found = on.read.managers.page(resource, within=within)
            assert {one.id for one in found} == wanted
            page = on.read.managers.page(resource, counted, within=within)
            assert page.total == Total(len(wanted))
            assert (page.next is not None) == (len(wanted) > 1)

    def test_managers_lock_holders_returns_active_users_who_hold_the_role_there(self, on: On) -> None:
        closed = an_organization(active=False)
        owner, other_owner, idle, locked_out, viewer, elsewhere = (
            a_human_user(on.organization),
            a_service_user(on.organization),
            a_human_user(on.organization, active=False),
            a_human_user(closed),
            a_human_user(on.organization),
            a_human_user(on.organization),
        )
        both = frozenset({"IAM_OWNER", "IAM_OWNER_VIEWER"})
        holders = [a_manager(owner), a_manager(other_owner, roles=both)]
        on.save(closed, owner, other_owner, idle, locked_out, viewer, elsewhere, *holders)
        on.save(
            a_manager(idle),
            a_manager(locked_out),
            a_manager(viewer, roles=frozenset({"IAM_OWNER_VIEWER"})),
            a_manager(elsewhere, ResourceKey(Level.ORGANIZATION, on.organization.id)),
        )
        with on.writing() as storage:
            found = storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")
            nobody = storage.managers.lock_holders(INSTANCE_KEY, "IAM")
        assert len(found) == 2
        assert {each.id: each for each in found} == {each.id: each for each in holders}
        assert nobody == (), "a role is its whole name"
