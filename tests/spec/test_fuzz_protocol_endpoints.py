"""Security 12.6: no proof, assertion or pushed request causes a 5xx, whatever its sender signs.

``test_fuzz_token_endpoint.py`` has the token endpoint itself and assertions of service users,
``tests/plugins/test_request_objects.py`` request objects.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identity.testing.browser import Browser
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.device_authorization.device import GRANT_TYPES
from tests.plugins.dpop_proofs import DpopKey
from tests.spec.test_2_3_workload_federation import OutsideIssuer, ask, trust
from tests.spec.test_5_3_private_key_jwt import SigningClient
from tests.spec.test_fuzz_token_endpoint import (
    check_protocol_answer,
    claim_names,
    fuzzing,
    header_names,
    json_values,
    texts,
    values,
)
from tests.spec.test_identity_assertions import Scene

pytestmark = pytest.mark.storages("memory")  # parsers come before the storage

some = settings(fuzzing, max_examples=60)
headers = st.dictionaries(header_names, json_values, max_size=3)
proof_claims = st.dictionaries(st.sampled_from(["htm", "htu", "ath", "nonce"]) | claim_names, json_values, max_size=4)
key_members = st.dictionaries(st.sampled_from(["kty", "crv", "x", "alg", "use", "kid"]), json_values, max_size=2)
parameter_names = st.sampled_from(
    [
        "response_type",
        "response_mode",
        "redirect_uri",
        "scope",
        "state",
        "nonce",
        "prompt",
        "max_age",
        "claims",
        "id_token_hint",
        "code_challenge",
        "code_challenge_method",
        "resource",
        "dpop_jkt",
        "request",
        "request_uri",
    ]
)
parameters = st.dictionaries(parameter_names | texts, values, max_size=5)


def test_any_proof_is_answered(world: World, browser: Browser) -> None:
    """At the token endpoint and at userinfo."""
    key, party, discovery = DpopKey(world), RelyingParty.register(world), world.client.discovery
    key.post(discovery["token_endpoint"], {"grant_type": "authorization_code"})
    authorization = party.open_request(browser)
    token = key.redeem(party, party.extract_code(browser.page, authorization), authorization).json["access_token"]
    url = discovery["userinfo_endpoint"]

    @some
    @given(headers, key_members, proof_claims)
    def check(header: Mapping[str, Any], members: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        right = {"jti": "x", "htm": "GET", "htu": url, "iat": world.clock.seconds, "nonce": key.nonce}
        whole = {"typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk | dict(members)} | dict(header)
        proof = {"DPoP": key.sign(whole, right | dict(claims))}
        check_protocol_answer(
            world.client.post(discovery["token_endpoint"], {"grant_type": "authorization_code"}, proof)
        )
        answer = world.client.get(url, {"Authorization": f"DPoP {token}", **proof})
        assert answer.status_int in (200, 400, 401)

    check()


def test_any_client_assertion_is_answered(world: World) -> None:
    client = SigningClient(world, world.make_service_user_program().key).register()

    @some
    @given(headers, st.dictionaries(claim_names, json_values, max_size=4), st.sampled_from(["token", "introspection"]))
    def check(header: Mapping[str, Any], claims: Mapping[str, Any], endpoint: str) -> None:
        right = {"iss": client.client_id, "sub": client.client_id, "aud": world.issuer, "exp": world.clock.seconds + 60}
        text = sign_assertion({**right, "jti": "x", **claims}, client.key, key_id="one", header=dict(header))
        answer = client.ask(text, f"{endpoint}_endpoint")
        assert answer.status_int in (200, 400, 401)
        check_protocol_answer(answer)

    check()


def test_any_pushed_request_is_answered(world: World) -> None:
    party = RelyingParty.register(world)
    right, credentials = party.new_request().parameters, {"Authorization": party.credentials.header}

    @some
    @given(parameters)
    def check(changes: Mapping[str, str]) -> None:
        form = {**right, **changes}
        answer = world.client.post(world.client.discovery["pushed_authorization_request_endpoint"], form, credentials)
        assert answer.status_int in (201, 400)
        if answer.status_int == 400:
            check_protocol_answer(answer)

    check()


def test_any_request_of_a_device_is_answered(world: World) -> None:
    client_id = world.make_public_application(grant_types=GRANT_TYPES, response_types=frozenset())
    endpoint = world.client.discovery["device_authorization_endpoint"]

    @some
    @given(parameters)
    def check(changes: Mapping[str, str]) -> None:
        answer = world.client.post(endpoint, {"client_id": client_id, **changes})
        assert answer.status_int in (200, 400, 429)
        check_protocol_answer(answer)

    check()


def test_any_assertion_of_an_outside_issuer_is_answered(world: World) -> None:
    """It signs with its key, and can sign anything."""
    robot, github = world.make_service_user_program(), OutsideIssuer(world)
    trust(robot)

    @some
    @given(headers, st.dictionaries(claim_names, json_values, max_size=4))
    def check(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        answer = ask(robot, github.token(header=dict(header), **claims))
        assert answer.status_int in (200, 400)
        check_protocol_answer(answer)

    check()


def test_any_identity_assertion_is_answered(world: World) -> None:
    """Of a provider that can sign anything."""
    scene = Scene(world)
    names = st.sampled_from(["client_id", "scope", "resource", "cnf", "act", "auth_time", "amr", "acr"]) | claim_names

    @some
    @given(headers, st.dictionaries(names, json_values, max_size=4))
    def check(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        answer = scene.ask(scene.assertion(header=dict(header), **claims))
        assert answer.status_int in (200, 400)
        check_protocol_answer(answer)

    check()
