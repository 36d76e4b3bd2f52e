"""Attributes: what a person may set themselves, whatever the page sends."""

import pytest

from identity.domain.errors import Invalid
from identity.services.commands.users import ChangeProfile, RegisterUser
from identity.testing.world import World


@pytest.mark.parametrize("key", ["salary", "hired_on", "unknown"])
def test_person_cannot_set_attributes_of_managers(world: World, key: str) -> None:
    organization = world.make_organization()
    world.make_attribute(organization, "salary")
    world.make_attribute(organization, "hired_on", visible_to="person")
    person = world.make_human_user(organization)
    register = RegisterUser(
        user_name="grace", given_name="G", family_name="H", email="g@example.com", attributes={key: "1"}
    )
    with world.transaction_services() as services:
        with pytest.raises(Invalid) as refusal:
            services.users.change_profile(person.id, ChangeProfile(attributes={key: "1"}))
        assert list(refusal.value.fields) == [f"attributes.{key}"]
        with pytest.raises(Invalid) as refusal:
            services.registration.register(organization, register, "")
        assert list(refusal.value.fields) == [f"attributes.{key}"]
        assert services.attributes.user_values([person]) == {person.id: {}}
