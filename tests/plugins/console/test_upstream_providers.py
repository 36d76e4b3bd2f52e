"""Identity providers in the console: registration, which starts with the redirect URI, and changes."""

import re
from typing import Any

from identity.domain.organizations import Organization
from identity.testing.browser import Browser
from identity.testing.world import World

FORM = {"name": "Company", "kind": "openid", "client_id": "identity", "issuer": "https://login.example.com"}
SECRET = "s3cret-of-the-provider"
KEEPING = "Leave empty to keep the current one."


def new(owner: Browser, organization: Organization) -> Any:
    return owner.open(f"/console/organizations/{organization.id}/upstream-providers/new")


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
    assert "Client secret is missing" not in page
    assert shown_uri.endswith(owner.path.rpartition("/")[2])


def test_new_provider_requires_a_secret(owner: Browser, organization: Organization) -> None:
    assert KEEPING not in new(owner, organization)
    page = owner.submit(FORM, form="page-form")
    assert page.status_int == 422
    assert "Enter the client secret." in page.html.find(id="error-client_secret").text
    owner.submit({**FORM, "client_secret": SECRET}, form="page-form")
    assert KEEPING in owner.open(f"{owner.path}/edit")


def test_provider_with_private_key_jwt_needs_no_secret(owner: Browser, organization: Organization) -> None:
    new(owner, organization)
    page = owner.submit({**FORM, "authentication": "private_key_jwt"}, form="page-form")
    assert page.status_int == 200
    assert KEEPING not in owner.open(f"{owner.path}/edit")


def test_new_provider_redirect_uri_cannot_be_chosen(world: World, owner: Browser, organization: Organization) -> None:
    provider = world.make_upstream_provider()
    new(owner, organization)
    owner.submit({**FORM, "client_secret": SECRET, "once": provider.id}, form="page-form")
    assert not owner.path.endswith(provider.id)
    assert world.operator_services.upstream_providers.get(provider.id).name == provider.name
    new(owner, organization)
    page = owner.submit({**FORM, "client_secret": SECRET, "once": provider.id}, form="page-form")
    assert page.status_int == 409
