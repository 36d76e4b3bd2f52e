"""User grants: who may grant which roles to whom, and never beyond a project grant."""

from collections.abc import Iterator

import pytest

from identity.application import IdentityApplication
from identity.domain.errors import Denied, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, project_grant_resource, project_resource
from identity.domain.projects import UserGrant
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.managers import AddManager
from identity.services.commands.projects import AddProjectGrant, AddProjectRole, ChangeProjectGrant, CreateProject
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.container import Services
from tests.services.factories import make_human_user, make_organization, subject_of


class Shop:
    """A project of Acme with the roles reader and editor. Other has a grant for reader; Third has none."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.acme, self.other, self.third = (self.organization(name) for name in ("Acme", "Other", "Third"))
        self.project = services.projects.create(self.acme.id, CreateProject(name="Shop"), principal=Principal.OPERATOR)
        for key in ("reader", "editor"):
            services.projects.add_role(self.project.id, AddProjectRole(key=key, display_name=key))
        command = AddProjectGrant(organization_id=self.other.id, roles=frozenset({"reader"}))
        self.grant = services.project_grants.add(self.project.id, command, principal=Principal.OPERATOR)
        self.of_project = project_resource(self.project)
        self.of_grant = project_grant_resource(self.grant, self.project)

    def organization(self, name: str) -> Organization:
        return make_organization(self.services, name)

    def person(self, organization: Organization, name: str = "anna") -> HumanUser:
        return make_human_user(self.services, organization, name)

    def manager(self, role: str, at: Resource, organization: Organization | None = None) -> Principal:
        user = self.person(organization or self.third, f"{role}-{at.key.id}".lower())
        command = AddManager(user_id=user.id, roles=frozenset({role}))
        self.services.managers.add(at, command, principal=Principal.OPERATOR, allow_without_sign_in_method=True)
        return self.services.access_control.load_principal(subject_of(self.services, user))

    def give(self, user: HumanUser, *roles: str, principal: Principal = Principal.OPERATOR) -> UserGrant:
        command = AddUserGrant(user_id=user.id, project_id=self.project.id, roles=frozenset(roles))
        return self.services.user_grants.add(command, principal=principal)

    def effective(self, user: HumanUser) -> set[str]:
        grants = self.services.storage.user_grants.list_effective(
            user.id, frozenset({self.project.id}), self.services.now
        )
        return {role for grant in grants for role in grant.roles}


@pytest.fixture
def shop(identity: IdentityApplication) -> Iterator[Shop]:
    with identity.transaction() as services:
        yield Shop(services)


def fields(attempt: pytest.ExceptionInfo[Invalid]) -> dict[str, str]:
    return attempt.value.fields


def test_user_of_owner_organization_gets_direct_grant(shop: Shop) -> None:
    anna = shop.person(shop.acme)
    grant = shop.give(anna, "editor")
    assert (grant.project_grant_id, grant.organization_id) == (None, shop.acme.id)
    assert shop.services.user_grants.grant_resource(grant) == shop.of_project
    assert shop.effective(anna) == {"editor"}


def test_user_of_grantee_gets_derived_grant(shop: Shop) -> None:
    otto = shop.person(shop.other)
    grant = shop.give(otto, "reader")
    assert (grant.project_grant_id, grant.organization_id) == (shop.grant.id, shop.other.id)
    assert shop.services.user_grants.grant_resource(grant) == shop.of_grant
    shop.services.project_grants.remove(shop.grant.id, principal=Principal.OPERATOR)
    assert shop.effective(otto) == set()


def test_project_grant_limits_roles(shop: Shop) -> None:
    """Security 14.5."""
    otto = shop.person(shop.other)
    with pytest.raises(Invalid) as refusal:
        shop.give(otto, "reader", "editor")
    assert fields(refusal) == {"roles": "The project grant does not include the role editor. Choose from reader."}
    grant = shop.give(otto, "reader")
    with pytest.raises(Invalid, match="does not include the role editor"):
        shop.services.user_grants.change(
            grant.id, ChangeUserGrant(roles=frozenset({"editor"})), principal=Principal.OPERATOR
        )
    shop.services.project_grants.change(
        shop.grant.id, ChangeProjectGrant(roles=frozenset()), principal=Principal.OPERATOR
    )
    assert shop.effective(otto) == set()


def test_unknown_roles_projects_and_users_are_named(shop: Shop) -> None:
    anna = shop.person(shop.acme)
    with pytest.raises(Invalid) as refusal:
        shop.give(anna, "owner", "admin")
    assert fields(refusal) == {"roles": "The project has no role admin, owner. Choose from editor, reader."}
    with pytest.raises(Invalid) as refusal:
        shop.services.user_grants.add(AddUserGrant(user_id=anna.id, project_id="nothing"), principal=Principal.OPERATOR)
    assert fields(refusal) == {"project_id": "There is no such project."}
    with pytest.raises(Invalid) as refusal:
        shop.services.user_grants.add(
            AddUserGrant(user_id="nobody", project_id=shop.project.id), principal=Principal.OPERATOR
        )
    assert fields(refusal) == {"user_id": "There is no such user."}


def test_user_has_one_grant_per_project(shop: Shop) -> None:
    anna = shop.person(shop.acme)
    shop.give(anna, "reader")
    with pytest.raises(Invalid, match="already has a grant of the project"):
        shop.give(anna, "editor")


def test_organization_without_active_project_grant_has_no_access(shop: Shop) -> None:
    owner = shop.manager("IAM_OWNER", Resource.INSTANCE)
    with pytest.raises(Invalid) as refusal:
        shop.give(shop.person(shop.third), "reader", principal=owner)
    assert fields(refusal) == {"user_id": "The organization of this user has no grant of the project."}
    shop.services.project_grants.deactivate(shop.grant.id, principal=Principal.OPERATOR)
    with pytest.raises(Invalid, match="has no grant of the project"):
        shop.give(shop.person(shop.other), "reader", principal=owner)


@pytest.mark.parametrize("role", ["ORG_OWNER", "ORG_USER_MANAGER", "ORG_USER_PERMISSION_EDITOR"])
def test_grantee_grants_granted_roles(shop: Shop, role: str) -> None:
    principal = shop.manager(role, Resource.of_organization(shop.other.id))
    otto = shop.person(shop.other)
    grant = shop.give(otto, "reader", principal=principal)
    shop.services.user_grants.change(grant.id, ChangeUserGrant(roles=frozenset()), principal=principal)
    shop.services.user_grants.deactivate(grant.id, principal=principal)
    shop.services.user_grants.reactivate(grant.id, principal=principal)
    shop.services.user_grants.remove(grant.id, principal=principal)


def test_grantee_cannot_see_other_projects(shop: Shop) -> None:
    principal = shop.manager("ORG_OWNER", Resource.of_organization(shop.other.id))
    hidden = shop.services.projects.create(shop.acme.id, CreateProject(name="Hidden"), principal=Principal.OPERATOR)
    for project_id in (hidden.id, "nothing"):
        command = AddUserGrant(user_id=shop.person(shop.other, f"u-{project_id}").id, project_id=project_id)
        with pytest.raises(Invalid) as refusal:
            shop.services.user_grants.add(command, principal=principal)
        assert fields(refusal) == {"project_id": "There is no such project."}


def test_roles_need_a_visible_user(shop: Shop) -> None:
    principal = shop.manager("ORG_OWNER", Resource.of_organization(shop.acme.id))
    for organization in (shop.other, shop.third):
        with pytest.raises(Invalid) as refusal:
            shop.give(shop.person(organization), "reader", principal=principal)
        assert fields(refusal) == {"user_id": "There is no such user."}


def test_user_grants_need_write_permission(shop: Shop) -> None:
    principal = shop.manager("ORG_OWNER_VIEWER", Resource.of_organization(shop.acme.id))
    anna = shop.person(shop.acme)
    with pytest.raises(Denied):
        shop.give(anna, "reader", principal=principal)
    grant = shop.give(anna, "reader")
    grants = shop.services.user_grants
    for attempt in (
        lambda: grants.change(grant.id, ChangeUserGrant(roles=frozenset()), principal=principal),
        lambda: grants.deactivate(grant.id, principal=principal),
        lambda: grants.reactivate(grant.id, principal=principal),
        lambda: grants.remove(grant.id, principal=principal),
    ):
        with pytest.raises(Denied):
            attempt()


def test_project_grant_owner_is_limited_to_the_grant(shop: Shop) -> None:
    principal = shop.manager("PROJECT_GRANT_OWNER", shop.of_grant, shop.other)
    shop.give(shop.person(shop.other), "reader", principal=principal)
    with pytest.raises(Invalid) as refusal:
        shop.give(shop.person(shop.acme), "reader", principal=principal)
    assert fields(refusal) == {"user_id": "There is no such user."}
    assert shop.of_grant.key.level is ManagerLevel.PROJECT_GRANT


def test_deactivated_grant_has_no_effect(shop: Shop) -> None:
    anna = shop.person(shop.acme)
    grant = shop.give(anna, "reader")
    shop.services.user_grants.deactivate(grant.id, principal=Principal.OPERATOR)
    assert shop.effective(anna) == set()
    shop.services.user_grants.reactivate(grant.id, principal=Principal.OPERATOR)
    assert shop.effective(anna) == {"reader"}
    shop.services.user_grants.remove(grant.id, principal=Principal.OPERATOR)
    with pytest.raises(NotFound):
        shop.services.user_grants.get(grant.id)


def test_events_belong_to_the_organization_of_the_user(shop: Shop) -> None:
    shop.give(shop.person(shop.other), "reader")
    event = shop.services.audit.recorded_events[-1]
    assert (event.event, event.organization_id) == ("user_grant.added", shop.other.id)
