"""Attributes on the account pages: what the person sees and changes, and their data export."""

from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.attributes import ChangeAttribute
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import ACCOUNT_ORIGIN, form_of, stored
from tests.plugins.account.test_data_export import download_export


@pytest.fixture
def organization(world: World, ada: HumanUser) -> Organization:
    """Ada's organization, with an attribute for each kind of access."""
    with world.read_only_services() as services:
        organization = services.organizations.get(ada.organization_id)
    world.make_attribute(organization, "salary", type="number", confidential=True)
    world.make_attribute(organization, "hired_on", type="date", visible_to="person")
    world.make_attribute(
        organization, "shirt", type="choice", choices=("S", "M"), visible_to="person", editable_by="person"
    )
    world.set_attributes(ada, salary=85123, hired_on="2024-02-01", shirt="S")
    return organization


def values(world: World, person: HumanUser) -> Any:
    with world.read_only_services() as services:
        return services.attributes.user_values([person])[person.id]


def test_person_sees_and_changes_what_they_may(
    world: World, browser: Browser, ada: HumanUser, organization: Organization
) -> None:
    page = browser.open("/account/profile")
    check_page(page, 200, "Profile")
    assert "2024-02-01" in page.text
    assert "85123" not in page.text
    assert "salary" not in page.text.lower()
    form = form_of(browser)
    assert form["attributes.shirt"].value == "S"
    assert "attributes.hired_on" not in form.fields
    page = browser.submit({"attributes.shirt": "M"}, form="page-form")
    assert "Your profile is saved." in page.text
    assert values(world, ada) == {"salary": 85123, "hired_on": "2024-02-01", "shirt": "M"}
    [event, *_] = world.audit_events(event="user.changed", object_id=ada.id)
    assert event.actor.id == ada.id
    assert event.detail["attributes"] == {"before": {"shirt": "S"}, "after": {"shirt": "M"}}
    browser.open("/account/profile")
    browser.submit({"attributes.shirt": ""}, form="page-form")
    assert "shirt" not in values(world, ada)


@pytest.mark.parametrize("name", ["attributes.salary", "attributes.hired_on", "attributes.unknown", "attributes"])
def test_submitted_values_of_other_attributes_are_ignored(
    world: World, browser: Browser, ada: HumanUser, organization: Organization, name: str
) -> None:
    """Security 10.8."""
    before = values(world, ada)
    browser.open("/account/profile")
    sent = dict(form_of(browser).submit_fields()) | {name: "2025-01-01"}
    browser.post_form("/account/profile", sent, initiator=ACCOUNT_ORIGIN)
    assert values(world, ada) == before


def test_required_attribute_cannot_be_emptied(
    world: World, browser: Browser, ada: HumanUser, organization: Organization
) -> None:
    with world.transaction_services() as services:
        [shirt] = [item for item in services.attributes.list_definitions(organization.id) if item.key == "shirt"]
        services.attributes.change(shirt.id, ChangeAttribute.build(required=True), principal=Principal.OPERATOR)
    browser.open("/account/profile")
    answer = browser.submit({"attributes.shirt": "", "nickname": "Ada"}, form="page-form")
    check_page(answer, 422, "Profile")
    assert (values(world, ada)["shirt"], stored(world, ada).profile.nickname) == ("S", "")


def test_data_export_contains_all_values(browser: Browser, organization: Organization) -> None:
    """Also those that only managers see."""
    document = download_export(browser)
    assert document["attributes"] == {"hired_on": "2024-02-01", "salary": 85123, "shirt": "S"}
