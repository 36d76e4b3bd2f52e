"""Export and import of organizations in the console."""

import json
from dataclasses import replace
from typing import Any

import pytest
from webtest import Upload

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.service_user_keys import ServiceUserKey
from identity.services.access_control import Principal
from identity.services.organization_transfer import StreamedOrganizationImport
from identity.storage.stores.users import UserKind
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

IMPORT = "/console/organizations/import"


def _page(organization: Organization, below: str = "") -> str:
    return f"/console/organizations/{organization.id}{below}"


def exported(browser: Browser, organization: Organization) -> Any:
    browser.open(_page(organization, "/export"))
    return browser.submit(form="page-form")


def document(**members: Any) -> str:
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    return json.dumps({**head, "organization": {"name": "Humpback", **members}}, indent=2)


def file(text: str) -> Upload:
    """The file as an upload."""
    return Upload("exported.json", text.encode())


def found(world: World, domain: str) -> Organization | None:
    with world.read_only_services() as services:
        return services.storage.organizations.find_by_domain(domain)


def test_export_page_describes_the_file(owner: Browser, organization: Organization) -> None:
    owner.open(_page(organization))
    page = owner.click(f"Export {organization.name}")
    assert page.html.h1.text == f"Export {organization.name}"
    assert "Users with their profiles" in page.html.find(id="inside").text
    assert "Passwords, private keys, client secrets" in page.html.find(id="outside").text


def test_export_file_is_named_after_domain_and_not_cached(
    world: World, owner: Browser, organization: Organization
) -> None:
    robot = world.make_service_user_program(organization)
    owner.open(_page(organization, "/export"))
    assert not world.audit_events(event="organization.exported", object_id=organization.id), "it was only looked at"
    answer = owner.submit(form="page-form")
    assert (answer.status_int, answer.content_type) == (200, "application/json")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{organization.primary_domain}.json"'
    assert answer.headers["Cache-Control"] == "no-store"
    assert [item["id"] for item in answer.json["organization"]["service_users"]] == [robot.id]
    assert world.audit_events(event="organization.exported", object_id=organization.id)


def test_import_creates_organization(world: World, instance_owner: Browser, organization: Organization) -> None:
    world.make_service_user_program(organization)
    text = exported(instance_owner, organization).text
    domain = f"copy-of-{organization.primary_domain}"
    instance_owner.open("/console/organizations")
    instance_owner.click("Import organization")
    copied = text.replace(f'"primary_domain": "{organization.primary_domain}"', f'"primary_domain": "{domain}"')
    page = instance_owner.submit({"document": file(copied)}, form="page-form")
    imported = found(world, domain)
    assert imported is not None
    assert instance_owner.path == _page(imported)
    assert "Organization imported. Give its people links for new passwords" in page
    assert imported.id != organization.id
    with world.read_only_services() as services:
        [robot] = services.storage.users.page(imported.id, UserKind.SERVICE)
        [key] = services.storage.credentials.page(ServiceUserKey, robot.id)
    assert key.public_key


def test_import_restores_deleted_organization_with_ids(
    world: World, sign_in: SignIn, organization: Organization
) -> None:
    browser = sign_in("IAM_OWNER", resource=Resource.INSTANCE, home=world.make_organization())
    robot = world.make_service_user_program(organization)
    text = exported(browser, organization).text
    with world.transaction_services() as services:
        services.organizations.remove(organization.id, principal=Principal.OPERATOR)
    browser.open(IMPORT)
    browser.submit({"document": file(text), "keep_ids": True}, form="page-form")
    assert browser.path == _page(organization)
    assert robot.access_token()


