"""Signed authorization requests (RFC 9101)."""

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.crypto.jwt import sign
from identity.crypto.signature_keys import PrivateKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.outbound_http import OutboundResponse
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import base64url, encode_jwt_segment
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.response_checks import check_page
from identity.testing.world import World
from tests.plugins.test_pushed_authorization_requests import push

pytestmark = pytest.mark.storages("memory")

KEY = PrivateKey.generate(algorithm=SignatureAlgorithm.ES256)
TYPE = "oauth-authz-req+jwt"


def register(world: World, **members: Any) -> RelyingParty:
    return RelyingParty.register(world, jwks=json.dumps({"keys": [KEY.public_key().to_jwk("one")]}), **members)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return register(world)


def request_object(
    party: RelyingParty,
    authorization: SentAuthorizationRequest,
    *,
    key: PrivateKey = KEY,
    typ: str | None = TYPE,
    **claims: Any,
) -> str:
    """A valid one; ``claims`` override members, None leaves one out."""
    right = {"iss": party.client_id, "aud": party.client.issuer_url, "exp": party.now() + 300, "nbf": party.now()}
    members = {**authorization.parameters, **right, **claims}
    return sign({name: value for name, value in members.items() if value is not None}, key, key_id="one", typ=typ)


def url(party: RelyingParty, authorization: SentAuthorizationRequest, text: str, **beside: str) -> str:
    return f"{authorization.endpoint}?{urlencode({'client_id': party.client_id, 'request': text, **beside})}"


