"""Malicious providers and injected responses (security 19.6, 19.7)."""

import json
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from identity.crypto import base64url
from identity.fair_semaphore import client_network_scope
from identity.key_sets import KeySetCache
from identity.outbound_http import OutboundResponse
from identity.plugins.upstream.http_client import ProviderUnreachable
from identity.plugins.upstream.provider_metadata import ProviderMetadataCache
from identity.testing.browser import Browser
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import CLIENT_ID, ISSUER, SECRET, FakeProvider, never


def refusal_reason(scene: UpstreamScenario, answer: Any, status: int = 400) -> str:
    """The audited reason, after asserting that there is no session and no account."""
    assert answer.status_int == status, answer
    assert not scene.browser.session_cookies
    assert not scene.world.audit_events(event="user.registered", organization_id=scene.organization.id)
    events = scene.world.audit_events(event="authentication.refused", object_id=scene.provider.id)
    return str(events[0].reason) if events else ""


HOUR = 3600


@pytest.mark.sampled(14)
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://evil.example"}, "the ID token is of another issuer"),
        ({"iss": f"{ISSUER}/"}, "the ID token is of another issuer"),
        ({"aud": "another"}, "the ID token is for somebody else"),
        ({"aud": ["another"]}, "the ID token is for somebody else"),
        ({"aud": None}, "the ID token is for somebody else"),
        ({"aud": [CLIENT_ID, "another"]}, "the ID token was made for somebody else"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "the ID token was made for somebody else"),
        ({"azp": "another"}, "the ID token was made for somebody else"),
        ({"nonce": "another"}, "the ID token belongs to another request"),
        ({"nonce": None}, "the ID token belongs to another request"),
        ({"sub": ""}, "the ID token names nobody"),
        ({"sub": None}, "the ID token names nobody"),
        ({"sub": 7}, "the ID token names nobody"),
        ({"sub": "x" * 256}, "the ID token names nobody"),
        ({"sub": "a\nb"}, "the ID token names nobody"),
        ({"exp": None}, "the ID token does not say when it was made and ends"),
        ({"iat": True}, "the ID token does not say when it was made and ends"),
        ({"exp": -HOUR}, "the ID token has expired"),
        ({"iat": -HOUR}, "the ID token was not made just now"),
        ({"iat": HOUR}, "the ID token was not made just now"),
        ({"nbf": HOUR}, "the ID token does not count yet"),
        ({"nbf": "now"}, "the ID token does not count yet"),
        ({"at_hash": "another"}, "the ID token was made with another access token"),
    ],
)
def test_id_token_with_wrong_claims_is_refused(scene: UpstreamScenario, claims: dict[str, Any], reason: str) -> None:
    now = scene.world.clock.seconds
    moved = {
        name: now + value if name in ("exp", "iat", "nbf") and type(value) is int else value
        for name, value in claims.items()
    }
    scene.fake_provider.claims = moved
    scene.ask()
    assert refusal_reason(scene, scene.sign_in()) == reason


def sign_with_another_key(fake_provider: FakeProvider) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    original_key_set = fake_provider.key_set
    fake_provider.keys["one"], published = stranger, original_key_set()
    fake_provider.key_set = lambda: published  # type: ignore[method-assign]


def unknown_key(fake_provider: FakeProvider) -> None:
    fake_provider.header = {"kid": "unknown"}


def no_algorithm(fake_provider: FakeProvider) -> None:
    fake_provider.header = {"alg": "none"}


def shared_secret(fake_provider: FakeProvider) -> None:
    """Algorithm confusion: the public key as an HMAC secret."""
    import hashlib
    import hmac

    from identity.crypto.signature_keys import PrivateKey

    pem = PrivateKey(fake_provider.keys["one"]).public_key().to_pem().encode()
    right = fake_provider.id_token

    def forged(nonce: str) -> str:
        claims = right(nonce).split(".")[1]
        text = f"{base64url.encode(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{claims}"
        return f"{text}.{base64url.encode(hmac.digest(pem, text.encode(), hashlib.sha256))}"

    fake_provider.id_token = forged  # type: ignore[method-assign]


def embed_key(fake_provider: FakeProvider) -> None:
    fake_provider.header = {"jwk": {"kty": "RSA"}}


