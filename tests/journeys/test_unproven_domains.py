"""An unproven domain has no effect, no matter how it was entered, who reads it or how it is spelled."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.crypto.secrets import new_id
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.world import World
from tests.journeys.domain_requests import api_of, manager, path_of, request_domain

pytestmark = pytest.mark.storages("memory")

#: A domain that no organization here can verify.
FOREIGN = "microsoft.com"


def _created(world: World) -> str:
    created = manager(world, "IAM_ORG_MANAGER").post("/organizations", {"name": "Evil", "primary_domain": FOREIGN})
    return str(created["id"])


def _changed(world: World) -> str:
    organization = world.make_organization()
    path = f"/organizations/{organization.id}"
    assert api_of(world, organization).patch(path, {"primary_domain": FOREIGN})["primary_domain"] != FOREIGN
    return organization.id


def _request_domain(world: World) -> str:
    organization = world.make_organization()
    request_domain(api_of(world, organization), organization, FOREIGN)
    return organization.id


def _typed(world: World) -> str:
    organization = world.make_organization()
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(person)
    browser.open(f"/console/organizations/{organization.id}/edit")
    browser.submit({"primary_domain": FOREIGN}, form="page-form")
    return organization.id


def _imported(world: World) -> str:
    organization = {"name": "Evil", "primary_domain": FOREIGN}
    document = {"format": "identity-organization", "version": 1, "instance": new_id(), "organization": organization}
    return str(manager(world, "IAM_ORG_MANAGER").post("/organizations/import", document)["id"])


DOORS = {"create": _created, "change": _changed, "ask": _request_domain, "console": _typed, "import": _imported}

ROLES = "urn:service:iam:org:projects:roles"


def _signs_in(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether a sign-in as user@name succeeds on the login page."""
    set_password(world, person)
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(f"{person.user_name}@{name}")
    return browser.path == "/account/profile"


def _is_scope(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether the scope ``…:org:domain:primary:name``, which only members of the organization get, is granted."""
    client = world.make_web_application(world.make_project(organization).id)
    scope = f"openid urn:service:iam:org:domain:primary:{name}"
    answer = world.make_browser_session(person).authorize(client, scope=scope, prompt="none")
    members = parse_qs(urlsplit(answer.headers["Location"]).query)
    return "code" in members


def _is_claimed(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether the name is in role claims (role → {organization id: primary domain}) or claims of the resource owner."""
    project = world.make_project(organization, roles=["reader"])
    world.make_user_grant(person, project, "reader")
    client = world.make_web_application(project.id)
    scope = f"openid profile email {ROLES} urn:service:iam:user:resourceowner"
    token = world.obtain_tokens(client, world.make_browser_session(person), scope=scope)["access_token"]
    responses: str = world.client.fetch_userinfo(token).text + world.client.introspect(token, client).text
    assert "primary_domain" in responses
    return name in responses


def _is_on_login_pages(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether sign-in pages show it as the domain of the application's organization or of the user's."""
    client = world.make_web_application(world.make_project(organization).id)
    browser = Browser(world)
    pages = []
    login_name = set_password(world, person)
    for parameters in ({}, {"scope": f"openid urn:service:iam:org:id:{organization.id}"}):
        browser.open(
            world.make_browser_session(person).authorize(client, **parameters, prompt="login").headers["Location"]
        )
        pages.append(browser.page.text)
    browser.open("/account")
    browser.sign_in(login_name)
    pages.append(browser.page.text)
    return any(name in page for page in pages)


def _is_represented(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether the API returns it for the organization or for the caller."""
    api = api_of(world, organization)
    documents = [api.get("/me"), api.get(f"/organizations/{organization.id}"), api.list("/organizations")]
    return name in str(documents)


def _is_found(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether programs, `apply` and documents find the organization by this domain."""
    with world.read_only_services() as services:
        return services.storage.organizations.find_by_domain(name) is not None


def _is_exported(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Whether the organization's document contains it, which could create it elsewhere."""
    api = manager(world, "IAM_OWNER")
    return name in str(api.post(f"/organizations/{organization.id}/export", status=200))


READERS: dict[str, Callable[[World, Organization, HumanUser, str], bool]] = {
    "login name": _signs_in,
    "domain scope": _is_scope,
    "claims": _is_claimed,
    "login pages": _is_on_login_pages,
    "management API": _is_represented,
    "programs": _is_found,
    "document": _is_exported,
}


@pytest.mark.parametrize("door", DOORS)
def test_unproven_domain_appears_nowhere(isolated_world: World, door: str) -> None:
    api, organization_id = manager(isolated_world, "IAM_OWNER"), DOORS[door](isolated_world)
    with isolated_world.read_only_services() as services:
        organization = services.organizations.get(organization_id)
        assert services.domains.get(organization_id, FOREIGN).proof is None
    person = isolated_world.make_human_user(organization)
    for reader, says in READERS.items():
        assert not says(isolated_world, organization, person, FOREIGN), f"{reader} says it"
    # Once the domain counts, each of these contains it.
    assert api.patch(f"/organizations/{organization_id}", {"primary_domain": FOREIGN})["primary_domain"] == FOREIGN
    with isolated_world.read_only_services() as services:
        organization = services.organizations.get(organization_id)
    for reader, says in READERS.items():
        if reader != "login pages":
            assert says(isolated_world, organization, person, FOREIGN), f"{reader} does not say it"


def test_unproven_domain_is_refused_in_every_spelling(isolated_world: World) -> None:
    """Unicode, punycode, dots and case; IP addresses and single labels; hosts of the service; and others' names."""
    acme = isolated_world.make_organization(name="Acme")
    evil = isolated_world.make_organization(name="Evil")
    api = api_of(isolated_world, evil)
    spellings = [
        *(FOREIGN, "MICROSOFT.com", "microsoft.com.", ".microsoft.com", "microsoft..com", "microsoft.com\n"),
        *("microsоft.com", "ｍicrosoft.com", "microsoft。com", "xn--mirosoft-cgb.com", "microsoft.com "),
        *("microsoft.com@evil.example", "com", "co.uk", "microsoft", "localhost", "127.0.0.1", "2130706433"),
        *("[::1]", "::1", "0x7f.1", "id.example.com", "ID.example.com", "example.com", "login.id.example.com."),
        *(acme.primary_domain, acme.primary_domain.upper(), f"evil.{acme.primary_domain}"),
        f"xn--acme-9ya.{acme.primary_domain.partition('.')[2]}",
        *("x" * 64 + ".example", ".".join(["x" * 60] * 5)),
    ]
    for name in spellings:
        answers = [
            api.ask("PATCH", f"/organizations/{evil.id}", {"primary_domain": name}),
            api.ask("POST", path_of(evil), {"domain": name}),
            api.ask("POST", "/organizations", {"name": "Evil", "primary_domain": name}),
        ]
        assert {answer.status_int for answer in answers} <= {200, 201, 403, 422}, name
        with isolated_world.read_only_services() as services:
            assert services.organizations.get(evil.id).primary_domain == evil.primary_domain, name
            counting = [domain.name for domain in services.domains.list_by_organization(evil.id) if domain.is_effective]
            assert counting == [evil.primary_domain], name
    assert evil.primary_domain == "evil.id.example.com"
