"""Access control: roles allow, vetoes deny, the default is no, and managing others gains no permissions."""

from collections.abc import Iterator

import pytest

from identity.application import IdentityApplication
from identity.domain.errors import Conflict, Denied, Invalid, NotFound
from identity.domain.managers import Manager, ManagerRole
from identity.domain.organizations import Organization
from identity.domain.permissions import (
    GRANTEE_PERMISSIONS,
    ManagerLevel,
    Resource,
    ResourceKey,
    project_grant_resource,
    project_resource,
)
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import ServiceUser
from identity.plugins.manager_roles import ROLES
from identity.services.access_control import AccessControl, Principal
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import AddDomain
from identity.services.commands.projects import AddProjectGrant, CreateProject
from identity.services.container import Services
from identity.storage.paging import PageRequest
from tests.services.factories import make_organization, make_service_user, subject_of

ROLE = {role.name: role for role in ROLES}


class House:
    """Two organizations, a project of the first with a grant to the second, and service users."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.acme = self.organization("Acme")
        self.other = self.organization("Other")
        self.project: Project = services.projects.create(
            self.acme.id, CreateProject(name="Project"), principal=Principal.OPERATOR
        )
        self.grant: ProjectGrant = services.project_grants.add(
            self.project.id, AddProjectGrant(organization_id=self.other.id), principal=Principal.OPERATOR
        )
        self.resources: dict[ManagerLevel, Resource] = {
            ManagerLevel.INSTANCE: Resource.INSTANCE,
            ManagerLevel.ORGANIZATION: Resource.of_organization(self.acme.id),
            ManagerLevel.PROJECT: project_resource(self.project),
            ManagerLevel.PROJECT_GRANT: project_grant_resource(self.grant, self.project),
        }

    def organization(self, name: str) -> Organization:
        return make_organization(self.services, name)

    def user(self, name: str, *roles: str, at: Resource | None = None, home: Organization | None = None) -> ServiceUser:
        """A service user of ``home`` (default: Acme) with these roles, each at its level or at ``at``."""
        user = make_service_user(self.services, home or self.acme, name)
        by_level: dict[ManagerLevel, set[str]] = {}
        for role in roles:
            by_level.setdefault(ROLE[role].level, set()).add(role)
        for level, names in by_level.items():
            roles_at_it = AddManager(user_id=user.id, roles=frozenset(names))
            self.services.managers.add(at or self.resources[level], roles_at_it, principal=Principal.OPERATOR)
        return user

    def principal(self, user: ServiceUser) -> Principal:
        return self.services.access_control.load_principal(subject_of(self.services, user))

    def manager_of(self, user: ServiceUser) -> Manager:
        return self.services.storage.managers.list_for_user(user.id)[0]


@pytest.fixture
def house(identity: IdentityApplication) -> Iterator[House]:
    with identity.transaction() as services:
        yield House(services)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_applies_to_resource_and_descendants(house: House, role: object) -> None:
    manager_role = ROLE[role.name]  # type: ignore[attr-defined]
    principal = house.principal(house.user("u", manager_role.name))
    order = [ManagerLevel.INSTANCE, ManagerLevel.ORGANIZATION, ManagerLevel.PROJECT, ManagerLevel.PROJECT_GRANT]
    for level, resource in house.resources.items():
        expected = manager_role.permissions if order.index(level) >= order.index(manager_role.level) else frozenset()
        assert house.services.access_control.list_permissions(principal, resource) == expected


def test_role_does_not_apply_to_other_organization(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER", "PROJECT_OWNER", "PROJECT_GRANT_OWNER"))
    other_project = house.services.projects.create(
        house.other.id, CreateProject(name="Theirs"), principal=Principal.OPERATOR
    )
    for resource in (Resource.of_organization(house.other.id), project_resource(other_project), Resource.INSTANCE):
        assert house.services.access_control.list_permissions(principal, resource) == frozenset()


def test_grantee_cannot_extend_project_grant(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER", at=Resource.of_organization(house.other.id)))
    permissions = house.services.access_control.list_permissions(principal, house.resources[ManagerLevel.PROJECT_GRANT])
    assert permissions == GRANTEE_PERMISSIONS
    assert "project_grant.write" not in permissions
    assert (
        house.services.access_control.list_permissions(principal, house.resources[ManagerLevel.PROJECT]) == frozenset()
    )


def test_user_without_role_has_no_permission(house: House) -> None:
    principal = house.principal(house.user("u"))
    for resource in house.resources.values():
        assert not [
            permission
            for permission in ManagerRole.PERMISSIONS
            if house.services.access_control.is_permitted(principal, permission, resource)
        ]


def test_deactivated_manager_has_no_permission(house: House) -> None:
    user = house.user("u", "IAM_OWNER")
    house.user("another", "IAM_OWNER")
    house.services.service_users.deactivate(user.id, principal=Principal.OPERATOR)
    assert house.services.access_control.list_permissions(house.principal(user), Resource.INSTANCE) == frozenset()


def test_unknown_role_has_no_permission(house: House) -> None:
    principal = house.principal(house.user("u", "ORG_OWNER"))
    without_roles = AccessControl(
        house.services.storage, {}, None, house.services.lookup, lambda: None, house.services.now
    )
    assert without_roles.list_permissions(principal, house.resources[ManagerLevel.ORGANIZATION]) == frozenset()


def test_veto_denies_with_reason(house: House) -> None:
    def deny(principal: Principal, permission: str, resource: Resource, lookup: object) -> str | None:
        return None if permission.endswith(".read") else "Changes are frozen."

    access = AccessControl(house.services.storage, ROLE, deny, house.services.lookup, lambda: None, house.services.now)
    principal = house.principal(house.user("u", "ORG_OWNER"))
    resource = house.resources[ManagerLevel.ORGANIZATION]
    access.require(principal, "organization.read", resource)
    with pytest.raises(Denied, match="Changes are frozen"):
        access.require(principal, "organization.write", resource)
    assert access.is_permitted(Principal.OPERATOR, "organization.write", resource)


def test_grants_are_limited_to_own_permissions(house: House) -> None:
    resource = house.resources[ManagerLevel.ORGANIZATION]
    target = house.user("target")
    viewer = house.principal(house.user("viewer", "ORG_OWNER_VIEWER", "ORG_USER_MANAGER"))
    command = AddManager(user_id=target.id, roles=frozenset({"ORG_OWNER"}))
    with pytest.raises(Denied, match="You cannot grant ORG_OWNER"):
        house.services.managers.add(resource, command, principal=viewer)
    owner = house.principal(house.user("owner", "ORG_OWNER"))
    manager = house.services.managers.add(resource, command, principal=owner)
    with pytest.raises(Denied):
        house.services.managers.change(
            manager.id, ChangeManager(roles=frozenset({"ORG_USER_MANAGER"})), principal=viewer
        )
    with pytest.raises(Denied):
        house.services.managers.remove(manager.id, principal=viewer)


def test_role_must_match_its_level(house: House) -> None:
    user = house.user("u")
    for name in ("IAM_OWNER", "PROJECT_OWNER", "NO_SUCH_ROLE"):
        with pytest.raises(Invalid, match=f"{name} is not a role of this level"):
            house.services.managers.add(
                house.resources[ManagerLevel.ORGANIZATION],
                AddManager(user_id=user.id, roles=frozenset({name})),
                principal=Principal.OPERATOR,
            )


def test_last_owner_role_cannot_be_removed(house: House) -> None:
    first, second = house.user("first", "IAM_OWNER"), house.user("second", "IAM_OWNER")
    house.services.managers.remove(house.manager_of(first).id, principal=Principal.OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.managers.remove(house.manager_of(second).id, principal=Principal.OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.managers.change(
            house.manager_of(second).id,
            ChangeManager(roles=frozenset({"IAM_OWNER_VIEWER"})),
            principal=Principal.OPERATOR,
        )


def test_last_owner_cannot_be_deactivated_or_removed(house: House) -> None:
    owner = house.user("owner", "IAM_OWNER")
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.service_users.deactivate(owner.id, principal=Principal.OPERATOR)
    with pytest.raises(Conflict, match="last active IAM_OWNER"):
        house.services.service_users.remove(owner.id, principal=Principal.OPERATOR)


def test_unknown_resources_are_not_found(house: House) -> None:
    for level in (ManagerLevel.ORGANIZATION, ManagerLevel.PROJECT, ManagerLevel.PROJECT_GRANT):
        with pytest.raises(NotFound):
            house.services.access_control.get_resource(ResourceKey(level, "nothing"))
        key = house.resources[level].key
        assert house.services.access_control.get_resource(key) == house.resources[level]


def test_any_role_makes_the_organization_visible(house: House) -> None:
    access, other = house.services.access_control, house.other.id
    for name in ("ORG_USER_MANAGER", "PROJECT_OWNER_VIEWER"):
        principal = house.principal(house.user(name.lower(), name))
        assert access.can_see_organization(principal, house.acme.id)
        assert not access.can_see_organization(principal, other)
        assert not access.can_see_organization(principal, None)
        assert access.visible_organization_ids(principal) == {house.acme.id}


def test_project_grant_managers_see_their_own_side(house: House) -> None:
    third = house.organization("Third")
    for home, organizations in ((house.acme, {house.acme}), (house.other, {house.other})):
        principal = house.principal(house.user("u", "PROJECT_GRANT_OWNER", home=home))
        assert house.services.access_control.can_see_resource(principal, house.resources[ManagerLevel.PROJECT_GRANT])
        assert house.services.access_control.can_see_resource(principal, house.resources[ManagerLevel.PROJECT]) == (
            home == house.acme
        )
        assert house.services.access_control.visible_organization_ids(principal) == {
            organization.id for organization in organizations
        }
        for organization in (house.acme, house.other, third):
            assert house.services.access_control.can_see_organization(principal, organization.id) == (
                organization in organizations
            )


def test_instance_role_makes_every_organization_visible(house: House) -> None:
    for principal in (Principal.OPERATOR, house.principal(house.user("u", "IAM_USER_MANAGER"))):
        assert house.services.access_control.visible_organization_ids(principal) is None
        for organization_id in (house.acme.id, house.other.id, None):
            assert house.services.access_control.can_see_organization(principal, organization_id)


def test_user_without_role_sees_no_organization(house: House) -> None:
    deactivated = house.user("deactivated", "IAM_OWNER")
    house.user("another", "IAM_OWNER")
    house.services.service_users.deactivate(deactivated.id, principal=Principal.OPERATOR)
    former_owner = house.principal(house.user("gone", "ORG_OWNER"))
    for access, principal in (
        (house.services.access_control, house.principal(house.user("plain"))),
        (house.services.access_control, house.principal(deactivated)),
        (
            AccessControl(house.services.storage, {}, None, house.services.lookup, lambda: None, house.services.now),
            former_owner,
        ),
    ):
        assert not access.can_see_organization(principal, house.acme.id)
        assert access.visible_organization_ids(principal) == frozenset()


def test_grantable_roles_match_the_level(house: House) -> None:
    access = house.services.access_control

    def names(principal: Principal, resource: Resource) -> list[str]:
        return [role.name for role in access.list_grantable_roles(principal, resource)]

    organization = house.resources[ManagerLevel.ORGANIZATION]
    owner = house.principal(house.user("owner", "ORG_OWNER"))
    everything = [role.name for role in ROLES if role.level is ManagerLevel.ORGANIZATION]
    assert names(owner, organization) == names(Principal.OPERATOR, organization) == everything
    assert everything[0] == "ORG_OWNER"
    assert names(owner, Resource.of_organization(house.other.id)) == names(owner, Resource.INSTANCE) == []
    editor = house.principal(house.user("editor", "ORG_PROJECT_PERMISSION_EDITOR"))
    assert names(editor, organization) == ["ORG_USER_PERMISSION_EDITOR", "ORG_PROJECT_PERMISSION_EDITOR"]
    holder = house.principal(house.user("holder", "ORG_OWNER", at=Resource.of_organization(house.other.id)))
    assert names(holder, house.resources[ManagerLevel.PROJECT_GRANT]) == [
        "PROJECT_GRANT_OWNER",
        "PROJECT_GRANT_OWNER_VIEWER",
    ]


def test_invisible_user_cannot_become_manager(house: House) -> None:
    """That user's own administrators could no longer manage the user."""
    owner = house.principal(house.user("owner", "ORG_OWNER", at=Resource.of_organization(house.other.id)))
    foreign = house.user("foreign")
    command = AddManager(user_id=foreign.id, roles=frozenset({"ORG_OWNER"}))
    with pytest.raises(Invalid, match="There is no such user"):
        house.services.managers.add(Resource.of_organization(house.other.id), command, principal=owner)


