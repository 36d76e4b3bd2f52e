"""Contract of the attribute store."""

import pytest

from identity.domain.attributes import AttributeDefinition
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import DuplicateValue, RowNotFound


def _define(on: StorageHarness, key: str, **fields: object) -> AttributeDefinition:
    definition: AttributeDefinition = on.store_value(make.attribute_definition(on.organization, key=key, **fields))
    return definition


class AttributeContract(ContractBase):
    """An organization defines attributes by key; each user has at most one value of each."""

    def test_attribute_definitions_are_listed_by_key(self, on: StorageHarness) -> None:
        second, first = _define(on, "floor"), _define(on, "cost_center", choices=("ü", "a"))
        on.store(make.attribute_definition(on.other_organization, key="desk"))
        assert on.read.attributes.list_definitions(on.organization.id) == (first, second)
        assert on.write.attributes.list_definitions(on.organization.id, locked=True) == (first, second)
        assert on.read.attributes.list_definitions(make_id()) == ()

    def test_attribute_keys_are_unique_in_an_organization(self, on: StorageHarness) -> None:
        _define(on, "floor")
        with on.transaction() as storage, pytest.raises(DuplicateValue) as refusal:
            storage.attributes.add(make.attribute_definition(on.organization, key="floor"))
        assert refusal.value.field == "key"
        on.store(make.attribute_definition(on.other_organization, key="floor"))

    def test_attribute_values_are_replaced_and_removed(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        ada, bob = on.human_user, on.store_value(make.human_user(on.organization))
        on.write.attributes.set_values({ada.id: {floor.id: "Erdgeschoß 株 ", desk.id: "7"}, bob.id: {floor.id: "2"}})
        on.write.attributes.set_values({ada.id: {floor.id: "3", desk.id: ""}})
        stored = on.read.attributes
        assert stored.find_values([ada.id, bob.id, make_id()]) == {ada.id: {floor.id: "3"}, bob.id: {floor.id: "2"}}
        assert stored.find_values(()) == {}
        on.write.attributes.set_values({ada.id: {desk.id: ""}})
        on.write.attributes.set_values({})
        assert on.read.attributes.list_user_attributes(ada.id) == ((floor, "3"),)

    def test_attributes_of_a_user_come_with_their_definitions_by_key(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        _define(on, "unused")
        on.write.attributes.set_values({on.human_user.id: {floor.id: "Erdgeschoß 株", desk.id: "7"}})
        assert on.read.attributes.list_user_attributes(on.human_user.id) == ((desk, "7"), (floor, "Erdgeschoß 株"))
        assert on.read.attributes.list_user_attributes(make_id()) == ()

    def test_attribute_values_are_counted(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        for value in ("b", "a", "B", "b"):
            user = on.store_value(make.human_user(on.organization))
            on.write.attributes.set_values({user.id: {floor.id: value, desk.id: "z"}})
        stored = on.read.attributes
        assert (stored.count_values(floor.id), stored.count_values(floor.id, ["b", "x"])) == (4, 2)
        assert (stored.count_values(floor.id, []), stored.count_values(make_id())) == (0, 0)
        assert stored.list_distinct_values(floor.id, 10) == ("B", "a", "b")
        assert stored.list_distinct_values(floor.id, 2) == ("B", "a")

    def test_attribute_values_go_with_their_definition_and_their_user(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        ada, bob = on.human_user, on.store_value(make.human_user(on.organization))
        on.write.attributes.set_values({user.id: {floor.id: "1", desk.id: "2"} for user in (ada, bob)})
        on.write.attributes.delete(floor.id)
        on.write.users.delete(ada.id)
        stored = on.read.attributes
        assert stored.find_values([ada.id, bob.id]) == {bob.id: {desk.id: "2"}}
        assert (stored.count_values(floor.id), stored.count_values(desk.id)) == (0, 1)

    def test_attribute_values_need_user_and_definition(self, on: StorageHarness) -> None:
        floor = _define(on, "floor")
        for user_id, definition_id in ((make_id(), floor.id), (on.human_user.id, make_id())):
            with on.transaction() as storage, pytest.raises(RowNotFound):
                storage.attributes.set_values({user_id: {definition_id: "1"}})
        assert on.read.attributes.count_values(floor.id) == 0

    def test_attribute_mappings_are_unique_and_deleted_with_provider_or_attribute(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        provider, other = (on.store_value(make.upstream_provider(on.organization)) for _ in range(2))
        mapping = on.store_value(make.attribute_mapping(floor, provider))
        last, another = make.attribute_mapping(desk, provider), make.attribute_mapping(floor, other)
        on.store(last, another)
        with on.transaction() as storage, pytest.raises(DuplicateValue) as refusal:
            storage.attribute_mappings.add(make.attribute_mapping(floor, provider))
        assert refusal.value.field == "attribute_id"
        assert set(on.read.attribute_mappings.list_of_provider(provider.id)) == {mapping, last}
        on.write.attributes.delete(desk.id)
        assert on.read.attribute_mappings.list_of_provider(provider.id) == (mapping,)
        on.write.upstream_providers.delete(provider.id)
        assert on.read.attribute_mappings.list_of_provider(provider.id) == ()
        assert on.read.attribute_mappings.list_of_provider(other.id) == (another,)

    def test_attribute_mappings_of_a_directory_are_unique_by_attribute(self, on: StorageHarness) -> None:
        floor, desk = _define(on, "floor"), _define(on, "desk")
        mapping = on.store_value(make.attribute_mapping(floor, directory="ldap"))
        on.store(make.attribute_mapping(floor, directory="other"), make.attribute_mapping(desk, directory="other"))
        with on.transaction() as storage, pytest.raises(DuplicateValue) as refusal:
            storage.attribute_mappings.add(make.attribute_mapping(floor, directory="ldap"))
        assert refusal.value.field == "attribute_id"
        assert on.read.attribute_mappings.list_of_directory(on.organization.id, "ldap") == (mapping,)
        assert on.read.attribute_mappings.list_of_directory(on.other_organization.id, "ldap") == ()
