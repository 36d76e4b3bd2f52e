"""Audit events in the console: of an organization, of the instance and of one object; filters."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from identity.domain.audit import AuditEvent
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.pages.event_labels import SUBJECT_LABELS, EventLabels
from identity.services.access_control import Principal
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def events(browser: Browser, organization: Organization, query: str = "") -> Any:
    return browser.open(f"/console/organizations/{organization.id}/audit-events{query}")


def test_every_event_has_a_label() -> None:
    assert EventLabels.EVENTS.keys() == AuditEvent.NAMES
    assert SUBJECT_LABELS.keys() == {name.partition(".")[0] for name in AuditEvent.NAMES}
    assert len(set(EventLabels.EVENTS.values())) == len(AuditEvent.NAMES), "two events read alike"


def test_event_and_reason_labels_have_consistent_form() -> None:
    assert all(message[0].isupper() and not message.endswith(".") for message in EventLabels.EVENTS.values())
    assert all(message.endswith(".") for message in EventLabels.REASONS.values())


def test_list_is_newest_first_with_names(world: World, owner: Browser, organization: Organization) -> None:
    world.make_service_user_program(organization, display_name="CI runner")
    page = events(owner, organization)
    assert page.status_int == 200
    rows = [item.get_text(" ", strip=True) for item in page.html.select("tbody tr")]
    assert rows[0].startswith("Key of a service user added service_user_key.added")
    assert "The operator" in rows[0]
    assert "CI runner" in rows[1]
    assert rows[-1].startswith("Organization created")
    # Audit pages show UTC; the script must not convert it.
    assert page.html.select("tbody time[data-local]") == []


def test_list_rows_show_names_instead_of_ids(world: World, owner: Browser, organization: Organization) -> None:
    """Keys, managers and grants are named by their user, deleted objects by their former name."""
    robot = world.make_service_user_program(organization, display_name="CI runner")
    manager = world.assign_manager_role(robot, "ORG_OWNER_VIEWER")
    project = world.make_project(organization, roles=["reader"])
    person = world.make_human_user(organization)
    grant = world.make_user_grant(person, project, "reader")
    world.make_project_grant(project, world.make_organization(), roles=["reader"])
    world.make_service_user_secret(robot)
    world.make_personal_access_token(robot)
    with world.transaction_services() as services:
        services.managers.change(
            manager.id, ChangeManager(roles=frozenset({"ORG_OWNER"})), principal=Principal.OPERATOR
        )
        services.managers.remove(manager.id, principal=Principal.OPERATOR)
        services.user_grants.remove(grant.id, principal=Principal.OPERATOR)
        services.projects.remove(project.id, principal=Principal.OPERATOR)
    page = events(owner, organization, "?limit=50")
    named = {
        row.select("td")[-2].get_text(" ", strip=True): row.th.get_text(" ", strip=True)
        for row in page.html.select("tbody tr")
    }
    bare = {text: cell for text, cell in named.items() if re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-7", text)}
    # A grant that was deleted with its project has no name.
    assert {cell.split()[-1] for cell in bare.values()} <= {"project_grant.added"}
    assert any("CI runner" in text for text in named)
    assert any(project.name in text for text in named)


def test_deleted_user_has_no_name(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    world.operator_services.users.remove(person.id)
    page = events(owner, organization, "?event=user.created")
    row, *_ = page.html.select("tbody tr")
    assert "Deleted user" in row.get_text(" ", strip=True)
    page = owner.open(row.th.a["href"])
    text = page.html.main.get_text(" ", strip=True)
    assert "This person is deleted. Their data in the event is erased." in text
    assert person.id in text
    assert person.profile.given_name not in text
    assert not page.html.select("#detail, #changes")


def test_event_page_shows_all_facts(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization, display_name="CI runner")
    owner.open(f"/console/service-users/{robot.id}/edit")
    owner.submit({"display_name": "Nightly build"}, form="page-form")
    page = events(owner, organization, "?event=service_user.changed")
    [row] = page.html.select("tbody tr")
    text = row.get_text(" ", strip=True)
    assert "Ada Lovelace" in text
    assert owner.address in text
    page = owner.click("Service user changed")
    [change] = page.html.select("#changes tbody tr")
    assert change.get_text(" ", strip=True) == "display_name CI runner Nightly build"
    [event] = world.audit_events(event="service_user.changed", object_id=robot.id)
    assert event.actor.request_id
    for shown_text in (event.id, event.actor.request_id, robot.id, "service_user.changed", organization.name):
        assert shown_text in page
    assert page.html.h1.get_text() == "Service user changed"


def test_object_filter_finds_user_by_name_with_owned_objects(
    world: World, owner: Browser, organization: Organization
) -> None:
    person, human_user = world.make_human_user(organization), world.make_human_user(organization)
    project = world.make_project(organization, roles=["reader", "writer"])
    with world.transaction_services() as services:
        services.users.change(
            person.id, ChangeHumanUser.build(display_name="Michał Ångström"), principal=Principal.OPERATOR
        )
        for user in (person, human_user):
            command = AddUserGrant(user_id=user.id, project_id=project.id, roles=frozenset({"reader"}))
            grant = services.user_grants.add(command, principal=Principal.OPERATOR)
            services.user_grants.change(
                grant.id, ChangeUserGrant(roles=frozenset({"writer"})), principal=Principal.OPERATOR
            )
            services.user_grants.remove(grant.id, principal=Principal.OPERATOR)
            manager = services.managers.add(
                Resource.of_organization(organization.id),
                AddManager(user_id=user.id, roles=frozenset({"ORG_OWNER_VIEWER"})),
                principal=Principal.OPERATOR,
            )
            services.managers.remove(manager.id, principal=Principal.OPERATOR)
    login_name = f"{person.user_name}@{organization.primary_domain}"
    for name in (person.id, login_name, "michal angstrom", person.user_name):
        page = events(owner, organization, f"?object={quote(name)}")
        names = [row.th.get_text(" ", strip=True).split()[-1] for row in page.html.select("tbody tr")]
        assert names == [
            *("manager.removed", "manager.added", "user_grant.removed", "user_grant.changed", "user_grant.added"),
            *("user.changed", "user.created"),
        ], name
    # A deleted grant is still named by its user, although change events record only the difference.
    page = events(owner, organization, f"?event=user_grant.changed&object={person.id}")
    [row] = page.html.select("tbody tr")
    assert "Michał Ångström" in row.select("td")[-2].get_text(" ", strip=True)
    page = events(owner, organization, "?object=ada")
    assert page.status_int == 422
    assert "Several users have this name." in page.html.main.get_text()
    # The link from the user's page.
    owner.open(f"/console/users/{person.id}/activity")
    page = owner.click("Show Changes to this user")
    assert len(page.html.select("tbody tr")) == 7


def test_request_id_filter_finds_its_events(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization)
    owner.open(f"/console/service-users/{robot.id}/edit")
    owner.submit({"display_name": "Nightly build"}, form="page-form")
    [event] = world.audit_events(event="service_user.changed", object_id=robot.id)
    page = events(owner, organization, f"?request={event.actor.request_id}")
    [row] = page.html.select("tbody tr")
    assert "Service user changed" in row.get_text()
    assert events(owner, organization, "?request=nobody-has-it").html.select("tbody tr") == []


def test_redirect_uri_mismatch_shows_sent_and_registered_uris(
    world: World, owner: Browser, organization: Organization
) -> None:
    party = RelyingParty.register(
        world, project_id=world.make_project(organization).id, redirect_uri="https://app.example/cb"
    )
    Browser(world).open(party.new_request(redirect_uri="https://app.example/callback?code=secret#x").url)
    events(owner, organization, "?event=authorization.refused")
    page = owner.click("Request of an application refused")
    assert "https://app.example/callback" in page.html.select_one("#detail").get_text()
    assert "https://app.example/cb" in page.html.select_one("#registered").get_text()
    assert "secret" not in page.text


def test_filters_narrow_the_list_and_persist(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization)
    day = world.clock().date().isoformat()
    query = f"?from={day}&to={day}&event=service_user&result=success&object={robot.id}"
    page = events(owner, organization, query)
    assert page.html.select_one("tbody .table__sub").get_text() == "service_user.created"
    assert len(page.html.select("tbody tr")) == 1
    form = next(item for item in page.forms.values() if "object" in item.fields)
    assert {name: form[name].value for name in ("from", "to", "event", "result", "object")} == {
        "from": day,
        "to": day,
        "event": "service_user",
        "result": "success",
        "object": robot.id,
    }


def test_actor_filter_takes_login_name(world: World, sign_in: SignIn, organization: Organization) -> None:
    browser = sign_in()
    robot = world.make_service_user_program(organization)
    browser.open(f"/console/service-users/{robot.id}/edit")
    browser.submit({"display_name": "Nightly build"}, form="page-form")
    [event] = world.audit_events(event="service_user.changed", object_id=robot.id)
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(event.actor.id)
    page = events(browser, organization, f"?actor={subject.login_name}")
    assert len(page.html.select("tbody tr")) == 1


@pytest.mark.storages("memory")  # Storage is not involved.
def test_invalid_filters_are_refused(owner: Browser, organization: Organization) -> None:
    for query, field, sentence in (
        ("from=yesterday", "from", "Enter a date such as 2027-12-31."),
        ("to=2027-13-01", "to", "Enter a date such as 2027-12-31."),
        ("from=2027-01-02&to=2027-01-01", "to", "Choose a day that is not before the first one."),
        ("event=nothing", "event", "Choose one of the values offered."),
        ("result=perhaps", "result", "Choose one of the values offered."),
    ):
        page = events(owner, organization, f"?{query}&object=kept")
        assert page.status_int == 422
        assert page.html.find(id=f"error-{field}").get_text(strip=True).endswith(sentence)
        assert 'value="kept"' in page
        assert page.html.title.get_text().strip().startswith("Error:")


def test_audit_event_list_is_paged(owner: Browser, organization: Organization) -> None:
    page = events(owner, organization, "?limit=1&to=9999-12-31")
    first = page.html.select_one("tbody a")["href"]
    page = owner.click("Next page")
    assert page.html.select_one("tbody a")["href"] != first
    page = events(owner, organization, "?from=2001-01-01&to=2001-01-02")
    assert "No event fits these filters. Remove one." in page
    owner.click("Show all")
    assert len(owner.page.html.select("tbody tr")) > 0


def test_refused_action_shows_its_reason(world: World, sign_in: SignIn, organization: Organization) -> None:
    assert (
        sign_in("ORG_OWNER_VIEWER").open(f"/console/organizations/{organization.id}/service-users/new").status_int
        == 403
    )
    page = events(sign_in(), organization, "?result=refused")
    [row] = page.html.select("tbody tr")
    assert "Action refused" in row.get_text()
    assert "service_user.write" in row.get_text()


def test_list_is_limited_to_the_organization(world: World, owner: Browser, organization: Organization) -> None:
    foreign = world.make_service_user_program()
    program = world.make_service_user_program(organization)
    page = events(owner, organization, "?event=service_user.created")
    assert [item["href"] for item in page.html.select("tbody td a")] == [f"/console/service-users/{program.id}"]
    for query in ("", "?event=organization", "?event=service_user"):
        assert foreign.id not in events(owner, organization, query), query
    assert "No event fits these filters." in events(owner, organization, f"?object={foreign.id}")


def test_actor_of_other_organization_has_no_link(
    world: World, sign_in: SignIn, owner: Browser, organization: Organization
) -> None:
    robot = world.make_service_user_program(organization)
    admin = sign_in("IAM_OWNER", resource=Resource.INSTANCE, home=world.make_organization())
    admin.open(f"/console/service-users/{robot.id}/edit")
    admin.submit({"display_name": "Nightly build"}, form="page-form")
    page = events(owner, organization, "?event=service_user.changed")
    [row] = page.html.select("tbody tr")
    assert "Ada Lovelace" in row.get_text()
    assert [item.get_text() for item in row.find_all("a")] == ["Service user changed", "Nightly build"]


def test_instance_list_requires_instance_manager(
    world: World, sign_in: SignIn, owner: Browser, organization: Organization
) -> None:
    assert owner.open("/console/audit-events").status_int == 403
    world.make_organization()
    viewer = sign_in("IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    page = viewer.open("/console/audit-events?event=organization.created")
    assert page.status_int == 200
    assert len(page.html.select("tbody tr")) >= 2
    added = world.audit_events(event="signing_key.added")[0]
    page = viewer.open(f"/console/audit-events/{added.id}")
    assert page.html.h1.get_text() == "Signing key created"
    assert page.html.select_one(".breadcrumb a")["href"] == "/console/audit-events"


def test_object_of_other_organization_has_no_link(world: World, owner: Browser, organization: Organization) -> None:
    """Users consent to applications of other organizations, whose pages their managers cannot open."""
    person = world.make_human_user(organization)
    projects = (world.make_project(), world.make_project(organization))
    client_ids = [world.make_application(project.id).client_id for project in projects]
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        for client_id in client_ids:
            client = services.applications.find_client(client_id)
            assert client is not None
            services.consents.grant_consent(subject, client, ("openid",))
    page = events(owner, organization, "?event=consent.given")
    own_cell, foreign = (row.select_one("td[data-label=Object]") for row in page.html.select("tbody tr"))
    assert owner.open(own_cell.a["href"]).status_int == 200
    assert foreign.a is None
    assert "Application-" in foreign.text
