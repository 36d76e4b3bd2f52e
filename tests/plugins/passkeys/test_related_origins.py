"""Related origins: their settings, the document at /.well-known/webauthn, and which origins ceremonies accept."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.plugins.passkeys import PasskeysPluginSettings, _check_origin
from identity.settings_parser import InvalidSetting
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from tests.plugins.passkeys.conftest import PasskeyUser, options_of

pytestmark = pytest.mark.storages("memory")

ORIGINS = "identity.plugin.passkeys.related_origins"
RP_ID = "identity.plugin.passkeys.rp_id"
LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


def test_document_lists_related_origins(make_world: WorldFactory) -> None:
    world = make_world(**{ORIGINS: "https://login.example.org https://login.example.net:8443"})
    answer = world.client.get("https://id.example.com/.well-known/webauthn")
    assert (answer.status_int, answer.content_type) == (200, "application/json")
    assert answer.json == {"origins": ["https://login.example.org", "https://login.example.net:8443"]}


def test_no_document_without_related_origins(make_world: WorldFactory) -> None:
    assert make_world().client.get("https://id.example.com/.well-known/webauthn").status_int == 404


def test_ceremonies_accept_related_origins_only(make_world: WorldFactory) -> None:
    world = make_world(**{ORIGINS: "https://login.example.org"})
    party = RelyingParty.register(world, name="Invoices")
    ada = PasskeyUser(world)
    ada.add()
    ada.device.origin = "https://login.example.org"
    ada.forget_browser()
    authorization = ada.to_alone(party)
    party.obtain_tokens(ada.answer(), authorization)
    for origin in ("https://login.example.org:8443", "http://login.example.org", "https://a.login.example.org"):
        ada.forget_browser()
        ada.to_alone(party)
        assert ada.answer(origin=origin).status_int == 422


def test_old_host_stays_rp_id_after_move(make_world: WorldFactory) -> None:
    """The new host is related to the old one, where the document must be."""
    settings = {RP_ID: "login.example.org", ORIGINS: "https://id.example.com"}
    ada = PasskeyUser(make_world(**settings))
    assert ada.to_add()["rp"]["id"] == "login.example.org"
    ada.add()
    ada.forget_browser()
    party = RelyingParty.register(ada.world, name="Invoices")
    authorization = ada.to_alone(party)
    assert options_of(ada.browser)["rpId"] == "login.example.org"
    party.obtain_tokens(ada.answer(), authorization)


@pytest.mark.parametrize(
    "origin",
    [
        "http://login.example.org",
        "https://login.example.org/",
        "https://Login.example.org",
        "https://login.example.org:443",
        "https://login.example.org:65536",
        "https://user@login.example.org",
        "https://localhost",
        "https://192.0.2.1",
        "https://[2001:db8::1]",
        "https://*.example.org",
        "https://bücher.example",
        "https://login.example.org?x",
        "null",
    ],
)
def test_invalid_related_origins_are_refused(origin: str) -> None:
    with pytest.raises(ValueError, match="must be origins"):
        _check_origin(origin)


@given(st.lists(LABELS, min_size=2, max_size=5), st.none() | st.integers(1, 65535).filter(lambda port: port != 443))
def test_serialized_origins_are_accepted(labels: list[str], port: int | None) -> None:
    _check_origin(f"https://{'.'.join(labels)}{'' if port is None else f':{port}'}")


@given(st.text(max_size=40) | st.text(alphabet="htps:/.-@#?[]%a1 \n", max_size=30).map("https://a.".__add__))
def test_accepted_origins_have_scheme_and_host_only(text: str) -> None:
    try:
        _check_origin(text)
    except ValueError:
        return
    parts = urlsplit(text)
    assert text == f"https://{parts.hostname}{'' if parts.port is None else f':{parts.port}'}"


def test_at_most_five_related_origins() -> None:
    origins = tuple(f"https://login.example{number}.org" for number in range(6))
    assert PasskeysPluginSettings(related_origins=origins[:5])
    with pytest.raises(InvalidSetting, match="at most 5"):
        PasskeysPluginSettings(related_origins=origins)
