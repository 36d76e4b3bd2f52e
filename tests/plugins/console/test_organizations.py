"""Organizations in the console: visibility and impact of deletion (pages.md §5.2)."""

import pytest

from identity.domain.deletion_impact import DeletionImpact
from identity.domain.organizations import Organization
from identity.domain.permissions import project_resource
from identity.services.container import Services
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _stored(world: World, organization: Organization) -> Organization | None:
    with world.read_only_services() as services:
        return services.storage.organizations.find(organization.id)


def _page(organization: Organization, below: str = "") -> str:
    return f"/console/organizations/{organization.id}{below}"


def test_new_organization_derives_domain_from_name(world: World, instance_owner: Browser) -> None:
    instance_owner.open("/console/organizations")
    instance_owner.click("New organization")
    page = instance_owner.submit({"name": "Blue Whale Ltd"}, form="page-form")
    assert "Organization created. Add a manager for it." in page
    assert page.html.h1.text == "Blue Whale Ltd"
    assert "blue-whale-ltd.id.example.com" in page


def test_invalid_organization_shows_field_errors_and_keeps_input(
    organization: Organization, instance_owner: Browser
) -> None:
    instance_owner.open("/console/organizations/new")
    for name, domain, at, message in (
        ("Grey Whale", "Grey Whale", "primary_domain", "Enter a domain such as acme.example"),
        ("Copy", organization.primary_domain, "primary_domain", "Another organization has this domain"),
        ("", "kept.example", "name", "Enter a name."),
    ):
        page = instance_owner.submit({"name": name, "primary_domain": domain}, form="page-form")
        assert page.status_int == 422
        assert message in page.html.find(id=f"error-{at}").text
        form = instance_owner.find_form("page-form")
        assert (form["name"].value, form["primary_domain"].value) == (name, domain)


def test_org_owner_sees_only_own_organization(world: World, owner: Browser, organization: Organization) -> None:
    other = world.make_organization()
    page = owner.open("/console/organizations")
    assert organization.name in page
    assert other.name not in page
    assert "/console/organizations/new" not in page
    assert owner.open(_page(other)).status_int == 404
    assert owner.open("/console/organizations/new").status_int == 403


def test_project_manager_sees_organization_without_link(
    world: World, sign_in: SignIn, organization: Organization
) -> None:
    browser = sign_in("PROJECT_OWNER", resource=project_resource(world.make_project(organization)))
    page = browser.open("/console/organizations")
    row = next(item for item in page.html.select("tbody tr") if organization.name in item.text)
    assert row.find("a") is None
    assert browser.open(_page(organization)).status_int == 403


def test_detail_page_shows_facts_and_managers(owner: Browser, organization: Organization) -> None:
    page = owner.open(_page(organization))
    assert page.html.h1.text == organization.name
    assert organization.id in page.html.find("dl", class_="facts").text
    assert organization.primary_domain in page.html.find(id="domains").text
    for action in ("Deactivate …", "Delete …"):
        assert action in page.html.select_one(".console__head .menu").text
    page = owner.click("Managers")
    assert page.html.h1.text == organization.name
    assert "ORG_OWNER" in page.html.select_one("tbody").text


def test_organization_edit_changes_name_domain_and_registration(
    world: World, owner: Browser, organization: Organization
) -> None:
    owner.open(_page(organization))
    owner.click("Change " + organization.name)
    fields = {"name": "Sperm Whale", "primary_domain": "sperm-whale.id.example.com", "registration": False}
    page = owner.submit(fields, form="page-form")
    assert "The changes are saved." in page
    assert "Only managers create accounts" in page
    stored = _stored(world, organization)
    assert stored is not None
    assert (stored.name, stored.primary_domain, stored.registration) == (
        "Sperm Whale",
        "sperm-whale.id.example.com",
        False,
    )


def test_empty_organization_name_is_refused(world: World, owner: Browser, organization: Organization) -> None:
    owner.open(_page(organization, "/edit"))
    page = owner.submit({"name": "", "primary_domain": ""}, form="page-form")
    assert page.status_int == 422
    assert page.html.find(id="error-name") is not None
    assert page.html.find(id="error-primary_domain") is not None
    assert _stored(world, organization) == organization


def test_deactivating_own_organization_warns_of_sign_out(owner: Browser, organization: Organization) -> None:
    page = owner.open(_page(organization, "/deactivate"))
    assert "You belong to this organization: you are signed out too." in page
    assert "A manager of the instance can reactivate it later." in page
    owner.submit(form="page-form")
    assert owner.sign_in_step is not None, "the session has ended"


def test_instance_organization_cannot_be_deleted(world: World, instance_owner: Browser) -> None:
    own_path = f"/console/organizations/{world.instance.organization_id}"
    page = instance_owner.open(own_path)
    assert "This organization holds the service itself: it cannot be deactivated or deleted." in page
    assert "Delete …" not in page
    instance_owner.open(f"{own_path}/deactivate")
    page = instance_owner.submit(form="page-form")
    assert page.status_int == 409
    assert "The instance's own organization holds the service itself" in page.html.text


def test_deletion_of_too_many_objects_to_count_says_at_least(
    owner: Browser, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = DeletionImpact(users=1000, sessions=1, is_exact=False)
    monkeypatch.setattr(Services, "deletion_impact", lambda *_: some)
    lines = [item.text for item in owner.open(_page(organization, "/delete")).html.select("#page-form li")]
    assert lines[-2:] == ["at least 1,000 users", "at least 1 session"]
