"""The console page of the instance (pages.md §5.2)."""

import pytest

from identity.domain.permissions import Resource
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def test_instance_page_shows_identifiers_to_every_manager(world: World, sign_in: SignIn) -> None:
    page = sign_in("ORG_PROJECT_CREATOR").open("/console/instance")
    settings = world.identity.settings
    copied = {item["data-copy"] for item in page.html.select("[data-copy]")}
    assert copied == {
        settings.issuer_url,
        settings.base_url,
        settings.login_url,
        world.instance.project_id,
        world.instance.organization_id,
        world.audience_scope(),
    }
    for absent in ("managers", "plugins", "expiring", "refused"):
        assert page.html.find(id=absent) is None


def test_instance_page_is_complete_for_instance_owner(world: World, sign_in: SignIn) -> None:
    page = sign_in("IAM_OWNER", resource=Resource.INSTANCE).open("/console/instance")
    assert "IAM_OWNER" in page.html.find(id="managers").text
    assert "Add manager" in page
    assert "jwt_bearer" in page.html.find(id="plugins").text
    assert f"/console/organizations/{world.instance.organization_id}" in page


@pytest.mark.parametrize("role", ["IAM_ORG_MANAGER", "IAM_USER_MANAGER"])
def test_instance_page_hides_managers_from_other_instance_roles(sign_in: SignIn, role: str) -> None:
    page = sign_in(role, resource=Resource.INSTANCE).open("/console/instance")
    assert page.html.find(id="managers") is None
    assert page.html.find(id="plugins") is None


def test_instance_administrators_page_has_consistent_titles(instance_owner: Browser) -> None:
    """Navigation link, heading and title."""
    instance_owner.open("/console/instance")
    page = instance_owner.page.html
    [item] = page.select(".rail__item[aria-current]")[:1]
    assert item.get_text(strip=True) == page.h1.get_text(strip=True) == "Instance overview"
    assert page.title.get_text().startswith("Instance overview")


def test_instance_page_shows_what_the_checks_say(world: World, instance_owner: Browser) -> None:
    """They run in the background, after somebody has asked for them."""
    page = instance_owner.open("/console/instance")
    assert "The checks are running." in page.html.find(id="checks").text
    world.identity.system_monitor.run()
    page = instance_owner.open("/console/instance")
    assert "proxy" in [row.th.text for row in page.html.select("#checks tbody tr")]
    assert "The check “proxy” failed" in page.html.find(id="attention").text
    assert "Size: " in page.html.find(id="health").text
    token = world.make_manager_program("IAM_OWNER_VIEWER", resource=Resource.INSTANCE).management_token()
    report = world.client.call_management_api("/instance/system-report", token)
    checks = {check["name"]: check["problem"] for check in report.json["checks"]}
    assert checks["storage"] is None
    assert "identity.trusted_proxy" in checks["proxy"]


def test_checks_need_instance_read(world: World, sign_in: SignIn) -> None:
    page = sign_in("IAM_ORG_MANAGER", resource=Resource.INSTANCE).open("/console/instance")
    assert page.html.find(id="checks") is None
