"""Identity providers in the console: registration, which starts with the redirect URI, and changes."""

import re
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.testing.browser import Browser
from identity.testing.world import World

FORM = {"name": "Company", "client_id": "identity", "issuer": "https://login.example.com"}
SECRET = "s3cret-of-the-provider"
KEEPING = "Leave empty to keep the current one."


def new(owner: Browser, organization: Organization, kind: str = "openid") -> Any:
    return owner.open(f"/console/organizations/{organization.id}/upstream-providers/new?kind={kind}")


def redirect_uri(page: Any) -> str:
    (found,) = set(re.findall(r"https://[^<\" ]*/login/upstream/[0-9a-f-]{36}", page.html.find("main").text))
    return str(found)


def test_redirect_uri_of_a_new_provider_stays_when_it_is_saved(owner: Browser, organization: Organization) -> None:
    first = redirect_uri(new(owner, organization))
    assert redirect_uri(new(owner, organization)) != first, "each form makes another one"
    shown_uri = redirect_uri(new(owner, organization))
    page = owner.submit({**FORM, "name": "", "client_secret": SECRET}, form="page-form")
    assert (page.status_int, redirect_uri(page)) == (422, shown_uri)
    page = owner.submit({**FORM, "client_secret": SECRET}, form="page-form")
    assert (page.status_int, redirect_uri(page)) == (200, shown_uri)
    assert owner.path.endswith(f"{shown_uri.rpartition('/')[2]}/test")


def test_new_provider_requires_a_secret(owner: Browser, organization: Organization) -> None:
    assert KEEPING not in new(owner, organization)
    page = owner.submit(FORM, form="page-form")
    assert page.status_int == 422
    assert "Enter the client secret." in page.html.find(id="error-client_secret").text
    owner.submit({**FORM, "client_secret": SECRET}, form="page-form")
    assert KEEPING in owner.open(f"{owner.path.removesuffix('/test')}/edit")


def test_provider_with_private_key_jwt_needs_no_secret(owner: Browser, organization: Organization) -> None:
    new(owner, organization)
    page = owner.submit({**FORM, "authentication": "private_key_jwt"}, form="page-form")
    assert page.status_int == 200
    assert KEEPING not in owner.open(f"{owner.path.removesuffix('/test')}/edit")


def test_applications_that_use_assertions_are_listed_by_line(
    world: World, owner: Browser, organization: Organization
) -> None:
    provider = world.make_upstream_provider(organization)
    owner.open(f"/console/upstream-providers/{provider.id}/edit")
    page = owner.submit({"identity_assertion_clients": "abc https://a.example/\n\ndef"}, form="page-form")
    lines = [item.text for item in page.html.select("dd .identifier code")]
    assert {"abc https://a.example/", "def"} <= set(lines)


def test_new_provider_redirect_uri_cannot_be_chosen(world: World, owner: Browser, organization: Organization) -> None:
    provider = world.make_upstream_provider()
    new(owner, organization)
    owner.submit({**FORM, "client_secret": SECRET, "once": provider.id}, form="page-form")
    assert provider.id not in owner.path
    assert world.operator_services.upstream_providers.get(provider.id).name == provider.name
    new(owner, organization)
    page = owner.submit({**FORM, "client_secret": SECRET, "once": provider.id}, form="page-form")
    assert page.status_int == 409


# --- kinds -----------------------------------------------------------------------------------------------------------

TENANT = "8c1f2f4e-52f1-4b6a-9f0c-6f5f0d1f27aa"
CASES = {
    "google": ({}, ""),
    "entra": ({"tenant_id": f" {TENANT.upper()} "}, f"https://login.microsoftonline.com/{TENANT}/v2.0"),
    "github": ({"host": "github.com"}, ""),
    "gitlab": ({"host": "https://git.company.example/"}, "https://git.company.example"),
    "okta": ({"domain": "company.okta.com/oauth2/default"}, "https://company.okta.com/oauth2/default"),
    "keycloak": (
        {"base_url": "https://id.company.example/", "realm": "staff"},
        "https://id.company.example/realms/staff",
    ),
    "openid": ({"issuer": "https://login.example.com/"}, "https://login.example.com/"),
}


def created(world: World, owner: Browser) -> UpstreamProvider:
    provider_id = owner.path.removesuffix("/test").rpartition("/")[2]
    provider: UpstreamProvider = world.operator_services.upstream_providers.get(provider_id)
    return provider


@pytest.mark.parametrize("kind", CASES)
def test_kind_asks_for_its_own_fields(world: World, owner: Browser, organization: Organization, kind: str) -> None:
    values, issuer = CASES[kind]
    new(owner, organization, kind)
    page = owner.submit({**values, "client_id": "app", "client_secret": SECRET, "name": "One"}, form="page-form")
    assert page.status_int == 200
    provider = created(world, owner)
    assert (provider.kind.value, provider.issuer, provider.active) == (kind, issuer, False)
    owner.open(f"/console/upstream-providers/{provider.id}/edit")
    owner.submit({"name": "Two"}, form="page-form")
    changed = world.operator_services.upstream_providers.get(provider.id)
    assert (changed.name, changed.issuer) == ("Two", issuer), "the edit form shows what was stored"


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("entra", {"tenant_id": "common"}, "tenant_id"),
        ("entra", {"tenant_id": ""}, "tenant_id"),
        ("okta", {"domain": ""}, "domain"),
        ("okta", {"domain": "http://company.okta.com"}, "domain"),
        ("okta", {"domain": "company.okta.com?x"}, "domain"),
        ("gitlab", {"host": "git company"}, "host"),
        ("keycloak", {"base_url": "https://id.example", "realm": ""}, "realm"),
        ("keycloak", {"base_url": "", "realm": "staff"}, "base_url"),
        ("keycloak", {"base_url": "https://id.example", "realm": "a/b"}, "base_url"),
    ],
)
def test_kind_names_the_field_that_is_wrong(
    owner: Browser, organization: Organization, kind: str, values: dict[str, str], field: str
) -> None:
    new(owner, organization, kind)
    page = owner.submit({**values, "client_id": "app", "client_secret": SECRET, "name": "One"}, form="page-form")
    assert page.status_int == 422
    assert page.html.find(id=f"error-{field}") is not None


def test_apple_asks_for_team_and_key(world: World, owner: Browser, organization: Organization) -> None:
    pem = (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        .decode()
    )
    new(owner, organization, "apple")
    page = owner.submit({"client_id": "com.example", "client_secret": pem}, form="page-form")
    assert {item["id"] for item in page.html.select(".field__error")} == {"error-team_id", "error-key_id"}
    page = owner.submit({"team_id": "TEAM", "key_id": "KEY", "client_secret": "no key"}, form="page-form")
    assert page.html.find(id="error-client_secret") is not None
    owner.submit({"client_secret": pem}, form="page-form")
    provider = created(world, owner)
    assert (provider.team_id, provider.key_id, provider.name) == ("TEAM", "KEY", "Apple")


def test_provider_is_turned_on_at_once_if_asked(world: World, owner: Browser, organization: Organization) -> None:
    new(owner, organization)
    owner.submit({**FORM, "client_secret": SECRET}, form="page-form", button=("next", "on"))
    assert created(world, owner).active


@pytest.mark.parametrize("kind", ["", "?kind=unknown"])
def test_new_provider_begins_with_kinds(owner: Browser, organization: Organization, kind: str) -> None:
    page = owner.open(f"/console/organizations/{organization.id}/upstream-providers/new{kind}")
    assert len(page.html.select("a.pick")) == 8
    assert page.html.find(id="page-form") is None
    assert not page.html.select("a.pick[aria-current]")
