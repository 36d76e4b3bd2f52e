"""The relying party ID of passkeys: a change is refused at startup."""

import pytest

from identity.settings_parser import InvalidSetting
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.passkeys.conftest import PasskeyUser, options_of

# Memory does not survive a restart.
pytestmark = pytest.mark.storages("sqlite", "postgresql")

RP_ID = "identity.plugin.passkeys.rp_id"


def restart(world: World, **settings: str) -> World:
    """The same service after a restart with other settings."""
    return World(world.settings | settings, clock=world.clock, key_pool=world.key_pool)


def passkeys_setting_error(world: World) -> str | None:
    return world.identity.system_checks.failures().get("passkeys")


@pytest.fixture
def ada(make_world: WorldFactory) -> PasskeyUser:
    return PasskeyUser(make_world())


def test_changed_rp_id_stops_startup(ada: PasskeyUser) -> None:
    ada.add()
    assert passkeys_setting_error(ada.world) is None
    moved = restart(ada.world, **{"identity.login_url": "https://login.example.com"})
    error = passkeys_setting_error(moved)
    assert error is not None
    assert "people have added passkeys for id.example.com" in error
    assert f"set {RP_ID} = login.example.com" in error
    with pytest.raises(InvalidSetting, match=r"identity\.plugin\.passkeys\.rp_id: people have added passkeys for id\."):
        assert moved.app
    moved.close()


@pytest.mark.thorough
def test_changed_rp_id_is_allowed_without_passkeys(ada: PasskeyUser) -> None:
    ada.to_add()
    moved = restart(ada.world, **{"identity.login_url": "https://login.example.com"})
    assert passkeys_setting_error(moved) is None
    assert moved.app
    moved.close()


@pytest.mark.thorough
def test_rp_id_setting_allows_host_change(ada: PasskeyUser) -> None:
    ada.add()
    moved = restart(ada.world, **{"identity.login_url": "https://login.example.com", RP_ID: "login.example.com"})
    assert passkeys_setting_error(moved) is None
    bert = PasskeyUser(moved, origin="https://login.example.com")
    bert.add()
    moved.close()
    # From now on this is the relying party ID.
    again = restart(ada.world, **{"identity.login_url": "https://login.example.com"})
    assert passkeys_setting_error(again) is None
    again.close()


@pytest.mark.thorough
def test_parent_domain_rp_id_survives_host_change(make_world: WorldFactory) -> None:
    ada = PasskeyUser(make_world(**{RP_ID: "example.com"}))
    assert ada.to_add()["rp"]["id"] == "example.com"
    ada.add()
    moved = restart(ada.world, **{"identity.login_url": "https://login.example.com", RP_ID: "example.com"})
    assert passkeys_setting_error(moved) is None
    party = RelyingParty.register(moved, name="Invoices")
    ada.world, ada.device.origin = moved, "https://login.example.com"
    ada.forget_browser()
    authorization = ada.to_alone(party)
    assert options_of(ada.browser)["rpId"] == "example.com"
    party.obtain_tokens(ada.answer(), authorization)
    moved.close()


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=3)
@pytest.mark.parametrize(
    "rp_id", ["com", "example.org", "a.id.example.com", "d.example.com", ".example.com", "xample.com"]
)
def test_invalid_rp_ids_are_refused(ada: PasskeyUser, rp_id: str) -> None:
    with pytest.raises(InvalidSetting, match=r"must be id\.example\.com, or a domain above it"):
        restart(ada.world, **{RP_ID: rp_id})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("login_url", "origin"),
    [
        ("https://id.example.com:8443", "https://id.example.com:8443"),
        ("https://ID.example.com", "https://id.example.com"),
    ],
)
def test_origin_is_serialized_as_in_browsers(make_world: WorldFactory, login_url: str, origin: str) -> None:
    world = make_world(**{"identity.login_url": login_url})
    party = world.app.registry.passkeys
    assert (party.origins, party.rp_id) == ((origin,), "id.example.com")