def test_signed_request_is_answered_like_a_plain_one(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    page = browser.open(url(party, authorization, request_object(party, authorization)), initiator=party.origin)
    party.obtain_tokens(page, authorization)


def test_parameters_beside_the_request_object_are_ignored(browser: Browser, party: RelyingParty) -> None:
    """RFC 9101 §6.3."""
    authorization = party.new_request()
    beside = {"scope": "openid email", "state": "other", "redirect_uri": "https://evil.example/", "prompt": "none"}
    text = request_object(party, authorization)
    page = browser.open(url(party, authorization, text, **beside), initiator=party.origin)
    assert party.obtain_tokens(page, authorization).scope == ["openid"]


def test_numbers_and_objects_are_parameters(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request(max_age=3600)
    claims = {"max_age": 3600, "claims": {"id_token": {"email": None}}}
    text = request_object(party, authorization, **claims)
    page = browser.open(url(party, authorization, text), initiator=party.origin)
    assert "auth_time" in party.obtain_tokens(page, authorization).claims


def test_user_signs_in_after_a_signed_request(world: World, party: RelyingParty) -> None:
    browser, authorization = Browser(world), party.new_request()
    browser.open(url(party, authorization, request_object(party, authorization)), initiator=party.origin)
    party.obtain_tokens(browser.sign_in(set_password(world, world.make_human_user())), authorization)


INVALID: tuple[Callable[[RelyingParty, SentAuthorizationRequest], str], ...] = (
    lambda party, request: request_object(party, request, iss="other"),
    lambda party, request: request_object(party, request, iss=None),
    lambda party, request: request_object(party, request, aud="https://other.example"),
    lambda party, request: request_object(party, request, aud=None),
    lambda party, request: request_object(party, request, exp=None),
    lambda party, request: request_object(party, request, exp=party.now() - 60),
    lambda party, request: request_object(party, request, exp=party.now() + 7200),
    lambda party, request: request_object(party, request, nbf=party.now() + 60),
    lambda party, request: request_object(party, request, nbf=party.now() - 7200),
    lambda party, request: request_object(party, request, request="a.b.c"),
    lambda party, request: request_object(party, request, request_uri="https://app.example/r"),
    lambda party, request: request_object(party, request, scope=["openid", 1]),
    lambda party, request: request_object(party, request, max_age=1.5),
    lambda party, request: request_object(party, request, typ="at+jwt"),
    lambda party, request: request_object(party, request, key=PrivateKey.generate(algorithm=SignatureAlgorithm.ES256)),
    lambda party, request: request_object(party, request, key=PrivateKey.generate()),
    lambda party, request: request_object(party, request)[:-4] + "AAAA",
    lambda party, request: ".".join(
        (
            encode_jwt_segment({"alg": "none", "typ": TYPE}),
            *request_object(party, request).split(".")[1:2],
            "",
        )
    ),
    lambda party, request: "x",
)


@pytest.mark.parametrize("build", INVALID)
def test_invalid_request_object_is_refused(browser: Browser, party: RelyingParty, build: Any) -> None:
    """The user sees the error, unless a registered address beside the object tells where to send it."""
    authorization = party.new_request()
    text = build(party, authorization)
    check_page(browser.open(url(party, authorization, text), initiator=party.origin), 400)
    beside = {name: authorization.parameters[name] for name in ("redirect_uri", "state", "response_type")}
    page = browser.open(url(party, authorization, text, **beside), initiator=party.origin)
    party.check_error_response(page, authorization, "invalid_request_object")


def test_client_id_is_the_same_inside_and_outside(world: World, browser: Browser, party: RelyingParty) -> None:
    """RFC 9101 §5."""
    other = register(world)
    authorization = party.new_request()
    text = request_object(party, authorization, iss=other.client_id, client_id=other.client_id)
    check_page(browser.open(url(party, authorization, text), initiator=party.origin), 400)
    text = request_object(party, authorization, client_id=other.client_id)
    check_page(browser.open(url(party, authorization, text), initiator=party.origin), 400)


def test_application_chooses_the_algorithm(world: World, browser: Browser) -> None:
    for algorithm, status in (("ES256", 303), ("PS256", 400)):
        party = register(world, request_object_signing_alg=algorithm)
        authorization = party.new_request()
        page = browser.open(url(party, authorization, request_object(party, authorization)), initiator=party.origin)
        assert page.status_int == status


def test_application_that_requires_signed_requests_refuses_others(world: World, browser: Browser) -> None:
    party = register(world, require_signed_request_object=True)
    party.expect_error_at_once(browser, "invalid_request")
    assert push(party, party.new_request().parameters).json["error"] == "invalid_request"
    authorization = party.new_request()
    page = browser.open(url(party, authorization, request_object(party, authorization)), initiator=party.origin)
    party.obtain_tokens(page, authorization)


def test_signed_request_can_be_pushed(world: World, browser: Browser) -> None:
    """RFC 9126 §3."""
    party = register(world, require_signed_request_object=True, require_pushed_authorization_requests=True)
    authorization = party.new_request()
    text = request_object(party, authorization)
    answer = push(party, {"client_id": party.client_id, "request": text})
    assert answer.status_int == 201
    query = urlencode({"client_id": party.client_id, "request_uri": answer.json["request_uri"]})
    party.obtain_tokens(browser.open(f"{authorization.endpoint}?{query}", initiator=party.origin), authorization)
    broken = push(party, {"client_id": party.client_id, "request": text[:-4] + "AAAA"})
    assert (broken.status_int, broken.json["error"]) == (400, "invalid_request_object")


def test_application_without_keys_cannot_sign(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world)
    authorization = party.new_request()
    text = request_object(party, authorization)
    check_page(browser.open(url(party, authorization, text), initiator=party.origin), 400)


def test_discovery_says_what_is_supported(world: World) -> None:
    document = world.client.discovery
    assert document["request_parameter_supported"] is True
    assert document["request_uri_parameter_supported"] is False
    assert "none" not in document["request_object_signing_alg_values_supported"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(["scope", "state", "claims", "prompt", "max_age", "x", ""]), _JSON, max_size=5))
def test_any_claims_are_answered(browser: Browser, party: RelyingParty, claims: dict[str, Any]) -> None:
    authorization = party.new_request()
    try:
        text = request_object(party, authorization, **claims)
    except ValueError:
        return
    assert browser.open(url(party, authorization, text), initiator=party.origin).status_int < 500


class RequestHost:
    """A host that publishes a request object, and counts the requests."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.body, self.requested = "", list[str]()
        monkeypatch.setattr(world.identity.process_state.documents, "transport", self)

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        self.requested.append(url)
        return OutboundResponse(200 if self.body else 404, self.body.encode(), "no-store")


def test_registered_reference_is_fetched_only_if_switched_on(
    make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenID Connect Core §6.2, RFC 9101 §5.2."""
    address = "https://app.example/request.jwt"

    def answer(party: RelyingParty, browser: Browser, value: str) -> Any:
        endpoint = party.client.discovery["authorization_endpoint"]
        query = {"client_id": party.client_id, "redirect_uri": party.redirect_uri, "request_uri": value}
        return browser.open(f"{endpoint}?{urlencode(query)}", initiator=party.origin)

    for is_on in (False, True):
        world = make_world(**({"identity.plugin.request_objects.by_reference": "true"} if is_on else {}))
        assert world.client.discovery["request_uri_parameter_supported"] is is_on
        host, browser = RequestHost(world, monkeypatch), Browser(world)
        browser.start_session(world.make_human_user())
        party = register(world, request_uris=(address,))
        sent = party.new_request()
        host.body = request_object(party, sent)
        wrong = ("https://app.example/other.jwt", f"{address}?x=1", *(() if is_on else (address,)))
        for value in wrong:
            assert "request_uri_not_supported" in answer(party, browser, value).headers["Location"]
        assert host.requested == [], "nothing but registered addresses is requested"
    assert "invalid_request_uri" in answer(party, browser, f"{address}#{'x' * 43}").headers["Location"]
    digest = base64url(hashlib.sha256(host.body.encode()).digest())
    for value in (address, f"{address}#{digest}", address):
        party.extract_code(answer(party, browser, value), sent)
    assert host.requested == [address] * 3, "one for each fragment: the document is cached"
    host.body = ""
    world.identity.process_state.documents.cache.forget(address)
    assert "invalid_request_uri" in answer(party, browser, address).headers["Location"]
