"""Client authentication private_key_jwt (OpenID Connect Core §9, RFC 7523): applications that sign with their key."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from pydantic import ValidationError

from identity.crypto.signature_keys import PrivateKey
from identity.domain.applications import ApplicationType
from identity.domain.errors import Invalid
from identity.key_sets import KeySetCache, KeySetClient
from identity.outbound_http import OutboundResponse
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.service_users import ChangeServiceUser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import OMITTED, assertion_claims, hs256, no_signature, ps256, sign_assertion
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import World

TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FAILED = "client authentication failed"
URL = "https://app.example.com/jwks.json"


def key_set(*keys: tuple[str, RSAPrivateKey]) -> str:
    """Without ``alg``, so that the application decides which algorithm a key is for."""
    jwks = [PrivateKey(key).public_key().to_jwk(kid) for kid, key in keys]
    return json.dumps({"keys": [{name: jwk[name] for name in ("kty", "kid", "n", "e")} for jwk in jwks]})


@dataclass
class SigningClient:
    """An application that signs with a key."""

    world: World
    key: RSAPrivateKey
    client_id: str = ""
    _jti: int = 0
    host: "KeyHost | None" = None

    def register(self, **members: Any) -> "SigningClient":
        usual = {"jwks": key_set(("one", self.key))} if "jwks_uri" not in members else {}
        application, secret = self.world.register_application(
            type=ApplicationType.API,
            authentication_method="private_key_jwt",
            grant_types=frozenset({"client_credentials"}),
            **usual | members,
        )
        assert secret is None, "no secret is created for a client that signs"
        self.client_id = application.id
        return self

    def assertion(self, key_id: object = "one", **changed: Any) -> str:
        self._jti += 1
        now, options = int(self.world.clock().timestamp()), {}
        for name in ("header", "sign"):
            options[name] = changed.pop(name, None)
        claims = {"iss": self.client_id, "sub": self.client_id, "aud": self.world.issuer, "exp": now + 60}
        claims = {**claims, "iat": now, "jti": f"jti-{self._jti}", **changed}
        claims = {name: value for name, value in claims.items() if value is not OMITTED}
        return sign_assertion(claims, self.key, key_id=key_id, **options)

    def ask(self, assertion: str | None = None, endpoint: str = "token_endpoint", **form: str) -> Any:
        parameters = {"client_assertion_type": TYPE, "client_assertion": assertion or self.assertion()}
        usual = {"grant_type": "client_credentials"} if endpoint == "token_endpoint" else {"token": "unknown"}
        return self.world.client.post(self.world.client.discovery[endpoint], {**usual, **parameters, **form}, {})


@dataclass
class KeyHost:
    """A host that publishes a key set, and counts the requests."""

    body: str
    requests: int = 0
    answer: Callable[[], OutboundResponse] | None = None
    seconds: list[float] = field(default_factory=lambda: [1000.0])

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        self.requests += 1
        assert url == URL
        return self.answer() if self.answer else OutboundResponse(200, self.body.encode(), "max-age=300")

    def install(self, world: World) -> "KeyHost":
        world.identity.process_state.key_sets = KeySetClient(self, cache=KeySetCache(lambda: self.seconds[0]))
        return self


@pytest.fixture
def client(world: World) -> SigningClient:
    return SigningClient(world, world.key_pool.next()).register()


def test_assertion_authenticates_at_each_endpoint(client: SigningClient) -> None:
    check_token_response(client.ask())
    for endpoint in ("introspection_endpoint", "revocation_endpoint"):
        url = client.world.client.discovery[endpoint]
        assert client.ask(client.assertion(aud=[url]), endpoint).status_int == 200
    document = client.world.client.discovery
    assert "private_key_jwt" in document["token_endpoint_auth_methods_supported"]
    assert "RS256" in document["token_endpoint_auth_signing_alg_values_supported"]


def test_assertion_counts_once_at_all_endpoints_and_after_a_refusal(client: SigningClient) -> None:
    """Security 1.4: it stays used if the request is refused for another reason."""
    refused = client.assertion()
    check_oauth_error(client.ask(refused, grant_type="authorization_code", code="x"), "unauthorized_client")
    for endpoint in ("token_endpoint", "introspection_endpoint"):
        answer = client.ask(refused, endpoint)
        check_oauth_error(answer, "invalid_client", status=401)
        assert "jti was used before" in answer.json["error_description"]


@pytest.mark.every_storage
def test_assertion_counts_once_in_a_race_but_not_against_its_own_retry(world: World) -> None:
    client = SigningClient(world, world.key_pool.next()).register()
    assertion = client.assertion()
    with ThreadPoolExecutor(8) as pool:
        statuses = [answer.status_int for answer in pool.map(client.ask, [assertion] * 8)]
    assert sorted(statuses) == [200, *[401] * 7]
    until = world.clock() + timedelta(hours=1)
    with world.transaction_services() as services:
        # The request runs again after a conflict.
        assert services.assertions.use_once(client.client_id, "retried", until)
        assert services.assertions.use_once(client.client_id, "retried", until)
    assert not world.operator_services.assertions.use_once(client.client_id, "retried", until)


def test_failures_before_the_signature_look_alike(client: SigningClient) -> None:
    world, other = client.world, SigningClient(client.world, client.world.key_pool.next()).register()
    secret = world.make_application()
    assertions = [
        client.assertion(iss="nobody", sub="nobody"),
        client.assertion(iss=other.client_id, sub=other.client_id),
        client.assertion(iss=secret.client_id, sub=secret.client_id),
        client.assertion("unknown"),
        client.assertion(iss=OMITTED),
        client.assertion(header={"alg": "none"}, sign=no_signature),
        client.assertion(header={"alg": "HS256"}, sign=hs256(key_set(("one", client.key)).encode())),
        client.assertion(header={"alg": "PS256"}),
        client.assertion(header={"jwk": {}}),
        client.assertion(header={"typ": "at+jwt"}),
        client.assertion()[:-6] + "AAAAAA",
        "rubbish",
    ]
    for assertion in assertions:
        answer = client.ask(assertion)
        check_oauth_error(answer, "invalid_client", status=401)
        assert answer.json["error_description"] == FAILED, assertion
    check_oauth_error(client.ask(client_assertion_type="other"), "invalid_client", status=401)
    check_oauth_error(client.ask(client_secret="x"), "invalid_request")
    check_oauth_error(client.ask(client_id=other.client_id), "invalid_request")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"sub": "another"}, "sub must equal iss"),
        ({"aud": "https://elsewhere.example"}, "aud must be https://"),
        ({"aud": OMITTED}, "aud must be https://"),
        ({"exp": OMITTED}, "exp must be a whole number"),
        ({"exp": 10}, "assertion expired"),
        ({"exp": 4102444800}, "exp must be at most 3600 s"),
        ({"iat": 4102444800}, "iat is"),
        ({"nbf": "soon"}, "nbf must be a whole number"),
        ({"jti": OMITTED}, "jti must be a text"),
        ({"jti": "x" * 257}, "jti must be a text"),
    ],
)
def test_refusal_after_the_signature_says_what_to_fix(
    client: SigningClient, changed: dict[str, Any], problem: str
) -> None:
    answer = client.ask(client.assertion(**changed))
    check_oauth_error(answer, "invalid_client", status=401)
    assert problem in answer.json["error_description"]


def test_audience_list_with_another_member_is_refused(client: SigningClient) -> None:
    check_token_response(client.ask(client.assertion(aud=[client.world.issuer])))
    refused = client.ask(client.assertion(aud=[client.world.issuer, "https://elsewhere.example"]))
    check_oauth_error(refused, "invalid_client", status=401)


def test_algorithm_of_the_application_is_required(world: World) -> None:
    client = SigningClient(world, world.key_pool.next()).register(token_endpoint_auth_signing_alg="PS256")
    assert client.ask().json["error_description"] == FAILED
    check_token_response(client.ask(client.assertion(header={"alg": "PS256"}, sign=ps256(client.key))))


@pytest.mark.parametrize("state", ["application", "method", "key"])
def test_changes_take_effect_at_the_next_request(client: SigningClient, state: str) -> None:
    services, id = client.world.operator_services.applications, client.client_id
    check_token_response(client.ask())
    if state == "application":
        services.deactivate(id)
    elif state == "method":
        services.change(id, ChangeApplication.build(authentication_method="client_secret_basic"))
    else:
        services.change(id, ChangeApplication.build(jwks=key_set(("one", client.world.key_pool.next()))))
    assert client.ask().json["error_description"] == FAILED


def test_key_set_at_url_is_fetched_once_and_refreshed_for_new_keys(world: World) -> None:
    client = SigningClient(world, world.key_pool.next())
    host = KeyHost(key_set(("one", client.key))).install(world)
    client.register(jwks_uri=URL)
    for _ in range(2):
        check_token_response(client.ask())
    assert host.requests == 1
    host.body = key_set(("two", client.key))
    check_token_response(client.ask(client.assertion("two")))
    assert host.requests == 2, "an unknown key id fetches again"
    for _ in range(3):
        assert client.ask(client.assertion("unknown")).json["error_description"] == FAILED
    assert host.requests == 2, "but once a minute"
    host.seconds[0] += 61
    client.ask(client.assertion("unknown"))
    assert host.requests == 3


def test_failing_host_of_keys_is_asked_seldom_and_known_keys_last_an_hour(world: World) -> None:
    client = SigningClient(world, world.key_pool.next())
    host = KeyHost(key_set(("one", client.key))).install(world)
    client.register(jwks_uri=URL)
    host.answer = lambda: OutboundResponse(500, b"")
    for _ in range(3):
        assert client.ask().json["error_description"] == FAILED
    assert host.requests == 1
    host.answer, host.seconds[0] = None, 2000.0
    check_token_response(client.ask())
    for body in (b"oops", b'{"keys": []}'):
        host.answer, host.seconds[0] = (lambda body=body: OutboundResponse(200, body)), host.seconds[0] + 400
        check_token_response(client.ask())
    host.seconds[0] += 3600
    assert client.ask().json["error_description"] == FAILED


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"jwks": "{}"}, "jwks"),
        ({"jwks": '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'}, "jwks"),
        ({"jwks": '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}'}, "jwks"),
        ({"jwks_uri": "http://app.example.com/keys"}, "jwks_uri"),
        ({"jwks_uri": URL, "jwks": '{"keys": [{}]}'}, "jwks_uri"),
        ({"jwks_uri": URL, "token_endpoint_auth_signing_alg": "HS256"}, "token_endpoint_auth_signing_alg"),
    ],
)
def test_unusable_keys_are_refused(world: World, members: dict[str, str], field: str) -> None:
    with pytest.raises((Invalid, ValidationError)) as refusal:
        world.register_application(type=ApplicationType.API, authentication_method="private_key_jwt", **members)
    assert field in str(getattr(refusal.value, "fields", refusal.value))


def test_service_user_signs_with_a_key_that_it_publishes(world: World) -> None:
    """Beside its stored keys; the assertion is that of RFC 7523, with the key set at the URL."""
    robot, key = world.make_service_user_program(), world.key_pool.next()
    host = KeyHost(key_set(("published", key))).install(world)
    command = ChangeServiceUser.build(jwks_uri=URL)
    world.operator_services.service_users.change(robot.id, command)
    now = int(world.clock().timestamp())

    def ask(key_id: str = "published", signer: RSAPrivateKey = key, **changed: Any) -> Any:
        claims = assertion_claims(robot.id, world.issuer, now, **changed)
        return world.client.exchange_assertion(sign_assertion(claims, signer, key_id=key_id))

    check_token_response(ask())
    check_token_response(world.client.exchange_assertion(robot.assertion()))
    assert host.requests == 1, "stored keys need no request"
    for answer in (ask("unknown"), ask(signer=world.key_pool.next()), ask(iss=world.make_service_user_program().id)):
        check_oauth_error(answer, "invalid_grant")
        assert answer.json["error_description"] == "the assertion is not valid"
    check_oauth_error(ask(aud="https://elsewhere.example"), "invalid_grant")
    world.operator_services.service_users.change(robot.id, ChangeServiceUser.build(jwks_uri=""))
    check_oauth_error(ask(), "invalid_grant")


def test_published_keys_are_refused_where_keys_must_expire(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.service_user_key_max_age": "90d"})
    robot = world.make_service_user_program()
    with pytest.raises(Invalid):
        world.operator_services.service_users.change(robot.id, ChangeServiceUser.build(jwks_uri=URL))
