"""The console page that sets up a provisioning program."""

import re

import pytest

from identity.domain.organizations import Organization
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.scim.scim_client import ScimClient

pytestmark = pytest.mark.storages("memory")


def make_browser(world: World, organization: Organization, role: str) -> Browser:
    person = world.make_human_user(organization)
    world.assign_manager_role(person, role)
    browser = Browser(world)
    browser.start_session(person)
    return browser


def test_owner_sets_up_a_program_with_one_button(world: World) -> None:
    organization = world.make_organization()
    browser = make_browser(world, organization, "ORG_OWNER")
    browser.open(f"/console/organizations/{organization.id}")
    browser.open(browser.page.html.find("a", string="Provisioning")["href"])
    page = browser.submit({"display_name": "Microsoft Entra"}, form="page-form")
    assert page.status_int == 200
    token = page.html.find(id="secret-value").get_text()
    world.client.secrets.add(token)
    [base_url] = re.findall(r"https://[^<]*/scim/v2/[0-9a-f-]+", page.html.find(id="base-url").get_text())
    scim = ScimClient(world, token, organization.id)
    assert base_url == scim.base_url
    assert scim.create_user("ada")["active"]
    again = browser.open(browser.path)
    assert "Microsoft Entra" in again.html.find(id="programs").get_text()
    assert again.html.find(id="secret-value") is None
    actions = {event.event for event in world.audit_events(organization_id=organization.id)}
    assert actions >= {"service_user.created", "manager.added", "personal_access_token.added"}


def test_only_those_who_may_grant_the_role_set_up_programs(world: World) -> None:
    organization = world.make_organization()
    path = f"/console/organizations/{organization.id}/scim"
    viewer = make_browser(world, organization, "ORG_OWNER_VIEWER")
    assert viewer.open(path).html.find(id="page-form") is None
    assert make_browser(world, organization, "ORG_USER_MANAGER").open(path).status_int == 403
    assert make_browser(world, world.make_organization(), "ORG_OWNER").open(path).status_int == 404