def reference_key_url(fake_provider: FakeProvider) -> None:
    fake_provider.header = {"jku": "https://evil.example/keys"}


def no_id_token(fake_provider: FakeProvider) -> None:
    fake_provider.header = {"typ": "at+jwt"}


def other_algorithm(fake_provider: FakeProvider) -> None:
    fake_provider.metadata["id_token_signing_alg_values_supported"] = ["ES256"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "lie",
    [
        sign_with_another_key,
        unknown_key,
        no_algorithm,
        shared_secret,
        embed_key,
        reference_key_url,
        no_id_token,
        other_algorithm,
    ],
)
def test_id_token_with_wrong_signature_is_refused(scene: UpstreamScenario, lie: Any) -> None:
    scene.ask()
    lie(scene.fake_provider)
    assert refusal_reason(scene, scene.sign_in())


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": f"{ISSUER}/"},
        {"token_endpoint": "http://login.elsewhere.example/token"},
        {"token_endpoint": "file:///etc/passwd"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://user@login.elsewhere.example/"},
        {"userinfo_endpoint": 7},
        {"id_token_signing_alg_values_supported": ["HS256", "none"]},
        {"id_token_signing_alg_values_supported": "RS256"},
    ],
)
def test_invalid_provider_metadata_is_refused(scene: UpstreamScenario, metadata: dict[str, Any]) -> None:
    scene.fake_provider.metadata = metadata
    scene.ask()
    scene.browser.click(scene.button)
    assert refusal_reason(scene, scene.browser.page)
    assert scene.browser.external_redirect is None


def test_userinfo_of_another_subject_is_refused(scene: UpstreamScenario) -> None:
    scene.fake_provider.userinfo = {"sub": "another"}
    scene.ask()
    assert refusal_reason(scene, scene.sign_in()) == "user info is about another user than the ID token"


