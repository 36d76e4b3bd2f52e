"""Contract of every entity store."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.applications import Application, ApplicationType
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, Profile, ServiceUser
from identity.domain.webhooks import Webhook
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id, other_values
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import DuplicateValue, RowNotFound, StaleRow
from identity.storage.stores.entity_store import EntityStore

ROLES = frozenset({"löwe", "株", "a b"})


@dataclass(frozen=True)
class EntityCase:
    """A kind of entity: how to make one with stored parents and some without, and values for each field."""

    store: Callable[[Storage], EntityStore[Any]]
    make: Callable[..., Any]
    orphans: tuple[Callable[[StorageHarness], Any], ...]
    fields: dict[str, Any]


def make_grantee(on: StorageHarness) -> Any:
    """A new person of ``organization``, stored."""
    return on.store_value(make.human_user(on.organization))


def make_group(on: StorageHarness) -> Group:
    """A new group of ``organization``, stored."""
    return on.store_value(make.group(on.organization))


ENTITIES = {
    "organization": EntityCase(
        lambda storage: storage.organizations,
        lambda on, **fields: make.organization(**fields),
        (),
        {"name": "Æther 株式会社", "primary_domain": "aether.example", **other_values(Organization)},
    ),
    "project": EntityCase(
        lambda storage: storage.projects,
        lambda on, **fields: make.project(on.organization, **fields),
        (lambda on: make.project(),),
        {"name": "Räket 🚀", **other_values(Project)},
    ),
    "application": EntityCase(
        lambda storage: storage.applications,
        lambda on, **fields: make.application(on.project, **fields),
        (lambda on: make.application(),),
        {"name": "Büro 株", "type": ApplicationType.NATIVE, **other_values(Application)},
    ),
    "person": EntityCase(
        lambda storage: storage.users,
        lambda on, **fields: make.human_user(on.organization, **fields),
        (lambda on: make.human_user(),),
        # The last sign-in is not changed with the rest.
        {
            "user_name": "Zoë.Müller",
            "profile": Profile(**other_values(Profile)),
            **other_values(HumanUser, last_sign_in_at=None),
        },
    ),
    "service user": EntityCase(
        lambda storage: storage.users,
        lambda on, **fields: make.service_user(on.organization, **fields),
        (lambda on: make.service_user(),),
        {"user_name": "Räuber", "display_name": "Röbi 株", **other_values(ServiceUser)},
    ),
    "project grant": EntityCase(
        lambda storage: storage.project_grants,
        lambda on, **fields: make.project_grant(on.project, on.store_value(make.organization()), **fields),
        (lambda on: make.project_grant(None, on.organization), lambda on: make.project_grant(on.project, None)),
        {"roles": ROLES, **other_values(ProjectGrant)},
    ),
    "user grant": EntityCase(
        lambda storage: storage.user_grants,
        lambda on, **fields: make.user_grant(make_grantee(on), on.project, **fields),
        (
            lambda on: make.user_grant(None, on.project),
            lambda on: make.user_grant(on.human_user, None, organization_id=on.organization.id),
            lambda on: make.user_grant(on.human_user, on.project, project_grant_id=make_id()),
        ),
        {"roles": ROLES, **other_values(UserGrant)},
    ),
    "manager": EntityCase(
        lambda storage: storage.managers,
        lambda on, **fields: make.manager(make_grantee(on), **fields),
        (lambda on: make.manager(),),
        {"roles": frozenset({"A_ROLE", "B_ROLE"}), **other_values(Manager)},
    ),
    "group": EntityCase(
        lambda storage: storage.groups,
        lambda on, **fields: make.group(on.organization, **fields),
        (lambda on: make.group(),),
        {"name": "Büro 株", **other_values(Group)},
    ),
    "group member": EntityCase(
        lambda storage: storage.group_members,
        lambda on, **fields: make.group_member(make_group(on), on.human_user, **fields),
        (
            lambda on: make.group_member(None, on.human_user),
            lambda on: make.group_member(make_group(on)),
            lambda on: make.group_member(make_group(on), on.human_user, mapping_id=make_id()),
        ),
        other_values(GroupMember),
    ),
    "group grant": EntityCase(
        lambda storage: storage.group_grants,
        lambda on, **fields: make.group_grant(make_group(on), on.project, **fields),
        (
            lambda on: make.group_grant(None, on.project),
            lambda on: make.group_grant(make_group(on)),
            lambda on: make.group_grant(make_group(on), on.project, project_grant_id=make_id()),
        ),
        {"roles": ROLES, **other_values(GroupGrant)},
    ),
    "group manager": EntityCase(
        lambda storage: storage.group_managers,
        lambda on, **fields: make.group_manager(make_group(on), **fields),
        (lambda on: make.group_manager(),),
        {"roles": frozenset({"A_ROLE", "B_ROLE"}), **other_values(GroupManager)},
    ),
    "group mapping": EntityCase(
        lambda storage: storage.group_mappings,
        lambda on, **fields: make.group_mapping(
            make_group(on), on.store_value(make.upstream_provider(on.organization)), **fields
        ),
        (
            lambda on: make.group_mapping(make_group(on)),
            lambda on: make.group_mapping(None, on.store_value(make.upstream_provider(on.organization))),
        ),
        {"claim": "köstlich.株", "value": "Größe: 🚀", **other_values(GroupMapping, directory=None)},
    ),
    "attribute mapping": EntityCase(
        lambda storage: storage.attribute_mappings,
        lambda on, **fields: make.attribute_mapping(
            on.store_value(make.attribute_definition(on.organization)),
            on.store_value(make.upstream_provider(on.organization)),
            **fields,
        ),
        (
            lambda on: make.attribute_mapping(on.store_value(make.attribute_definition(on.organization))),
            lambda on: make.attribute_mapping(None, on.store_value(make.upstream_provider(on.organization))),
        ),
        {"claim": "köstlich.株", **other_values(AttributeMapping, directory=None)},
    ),
    "attribute definition": EntityCase(
        lambda storage: storage.attributes,
        lambda on, **fields: make.attribute_definition(on.organization, **fields),
        (lambda on: make.attribute_definition(),),
        {"label": "Büro 株", **other_values(AttributeDefinition)},
    ),
    "webhook": EntityCase(
        lambda storage: storage.webhooks,
        lambda on, **fields: make.webhook(on.organization, **fields),
        (lambda on: make.webhook(organization_id=make_id()),),
        {"name": "Zürich 株", "events": ("user.*", "*.removed"), **other_values(Webhook)},
    ),
    "upstream provider": EntityCase(
        lambda storage: storage.upstream_providers,
        lambda on, **fields: make.upstream_provider(on.organization, **fields),
        (lambda on: make.upstream_provider(),),
        {
            "name": "Zürich 株",
            "client_id": "anderer client",
            **other_values(UpstreamProvider, team_id="TEAM", key_id="KEY"),
        },
    ),
}


class EntityContract(ContractBase):
    """An entity is found by id, updated by its next version, and deleted once."""

    @pytest.fixture(params=ENTITIES)
    def entity(self, request: pytest.FixtureRequest) -> EntityCase:
        return ENTITIES[request.param]

    def test_entities_come_back_as_they_were_added(self, on: StorageHarness, entity: EntityCase) -> None:
        plain, full = on.store_value(entity.make(on)), on.store_value(entity.make(on, **entity.fields, version=7))
        store = entity.store(on.read)
        assert store.find(plain.id) == plain
        stored = store.find(full.id)
        assert stored == full
        assert stored.created_at.utcoffset() == timedelta(0)
        assert store.find(make_id()) is None

    def test_entities_are_found_together(self, on: StorageHarness, entity: EntityCase) -> None:
        first, second = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        store = entity.store(on.read)
        assert store.find_many([first.id, make_id(), second.id]) == {first.id: first, second.id: second}
        assert store.find_many({first.id}) == {first.id: first}
        assert store.find_many(()) == {}

    def test_entities_of_a_taken_id_are_refused_and_the_transaction_goes_on(
        self, on: StorageHarness, entity: EntityCase
    ) -> None:
        first, other = on.store_value(entity.make(on)), entity.make(on)
        twin = replace(other, id=first.id)
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue):
                entity.store(storage).add(twin)
            entity.store(storage).add(other)
        assert entity.store(on.read).find_many([first.id, other.id]) == {first.id: first, other.id: other}

    def test_entities_need_what_they_belong_to(self, on: StorageHarness, entity: EntityCase) -> None:
        orphans = [orphan(on) for orphan in entity.orphans]
        for orphan in orphans:
            with on.transaction() as storage, pytest.raises(RowNotFound):
                entity.store(storage).add(orphan)
        assert entity.store(on.read).find_many([orphan.id for orphan in orphans]) == {}

    def test_entities_are_replaced_by_their_next_version_alone(self, on: StorageHarness, entity: EntityCase) -> None:
        first, other = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        unknown = entity.make(on, version=2)
        changed = replace(first, **entity.fields | {"created_at": first.created_at, "version": 2})
        with on.transaction() as storage:
            for version in (0, 1, 3):
                with pytest.raises(StaleRow):
                    entity.store(storage).update(replace(changed, version=version))
            with pytest.raises(RowNotFound):
                entity.store(storage).update(unknown)
        store = entity.store(on.read)
        assert store.find(first.id) == first
        entity.store(on.write).update(changed)
        assert store.find_many([first.id, other.id, unknown.id]) == {first.id: changed, other.id: other}

    def test_entities_are_removed_once(self, on: StorageHarness, entity: EntityCase) -> None:
        deleted, remaining = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        with on.transaction() as storage:
            entity.store(storage).delete(deleted.id)
            for unknown in (deleted.id, make_id()):
                with pytest.raises(RowNotFound):
                    entity.store(storage).delete(unknown)
        assert entity.store(on.read).find(deleted.id) is None
        assert entity.store(on.read).find_many([deleted.id, remaining.id]) == {remaining.id: remaining}
