"""Profile Dynamic OP: clients that register themselves, with private_key_jwt."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from identity.crypto.jwt import sign
from identity.crypto.secrets import new_token
from identity.crypto.signature_keys import PrivateKey
from identity.key_sets import KeySetCache, KeySetClient
from identity.outbound_http import OutboundResponse
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.fixtures import WorldCache
from identity.testing.jwt_assertions import verify_jwt
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error, check_page
from identity.testing.world import World
from tests.certification.conftest import Suite

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

REDIRECT_URI = "https://app.example/cb"
KEYS_URI, LIST_URI, REQUEST_URI = (f"https://app.example/{name}" for name in ("keys", "redirect-uris", "request"))
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
UNTRUSTED = "We cannot send you back to this application"


class RegisteredParty(RelyingParty):
    """A client that registered itself. It signs its assertions with ``key``, whose kid is ``kid``."""

    key: PrivateKey
    kid = "one"

    @property
    def jwks(self) -> dict[str, Any]:
        return {"keys": [self.key.public_key().to_jwk(self.kid)]}

    def _ask_for_tokens(self, form: Mapping[str, str | None]) -> Any:
        now = self.now()
        claims = {"iss": self.client_id, "sub": self.client_id, "aud": self.client.issuer_url, "jti": new_token()}
        assertion = sign({**claims, "iat": now, "exp": now + 60}, self.key, key_id=self.kid)
        sent = {name: value for name, value in form.items() if value is not None}
        return self.client.request_token(
            {**sent, "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
        )


class DynamicSuite(Suite):
    """A run with an open project. ``published`` are the documents of the clients' server, by their address."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.published: dict[str, str] = {}
        world.identity.process_state.key_sets = KeySetClient(self, cache=KeySetCache())
        world.identity.process_state.documents.transport = self  # type: ignore[assignment]
        self.project = world.make_project()
        policy = {"client_registration": "open", "registration_redirect_hosts": ["app.example"]}
        with world.transaction_services() as services:
            services.projects.change(self.project.id, ChangeProject.decode(policy), principal=Principal.OPERATOR)

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        """The answer of the clients' server to the service."""
        assert method == "GET"
        return OutboundResponse(200, self.published[url].encode())

    def request_registration(self, **metadata: Any) -> Any:
        right = {
            "redirect_uris": [REDIRECT_URI],
            "token_endpoint_auth_method": "private_key_jwt",
            "grant_types": ["authorization_code", "refresh_token"],
        }
        url = f"{self.world.client.discovery['registration_endpoint']}?project={self.project.id}"
        body = json.dumps(right | metadata).encode()
        return self.world.client.request("POST", url, headers={"Content-Type": "application/json"}, body=body)

    def register(self, *, publishes: bool = False, **metadata: Any) -> RegisteredParty:
        """A client that sends its keys, or publishes them."""
        key = PrivateKey(self.world.key_pool.next())
        jwks = {"keys": [key.public_key().to_jwk("one")]}
        if publishes:
            self.published[KEYS_URI] = json.dumps(jwks)
        answer = self.request_registration(**({"jwks_uri": KEYS_URI} if publishes else {"jwks": jwks}), **metadata)
        assert answer.status_int == 201, answer.text
        sent = {"redirect_uri": answer.json["redirect_uris"][0], "now": lambda: self.world.clock.seconds}
        party = RegisteredParty(self.world.client, answer.json["client_id"], None, **sent)
        party.key = key
        return party


@pytest.fixture
def suite(world_cache: WorldCache, storage_name: str) -> DynamicSuite:
    settings = {
        "identity.plugins": f"sql {DEFAULT_PLUGINS} dynamic_registration",
        "identity.plugin.request_objects.by_reference": "true",
    }
    return DynamicSuite(world_cache.shared_world(storage_name, settings))


@pytest.mark.modules("oidcc-server", "oidcc-idtoken-rs256", "oidcc-ensure-client-assertion-with-iss-aud-succeeds")
def test_registered_client_signs_a_person_in(suite: DynamicSuite) -> None:
    """Which users consent to."""
    party = suite.register(id_token_signed_response_alg="RS256")
    tokens = suite.tokens(relying_party=party)
    assert "consent" in suite.pages
    assert tokens.claims["sub"] == party.fetch_userinfo(tokens)["sub"] == suite.person.id


@pytest.mark.modules("oidcc-idtoken-unsigned")
def test_unsigned_id_tokens_cannot_be_registered(suite: DynamicSuite) -> None:
    check_oauth_error(suite.request_registration(id_token_signed_response_alg="none"), "invalid_client_metadata")