def test_only_instance_managers_assert_domains(house: House) -> None:
    domains = house.services.domains
    domains.add(house.acme.id, AddDomain(domain="acme.example"))
    with pytest.raises(Denied):
        domains.assert_domain(
            house.acme.id, "acme.example", principal=house.principal(house.user("owner", "ORG_OWNER"))
        )
    principal = house.principal(house.user("boss", "IAM_OWNER"))
    assert domains.assert_domain(house.acme.id, "acme.example", principal=principal).is_effective


def test_managers_are_listed_by_resource(house: House) -> None:
    first, second = house.user("first", "ORG_OWNER"), house.user("second", "ORG_OWNER_VIEWER")
    house.user("elsewhere", "IAM_OWNER")
    managers, organization = house.services.managers, house.resources[ManagerLevel.ORGANIZATION]
    page = managers.page(organization, PageRequest(limit=1), principal=Principal.OPERATOR)
    rest = managers.page(organization, PageRequest(cursor=page.next_cursor), principal=Principal.OPERATOR)
    assert {item.user_id for item in (*page, *rest)} == {first.id, second.id}


def test_project_creator_without_permissions_becomes_owner(house: House) -> None:
    creator = house.principal(house.user("creator", "ORG_PROJECT_CREATOR"))
    project = house.services.projects.create(house.acme.id, CreateProject(name="Mine"), principal=creator)
    [manager] = house.services.managers.page(project_resource(project), principal=Principal.OPERATOR)
    assert (manager.user_id, manager.roles) == (creator.id, {"PROJECT_OWNER"})
    assert house.services.audit.recorded_events[-1].event == "manager.added"
    for principal in (Principal.OPERATOR, house.principal(house.user("owner", "ORG_OWNER"))):
        project = house.services.projects.create(house.acme.id, CreateProject(name="Theirs"), principal=principal)
        assert not house.services.managers.page(project_resource(project), principal=Principal.OPERATOR).items
