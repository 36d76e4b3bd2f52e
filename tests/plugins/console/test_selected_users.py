"""Actions on selected users of a list."""

from urllib.parse import urlencode

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _open(browser: Browser, organization: Organization, action: str, *people: HumanUser) -> None:
    query = urlencode([("action", action), *(("selected", person.id) for person in people)])
    browser.open(f"/console/organizations/{organization.id}/users/selected?{query}")


def _is_active(world: World, person: HumanUser) -> bool:
    with world.read_only_services() as services:
        return services.users.get(person.id).active


def test_list_has_a_checkbox_for_each_user(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    page = owner.open(f"/console/organizations/{organization.id}/users")
    boxes = page.html.find_all("input", attrs={"name": "selected"})
    assert person.id in [box["value"] for box in boxes]
    assert not any(box.has_attr("checked") for box in boxes)
    page = owner.click("Select all on this page")
    assert all(box.has_attr("checked") for box in page.html.find_all("input", attrs={"name": "selected"}))


def test_confirmation_names_users_and_each_gets_a_result(
    world: World, sign_in: SignIn, organization: Organization
) -> None:
    anna, bert = world.make_human_user(organization), world.make_human_user(organization)
    chief = world.make_human_user(organization)
    world.assign_manager_role(chief, "IAM_OWNER", resource=Resource.INSTANCE)
    stranger = world.make_human_user(world.make_organization())
    browser = sign_in("ORG_USER_MANAGER")
    _open(browser, organization, "deactivate", anna, bert, chief, stranger)
    assert "Deactivate 3 users?" in browser.page.text, "one is of another organization"
    assert all(_is_active(world, person) for person in (anna, bert, chief))
    page = browser.submit(form="page-form")
    assert "2 of 3 are done" in page.text
    assert [_is_active(world, person) for person in (anna, bert, chief, stranger)] == [False, False, True, True]
    assert len(world.audit_events(event="user.deactivated", object_id=anna.id)) == 1
    _open(browser, organization, "reactivate", anna)
    assert "1 of 1 is done" in browser.submit(form="page-form").text
    assert _is_active(world, anna)


def test_selected_users_are_exported(world: World, owner: Browser, organization: Organization) -> None:
    anna, bert = world.make_human_user(organization), world.make_human_user(organization)
    _open(owner, organization, "export", anna)
    assert owner.page.content_type == "text/csv"
    assert anna.user_name in owner.page.text
    assert bert.user_name not in owner.page.text


def test_without_selection_the_list_is_shown(owner: Browser, organization: Organization) -> None:
    _open(owner, organization, "deactivate")
    assert owner.path.endswith("/users")