def test_id_token_takes_precedence_over_userinfo(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {"email": "right@people.example"}
    scene.fake_provider.userinfo = {"email": "wrong@people.example", "iss": "https://evil.example"}
    authorization = scene.ask()
    person = scene.world.operator_services.users.get(
        scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"]
    )
    assert person.profile.email == "right@people.example"


@pytest.mark.parametrize("issuer", ["https://evil.example", None, ""])
def test_response_with_another_issuer_is_refused(scene: UpstreamScenario, issuer: str | None) -> None:
    scene.ask()
    assert refusal_reason(scene, scene.sign_in(iss=issuer))
    assert not [path for _, path, _, _ in scene.fake_provider.requests if path == "/token"], (
        "the code was shown to somebody"
    )


def test_response_at_callback_of_another_provider_is_refused(scene: UpstreamScenario) -> None:
    provider = scene.world.make_upstream_provider(scene.organization, issuer=ISSUER, client_id=CLIENT_ID)
    scene.ask()
    url = scene.fake_provider.approve(scene.go())
    assert refusal_reason(scene, scene.back(url.replace(scene.provider.id, provider.id))) == ""
    assert scene.party.redirect_uri in str(scene.back(url).location), "the state was burnt by a stranger"


def test_state_is_bound_to_its_browser(scene: UpstreamScenario) -> None:
    scene.ask()
    url = scene.fake_provider.approve(scene.go())
    victim = Browser(scene.world)
    scene.ask(victim)
    assert scene.back(url, victim).status_int == 400
    assert not victim.session_cookies
    assert scene.party.redirect_uri in str(scene.back(url).location)


def test_state_is_single_use(scene: UpstreamScenario) -> None:
    scene.ask()
    url = scene.fake_provider.approve(scene.go())
    scene.back(url)
    assert scene.back(url).status_int == 400
    assert len([path for _, path, _, _ in scene.fake_provider.requests if path == "/token"]) == 1


def test_refused_response_consumes_state(scene: UpstreamScenario) -> None:
    scene.ask()
    sent = scene.go()
    scene.fake_provider.answers["/token"] = OutboundResponse(400, b"{}")
    assert scene.back(scene.fake_provider.approve(sent)).status_int == 400
    scene.fake_provider.answers.clear()
    answer = scene.back(scene.fake_provider.approve(sent))
    assert answer.status_int == 400
    assert not scene.browser.session_cookies
    assert len([path for _, path, _, _ in scene.fake_provider.requests if path == "/token"]) == 1


@pytest.mark.parametrize("state", ["", "unknown", "x" * 5000])
def test_unknown_state_is_refused(scene: UpstreamScenario, state: str) -> None:
    scene.ask()
    assert refusal_reason(scene, scene.sign_in(state=state)) == ""


def test_state_expires(scene: UpstreamScenario) -> None:
    scene.ask()
    url = scene.fake_provider.approve(scene.go())
    scene.world.clock.advance(minutes=16)
    assert scene.back(url).status_int == 400


def test_injected_code_is_refused(scene: UpstreamScenario) -> None:
    """Another user's code is bound to their code challenge and nonce."""
    attacker = Browser(scene.world)
    scene.ask(attacker)
    stolen = dict(
        pair.split("=") for pair in scene.fake_provider.approve(scene.go(attacker)).partition("?")[2].split("&")
    )
    scene.ask()
    assert refusal_reason(scene, scene.sign_in(code=stolen["code"])) == "the provider answered 400 (invalid_grant)"


def test_used_code_is_refused(scene: UpstreamScenario) -> None:
    scene.fake_provider.answers["/token"] = OutboundResponse(
        400, b'{"error":"invalid_grant","error_description":"<b>evil</b>"}'
    )
    scene.ask()
    answer = scene.sign_in()
    assert refusal_reason(scene, answer) == "the provider answered 400 (invalid_grant)"
    assert "evil" not in answer


def test_denied_provider_sign_in_offers_other_methods(scene: UpstreamScenario) -> None:
    scene.ask()
    answer = scene.sign_in(code=None, error="access_denied", error_description="<script>")
    assert answer.status_int == 400
    assert "script>" not in answer.text.replace("</script>", "").replace("<script ", "")
    scene.browser.click("Choose another method")
    assert scene.browser.sign_in_step == ""


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    "answer",
    [
        never,
        ConnectionRefusedError(),
        OutboundResponse(200, b"{" * 60_000),
        OutboundResponse(200, b'{"a":' * 20_000),
        OutboundResponse(200, b"[]"),
        OutboundResponse(200, b"\xff"),
        OutboundResponse(200, b""),
        OutboundResponse(302, b""),
        OutboundResponse(500, b""),
    ],
    ids=["never", "down", "huge", "deep", "no object", "no text", "empty", "redirect", "error"],
)
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys", "/userinfo"])
def test_provider_failure_affects_one_sign_in_only(scene: UpstreamScenario, path: str, answer: Any) -> None:
    scene.fake_provider.answers[path] = answer
    scene.ask()
    scene.browser.click(scene.button)
    if scene.browser.external_redirect is not None:
        scene.back(scene.fake_provider.approve(scene.browser.external_redirect))
    assert scene.browser.page.status_int in (400, 503)
    assert refusal_reason(scene, scene.browser.page, scene.browser.page.status_int)
    assert scene.browser.click("Choose another method").status_int == 200


def test_unreachable_provider_is_not_retried_at_once(scene: UpstreamScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    from identity.plugins.upstream import http_client

    moment = [100.0]
    monkeypatch.setattr(http_client, "monotonic", lambda: moment[0])
    scene.fake_provider.answers["/.well-known/openid-configuration"] = TimeoutError()
    scene.ask()
    assert scene.browser.click(scene.button).status_int == 503
    assert len(scene.fake_provider.requests) == 1
    scene.ask()
    assert scene.browser.click(scene.button).status_int == 503
    assert len(scene.fake_provider.requests) == 1, "it was asked again at once"
    scene.fake_provider.answers.clear()
    moment[0] += 6
    scene.ask()
    assert scene.go()


def test_concurrent_requests_to_one_provider_are_limited(scene: UpstreamScenario) -> None:
    desk = scene.world.app.registry.upstream
    another = scene.world.make_upstream_provider(
        scene.organization, issuer="https://other.example", client_secret=SECRET
    )
    with ExitStack() as waiting:
        for _ in range(4):
            waiting.enter_context(desk._http_client.open_session(scene.provider))
        scene.ask()
        assert scene.browser.click(scene.button).status_int == 503
        with desk._http_client.open_session(another):
            pass
    scene.ask()
    assert scene.go()


def test_rotated_provider_keys_are_fetched_again(scene: UpstreamScenario) -> None:
    scene.ask()
    scene.sign_in()
    scene.fake_provider.keys["two"] = scene.fake_provider.keys.pop("one")
    scene.fake_provider.signs_with = "two"
    for entry in scene.world.app.registry.upstream.known._key_sets._entries.values():
        entry.fetched_at -= 60
    scene.browser = Browser(scene.world)
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization)
    assert len([path for _, path, _, _ in scene.fake_provider.requests if path == "/keys"]) == 2


