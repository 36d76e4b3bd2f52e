"""A plugin's hybrid response type: the ID token contains the hash of the code (OpenID Connect Core §3.3.2.11)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from identity.crypto.jwt import UnverifiedToken
from identity.provider.response_type import Artifact, ResponseType
from identity.services.capabilities import ResponseTypeCapability
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

HYBRID = (
    ResponseType("code id_token", frozenset({Artifact.CODE, Artifact.ID_TOKEN})),
    ResponseType("code token", frozenset({Artifact.CODE, Artifact.ACCESS_TOKEN})),
    ResponseType("code id_token token", frozenset(Artifact)),
)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world()
    protocol = world.identity.protocol_registry
    offered = {**protocol.response_types, **{response_type.values: response_type for response_type in HYBRID}}
    world.identity.protocol_registry = replace(protocol, response_types=offered)
    known = {
        response_type.value: ResponseTypeCapability(uses_front_channel=response_type.uses_front_channel)
        for response_type in HYBRID
    }
    choices = replace(
        world.identity.process_state.capabilities,
        responses_by_type={**world.identity.process_state.capabilities.responses_by_type, **known},
    )
    world.identity.process_state = replace(world.identity.process_state, capabilities=choices)
    return world


@pytest.mark.parametrize("response_type", [response_type.value for response_type in HYBRID])
def test_hybrid_response_contains_code_and_tokens(world: World, response_type: str) -> None:
    person = world.make_human_user()
    browser = Browser(world)
    browser.start_session(person)
    party = RelyingParty.register(world, response_types=frozenset({response_type}))
    authorization = party.new_request(response_type=response_type)
    members = party.check_response(browser.open(authorization.url, initiator=party.origin), authorization)
    response_types = response_type.split()
    assert ("access_token" in members, "id_token" in members) == (
        "token" in response_types,
        "id_token" in response_types,
    )
    if "id_token" in members:
        _, claims = decode_jwt_unverified(members["id_token"])
        assert claims["c_hash"] == UnverifiedToken.left_half_hash(members["code"], "RS256")
        assert ("at_hash" in claims) == ("token" in response_types)
    answer = party.redeem(members["code"], authorization)
    assert answer.status_int == 200
    # One sign-in is one token family: replaying the code revokes the front-channel tokens, too.
    assert party.redeem(members["code"], authorization).json["error"] == "invalid_grant"
    if "access_token" in members:
        assert world.client.fetch_userinfo(members["access_token"]).status_int == 401
