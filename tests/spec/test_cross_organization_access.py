"""Decisions, namespaces: only instance managers can allow an application access beyond its organization."""

import inspect
import json
from typing import Any

import pytest

from identity.domain.applications import Application, ConsentRule
from identity.domain.errors import Denied
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.applications import ApplicationService
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.desired_state import OrganizationDocument
from identity.services.container import Services
from identity.services.desired_state import apply as applying
from identity.services.organization_transfer import OrganizationTransfer, StreamedOrganizationImport
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.application_writes import WRITES

#: Members of an application that only an instance manager may set.
BEYOND: dict[str, dict[str, object]] = {"managing": {"may_manage": True}, "unasked": {"consent": "never"}}


class Tenant:
    """An organization with a project and an application, and its owner."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.organization = world.make_organization()
        self.project = world.make_project(self.organization)
        self.client = world.make_application(self.project.id, consent=ConsentRule.WHEN_FOREIGN)
        self.person = world.make_human_user(self.organization)
        world.assign_manager_role(self.person, "ORG_OWNER")
        self.robot = world.make_service_user_program(self.organization)
        world.assign_manager_role(self.robot, "ORG_OWNER")

    @property
    def application(self) -> Application:
        """The stored application."""
        return self.world.operator_services.applications.get(self.client.client_id)

    def principal(self, services: Services, user_id: str | None = None) -> Principal:
        """A principal of the owner, or of another user."""
        subject = services.storage.users.find_subject(user_id or self.robot.id)
        assert subject is not None
        return services.access_control.load_principal(subject)


@pytest.fixture
def tenant(world: World) -> Tenant:
    return Tenant(world)


@pytest.mark.parametrize("beyond", BEYOND)
def test_organization_owner_cannot_enable_cross_organization_access(tenant: Tenant, beyond: str) -> None:
    """Neither by registering nor by changing it in the API; instance.write allows it."""
    members, before = BEYOND[beyond], tenant.application
    new = ("POST", f"/projects/{tenant.project.id}/applications", {"name": "Mine", "type": "api", **members})
    change = ("PATCH", f"/applications/{tenant.client.client_id}", members)
    api = ApiClient.for_user(tenant.robot)
    for request in (new, change):
        check_api_error(api.ask(*request), 403, "forbidden")
    assert tenant.application == before
    owner = ApiClient.for_user(tenant.world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    for request in (new, change):
        answer = owner.ask(*request)
        assert answer.status_int in (200, 201)
        assert {name: answer.json[name] for name in members} == members
    # Every manager who may change the application can disable it; only instance managers can enable it.
    answer = api.ask("PATCH", f"/applications/{tenant.client.client_id}", {"consent": "always"})
    assert answer.status_int == (403 if beyond == "managing" else 200)


def test_managing_application_is_changed_by_instance_manager_only(tenant: Tenant) -> None:
    """Such a manager could redirect codes, and then manage on behalf of every consenting user."""
    with tenant.world.transaction_services() as services:
        marked = ChangeApplication(may_manage=True)
        services.applications.change(tenant.client.client_id, marked, principal=Principal.OPERATOR)
        [secret] = services.applications.list_secrets(tenant.client.client_id)
    api, before = ApiClient.for_user(tenant.robot), tenant.application
    names = {"project": tenant.project.id, "client_id": tenant.client.client_id, "secret": secret.id}
    for name, (method, path, members) in WRITES.items():
        if name != "register":
            check_api_error(api.ask(method, path.format_map(names), members), 403, "forbidden")
    assert tenant.application == before
    browser = Browser(tenant.world)
    browser.start_session(tenant.person)
    page = browser.open(f"/console/applications/{tenant.client.client_id}").text
    assert "May manage" in page
    assert f"{tenant.client.client_id}/edit" not in page


def test_console_refuses_cross_organization_access_by_organization_owner(tenant: Tenant) -> None:
    """The form omits it, and posting it has no effect."""
    path = f"/console/applications/{tenant.client.client_id}/edit"
    browser, before = Browser(tenant.world), tenant.application
    browser.start_session(tenant.person)
    form = browser.open(path).forms["page-form"]
    assert "may_manage" not in form.fields
    typed = dict(form.submit_fields())
    browser.post_form(path, {**typed, "may_manage": "yes", "name": "Renamed"}, initiator=browser.login_url)
    assert (tenant.application.name, tenant.application.may_manage) == ("Renamed", False)
    browser.open(path)
    answer = browser.post_form(path, {**typed, "version": "2", "consent": "never"}, initiator=browser.login_url)
    assert answer.status_int in (200, 403)
    assert tenant.application.consent is before.consent


def test_console_offers_cross_organization_access_to_instance_manager(tenant: Tenant) -> None:
    party = RelyingParty.register(tenant.world, project_id=tenant.project.id, consent=ConsentRule.WHEN_FOREIGN)
    owner = tenant.world.make_human_user()
    tenant.world.assign_manager_role(owner, "IAM_OWNER", resource=Resource.INSTANCE)
    for person, consent, offered in ((owner, "never", True), (tenant.person, "always", False)):
        browser = Browser(tenant.world)
        browser.start_session(person)
        form = browser.open(f"/console/applications/{party.client_id}/edit").forms["page-form"]
        assert ("may_manage" in form.fields) is offered
        browser.submit({"consent": consent})
        with tenant.world.read_only_services() as services:
            assert services.applications.get(party.client_id).consent == consent
    browser = Browser(tenant.world)
    browser.start_session(owner)
    browser.open(f"/console/applications/{party.client_id}/edit")
    browser.submit({"may_manage": True})
    assert "May manage" in browser.open(f"/console/applications/{party.client_id}").text


@pytest.mark.parametrize("beyond", BEYOND)
def test_state_file_cannot_enable_cross_organization_access(tenant: Tenant, beyond: str) -> None:
    before = tenant.application
    for application in ({"name": "Mine"}, {"id": before.id, "name": before.name}):
        described = {**application, "type": "api", **BEYOND[beyond]}
        project = {"id": tenant.project.id, "name": tenant.project.name, "applications": [described]}
        organization = {"id": tenant.organization.id, "name": tenant.organization.name, "projects": [project]}
        state = applying.parse_desired_state({"version": 1, "organizations": [organization]})
        with tenant.world.transaction_services() as services, pytest.raises(Denied, match="instance manager"):
            applying.apply_desired_state(services, state, principal=tenant.principal(services))
    assert tenant.application == before


def _document(values: dict[str, Any]) -> OrganizationDocument:
    with StreamedOrganizationImport() as incoming:
        return incoming.document(values)


@pytest.mark.parametrize("beyond", BEYOND)
def test_import_cannot_enable_cross_organization_access(tenant: Tenant, beyond: str) -> None:
    """A manager who may create organizations can import everything else in an export."""
    importer = tenant.world.make_manager_program("IAM_ORG_MANAGER", resource=Resource.INSTANCE)
    with tenant.world.transaction_services() as services:
        command = ChangeApplication(**BEYOND[beyond])
        services.applications.change(tenant.client.client_id, command, principal=Principal.OPERATOR)
        values = json.loads(
            "".join(
                OrganizationTransfer(services).export_document(tenant.organization.id, principal=Principal.OPERATOR)
            )
        )
    values["organization"]["primary_domain"] = f"copy-{tenant.organization.primary_domain}"
    with tenant.world.transaction_services() as services:
        principal = tenant.principal(services, importer.id)
        document = _document(values)
        with pytest.raises(Denied, match="instance manager"):
            OrganizationTransfer(services).import_document(document, principal=principal, keep_ids=False)
    values["organization"]["projects"][0]["applications"][0] |= {"may_manage": False, "consent": "always"}
    values["organization"]["primary_domain"] = f"again-{tenant.organization.primary_domain}"
    with tenant.world.transaction_services() as services:
        principal = tenant.principal(services, importer.id)
        organization = OrganizationTransfer(services).import_document(
            _document(values), principal=principal, keep_ids=False
        )
        [project] = services.storage.projects.page(organization.id).items
        [copy] = services.storage.applications.page(project.id).items
        assert (copy.consent, copy.may_manage) == (ConsentRule.ALWAYS, False)


def test_application_services_take_a_principal() -> None:
    """A required argument, so that no new caller forgets it."""
    reading = {
        *("find_client", "find_requesting_client", "get", "is_web_origin", "is_instance_managed", "organization_id"),
        *("list_secrets", "list_signing_secrets", "has_unusable_secrets", "record_secret_use", "authenticate"),
        *("type_defaults", "list_unused_clients"),
    }
    # A person's consent, and the background job, decide about clients that no manager created.
    reading |= {"store_url_client", "remove_unused_client"}
    for name, method in inspect.getmembers(ApplicationService, inspect.isfunction):
        if not name.startswith("_") and name not in reading:
            assert inspect.signature(method).parameters["principal"].default is inspect.Parameter.empty, name
