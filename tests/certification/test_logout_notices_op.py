"""Profiles Back-Channel and Front-Channel Logout OP, for each response type."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.testing.fixtures import WorldCache
from identity.testing.jwt_assertions import verify_jwt
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.world import World
from tests.certification.conftest import Suite
from tests.certification.plans import RESPONSE_TYPES
from tests.logout_receiver import LogoutReceiver

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

EVENT = "http://schemas.openid.net/event/backchannel-logout"
STATE = "some-state"


def each_response_type(test: Any) -> Any:
    return pytest.mark.sampled(3)(pytest.mark.parametrize("response_type", RESPONSE_TYPES)(test))


@pytest.fixture
def world(world_cache: WorldCache, storage_name: str) -> World:
    """A service that can reach an application on the loopback interface."""
    return world_cache.shared_world(storage_name, {"identity.outgoing_networks": "127.0.0.0/8"})


@pytest.fixture
def receiver() -> Iterator[LogoutReceiver]:
    with closing(LogoutReceiver()) as receiver:
        yield receiver


def sign_in_and_out(suite: Suite, response_type: str, **members: Any) -> tuple[RelyingParty, ReceivedTokens]:
    """The application with these members, and the tokens that the user had there before the application ended their
    session.
    """
    party = RelyingParty.register(suite.world, response_types=(response_type, "code"), **members)
    tokens = suite.tokens(response_type, relying_party=party)
    id_token = tokens.front_channel.get("id_token", tokens.members["id_token"])
    suite.browser.open(party.logout_url(id_token, state=STATE), initiator=party.origin)
    return party, tokens


def check_signed_out(suite: Suite, party: RelyingParty) -> None:
    party.expect_error_at_once(suite.browser.tab(), "login_required", prompt="none")


@pytest.mark.modules("oidcc-backchannel-logout-discovery-endpoint-verification")
@pytest.mark.modules("oidcc-frontchannel-logout-discovery-endpoint-verification")
def test_discovery_lists_both_notices(suite: Suite) -> None:
    """Sessions are named, since the profiles require it."""
    document = suite.world.client.discovery
    for channel in ("backchannel", "frontchannel"):
        assert document[f"{channel}_logout_supported"] is True
        assert document[f"{channel}_logout_session_supported"] is True
    assert document["end_session_endpoint"].startswith("https://")


@pytest.mark.modules("oidcc-backchannel-rp-initiated-logout")
@each_response_type
def test_sign_out_sends_a_logout_token(suite: Suite, receiver: LogoutReceiver, response_type: str) -> None:
    """OpenID Connect Back-Channel Logout §2.4, §2.5; the user returns with the state alone."""
    party, tokens = sign_in_and_out(suite, response_type, backchannel_logout_uri=receiver.url)
    assert suite.browser.external_redirect == f"{party.post_logout_redirect_uri}?state={STATE}"
    suite.world.identity.senders["back-channel logout"].send_due()
    (form,) = receiver.forms
    assert set(form) == {"logout_token"}
    header, claims = verify_jwt(receiver.tokens[0], suite.world.client.fetch_jwks().json["keys"])
    assert header["alg"] == "RS256"
    assert (claims["iss"], claims["aud"]) == (suite.world.issuer, party.client_id)
    assert claims["iat"] <= suite.world.clock.seconds < claims["exp"]
    assert claims["jti"]
    assert claims["events"] == {EVENT: {}}
    assert (claims["sub"], claims["sid"]) == (tokens.claims["sub"], tokens.claims["sid"])
    assert "nonce" not in claims
    check_signed_out(suite, party)


@pytest.mark.modules("oidcc-frontchannel-rp-initiated-logout")
@each_response_type
def test_sign_out_page_loads_the_address(suite: Suite, response_type: str) -> None:
    """OpenID Connect Front-Channel Logout §2: with iss and sid, before the user returns with the state alone."""
    address = "https://app.example/frontchannel_logout"
    party, tokens = sign_in_and_out(suite, response_type, frontchannel_logout_uri=address)
    (frame,) = suite.browser.page.html.find_all("iframe")
    loaded, _, query = frame["src"].partition("?")
    assert loaded == address
    assert parse_qs(query) == {"iss": [suite.world.issuer], "sid": [tokens.claims["sid"]]}
    assert "https://app.example" in suite.browser.page.headers["Content-Security-Policy"]
    target = suite.browser.page.headers["Refresh"].partition("url=")[2]
    assert (urlsplit(target)._replace(query="").geturl(), parse_qs(urlsplit(target).query)) == (
        party.post_logout_redirect_uri,
        {"state": [STATE]},
    )
    check_signed_out(suite, party)
