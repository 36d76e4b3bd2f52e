"""Actions on selected users, service users and user grants of a list."""

from typing import Any
from urllib.parse import urlencode

import pytest

from identity.domain.legal_holds import LegalHoldKind
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _open(browser: Browser, parent: str, action: str, *ids: str, **more: str) -> None:
    query = urlencode([*(("selected", identifier) for identifier in ids), *more.items()])
    browser.open(f"/console/{parent}/selected/{action}?{query}")


def _users(organization: Organization, kind: str = "users") -> str:
    return f"organizations/{organization.id}/{kind}"


def _is_active(world: World, person: HumanUser) -> bool:
    with world.read_only_services() as services:
        return services.users.get(person.id).active


def _roles(world: World, user_id: str) -> list[list[str]]:
    with world.read_only_services() as services:
        return [sorted(grant.roles) for grant in services.storage.user_grants.page("user_id", user_id)]


def _submit_role(browser: Browser, role: str) -> Any:
    form = browser.find_form("page-form")
    for box in form.fields["role"]:
        box.checked = box._value == role
    return browser.submit(form="page-form")


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
    _open(browser, _users(organization), "deactivate", chief.id, anna.id, bert.id, stranger.id)
    assert "Deactivate 3 users?" in browser.page.text, "one is of another organization"
    assert all(_is_active(world, person) for person in (anna, bert, chief))
    page = browser.submit(form="page-form")
    assert "2 of 3 are done" in page.text
    assert "manager roles beyond your own" in page.text
    assert [_is_active(world, person) for person in (anna, bert, chief, stranger)] == [False, False, True, True]
    assert len(world.audit_events(event="user.deactivated", object_id=anna.id)) == 1
    assert len(world.audit_events(event="access.refused", organization_id=organization.id)) == 1
    _open(browser, _users(organization), "reactivate", anna.id)
    assert "1 of 1 is done" in browser.submit(form="page-form").text
    assert _is_active(world, anna)


def test_deletion_needs_the_name_and_judges_each_user(world: World, organization: Organization) -> None:
    caller, anna, bert, chief, stranger = (
        world.make_human_user(home)
        for home in (organization, organization, organization, organization, world.make_organization())
    )
    world.assign_manager_role(caller, "ORG_USER_MANAGER", resource=Resource.of_organization(organization.id))
    world.assign_manager_role(chief, "IAM_OWNER", resource=Resource.INSTANCE)
    with world.transaction_services() as services:
        hold = CreateLegalHold(kind=LegalHoldKind.USER, held_id=bert.id, reason="Case 12/2027")
        services.legal_holds.create(hold)
    browser = Browser(world)
    browser.start_session(caller)
    everyone = (caller, anna, bert, chief, stranger)
    _open(browser, _users(organization), "delete", *(person.id for person in everyone))
    assert "Delete 4 users?" in browser.page.text, "one is of another organization"
    page = browser.submit({"confirm_name": "yes"}, form="page-form")
    assert page.status_int == 422
    assert f"Type {organization.name} to confirm." in page.text
    assert not world.audit_events(event="user.removed", organization_id=organization.id)
    page = browser.submit({"confirm_name": organization.name}, form="page-form")
    assert "1 of 4 is done" in page.text
    for reason in ("This is your account", "legal hold", "manager roles beyond your own"):
        assert reason in page.text
    [event] = world.audit_events(event="user.removed", organization_id=organization.id)
    assert event.object_id == anna.id


def test_selected_service_users_are_deleted(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization).user
    _open(owner, _users(organization, "service-users"), "delete", robot.id)
    assert "1 of 1 is done" in owner.submit({"confirm_name": organization.name}, form="page-form").text
    [event] = world.audit_events(event="service_user.removed", organization_id=organization.id)
    assert event.object_id == robot.id


