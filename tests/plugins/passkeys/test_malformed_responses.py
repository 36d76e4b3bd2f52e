"""Malformed responses lead to a message and 422, never to a server error (security 12.6)."""

import json
import string
from typing import Any

import cbor2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from identity.crypto import base64url
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import PasskeyRelyingParty
from identity.plugins.passkeys.verification import (
    VerificationFailed,
    credential_id,
    verify_authentication,
    verify_registration,
)
from identity.testing.relying_party import RelyingParty as Application
from identity.testing.world import World
from tests.plugins.passkeys.conftest import PasskeyUser
from tests.plugins.passkeys.software_authenticator import SoftwareAuthenticator

CHALLENGE, HANDLE = bytes(range(32)), bytes(range(32, 64))


PARTY = PasskeyRelyingParty("id.example.com", ("https://id.example.com",), False, frozenset(), (), None)  # type: ignore[arg-type]
CREATION: dict[str, Any] = {
    "challenge": base64url.encode(CHALLENGE),
    "rp": {"id": PARTY.rp_id},
    "user": {"id": base64url.encode(HANDLE)},
}
REQUEST: dict[str, Any] = {"challenge": base64url.encode(CHALLENGE), "rpId": PARTY.rp_id, "allowCredentials": []}

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
CBOR = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
#: The members of responses with arbitrary values.
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("id", "rawId"), JSON | st.binary().map(base64url.encode)),
        "type": JSON | st.just("public-key"),
        "response": JSON
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                ("clientDataJSON", "authenticatorData", "signature", "userHandle", "attestationObject", "transports"),
                JSON | st.binary().map(base64url.encode),
            ),
        ),
    },
)


def registered() -> tuple[SoftwareAuthenticator, Passkey]:
    device = SoftwareAuthenticator()
    return device, verify_registration(device.create(CREATION), PARTY, CHALLENGE, HANDLE)


DEVICE, PASSKEY = registered()


def refused(answer: str) -> None:
    assert isinstance(credential_id(answer), str)
    with pytest.raises(VerificationFailed):
        verify_registration(answer, PARTY, CHALLENGE, HANDLE)
    with pytest.raises(VerificationFailed):
        verify_authentication(answer, PARTY, CHALLENGE, PASSKEY, is_passwordless=False)


@pytest.mark.thorough
@settings(max_examples=50)
@given(st.text() | JSON.map(json.dumps) | ANSWERS.map(json.dumps))
@example("[" * 5000)
@example('{"id":' * 2000)
@example('{"id": 1e999}')
@example('{"id": "\\ud800"}')
@example("\x00")
def test_arbitrary_responses_are_refused(answer: str) -> None:
    refused(answer)


@pytest.mark.thorough
@settings(max_examples=50)
@given(CBOR.map(cbor2.dumps) | st.binary())
@example(b"\x81" * 5000)
@example(b"\xa1\x61a" * 4000)
@example(b"\x9b" + b"\xff" * 8)
@example(b"\xbb" + b"\xff" * 8)
@example(b"\x5b" + b"\x7f" + b"\xff" * 7)
@example(b"\xd8\x1c\x81\xd8\x1d\x00")
@example(b"\xc2\x5a\x00\x00\x20\x00" + b"\xff" * 8192)
def test_arbitrary_attestations_are_refused(attestation: bytes) -> None:
    with pytest.raises(VerificationFailed):
        verify_registration(DEVICE.create(CREATION, attestation=attestation), PARTY, CHALLENGE, HANDLE)


@settings(max_examples=50)
@given(CBOR.map(cbor2.dumps) | st.binary())
@example(cbor2.dumps({1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32)}))
@example(cbor2.dumps({1: 2, 3: -7, -1: 1, -2: bytes(31) + b"\x01", -3: bytes(32)}))
@example(cbor2.dumps({1: 3, 3: -257, -1: b"\x01", -2: b"\x01\x00\x01"}))
@example(cbor2.dumps({1: 1, 3: -8, -1: 6, -2: bytes(5)}))
@example(cbor2.dumps({1: 2, 3: -65535, -1: 1, -2: bytes(32), -3: bytes(32)}))
@example(b"\x04" + bytes(64))
@example(b"\x81" * 5000)
def test_arbitrary_public_keys_are_refused(key: bytes) -> None:
    """No unusable key is stored."""
    with pytest.raises(VerificationFailed):
        verify_registration(DEVICE.create(CREATION, key=key), PARTY, CHALLENGE, HANDLE)


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_arbitrary_authenticator_data_is_refused(data: bytes) -> None:
    answer = json.loads(DEVICE.get(REQUEST, credential=DEVICE.credentials[0]))
    answer["response"]["authenticatorData"] = base64url.encode(data)
    refused(json.dumps(answer))


@pytest.mark.thorough
@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON))
def test_arbitrary_client_data_is_refused(client: dict[str, Any]) -> None:
    answer = json.loads(DEVICE.get(REQUEST, credential=DEVICE.credentials[0]))
    answer["response"]["clientDataJSON"] = base64url.encode(json.dumps(client).encode())
    refused(json.dumps(answer))


def test_overlong_credential_id_is_refused() -> None:
    with pytest.raises(VerificationFailed, match="too long"):
        verify_registration(DEVICE.create(CREATION, id=bytes(1024)), PARTY, CHALLENGE, HANDLE)
    assert len(verify_registration(DEVICE.create(CREATION, id=bytes(1023)), PARTY, CHALLENGE, HANDLE).id) == 1023


HOSTILE = [
    *("", "x", "{}", "[]", "null", "[" * 3000, '{"id": "AAAA"}', '{"id": 5, "response": []}', "\ud7ff" * 2000),
    json.dumps({"id": "A" * 12000, "response": {"clientDataJSON": "e30"}}),
    json.dumps(dict.fromkeys(string.ascii_letters, "x")),
]


@pytest.mark.sampled(6)
@pytest.mark.storages("memory")
@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_malformed_response_shows_error(world: World, answer: str) -> None:
    ada, party = PasskeyUser(world), Application.register(world, name="Invoices")
    ada.to_add()
    ada.browser.submit({"answer": answer})
    assert ada.browser.page.status_int == 422
    ada.add()
    ada.forget_browser()
    for lead in (ada.to_prove, ada.to_alone):
        lead(party)
        ada.browser.submit({"answer": answer})
        assert ada.browser.page.status_int == 422
        assert ada.browser.external_redirect is None
