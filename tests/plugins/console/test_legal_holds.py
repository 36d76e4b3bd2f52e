"""Legal holds in the console: placed and lifted on the pages of users and organizations, listed at the instance."""

from typing import Any

import pytest

from identity.domain.legal_holds import LegalHold, LegalHoldKind
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.commands.legal_holds import CreateLegalHold
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

LIST = "/console/instance/legal-holds"


def hold(world: World, kind: LegalHoldKind, held_id: str | None = None) -> LegalHold:
    with world.transaction_services() as services:
        return services.legal_holds.create(CreateLegalHold(kind=kind, held_id=held_id, reason="Case 12/2027"))


def main(browser: Browser, path: str = "") -> str:
    page = browser.open(path) if path else browser.page
    return str(page.html.main.get_text(" ", strip=True))


def badges(browser: Browser, path: str) -> list[str]:
    return [item.get_text(strip=True) for item in browser.open(path).html.select(".badge")]


def hold_section(browser: Browser) -> Any:
    return browser.page.html.get_text(" ", strip=True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [LegalHoldKind.USER, LegalHoldKind.ORGANIZATION])
def test_legal_hold_is_placed_with_reason_and_lifted(
    world: World, instance_owner: Browser, organization: Organization, kind: LegalHoldKind
) -> None:
    person, browser = world.make_human_user(organization), instance_owner
    held_id, name, listed = person.id, person.display_name, person.user_name
    if kind is LegalHoldKind.ORGANIZATION:
        held_id, name, listed = organization.id, organization.name, organization.name
    page = f"/console/{kind}s/{held_id}"
    assert "Legal hold" not in badges(browser, page)
    browser.click("Place …")
    assert name in main(browser)
    assert browser.submit({"reason": " "}, form="page-form").status_int == 422
    assert "Give a reason." in main(browser)
    browser.submit({"reason": "Case 12/2027"}, form="page-form")
    assert browser.path == page
    assert "The legal hold is placed." in hold_section(browser)
    assert "Legal hold" in badges(browser, page)
    assert "Case 12/2027" in browser.page.html.select_one("#legal-hold").get_text(" ")
    assert listed in browser.open(LIST).html.main.get_text()
    assert "Case 12/2027" in main(browser)
    browser.open(page)
    browser.click("Lift …")
    assert name in main(browser)
    assert "Case 12/2027" in main(browser)
    browser.submit({}, form="page-form")
    assert browser.path == page
    assert "The legal hold is lifted." in hold_section(browser)
    assert "Legal hold" not in badges(browser, page)
    assert listed not in main(browser, LIST)


@pytest.mark.thorough
def test_legal_hold_on_everything(make_world: WorldFactory) -> None:
    world = make_world()
    person, manager = world.make_human_user(), world.make_human_user()
    world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(manager)
    assert "No legal holds" in main(browser, LIST)
    browser.click("Place everything on hold …")
    browser.submit({"reason": "Inquiry"}, form="page-form")
    assert browser.path == LIST
    assert "Everything" in main(browser)
    assert "Place everything on hold …" not in main(browser)
    assert "Legal hold" in badges(browser, f"/console/users/{person.id}")
    assert "Everything has been on hold since" in main(browser)
    browser.open(LIST)
    browser.click("Lift")
    browser.submit({}, form="page-form")
    assert browser.path == LIST
    assert "No legal holds" in main(browser)


@pytest.mark.thorough
def test_held_user_cannot_be_deleted(world: World, instance_owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    hold(world, LegalHoldKind.USER, person.id)
    refused = "This account is under a legal hold and cannot be deleted."
    assert refused in main(instance_owner, f"/console/users/{person.id}/delete")
    answer = instance_owner.submit({"confirm_name": person.user_name}, form="page-form")
    assert answer.status_int == 409
    assert refused in main(instance_owner)
    assert instance_owner.open(f"/console/users/{person.id}").status_int == 200
    instance_owner.open(f"/console/organizations/{organization.id}/delete")
    assert instance_owner.submit({"confirm_name": organization.name}, form="page-form").status_int == 409


def test_organization_hold_is_shown_on_its_users(
    world: World, instance_owner: Browser, organization: Organization
) -> None:
    person = world.make_human_user(organization)
    hold(world, LegalHoldKind.ORGANIZATION, organization.id)
    assert "Legal hold" in badges(instance_owner, f"/console/users/{person.id}")
    assert "The whole organization has been on hold since" in main(instance_owner)


def test_organization_manager_sees_only_that_a_hold_exists(
    world: World, owner: Browser, organization: Organization
) -> None:
    person = world.make_human_user(organization)
    placed = hold(world, LegalHoldKind.USER, person.id)
    assert "Legal hold" in badges(owner, f"/console/users/{person.id}")
    assert "Case 12/2027" not in main(owner)
    assert not owner.page.html.select("#legal-hold")
    for path in (LIST, f"{LIST}/{placed.id}/lift", f"/console/users/{person.id}/legal-hold"):
        assert owner.open(path).status_int == 403


def test_viewer_sees_holds_without_buttons(world: World, sign_in: SignIn, organization: Organization) -> None:
    person = world.make_human_user(organization)
    hold(world, LegalHoldKind.USER, person.id)
    viewer = sign_in("IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    assert "Case 12/2027" in main(viewer, LIST)
    assert "Lift" not in main(viewer)
    assert "Case 12/2027" in main(viewer, f"/console/users/{person.id}")
    assert "Lift …" not in main(viewer)


def test_lifted_hold_is_not_found(world: World, instance_owner: Browser, organization: Organization) -> None:
    """A new hold on the same user has another id."""
    person = world.make_human_user(organization)
    placed = hold(world, LegalHoldKind.USER, person.id)
    instance_owner.open(f"{LIST}/{placed.id}/lift")
    with world.transaction_services() as services:
        services.legal_holds.release(placed.id)
    again = hold(world, LegalHoldKind.USER, person.id)
    assert instance_owner.submit({}, form="page-form").status_int == 404
    with world.read_only_services() as services:
        assert services.legal_holds.get(again.id) == again
