"""Single-file sample plugins in a service: a second factor with a claim and a page."""

from pathlib import Path

import pytest

from identity.api.entities import HumanUser
from identity.api.testing import (
    Browser,
    RelyingParty,
    World,
    WorldFactory,
    check_page,
    set_password,
)
from tests.house.plugin_fixtures import SamplePlugins

pytestmark = pytest.mark.storages("memory")

FOLDER = Path(__file__).parent / "sample_plugins"


@pytest.fixture
def world(make_world: WorldFactory, sample_plugins: SamplePlugins) -> World:
    return make_world(**{"identity.plugins": sample_plugins("pin")})


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


def test_each_sample_is_tried_here() -> None:
    names = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert names == {"pin", "file_storage"}


# --- PIN --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def enrolled(world: World, person: HumanUser) -> HumanUser:
    """A user who has set the PIN 2580 in the account."""
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/login?target=/account/security&enrol=pin")
    browser.submit({"pin": "12"}, form="page-form")
    check_page(browser.page, 422)
    browser.submit({"pin": "2580"}, form="page-form")
    assert browser.path == "/account/security"
    return person


def test_pin_is_asked_for_after_the_password_and_opens_its_claim(world: World, enrolled: HumanUser) -> None:
    party, browser = RelyingParty.register(world), Browser(world)
    request = party.new_request(scope="openid pin")
    browser.open(request.url, initiator=party.origin)
    browser.sign_in(set_password(world, enrolled))
    assert browser.sign_in_step == "pin"
    browser.submit({"pin": "0000"}, form="page-form")
    check_page(browser.page, 422)
    browser.submit({"pin": "2580"}, form="page-form")
    tokens = party.obtain_tokens(browser.page, request)
    claims = world.client.fetch_userinfo(tokens.access_token).json
    assert claims["pin_since"] == world.clock().isoformat()


def test_managers_see_who_has_a_pin(world: World, enrolled: HumanUser) -> None:
    browser = Browser(world)
    browser.start_session(enrolled)
    world.assign_manager_role(enrolled, "ORG_USER_MANAGER")
    page = check_page(browser.open(f"/console/organizations/{enrolled.organization_id}/pins"), title="PINs")
    (row,) = page.select("tbody tr")
    assert "–" not in row.get_text()