def test_form_of_selected_rows_counts_once(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    _open(owner, _users(organization), "deactivate", person.id)
    once = owner.find_form("page-form")["once"].value
    owner.submit(form="page-form")
    _open(owner, _users(organization), "deactivate", person.id)
    assert "already sent" in owner.submit({"once": once}, form="page-form").text


def test_refused_row_leaves_nothing_behind(
    world: World, owner: Browser, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link replaces the one before, but not if it could not be mailed."""
    command = CreateHumanUser(user_name="anna", given_name="Anna", family_name="Ace", email="anna@example.com")
    with world.transaction_services() as services:
        anna = services.users.create(organization.id, command)
        link = services.users.issue_password_link(anna.id, principal=Principal.OPERATOR)
    monkeypatch.setattr(
        "identity.pages.transactional_mails.TransactionalMails.queue_initial_credential", lambda *_, **__: False
    )
    monkeypatch.setattr("identity.services.mails.MailService.is_enabled", True)
    _open(owner, _users(organization), "invite", anna.id)
    page = owner.submit(form="page-form")
    assert "0 of 1 are done" in page.text
    assert "too many mails" in page.text
    assert "new_password" in Browser(world).open(link).forms["page-form"].fields


def test_rows_that_name_the_caller_come_last(world: World, organization: Organization) -> None:
    caller, anna = world.make_human_user(organization), world.make_human_user(organization)
    world.assign_manager_role(caller, "ORG_OWNER", resource=Resource.of_organization(organization.id))
    world.assign_manager_role(anna, "ORG_OWNER", resource=Resource.of_organization(organization.id))
    browser = Browser(world)
    browser.start_session(caller)
    _open(browser, _users(organization), "deactivate", caller.id, anna.id)
    browser.submit(form="page-form")
    events = world.audit_events(event="user.deactivated", organization_id=organization.id)
    assert [event.object_id for event in sorted(events, key=lambda event: event.id)] == [anna.id, caller.id]


def test_selected_users_are_exported(world: World, owner: Browser, organization: Organization) -> None:
    anna, bert = world.make_human_user(organization), world.make_human_user(organization)
    _open(owner, _users(organization), "export", anna.id)
    assert owner.page.content_type == "text/csv"
    assert anna.user_name in owner.page.text
    assert bert.user_name not in owner.page.text


def test_without_selection_the_list_is_shown(owner: Browser, organization: Organization) -> None:
    _open(owner, _users(organization), "deactivate")
    assert owner.path.endswith("/users")


def test_roles_are_given_and_taken(world: World, owner: Browser, organization: Organization) -> None:
    anna, robot = world.make_human_user(organization), world.make_service_user_program(organization).user
    project = world.make_project(organization, roles=["reader", "writer"])
    world.make_user_grant(anna, project, "reader")
    for kind, user_id in (("users", anna.id), ("service-users", robot.id)):
        _open(owner, _users(organization, kind), "give-roles", user_id)
        owner.click(project.name)
        assert "1 of 1 is done" in _submit_role(owner, "writer").text
    assert (_roles(world, anna.id), _roles(world, robot.id)) == ([["reader", "writer"]], [["writer"]])
    _open(owner, _users(organization), "take-roles", anna.id, project_id=project.id)
    assert "1 of 1 is done" in _submit_role(owner, "reader").text
    _open(owner, _users(organization, "service-users"), "take-roles", robot.id, project_id=project.id)
    assert "No change needed" in _submit_role(owner, "reader").text
    _open(owner, _users(organization, "service-users"), "take-roles", robot.id, project_id=project.id)
    _submit_role(owner, "writer")
    assert (_roles(world, anna.id), _roles(world, robot.id)) == ([["writer"]], [])


def test_roles_of_foreign_project_are_not_given(world: World, owner: Browser, organization: Organization) -> None:
    anna, project = world.make_human_user(organization), world.make_project(world.make_organization(), roles=["reader"])
    _open(owner, _users(organization), "give-roles", anna.id, project_id=project.id)
    assert owner.page.status_int == 404


def test_users_join_and_leave_a_group(world: World, owner: Browser, organization: Organization) -> None:
    anna, robot = world.make_human_user(organization), world.make_service_user_program(organization).user
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Pilots"), principal=Principal.OPERATOR)
    for kind, user_id in (("users", anna.id), ("service-users", robot.id)):
        _open(owner, _users(organization, kind), "add-to-group", user_id)
        owner.click("Pilots")
        assert "1 of 1 is done" in owner.submit(form="page-form").text
    with world.read_only_services() as services:
        assert set(services.groups.member_ids(group)) == {anna.id, robot.id}
    _open(owner, _users(organization), "remove-from-group", anna.id, group_id=group.id)
    assert "1 of 1 is done" in owner.submit(form="page-form").text
    with world.read_only_services() as services:
        assert set(services.groups.member_ids(group)) == {robot.id}


def test_user_grants_are_changed_within_their_project(world: World, owner: Browser, organization: Organization) -> None:
    anna = world.make_human_user(organization)
    project, other = (world.make_project(organization, roles=["reader"]) for _ in range(2))
    grant, foreign = (world.make_user_grant(anna, source, "reader") for source in (project, other))
    listed = owner.open(f"/console/projects/{project.id}/user-grants").html
    assert [box["value"] for box in listed.find_all("input", attrs={"name": "selected"})] == [grant.id]
    for action, left in (("deactivate", 2), ("reactivate", 2), ("delete", 1)):
        _open(owner, f"projects/{project.id}/user-grants", action, grant.id, foreign.id)
        assert "1 of 1 is done" in owner.submit(form="page-form").text
        assert len(_roles(world, anna.id)) == left
