"""Search: finds everything that the caller may read, in all organizations, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.application import IdentityApplication
from identity.domain.audit import Actor, ActorKind
from identity.domain.managers import Manager
from identity.domain.permissions import (
    INSTANCE_KEY,
    ManagerLevel,
    Resource,
    ResourceKey,
    project_grant_resource,
    project_resource,
)
from identity.plugins.manager_roles import ROLES
from identity.services.access_control import AccessControl, Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.groups import AddGroup
from identity.services.commands.projects import AddProjectGrant, CreateProject
from identity.services.commands.service_users import CreateServiceUser
from identity.services.commands.users import CreateHumanUser
from identity.services.container import Services
from identity.services.search import HitKind, SearchHit, SearchService
from tests.services.factories import holding, make_human_user, make_organization, make_service_user, subject_of

_APPLICATION = {"name": "Quelle", "type": "web", "redirect_uris": ["https://a.example/"]}
_ROLES = {role.name: role for role in ROLES}


class Estate:
    """Two organizations, each with one of everything, all with the word "quelle" in their names; each project is
    granted to the other organization."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.organizations = [make_organization(services, f"Quelle {name}") for name in ("Nord", "Ost")]
        #: What is found, and where its permission is checked.
        self.resources: dict[tuple[HitKind, str], Resource] = {}
        self.projects, self.grants = [], []
        for organization, other in zip(self.organizations, reversed(self.organizations), strict=True):
            resource = Resource.of_organization(organization.id)
            self.resources[HitKind.ORGANIZATION, organization.id] = resource
            person = CreateHumanUser(user_name="quelle", given_name="Anna", family_name="Quelle")
            self.resources[HitKind.USER, services.users.create(organization.id, person).id] = resource
            robot = CreateServiceUser(user_name="quelle-bot", display_name="Quelle")
            self.resources[HitKind.SERVICE_USER, services.service_users.create(organization.id, robot).id] = resource
            project = services.projects.create(
                organization.id, CreateProject(name="Quelle"), principal=Principal.OPERATOR
            )
            self.resources[HitKind.PROJECT, project.id] = project_resource(project)
            application, _ = services.applications.register_with_secret(
                project.id, RegisterApplication.decode(_APPLICATION), principal=Principal.OPERATOR
            )
            self.resources[HitKind.APPLICATION, application.id] = project_resource(project)
            grant = services.project_grants.add(
                project.id, AddProjectGrant(organization_id=other.id), principal=Principal.OPERATOR
            )
            group = services.groups.add(organization.id, AddGroup(name="Quelle"), principal=Principal.OPERATOR)
            self.resources[HitKind.GROUP, group.id] = resource
            self.projects.append(project)
            self.grants.append(grant)
        self.caller = subject_of(services, make_human_user(services, self.organizations[0], "caller"))

    @property
    def role_places(self) -> list[tuple[str, ResourceKey]]:
        """Every role at every resource of its level."""
        keys = {
            ManagerLevel.INSTANCE: [INSTANCE_KEY],
            ManagerLevel.ORGANIZATION: [Resource.of_organization(item.id).key for item in self.organizations],
            ManagerLevel.PROJECT: [project_resource(item).key for item in self.projects],
            ManagerLevel.PROJECT_GRANT: [
                project_grant_resource(grant, project).key
                for grant, project in zip(self.grants, self.projects, strict=True)
            ],
        }
        return [(role.name, key) for role in ROLES for key in keys[role.level]]

    def principal(self, *roles: tuple[str, ResourceKey]) -> Principal:
        return Principal(
            self.caller,
            tuple(
                Manager(
                    id=str(number),
                    user_id=self.caller.user.id,
                    resource=key,
                    organization_id=self._organization_of(key),
                    roles=frozenset({role}),
                    created_at=self.services.now,
                    changed_at=self.services.now,
                )
                for number, (role, key) in enumerate(roles)
            ),
        )

    def _organization_of(self, key: ResourceKey) -> str | None:
        return self.services.access_control.get_resource(key).organization_id

    def find(self, query: str, principal: Principal = Principal.OPERATOR, limit: int = 50) -> list[SearchHit]:
        return list(self.services.search.search(query, limit, principal=principal).hits)


