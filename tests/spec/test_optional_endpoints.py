"""A service without the plugins for introspection, revocation and logout starts, and does not announce them."""

import pytest

from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")  # the plugins matter, not the storage

#: The discovery member and path of each optional plugin.
OPTIONAL = {
    "introspection": ("introspection_endpoint", "/oauth/v2/introspect"),
    "revocation": ("revocation_endpoint", "/oauth/v2/revoke"),
    "end_session": ("end_session_endpoint", "/oauth/v2/endsession"),
}


def make_world_without(make_world: WorldFactory, *left_out: str) -> World:
    plugins = " ".join(name for name in DEFAULT_PLUGINS.split() if name not in left_out)
    return make_world(**{"identity.plugins": f"memory {plugins}"})


@pytest.mark.parametrize("plugin", OPTIONAL)
def test_endpoint_of_an_absent_plugin_is_unknown(make_world: WorldFactory, plugin: str) -> None:
    world, (member, path) = make_world_without(make_world, plugin), OPTIONAL[plugin]
    document = world.client.get(world.issuer + DISCOVERY_PATH).json
    assert not [name for name in document if name.startswith(member)]
    assert {name for name, _ in OPTIONAL.values() if name in document} == {
        name for name, _ in OPTIONAL.values() if name != member
    }
    for method in ("GET", "POST"):
        for address in (path, f"{path}/01a22020-bfda-77a8-a5e0-765a2c752e4b"):
            assert world.client.request(method, world.issuer + address).status_int == 404, (method, address)


def test_sign_in_and_tokens_need_no_optional_endpoint(make_world: WorldFactory) -> None:
    world = make_world_without(make_world, *OPTIONAL)
    party, browser = RelyingParty.register(world), Browser(world)
    browser.start_session(world.make_human_user())
    tokens = party.sign_in_silently(browser, "code", "openid offline_access", prompt="none")
    assert party.fetch_userinfo(tokens)["sub"] == tokens.claims["sub"]
    assert party.refresh(tokens.refresh_token).status_int == 200
    robot = world.make_manager_program("ORG_OWNER")
    assert world.client.call_management_api("/me", robot.management_token()).status_int == 200
    browser.open("/sign-out")
    browser.submit(form="page-form")
    check_page(browser.page, 200, "You are signed out")
    assert world.client.fetch_userinfo(tokens.access_token).status_int == 401


def test_console_and_preview_name_no_absent_endpoint(make_world: WorldFactory) -> None:
    world = make_world_without(make_world, *OPTIONAL)
    organization = world.make_organization()
    manager = world.make_human_user(organization)
    world.assign_manager_role(manager, "ORG_OWNER")
    client = world.make_web_application(world.make_project(organization).id)
    browser = Browser(world)
    browser.start_session(manager)
    page = browser.open(f"/console/applications/{client.client_id}")
    assert "/oauth/v2/token" in page
    assert not [path for _, path in OPTIONAL.values() if path in page]
    page = browser.open(
        f"/console/organizations/{organization.id}/token-preview?user_id={manager.id}"
        f"&application_id={client.client_id}&scope=openid&response_type=code"
    )
    assert "Answer of userinfo" in page
    assert "Answer of introspection" not in page