def test_unknown_key_ids_do_not_refetch_keys_each_time(scene: UpstreamScenario) -> None:
    scene.fake_provider.header = {"kid": "unknown"}
    for _ in range(3):
        scene.ask()
        scene.sign_in()
    assert len([path for _, path, _, _ in scene.fake_provider.requests if path == "/keys"]) == 2, (
        "one look more in a while"
    )


def test_key_published_after_fetch_is_fetched_again(scene: UpstreamScenario) -> None:
    """OpenID Connect Core §10.1.1."""
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization)
    scene.fake_provider.keys["two"] = scene.fake_provider.keys.pop("one")
    scene.fake_provider.signs_with = "two"
    scene.browser = Browser(scene.world)
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization)


def test_unknown_key_ids_refetch_keys_once_per_minute(scene: UpstreamScenario) -> None:
    moment = [1000.0]
    scene.world.app.registry.upstream.known = ProviderMetadataCache(KeySetCache(lambda: moment[0]))
    looks = []
    for number in range(12):
        scene.fake_provider.header = {"kid": f"unknown-{number}"}
        scene.ask()
        scene.sign_in()
        looks.append(len([path for _, path, _, _ in scene.fake_provider.requests if path == "/keys"]))
        moment[0] += 10
    assert looks[:3] == [2, 2, 2]
    assert looks[-1] <= 2 + 120 / 60


def test_id_token_signed_with_ec_key_is_accepted(scene: UpstreamScenario) -> None:
    scene.fake_provider.signs_with = "elliptic"
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization)


def test_cross_site_form_post_callback_is_reloaded_with_cookies(scene: UpstreamScenario) -> None:
    scene.ask()
    url, _, query = scene.fake_provider.approve(scene.go()).partition("?")
    form = dict(pair.split("=", 1) for pair in query.split("&"))
    form["iss"] = ISSUER
    scene.browser.post_form(url, form, initiator=ISSUER)
    assert scene.party.redirect_uri in str(scene.browser.external_redirect or scene.browser.page.location)


def test_head_request_does_not_consume_state(scene: UpstreamScenario) -> None:
    scene.ask()
    url = scene.fake_provider.approve(scene.go())
    assert scene.world.client.request("HEAD", url).status_int == 405
    assert scene.party.redirect_uri in str(scene.back(url).location)


def test_sign_in_secrets_are_in_no_url_or_audit_event(scene: UpstreamScenario) -> None:
    scene.ask()
    url = scene.go()
    scene.back(scene.fake_provider.approve(url))
    [(_, _, form, headers)] = [item for item in scene.fake_provider.requests if item[1] == "/token"]
    assert form["code_verifier"] not in url
    assert "client_secret" not in form
    assert headers["Authorization"].startswith("Basic ")
    trail = json.dumps([dict(event.detail) for event in scene.world.audit_events()], default=str)
    assert form["code_verifier"] not in trail
    assert form["code"] not in trail


@pytest.mark.thorough
def test_slow_providers_of_one_tenant_do_not_block_others(scene: UpstreamScenario) -> None:
    """Security 20.6: four providers with as many requests as may wait."""
    desk, tenant = scene.world.app.registry.upstream, scene.world.make_organization()
    slow = [
        scene.world.make_upstream_provider(tenant, issuer=f"https://slow-{number}.example", client_secret=SECRET)
        for number in range(4)
    ]
    with ExitStack() as waiting:
        for number in range(40):
            with client_network_scope(f"192.{number}.2.0/24"), suppress(ProviderUnreachable):
                waiting.enter_context(desk._http_client.open_session(slow[number % 4]))
        for _ in range(15):
            scene.browser = Browser(scene.world)
            authorization = scene.ask()
            assert scene.party.obtain_tokens(scene.sign_in(), authorization)