@pytest.fixture
def estate(identity: IdentityApplication) -> Iterator[Estate]:
    actor = Actor(kind=ActorKind.OPERATOR, request_id="0192f3a7-request")
    with identity.transaction(actor) as services:
        yield Estate(services)


@pytest.mark.storages("memory", "sqlite")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_search_finds_exactly_what_the_caller_may_read(estate: Estate, data: st.DataObject) -> None:
    """Whatever roles the caller has, and whatever a plugin denies."""
    principal = estate.principal(*data.draw(st.lists(st.sampled_from(estate.role_places), unique=True, max_size=3)))
    reads = [f"{kind}.read" for kind in HitKind]
    resources = sorted({item.key for item in estate.resources.values()}, key=lambda key: (key.level, key.id))
    denied = data.draw(st.sets(st.sampled_from(sorted(product(reads, resources), key=repr)), max_size=4))

    def deny(_principal: Principal, permission: str, resource: Resource, _lookup: object) -> str | None:
        return "denied" if (permission, resource.key) in denied else None

    services = estate.services
    access = AccessControl(services.storage, _ROLES, deny, services.lookup, services.find_instance, services.now)
    result = replace_access(services, access).search("quelle", 50, principal=principal)
    readable = {
        (kind, id_)
        for (kind, id_), resource in estate.resources.items()
        if access.is_permitted(principal, f"{kind}.read", resource)
    }
    assert {(hit.kind, hit.id) for hit in result.hits} == readable
    by_id = {
        (hit.kind, hit.id)
        for _, id_ in estate.resources
        for hit in replace_access(services, access).search(id_, 50, principal=principal).hits
        if hit.kind is not HitKind.AUDIT_EVENT
    }
    assert by_id == readable


def replace_access(services: Services, access: AccessControl) -> SearchService:
    return replace(services.search, _access=access)


def test_search_finds_users_by_login_name(estate: Estate) -> None:
    subject = estate.caller
    assert [hit.id for hit in estate.find(subject.login_name)] == [subject.user.id]
    assert estate.find(subject.login_name, estate.principal()) == []


def test_search_finds_anything_by_a_pasted_id_with_spaces_around(estate: Estate) -> None:
    grant = estate.grants[0]
    assert [(hit.kind, hit.name) for hit in estate.find(f"  {grant.id} ")] == [(HitKind.PROJECT_GRANT, "Quelle")]


def test_search_finds_audit_events_by_request_id_where_the_caller_may_read_them(estate: Estate) -> None:
    request_id = "0192f3a7-request"
    assert {hit.kind for hit in estate.find(request_id)} == {HitKind.AUDIT_EVENT}
    for organization_id in (item.id for item in estate.organizations):
        owner = estate.principal(("ORG_OWNER", Resource.of_organization(organization_id).key))
        found = {hit.entity.organization_id for hit in estate.find(request_id, owner)}
        assert found == {organization_id}
    assert estate.find(request_id, estate.principal()) == []


def test_search_limits_each_kind_and_says_that_there_is_more(estate: Estate) -> None:
    services = estate.services
    result = services.search.search("quelle", 1, principal=Principal.OPERATOR)
    kinds = [hit.kind for hit in result.hits]
    assert len(kinds) == len(set(kinds)) == 6
    assert result.has_more == set(kinds)


@pytest.mark.parametrize("query", ["", "   ", "\x00", "\ud800", "%", "_", "a" * 5000, "@", "@@", "x@", "​"])
def test_search_finds_nothing_for_other_texts(estate: Estate, query: str) -> None:
    assert estate.find(query) == []


def test_users_without_a_role_find_nothing(estate: Estate) -> None:
    assert estate.find("quelle", estate.principal()) == []


def test_owner_of_an_organization_finds_no_other_one(estate: Estate) -> None:
    robot = make_service_user(estate.services, estate.organizations[0], "owner")
    found = estate.find("quelle", holding(estate.services, robot, "ORG_OWNER"))
    assert {hit.organization.id for hit in found if hit.organization} == {estate.organizations[0].id}
