"""A response type of another plugin: an ID token beside a code vouches for it (OpenID Connect Core §3.3.2.11)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from identity.crypto.jwt import half_hash
from identity.provider.response_type import Artifact, ResponseType
from identity.services.choices import ResponseChoice
from identity.testing.assertions import decoded
from identity.testing.browser import Browser
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
    protocol = world.identity.protocol
    offered = {**protocol.response_types, **{one.words: one for one in HYBRID}}
    world.identity.protocol = replace(protocol, response_types=offered)
    known = {one.value: ResponseChoice(fronts_tokens=one.fronts_tokens) for one in HYBRID}
    choices = replace(world.identity.process.choices, responses={**world.identity.process.choices.responses, **known})
    world.identity.process = replace(world.identity.process, choices=choices)
    return world


@pytest.mark.parametrize("response_type", [one.value for one in HYBRID])
def test_code_and_tokens_in_one_answer(world: World, response_type: str) -> None:
    person = world.a_person()
    browser = Browser(world)
    browser.start_session(person)
    party = RelyingParty.of(world, response_types=frozenset({response_type}))
    asked = party.ask(response_type=response_type)
    members = party.read(browser.open(asked.url, by=party.origin), asked)
    words = response_type.split()
    assert ("access_token" in members, "id_token" in members) == ("token" in words, "id_token" in words)
    if "id_token" in members:
        _, claims = decoded(members["id_token"])
        assert claims["c_hash"] == half_hash(members["code"], "RS256")
        assert ("at_hash" in claims) == ("token" in words)
    answer = party.redeem(members["code"], asked)
    assert answer.status_int == 200
    # One sign-in, one family: a replayed code ends what came beside it, too.
    assert party.redeem(members["code"], asked).json["error"] == "invalid_grant"
    if "access_token" in members:
        assert world.client.userinfo(members["access_token"]).status_int == 401