def test_import_lists_problems_by_path_and_keeps_input(world: World, instance_owner: Browser) -> None:
    domain = f"wrong-{world.make_organization().primary_domain}"
    application = {"name": "Web", "type": "web", "redirect_uris": ["ftp://x"]}
    typed = document(primary_domain=domain, projects=[{"name": "<b>", "applications": [application], "colour": "red"}])
    instance_owner.open(IMPORT)
    page = instance_owner.submit({"document": file(typed), "keep_ids": True}, form="page-form")
    assert page.status_int == 422
    listed = [item.text for item in page.html.select("#errors li")]
    assert page.html.select_one("#errors h2").text == "Check 2 fields"
    assert listed[0].startswith("Some places in the document need a correction.")
    assert listed[1].startswith("organization.projects[0].colour: ")
    assert listed[2].startswith("organization.projects[0].applications[0].redirect_uris: ")
    assert instance_owner.find_form("page-form")["keep_ids"].checked
    assert found(world, domain) is None


def test_import_of_malformed_document_shows_field_error(instance_owner: Browser) -> None:
    for typed, sentence in (
        ("", "Choose the exported file."),
        ('{\n  "format": }', "This is not valid JSON at line 2, column 13."),
        ("[1]", "This must be a JSON object."),
        ('{"a": "\\u0000"}', "The text contains a NUL character."),
        ('{"a": 1, "a": 2}', "The member “a” appears twice."),
        ("[" * 20_000, "This is nested too deeply."),
    ):
        instance_owner.open(IMPORT)
        page = instance_owner.submit({"document": file(typed)} if typed else {}, form="page-form")
        assert page.status_int == 422
        assert sentence in page.html.find(id="error-document").text


def test_import_form_sent_twice_creates_once(world: World, instance_owner: Browser) -> None:
    domain = f"twice-{world.make_organization().primary_domain}"
    instance_owner.open(IMPORT)
    again = instance_owner.tab()
    again.answers = instance_owner.answers
    instance_owner.submit({"document": file(document(primary_domain=domain))}, form="page-form")
    page = again.submit({"document": file(document(primary_domain=f"again-{domain}"))}, form="page-form")
    assert page.status_int == 409
    assert found(world, domain) is not None
    assert found(world, f"again-{domain}") is None


@pytest.mark.thorough
def test_import_file_size_limit(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.import_limit": "1"})
    person, browser = world.make_human_user(), Browser(world)
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser.start_session(person)
    user = {"given_name": "Anna", "family_name": "Meier", "nickname": "", "email": "anna.meier@acme.example"}
    users = [{"user_name": f"anna-{number}", **user} for number in range(1500)]
    page = browser.open(IMPORT)
    assert "up to 1 MiB" in page.html.find(id="hint-document").text
    browser.submit({"document": file(document(primary_domain="large.localhost", users=users))}, form="page-form")
    assert found(world, "large.localhost") is not None
    browser.open(IMPORT)
    page = browser.submit({"document": file(document(users=users * 10))}, form="page-form")
    assert page.status_int == 413
    assert "The file is larger than 1 MiB." in page.html.find(id="error-document").text


def test_expired_import_form_is_not_parsed(
    world: World, instance_owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = f"old-{world.make_organization().primary_domain}"
    instance_owner.open(IMPORT)
    form = instance_owner.find_form("page-form")
    form["csrf_token"].force_value("x" * 43)
    monkeypatch.setattr(StreamedOrganizationImport, "document", None)
    page = instance_owner.submit({"document": file(document(primary_domain=domain))}, form="page-form")
    assert page.status_int == 422
    assert "This page was open for too long." in page
    assert found(world, domain) is None


def test_import_requires_multipart_form(instance_owner: Browser) -> None:
    for content_type in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        instance_owner.open(IMPORT)
        sent = replace(instance_owner._from_page("POST", instance_owner.url, b"a=b"), content_type=content_type)
        assert instance_owner._go(sent).status_int in (400, 415)


def test_keeping_ids_requires_instance_manager(sign_in: SignIn) -> None:
    browser = sign_in("IAM_ORG_MANAGER", resource=Resource.INSTANCE)
    browser.open(IMPORT)
    assert "keep_ids" not in browser.find_form("page-form").fields