@pytest.mark.modules("oidcc-userinfo-rs256")
def test_userinfo_is_signed_as_registered(suite: DynamicSuite) -> None:
    party = suite.register(userinfo_signed_response_alg="RS256")
    answer = suite.world.client.fetch_userinfo(suite.tokens(relying_party=party).access_token)
    assert answer.content_type == "application/jwt"
    header, claims = verify_jwt(answer.text, suite.world.client.fetch_jwks().json["keys"])
    assert (header["alg"], claims["iss"], claims["aud"]) == ("RS256", suite.world.issuer, party.client_id)
    assert claims["sub"] == suite.person.id


@pytest.mark.modules("oidcc-redirect-uri-query-OK", "oidcc-redirect-uri-query-mismatch")
@pytest.mark.modules("oidcc-redirect-uri-query-added", "oidcc-ensure-redirect-uri-in-authorization-request")
def test_redirect_uri_is_as_registered(suite: DynamicSuite) -> None:
    party = suite.register(redirect_uris=[f"{REDIRECT_URI}?foo=bar"])
    suite.tokens(relying_party=party)
    assert "?foo=bar&" in suite.browser.external_redirect
    for uri in (REDIRECT_URI, f"{REDIRECT_URI}?foo=other", f"{REDIRECT_URI}?foo=bar&more=x", None):
        check_page(suite.browser.open(party.new_request(redirect_uri=uri).url), 400, UNTRUSTED)


@pytest.mark.modules("oidcc-redirect-uri-regfrag")
def test_redirect_uri_with_fragment_cannot_be_registered(suite: DynamicSuite) -> None:
    answer = suite.request_registration(redirect_uris=[f"{REDIRECT_URI}#foo"])
    check_oauth_error(answer, "invalid_redirect_uri")


@pytest.mark.modules("oidcc-registration-logo-uri", "oidcc-registration-policy-uri", "oidcc-registration-tos-uri")
def test_addresses_for_people_are_accepted(suite: DynamicSuite) -> None:
    """The pages do not display them: plans.py has remarks."""
    names = ("logo_uri", "policy_uri", "tos_uri", "client_uri")
    party = suite.register(**{name: f"https://app.example/{name}" for name in names})
    assert suite.tokens(relying_party=party).claims["sub"] == suite.person.id


@pytest.mark.modules("oidcc-registration-jwks-uri", "oidcc-refresh-token", "oidcc-refresh-token-rp-key-rotation")
def test_published_keys_are_fetched_again_after_a_rotation(suite: DynamicSuite) -> None:
    party, other = suite.register(publishes=True), suite.register()
    tokens = suite.tokens(relying_party=party, scope="openid offline_access")
    check_oauth_error(other.refresh(tokens.refresh_token), "invalid_grant")
    party.key, party.kid = PrivateKey(suite.world.key_pool.next()), "two"
    suite.published[KEYS_URI] = json.dumps(party.jwks)
    suite.world.clock.advance(60)
    answer = party.refresh(tokens.refresh_token)
    assert answer.status_int == 200, answer.text
    party.check_id_token(answer.json["id_token"], access_token=answer.json["access_token"])


@pytest.mark.modules("oidcc-registration-sector-uri", "oidcc-registration-sector-bad")
def test_sector_is_that_of_a_list_with_all_redirect_uris(suite: DynamicSuite) -> None:
    pairwise = {"subject_type": "pairwise", "sector_identifier_uri": LIST_URI}
    suite.published[LIST_URI] = json.dumps(["https://app.example/other"])
    check_oauth_error(suite.request_registration(**pairwise), "invalid_client_metadata")
    suite.published[LIST_URI] = json.dumps([REDIRECT_URI])
    party, same = suite.register(**pairwise), suite.register(**pairwise)
    tokens = suite.tokens(relying_party=party)
    subject = tokens.claims["sub"]
    assert subject == party.fetch_userinfo(tokens)["sub"] != suite.person.id
    assert suite.tokens(relying_party=same).claims["sub"] == subject


@pytest.mark.modules("oidcc-request-uri-signed-rs256")
def test_signed_request_is_fetched(suite: DynamicSuite) -> None:
    party = suite.register(request_uris=[REQUEST_URI], request_object_signing_alg="RS256")
    sent = party.new_request()
    claims = {**sent.parameters, "iss": party.client_id, "aud": suite.world.issuer, "exp": party.now() + 300}
    suite.published[REQUEST_URI] = sign(claims, party.key, key_id=party.kid, typ="oauth-authz-req+jwt")
    parameters = {"client_id": party.client_id, "response_type": "code", "scope": "openid", "request_uri": REQUEST_URI}
    answer = suite.authorize(replace(sent, parameters=parameters), relying_party=party)
    assert party.obtain_tokens(answer, sent).claims["sub"] == suite.person.id
