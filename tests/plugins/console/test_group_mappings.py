"""Group mappings in the console: on the page of an identity provider, and of a group."""

from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupMapping
from identity.testing.browser import Browser
from identity.testing.world import World


def test_mapping_is_added_changed_and_removed(world: World, owner: Browser, organization: Organization) -> None:
    provider, person = world.make_upstream_provider(organization), world.make_human_user(organization)
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)
    assert "No group mappings yet" in owner.open(f"/console/upstream-providers/{provider.id}")
    owner.click("Add group mapping")
    assert "Choose a group." in owner.submit({"claim": "groups", "value": "sales"}, form="page-form")
    page = owner.submit({"claim": "groups", "value": "sales", "group": group.id}, form="page-form")
    assert "The group mapping is added." in page
    assert "groups = sales" in page.html.main.text
    assert "Adds no members" not in page
    with world.transaction_services() as services:
        [mapping] = services.group_mappings.list_of_group(group.id)
        services.group_mappings.apply(Subject(person, organization), provider, {"groups": ["sales"]})
    assert "groups = sales" in owner.open(f"/console/groups/{group.id}").html.main.text
    assert provider.name in owner.open(f"/console/groups/{group.id}/mappings").html.main.text
    assert "1 membership that a mapping added ends" in owner.open(f"/console/upstream-providers/{provider.id}/delete")
    assert "1 group mapping is removed." in owner.open(f"/console/groups/{group.id}/delete")
    owner.open(f"/console/group-mappings/{mapping.id}/edit")
    assert "groups = support" in owner.submit({"value": "support"}, form="page-form").html.main.text
    owner.open(f"/console/group-mappings/{mapping.id}/delete")
    assert "1 membership that a mapping added ends" in owner.page
    assert "No group mappings yet" in owner.submit(form="page-form")
    assert "No members yet" in owner.open(f"/console/groups/{group.id}")


def test_mapping_of_the_operator_is_taken_over(world: World, owner: Browser, organization: Organization) -> None:
    provider = world.make_upstream_provider(organization)
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)
        command = AddGroupMapping(claim="groups", value="sales", group_id=group.id)
        mapping = services.group_mappings.add(provider, command, principal=Principal.OPERATOR)
    page = owner.open(f"/console/groups/{group.id}/mappings")
    assert "The operator" in page
    assert "Adds no members" in page
    owner.open(f"/console/group-mappings/{mapping.id}/edit")
    page = owner.submit(form="page-form")
    assert "The group mapping acts with your rights." in page
    assert "Adds no members" not in page


def test_attribute_mapping_is_added_changed_and_removed(
    world: World, owner: Browser, organization: Organization
) -> None:
    provider, attribute = world.make_upstream_provider(organization), world.make_attribute(organization, "team")
    owner.open(f"/console/upstream-providers/{provider.id}")
    owner.click("Add attribute mapping")
    assert "Choose an attribute." in owner.submit({"claim": "team"}, form="page-form")
    page = owner.submit({"claim": "team", "attribute": attribute.id}, form="page-form")
    assert "The attribute mapping is added." in page
    assert "Changes nothing" not in page
    with world.read_only_services() as services:
        [mapping] = services.attribute_mappings.list_of_provider(provider.id)
    owner.open(f"/console/attribute-mappings/{mapping.id}/edit")
    assert "department" in owner.submit({"claim": "department"}, form="page-form").html.main.text
    owner.open(f"/console/attribute-mappings/{mapping.id}/delete")
    assert "No attribute mappings yet" in owner.submit(form="page-form")
