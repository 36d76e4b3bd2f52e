"""Single-file sample plugins in a service: a second factor with a claim and a page, and a grant with its endpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from identity.api.entities import HumanUser
from identity.api.testing import (
    Browser,
    GrantTypeContract,
    RelyingParty,
    ValidTokenRequest,
    World,
    WorldFactory,
    check_oauth_error,
    check_page,
    check_token_response,
    set_password,
)
from tests.house.plugin_fixtures import SamplePlugins
from tests.house.sample_plugins.device import GRANT_TYPE, PAGE_PATH

pytestmark = pytest.mark.storages("memory")

FOLDER = Path(__file__).parent / "sample_plugins"


@pytest.fixture
def world(make_world: WorldFactory, sample_plugins: SamplePlugins) -> World:
    return make_world(**{"identity.plugins": sample_plugins("pin", "device")})


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


def test_each_sample_is_tried_here() -> None:
    names = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert names == {"pin", "device", "file_storage"}


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


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def television(world: World) -> Any:
    """The credentials of an application that may use the grant."""
    return world.make_application(grant_types=frozenset({GRANT_TYPE}))


def begin(world: World, television: Any) -> dict[str, Any]:
    """The response of the endpoint to a device."""
    address = world.client.discovery["device_authorization_endpoint"]
    answer = world.client.post(address, {"scope": "openid"}, {"Authorization": television.header})
    assert answer.status_int == 200
    members: dict[str, Any] = answer.json
    return members


def approve(world: World, person: HumanUser, user_code: str) -> None:
    browser = Browser(world)
    browser.start_session(person)
    browser.open(PAGE_PATH)
    browser.submit({"code": "WRONG"}, form="page-form")
    check_page(browser.page, 422)
    browser.submit({"code": user_code}, form="page-form")
    check_page(browser.page, title="Connect a device")


@pytest.mark.exhaustive
class TestDeviceGrant(GrantTypeContract):
    grant_type = GRANT_TYPE
    required = frozenset({"device_code"})
    is_single_use = True

    @pytest.fixture
    def valid_request(self, world: World, television: Any, person: HumanUser) -> Callable[[], ValidTokenRequest]:
        def make_request() -> ValidTokenRequest:
            begun = begin(world, television)
            approve(world, person, begun["user_code"])
            return ValidTokenRequest({"device_code": begun["device_code"]}, {"Authorization": television.header})

        return make_request


def test_device_waits_for_its_user_and_gets_tokens_once(world: World, television: Any, person: HumanUser) -> None:
    begun = begin(world, television)
    form = {"grant_type": GRANT_TYPE, "device_code": begun["device_code"]}
    headers = {"Authorization": television.header}
    check_oauth_error(world.client.request_token(form, headers), "authorization_pending")
    approve(world, person, begun["user_code"])
    members = check_token_response(world.client.request_token(form, headers))
    assert world.client.fetch_userinfo(members["access_token"]).json["sub"] == person.id
    check_oauth_error(world.client.request_token(form, headers), "invalid_grant")
