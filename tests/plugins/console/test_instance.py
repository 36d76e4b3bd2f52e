"""The page of the instance (pages.md §5.2)."""

import pytest

from identity.domain.permissions import INSTANCE_RESOURCE
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def test_every_manager_finds_what_programs_have_to_know(world: World, sign_in: SignIn) -> None:
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


def test_an_owner_of_the_instance_sees_the_rest(world: World, sign_in: SignIn) -> None:
    page = sign_in("IAM_OWNER", resource=INSTANCE_RESOURCE).open("/console/instance")
    assert "IAM_OWNER" in page.html.find(id="managers").text
    assert "Add manager" in page
    assert "jwt_bearer" in page.html.find(id="plugins").text
    assert f"/console/organizations/{world.instance.organization_id}" in page


@pytest.mark.parametrize("role", ["IAM_ORG_MANAGER", "IAM_USER_MANAGER"])
def test_other_managers_of_all_organizations_see_no_managers_of_the_instance(sign_in: SignIn, role: str) -> None:
    page = sign_in(role, resource=INSTANCE_RESOURCE).open("/console/instance")
    assert page.html.find(id="managers") is None
    assert page.html.find(id="plugins") is None


def test_instance_administrators_have_one_name(instance_owner: Browser) -> None:
    """The way there, the page and its title."""
    instance_owner.open("/console/instance")
    page = instance_owner.page.html
    [item] = page.select(".navigation a[aria-current]")[:1]
    assert item.get_text(strip=True) == page.h1.get_text(strip=True) == "Instance administrators"
    assert page.title.get_text().startswith("Instance administrators")
