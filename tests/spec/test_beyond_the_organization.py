"""Decisions, namespaces: who manages the instance decides what an application may beyond its organization."""

import inspect
import json
from typing import Any

import pytest

from identity.domain.applications import Application, ConsentRule
from identity.domain.errors import Denied
from identity.domain.permissions import INSTANCE
from identity.services import apply as applying
from identity.services.access import THE_OPERATOR, Principal
from identity.services.applications import Applications
from identity.services.bundle import Services
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.descriptions import OrganizationDocument
from identity.services.transfer import Incoming, Transfer
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.responses import check_api_error
from identity.testing.world import World
from tests.plugins.management.estate import Api
from tests.spec.application_writes import WRITES

#: Members of an application that only who manages the instance decides.
BEYOND: dict[str, dict[str, object]] = {"managing": {"may_manage": True}, "unasked": {"consent": "never"}}


class Tenant:
    """An organization with a project and an application, and its owner."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.organization = world.an_organization()
        self.project = world.a_project(self.organization)
        self.client = world.an_application(self.project.id, consent=ConsentRule.WHEN_FOREIGN)
        self.person = world.a_person(self.organization)
        world.make_manager(self.person, "ORG_OWNER")
        self.robot = world.a_robot(self.organization)
        world.make_manager(self.robot, "ORG_OWNER")

    @property
    def application(self) -> Application:
        """As it is stored."""
        return self.world.operator.applications.get(self.client.client_id)

    def principal(self, services: Services, user_id: str | None = None) -> Principal:
        """The owner, or another user."""
        subject = services.storage.users.find_subject(user_id or self.robot.id)
        assert subject is not None
        return services.access.principal(subject)


@pytest.fixture
def tenant(world: World) -> Tenant:
    return Tenant(world)


@pytest.mark.parametrize("beyond", BEYOND)
def test_an_owner_of_an_organization_cannot_let_an_application_go_beyond(tenant: Tenant, beyond: str) -> None:
    """At the API, registering or changing; instance.write can."""
    members, before = BEYOND[beyond], tenant.application
    new = ("POST", f"/projects/{tenant.project.id}/applications", {"name": "Mine", "type": "api", **members})
    change = ("PATCH", f"/applications/{tenant.client.client_id}", members)
    api = Api.of(tenant.robot)
    for request in (new, change):
        check_api_error(api.ask(*request), 403, "forbidden")
    assert tenant.application == before
    owner = Api.of(tenant.world.a_manager("IAM_OWNER", resource=INSTANCE))
    for request in (new, change):
        answer = owner.ask(*request)
        assert answer.status_int in (200, 201)
        assert {name: answer.json[name] for name in members} == members
    # It can be taken back by whoever may change the application, which who lets it manage alone may.
    answer = api.ask("PATCH", f"/applications/{tenant.client.client_id}", {"consent": "always"})
    assert answer.status_int == (403 if beyond == "managing" else 200)


def test_an_application_that_may_manage_is_the_instance_s_to_change(tenant: Tenant) -> None:
    """Whoever could lead its codes elsewhere would manage in the name of all who agreed."""
    with tenant.world.transaction() as services:
        marked = ChangeApplication(may_manage=True)
        services.applications.change(tenant.client.client_id, marked, by=THE_OPERATOR)
        [secret] = services.applications.secrets(tenant.client.client_id)
    api, before = Api.of(tenant.robot), tenant.application
    names = {"project": tenant.project.id, "client_id": tenant.client.client_id, "secret": secret.id}
    for name, (method, path, members) in WRITES.items():
        if name != "register":
            check_api_error(api.ask(method, path.format_map(names), members), 403, "forbidden")
    assert tenant.application == before
    browser = Browser(tenant.world)
    browser.start_session(tenant.person)
    shown = browser.open(f"/console/applications/{tenant.client.client_id}").text
    assert "May manage" in shown
    assert f"{tenant.client.client_id}/edit" not in shown


def test_nor_in_the_console(tenant: Tenant) -> None:
    """It is not offered, and what is posted all the same changes nothing."""
    path = f"/console/applications/{tenant.client.client_id}/edit"
    browser, before = Browser(tenant.world), tenant.application
    browser.start_session(tenant.person)
    form = browser.open(path).forms["page-form"]
    assert "may_manage" not in form.fields
    typed = dict(form.submit_fields())
    browser.send(path, {**typed, "may_manage": "yes", "name": "Renamed"}, by=browser.login_url)
    assert (tenant.application.name, tenant.application.may_manage) == ("Renamed", False)
    browser.open(path)
    answer = browser.send(path, {**typed, "version": "2", "consent": "never"}, by=browser.login_url)
    assert answer.status_int in (200, 403)
    assert tenant.application.consent is before.consent


def test_in_the_console_it_is_for_who_manages_the_instance(tenant: Tenant) -> None:
    party = RelyingParty.of(tenant.world, project_id=tenant.project.id, consent=ConsentRule.WHEN_FOREIGN)
    owner = tenant.world.a_person()
    tenant.world.make_manager(owner, "IAM_OWNER", resource=INSTANCE)
    for person, consent, offered in ((owner, "never", True), (tenant.person, "always", False)):
        browser = Browser(tenant.world)
        browser.start_session(person)
        form = browser.open(f"/console/applications/{party.client_id}/edit").forms["page-form"]
        assert ("may_manage" in form.fields) is offered
        browser.submit({"consent": consent})
        with tenant.world.reading() as services:
            assert services.applications.get(party.client_id).consent == consent
    browser = Browser(tenant.world)
    browser.start_session(owner)
    browser.open(f"/console/applications/{party.client_id}/edit")
    browser.submit({"may_manage": True})
    assert "May manage" in browser.open(f"/console/applications/{party.client_id}").text


@pytest.mark.parametrize("beyond", BEYOND)
def test_nor_by_a_described_state(tenant: Tenant, beyond: str) -> None:
    before = tenant.application
    for application in ({"name": "Mine"}, {"id": before.id, "name": before.name}):
        described = {**application, "type": "api", **BEYOND[beyond]}
        project = {"id": tenant.project.id, "name": tenant.project.name, "applications": [described]}
        organization = {"id": tenant.organization.id, "name": tenant.organization.name, "projects": [project]}
        state = applying.read_state({"version": 1, "organizations": [organization]})
        with tenant.world.transaction() as services, pytest.raises(Denied, match="manages the instance"):
            applying.apply(services, state, by=tenant.principal(services))
    assert tenant.application == before


def _document(values: dict[str, Any]) -> OrganizationDocument:
    with Incoming() as incoming:
        return incoming.document(values)


@pytest.mark.parametrize("beyond", BEYOND)
def test_nor_by_an_imported_organization(tenant: Tenant, beyond: str) -> None:
    """Who may make organizations takes over what an export says, but not that."""
    importer = tenant.world.a_manager("IAM_ORG_MANAGER", resource=INSTANCE)
    with tenant.world.transaction() as services:
        command = ChangeApplication(**BEYOND[beyond])
        services.applications.change(tenant.client.client_id, command, by=THE_OPERATOR)
        values = json.loads("".join(Transfer(services).document(tenant.organization.id, by=THE_OPERATOR)))
    values["organization"]["primary_domain"] = f"copy-{tenant.organization.primary_domain}"
    with tenant.world.transaction() as services:
        by = tenant.principal(services, importer.id)
        document = _document(values)
        with pytest.raises(Denied, match="manages the instance"):
            Transfer(services).import_(document, by=by, keep_ids=False)
    values["organization"]["projects"][0]["applications"][0] |= {"may_manage": False, "consent": "always"}
    values["organization"]["primary_domain"] = f"again-{tenant.organization.primary_domain}"
    with tenant.world.transaction() as services:
        by = tenant.principal(services, importer.id)
        made = Transfer(services).import_(_document(values), by=by, keep_ids=False)
        [project] = services.storage.projects.page(made.id).items
        [copy] = services.storage.applications.page(project.id).items
        assert (copy.consent, copy.may_manage) == (ConsentRule.ALWAYS, False)


def test_every_use_case_that_changes_applications_asks_for_the_caller() -> None:
    """So that no new door forgets."""
    reading = {"find_client", "get", "is_origin", "secrets", "authenticate", "defaults", "may_decide"}
    for name, method in inspect.getmembers(Applications, inspect.isfunction):
        if not name.startswith("_") and name not in reading:
            assert inspect.signature(method).parameters["by"].default is inspect.Parameter.empty, name
