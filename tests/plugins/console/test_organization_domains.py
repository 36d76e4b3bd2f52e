"""Domains of an organization in the console: add, verify, make primary, remove."""

from dataclasses import replace

import pytest

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.organizations import Organization
from identity.domain.users import EmailVerifier
from identity.testing.browser import Browser
from identity.testing.world import World


def _page(organization: Organization, name: str = "", below: str = "") -> str:
    return f"/console/organizations/{organization.id}" + (f"/domains/{name}{below}" if name else "")


@pytest.fixture
def name(organization: Organization) -> str:
    """A unique domain."""
    return f"{organization.id}.example"


@pytest.fixture
def published(world: World, monkeypatch: pytest.MonkeyPatch) -> list[DomainProof]:
    """The proofs that domain checks find; initially none."""
    domain_proofs: list[DomainProof] = []

    def find(domain: OrganizationDomain) -> DomainProof | None:
        return domain_proofs[0] if domain_proofs else None

    monkeypatch.setattr(world.identity.domain_verifier, "find_proof", find)
    return domain_proofs


def test_domain_life_cycle(owner: Browser, organization: Organization, name: str, published: list[DomainProof]) -> None:
    owner.open(_page(organization))
    owner.click("New domain")
    page = owner.submit({"domain": "No Domain"}, form="page-form")
    assert "Enter a domain such as acme.example" in page.html.find(id="error-domain").text
    page = owner.submit({"domain": name}, form="page-form")
    assert "Domain added. It becomes active once it is verified." in page
    assert "Waiting" in page.html.find(class_="console__title").text
    assert "Assert …" not in page
    assert "Make primary …" not in page
    page = owner.click("Verify …")
    assert f"_identity-challenge.{name}" in page
    assert "identity-verification=" in page
    assert f"https://{name}/.well-known/identity-verification" in page
    page = owner.submit(form="page-form")
    assert page.status_int == 422
    assert "Neither the record nor the file was found." in page
    published.append(DomainProof.DNS)
    page = owner.submit(form="page-form")
    assert "The domain is verified. You can make it the primary one." in page
    assert "Verified" in page.html.find(class_="console__title").text
    assert "DNS record" in page.html.find("dl", class_="facts").text
    # The primary domain cannot be removed.
    assert "Remove …" not in page
    page = owner.click("Make primary …")
    assert f"anna@{organization.primary_domain} becomes anna@{name}" in page
    page = owner.submit(form="page-form")
    assert "The changes are saved." in page
    row = next(item for item in page.html.find(id="domains").select("tbody tr") if name in item.text)
    assert "Primary domain" in row.text
    # The former primary domain stays.
    assert organization.primary_domain in page.html.find(id="domains").text


def test_pending_domain_is_removed(owner: Browser, organization: Organization, name: str) -> None:
    owner.open(f"{_page(organization)}/domains/new")
    owner.submit({"domain": name}, form="page-form")
    page = owner.click("Remove …")
    assert "The record and the file are no longer valid for verification." in page
    page = owner.submit(form="page-form")
    assert "Domain removed." in page
    assert name not in page.html.find(id="domains").text
    assert owner.open(_page(organization, name)).status_int == 404


def test_instance_manager_asserts_and_removes_domain(
    owner: Browser, instance_owner: Browser, organization: Organization, name: str
) -> None:
    owner.open(f"{_page(organization)}/domains/new")
    owner.submit({"domain": name}, form="page-form")
    assert owner.open(_page(organization, name, "/assert")).status_int == 403
    instance_owner.open(_page(organization, name))
    instance_owner.click("Assert …")
    page = instance_owner.submit(form="page-form")
    assert "The domain is asserted." in page
    assert "Asserted by a manager of the instance" in page.html.find("dl", class_="facts").text
    page = instance_owner.click("Remove …")
    assert "Another organization can then claim it." in page
    assert "Domain removed." in instance_owner.submit(form="page-form")


def test_sign_in_loss_is_shown_only_when_permitted(
    world: World,
    owner: Browser,
    instance_owner: Browser,
    organization: Organization,
    name: str,
    published: list[DomainProof],
) -> None:
    """Managers must not learn who uses addresses of an unverified domain."""
    for home, email_verifier in (
        (world.make_organization(), EmailVerifier.OWN_LINK),
        (organization, EmailVerifier.MANAGER),
    ):
        person = world.make_human_user(home)
        with world.transaction_services() as services:
            profile = replace(person.profile, email=f"ada@{name}", email_verified=True)
            services.storage.users.update(replace(person, profile=profile, email_verified_by=email_verifier, version=2))
    lost = "1 person of another organization can no longer sign in by an email address of this domain."
    owner.open(f"{_page(organization)}/domains/new")
    assert lost not in owner.submit({"domain": name}, form="page-form")
    assert lost not in owner.click("Verify …")
    assert lost in instance_owner.open(_page(organization, name, "/assert"))
    published.append(DomainProof.DNS)
    assert lost in owner.submit(form="page-form")


def test_pending_domain_cannot_be_primary(world: World, owner: Browser, organization: Organization, name: str) -> None:
    owner.open(f"{_page(organization)}/domains/new")
    owner.submit({"domain": name}, form="page-form")
    owner.open(_page(organization, name, "/primary"))
    page = owner.submit(form="page-form")
    assert page.status_int == 409
    assert "This domain must be verified first." in page
    with world.read_only_services() as services:
        assert services.organizations.get(organization.id).primary_domain == organization.primary_domain
