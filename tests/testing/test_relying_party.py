"""The relying party of the test kit refuses every invalid response; all protocol tests rely on its checks."""

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from identity.crypto.jwt import sign
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import (
    decode_jwt_unverified,
    left_half_hash,
    no_signature,
    pkce_challenge,
    sign_assertion,
)
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")  # independent of the storage


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world)


@pytest.fixture
def browser(world: World) -> Browser:
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    return browser


def test_answer_that_was_altered_is_refused(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    answer = browser.open(authorization.url)
    party.check_response(answer, authorization)
    before = answer.headers["Location"]
    callback = "https://app.example/cb?"
    for part, other in (
        *(("state=", item) for item in ("stale=", "state=x")),
        *(("iss=https", "iss=http"), ("&iss=", "&is=")),
        *((callback, f"https://{item}") for item in ("app.example/CB?", "app.example/cb#", "evil.example/cb?")),
        *((before, f"{before}{item}") for item in ("&state=x", "#fragment", "&")),
    ):
        answer.headers["Location"] = before.replace(part, other)
        assert answer.headers["Location"] != before
        with pytest.raises((AssertionError, ValueError)):
            party.check_response(answer, authorization)


def test_cacheable_or_leaking_response_is_refused(browser: Browser, party: RelyingParty) -> None:
    for name in ("Cache-Control", "Referrer-Policy", "X-Content-Type-Options"):
        authorization = party.new_request()
        answer = browser.open(authorization.url)
        del answer.headers[name]
        with pytest.raises(AssertionError):
            party.check_response(answer, authorization)


def test_other_response_mode_is_refused(browser: Browser, party: RelyingParty) -> None:
    for requested, other in (
        ("query", "fragment"),
        ("fragment", "query"),
        ("form_post", "query"),
        ("query", "form_post"),
    ):
        request = party.new_request(response_mode=requested)
        answer = browser.open(request.url)
        party.check_response(answer, request)
        with pytest.raises(AssertionError):
            party.check_response(answer, request, mode=other)


def test_answer_is_no_error_and_an_error_no_answer(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    with pytest.raises(AssertionError):
        party.check_error_response(browser.open(authorization.url), authorization, "login_required")
    wrong = party.new_request(scope="profile")
    with pytest.raises(AssertionError):
        party.extract_code(browser.open(wrong.url), wrong)
    with pytest.raises(AssertionError):
        party.check_error_response(browser.open(wrong.url), wrong, "login_required")


@pytest.fixture
def forge(world: World) -> Callable[..., str]:
    """Creates ID tokens signed with the service's key, with other claims."""

    def forge(token: str, **changes: Any) -> str:
        _, claims = decode_jwt_unverified(token)
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        with world.read_only_services() as services:
            key_id, private_key = services.signing_keys.current_signing_key()
        return sign(claims, private_key, key_id=key_id)

    return forge


@pytest.fixture
def sent_request(party: RelyingParty) -> SentAuthorizationRequest:
    return party.new_request("id_token token", max_age=60)


@pytest.fixture
def members(browser: Browser, party: RelyingParty, sent_request: SentAuthorizationRequest) -> dict[str, str]:
    return party.check_response(browser.open(sent_request.url), sent_request)


def test_id_token_with_a_wrong_claim_is_refused(
    party: RelyingParty, sent_request: SentAuthorizationRequest, members: dict[str, str], forge: Callable[..., str]
) -> None:
    token, access_token = members["id_token"], members["access_token"]
    party.check_id_token(forge(token), sent_request, access_token=access_token)
    wrong: dict[str, list[Any]] = {
        "iss": ["https://evil.example"],
        "aud": ["other", ["other"]],
        "sub": ["", 7],
        "exp": [0],
        "iat": [2**40],
        "sid": [None],
        **{name: ["other", None] for name in ("azp", "nonce", "at_hash")},
        "auth_time": [0, None],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises((AssertionError, KeyError)):
                party.check_id_token(forge(token, **{name: value}), sent_request, access_token=access_token)


def test_id_token_of_another_key_is_refused(
    party: RelyingParty, sent_request: SentAuthorizationRequest, members: dict[str, str], key_pool: RsaKeyPool
) -> None:
    token = members["id_token"]
    header, claims = decode_jwt_unverified(token)
    with pytest.raises(InvalidSignature):
        party.check_id_token(sign_assertion(claims, key_pool.next(), key_id=header["kid"]), sent_request)
    with pytest.raises(AssertionError):
        party.check_id_token(
            sign_assertion(claims, key_pool.next(), key_id=header["kid"], header={"alg": "none"}, sign=no_signature),
            sent_request,
        )


def test_hash_is_that_of_the_specification() -> None:
    """RFC 7636 appendix B; OpenID Connect Core appendix A.4."""
    assert (
        pkce_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )
    assert left_half_hash("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y") == "77QmUPtjPfzWtF2AnpK9RQ"


def test_none_parameter_is_omitted(party: RelyingParty) -> None:
    authorization = party.new_request(state=None, nonce=None, redirect_uri=None, max_age=0)
    assert set(authorization.parameters) == {
        "client_id",
        "response_type",
        "scope",
        "max_age",
        "code_challenge",
        "code_challenge_method",
    }
    assert authorization.parameters["max_age"] == "0"
    assert "code_challenge" not in party.new_request("id_token").parameters
