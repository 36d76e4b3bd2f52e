"""Attributes in the console: what an organization defines, and the values on a person's form and page."""

import pytest

from identity.domain.attributes import AttributeDefinition
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.storage.contract import factories as make
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.console.conftest import SignIn


@pytest.fixture
def address(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/attributes"


@pytest.fixture
def person(world: World, organization: Organization) -> HumanUser:
    return world.make_human_user(organization)


def definitions(world: World, organization: Organization) -> list[AttributeDefinition]:
    with world.read_only_services() as services:
        return list(services.attributes.list_definitions(organization.id))


def values(world: World, person: HumanUser) -> dict[str, object]:
    with world.read_only_services() as services:
        return dict(services.attributes.user_values([services.users.get(person.id)])[person.id])


def test_attribute_is_created_changed_and_deleted(
    world: World, owner: Browser, organization: Organization, address: str, person: HumanUser
) -> None:
    assert "No attributes yet" in owner.open(address)
    owner.click("attribute")
    typed = {"label": "Shirt size", "key": "shirt", "type": "choice", "choices": "S\nM\n\n L ", "in_tokens": "yes"}
    page = owner.submit({**typed, "visible_to": "person", "editable_by": "person"}, form="page-form")
    assert "Attribute created." in page.text
    for text in ("Shirt size", "shirt", "Choice from a list", "The person sees and changes it", "In tokens"):
        assert text in page.text
    [definition] = definitions(world, organization)
    assert (definition.choices, definition.in_tokens, definition.required) == (("S", "M", "L"), True, False)
    world.set_attributes(person, shirt="M")
    owner.open(f"/console/attributes/{definition.id}/edit")
    page = owner.submit({"label": "Size", "choices": "S\nL", "in_tokens": ""}, form="page-form")
    check_page(page, 422, "Change Shirt size")
    assert "1 person has a choice that you removed: M. Change the value first." in page.text
    page = owner.submit({"choices": "S\nM", "required": "yes", "in_tokens": None}, form="page-form")
    assert page.status_int == 200
    [definition] = definitions(world, organization)
    assert (definition.label, definition.choices, definition.required) == ("Size", ("S", "M"), True)
    provider = world.make_upstream_provider(organization)
    with world.transaction_services() as services:
        services.storage.attribute_mappings.add(make.attribute_mapping(definition, provider))
    page = owner.open(f"/console/attributes/{definition.id}/delete")
    assert "1 user loses the value." in page.text
    assert "1 attribute mapping is removed." in page.text
    page = owner.submit(form="page-form")
    assert "Attribute deleted, with the values of all users." in page.text
    assert definitions(world, organization) == []


def test_all_errors_of_a_new_attribute_are_at_their_fields(owner: Browser, address: str) -> None:
    owner.open(f"{address}/new")
    answer = owner.submit({"key": "Shirt", "claim": "sub"}, form="page-form")
    tree = check_page(answer, 422, "New attribute")
    links = [item.attrib["href"] for item in tree.find(".//*[@id='errors']").iter("a")]
    assert links == ["#field-label", "#field-key", "#field-claim"]


def test_user_form_has_the_attributes_and_the_page_shows_them(
    world: World, owner: Browser, organization: Organization, person: HumanUser
) -> None:
    make = world.make_attribute
    make(organization, "department", hint="As in the <contract>")
    make(organization, "hired_on", type="date")
    make(organization, "level", type="number")
    make(organization, "remote", type="boolean")
    make(organization, "shirt", type="choice", choices=("S", "größer"), required=True)
    assert "The person has no values yet." in owner.open(f"/console/users/{person.id}")
    owner.open(f"/console/users/{person.id}/edit")
    typed = {
        "attributes.department": "Röntgen & <Co>",
        "attributes.hired_on": "2024-02-29",
        "attributes.level": "3.50",
        "attributes.remote": "false",
        "attributes.shirt": "größer",
    }
    page = owner.submit(typed, form="page-form")
    assert page.status_int == 200
    expected = {"department": "Röntgen & <Co>", "hired_on": "2024-02-29", "level": 3.5, "remote": False}
    assert values(world, person) == {**expected, "shirt": "größer"}
    check_page(page, 200, person.display_name)
    assert "Röntgen &amp; &lt;Co&gt;" in page.text
    # Saving the form unchanged changes nothing.
    owner.open(f"/console/users/{person.id}/edit")
    form = owner.find_form("page-form")
    assert {name: form[name].value for name in typed} == {**typed, "attributes.level": "3.5"}
    with world.read_only_services() as services:
        version = services.users.get(person.id).version
    owner.submit(form="page-form")
    with world.read_only_services() as services:
        assert services.users.get(person.id).version == version
    owner.open(f"/console/users/{person.id}/edit")
    wrong = {"attributes.level": "three", "attributes.hired_on": "2024-02-30", "nickname": "Ada"}
    answer = owner.submit(wrong, form="page-form")
    tree = check_page(answer, 422, f"Change {person.display_name}")
    links = [item.attrib["href"] for item in tree.find(".//*[@id='errors']").iter("a")]
    assert links == ["#field-attributes.hired_on", "#field-attributes.level"]
    assert owner.find_form("page-form")["attributes.level"].value == "three"
    assert values(world, person)["level"] == 3.5


def test_new_user_needs_required_attributes(world: World, owner: Browser, organization: Organization) -> None:
    world.make_attribute(organization, "department", required=True)
    owner.open(f"/console/organizations/{organization.id}/users/new")
    typed = {"user_name": "grace", "given_name": "Grace", "family_name": "Hopper", "initial": "one_time_password"}
    answer = owner.submit(typed, form="page-form")
    check_page(answer, 422, "New user")
    page = owner.submit({"attributes.department": "Navy"}, form="page-form")
    world.client.secrets.add(page.html.find(id="secret").text if page.html.find(id="secret") else "")
    with world.read_only_services() as services:
        created = services.storage.users.find_by_name(organization.id, "grace")
    assert isinstance(created, HumanUser)
    assert values(world, created) == {"department": "Navy"}


def test_user_manager_sees_definitions_only(
    world: World, sign_in: SignIn, organization: Organization, address: str
) -> None:
    definition = world.make_attribute(organization, "department")
    browser = sign_in("ORG_USER_MANAGER")
    page = browser.open(address)
    assert "department" in page.text
    assert "/attributes/new" not in page.text
    assert f"/attributes/{definition.id}/edit" not in page.text
    assert browser.open(f"{address}/new").status_int == 403
    assert browser.open(f"/console/attributes/{definition.id}/edit").status_int == 403
    assert sign_in("ORG_SETTINGS_MANAGER").open(address).status_int == 403
