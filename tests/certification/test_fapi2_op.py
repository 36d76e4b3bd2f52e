"""Profiles FAPI 2.0 Security Profile and FAPI 2.0 Message Signing.

Each test runs with each variant of the profiles that its modules are for.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.clock import now
from identity.crypto.signature_keys import PrivateKey
from identity.domain.applications import ConsentRule
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldCache
from identity.testing.jwt_assertions import encode_jwt_segment, verify_jwt
from identity.testing.relying_party import SentAuthorizationRequest
from identity.testing.response_checks import check_page
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import World
from tests.certification.plans import FapiVariant, fapi_variants
from tests.plugins.client_certificates import HEADER, PROXY, IssuedCertificate, ask, issue
from tests.plugins.dpop_proofs import DpopKey
from tests.spec.fapi_client import KEY, FapiClient, without_verifier
from tests.spec.test_signing_algorithms import switched_on

pytestmark = pytest.mark.storages("memory")  # the suite is independent of the storage

PAR, TOKEN = "pushed_authorization_request_endpoint", "token_endpoint"
SIGNED_TYPE = "oauth-authz-req+jwt"
#: An RSA key that both clients have as well, for signatures that the profiles refuse.
RSA_KEY = PrivateKey.generate()
RSA_JWK = {name: value for name, value in RSA_KEY.public_key().to_jwk("one").items() if name != "alg"}

every = fapi_variants()
with_dpop = fapi_variants(lambda variant: variant.binding == "dpop")
with_assertions = fapi_variants(lambda variant: variant.authentication == "private_key_jwt")
signed = fapi_variants(lambda variant: variant.is_signed)


def modules(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.modules(*(f"fapi2-security-profile-final-{name}" for name in names))


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[IssuedCertificate, Path]:
    """A certificate authority, and the file from which the service reads it."""
    issued, file = issue(now(), subject="CN=Clients", is_authority=True), tmp_path_factory.mktemp("ca") / "clients.pem"
    file.write_text(issued.pem)
    return issued, file


@pytest.fixture
def world(world_cache: WorldCache, storage_name: str, authority: tuple[IssuedCertificate, Path]) -> World:
    settings = {
        "identity.signing_algorithms": "RS256 ES256",
        "identity.trusted_proxy": PROXY,
        "identity.plugin.mutual_tls.certificate_header": HEADER,
        "identity.plugin.mutual_tls.certificate_authorities": str(authority[1]),
    }
    world = world_cache.shared_world(storage_name, settings)
    published = {key["alg"] for key in world.client.fetch_jwks().json["keys"]}
    return world if "ES256" in published else switched_on(world)


class VariantClient(FapiClient):
    """A client that authenticates, and proves its key, as the variant says."""

    def __init__(self, world: World, flow: FapiVariant, authority: IssuedCertificate, **members: Any) -> None:
        self._flow, subject = flow, f"CN={token_hex(8)}"
        self.certificate = issue(world.clock(), authority, subject=subject)
        right: dict[str, Any] = {"jwks": json.dumps({"keys": [KEY.public_key().to_jwk("one"), RSA_JWK]})}
        right["required_sender_constraint"] = "mutual_tls" if flow.binding == "mtls" else "dpop"
        if flow.authentication == "mtls":
            right |= {"authentication_method": flow.method, "tls_client_auth_subject_dn": subject}
        if flow.is_signed:
            right["require_signed_request_object"] = True
        super().__init__(world, flow.profile, **right, **members)
        if flow.binding == "dpop":
            # A nonce of the service, so that each proof counts at once.
            self.dpop.post(world.client.discovery[TOKEN], {"grant_type": "authorization_code"})

    def assertion_form(self, **assertion: Any) -> dict[str, str]:
        if self._flow.authentication == "mtls":
            return {"client_id": self.client_id}
        return super().assertion_form(**assertion)

    def post(
        self,
        endpoint: str,
        form: Mapping[str, str],
        *,
        proves_key: bool = False,
        headers: Mapping[str, str] | None = None,
        **assertion: Any,
    ) -> Any:
        """Without ``proves_key``, a token request has neither a DPoP proof nor a certificate that binds its tokens."""
        flow, url = self._flow, self.world.client.discovery[endpoint]
        is_withheld = flow.binding == "mtls" and endpoint == TOKEN and not proves_key
        has_certificate = "mtls" in (flow.authentication, flow.binding) and not is_withheld
        proof = {"DPoP": self.dpop.proof(url)} if proves_key and flow.binding == "dpop" else {}
        certificate = self.certificate.base64 if has_certificate else None
        return ask(
            self.world,
            url,
            certificate,
            {**self.assertion_form(**assertion), **form},
            headers={**proof, **(headers or {})},
        )

    def fetch_userinfo(self, token: str, *, scheme: str | None = None, **proof: Any) -> Any:
        url = self.world.client.discovery["userinfo_endpoint"]
        if self._flow.binding == "dpop":
            return self.dpop.get(url, token, scheme=scheme or "DPoP", **proof)
        headers = {"Authorization": f"{scheme or 'Bearer'} {token}"}
        return ask(self.world, url, self.certificate.base64, headers=headers)


class FapiSuite:
    """One run of the suite: two clients of a variant, and a user who is signed in."""

    def __init__(self, world: World, flow: FapiVariant, authority: IssuedCertificate) -> None:
        self.world, self.flow = world, flow
        self.first = VariantClient(world, flow, authority)
        self.second = VariantClient(world, flow, authority, consent=ConsentRule.ALWAYS)
        self.browser = Browser(world)
        self.person = world.make_human_user()
        self.browser.start_session(self.person)

    def new_request(self, client: VariantClient | None = None, **changes: Any) -> SentAuthorizationRequest:
        mode = {"response_mode": "jwt"} if self.flow.is_encoded else {}
        return (client or self.first).new_request(**mode, **changes)

    def form(
        self, sent: SentAuthorizationRequest, client: VariantClient | None = None, **claims: Any
    ) -> dict[str, str]:
        """The parameters to push: as they are, or in a request object, of which ``claims`` change members."""
        client = client or self.first
        if not self.flow.is_signed:
            return {name: str(value) for name, value in {**sent.parameters, **claims}.items() if value is not None}
        return {"client_id": client.client_id, "request": client.request_object(sent, **claims)}

    def push(self, sent: SentAuthorizationRequest, client: VariantClient | None = None, **options: Any) -> Any:
        """The response to the pushed request; options are those of FapiClient.post."""
        client = client or self.first
        return client.post(PAR, self.form(sent, client), **options)

    def url(self, sent: SentAuthorizationRequest, pushed: Any, **beside: str) -> str:
        assert pushed.status_int == 201, pushed.text
        query = {"client_id": sent.parameters["client_id"], "request_uri": pushed.json["request_uri"], **beside}
        return f"{sent.endpoint}?{urlencode(query)}"

    def open(self, sent: SentAuthorizationRequest, pushed: Any, **beside: str) -> dict[str, Any]:
        """The members of the response for the user who is signed in."""
        self.browser.open(self.url(sent, pushed, **beside), initiator=self.first.party.origin)
        return self.members(sent)

    def members(self, sent: SentAuthorizationRequest) -> dict[str, Any]:
        """The checked members of the displayed response, by JARM where it is used; with state, without iss."""
        party = self.first.party
        mode = sent.mode.removesuffix("jwt") or "query"
        pairs = dict(party.read_response(self.browser.page, sent, mode))
        if self.flow.is_encoded:
            assert set(pairs) == {"response"}
            header, pairs = verify_jwt(pairs["response"], party.client.fetch_jwks().json["keys"])
            assert header["alg"] == "ES256"
            assert pairs.pop("aud") == sent.parameters["client_id"]
            assert self.world.clock.seconds < pairs.pop("exp") <= self.world.clock.seconds + 600
        assert pairs.pop("iss") == self.world.issuer
        return pairs

    def code(
        self, sent: SentAuthorizationRequest | None = None, **options: Any
    ) -> tuple[str, SentAuthorizationRequest]:
        """A code, and its request, of the first client."""
        sent = sent or self.new_request()
        members = self.open(sent, self.push(sent, **options))
        expected = {"code", "state"} if "state" in sent.parameters else {"code"}
        assert set(members) == expected
        assert members.get("state") == sent.parameters.get("state")
        return members["code"], sent

    def tokens(self, sent: SentAuthorizationRequest | None = None, **options: Any) -> dict[str, Any]:
        """The checked tokens of a sign-in to the first client."""
        code, sent = self.code(sent, **options)
        answer = self.first.redeem(code, sent)
        assert answer.status_int == 200, answer.text
        members: dict[str, Any] = answer.json
        assert members["token_type"] == ("DPoP" if self.flow.binding == "dpop" else "Bearer")
        claims = self.first.party.check_id_token(members["id_token"], sent, access_token=members["access_token"])
        assert claims["sub"] == self.person.id
        return members

    def check_refused_when_pushed(self, form: Mapping[str, str], *errors: str) -> None:
        answer = self.first.post(PAR, form)
        assert answer.status_int == 400, answer.text
        assert answer.json["error"] in (errors or ("invalid_request", "invalid_request_object")), answer.text


@pytest.fixture
def suite(world: World, flow: FapiVariant, authority: tuple[IssuedCertificate, Path]) -> FapiSuite:
    return FapiSuite(world, flow, authority[0])


def error_of(answer: Any) -> str:
    assert answer.status_int in (400, 401), answer.text
    return str(answer.json["error"])


@modules("discovery-end-point-verification")
@every
def test_discovery_names_algorithms_and_methods(suite: FapiSuite) -> None:
    """FAPI 2.0 Security Profile §5.3.2.1, §5.4.1."""
    document = suite.world.client.discovery
    assert document["issuer"] == suite.world.issuer
    assert suite.flow.method in document["token_endpoint_auth_methods_supported"]
    assert document["tls_client_certificate_bound_access_tokens"] is True
    assert "ES256" in document["id_token_signing_alg_values_supported"]
    assert {"ES256", "PS256"} <= set(document["token_endpoint_auth_signing_alg_values_supported"])
    assert {"ES256", "PS256"} <= set(document["dpop_signing_alg_values_supported"])
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    if suite.flow.is_encoded:
        assert "jwt" in document["response_modes_supported"]
        assert "ES256" in document["authorization_signing_alg_values_supported"]
    for name, url in document.items():
        assert not name.endswith(("_endpoint", "jwks_uri")) or url.startswith("https://"), name


@modules(
    "happy-flow",
    "ensure-authorization-request-without-nonce-success",
    "ensure-authorization-request-without-state-success",
    "ensure-authorization-request-with-64-char-nonce-success",
    "ensure-other-scope-order-succeeds",
    "par-without-duplicate-parameters",
)
@every
def test_sign_in_brings_bound_tokens(suite: FapiSuite) -> None:
    for changes in ({}, {"nonce": None}, {"state": None}, {"nonce": "n" * 64}, {"scope": "email openid"}):
        members = suite.tokens(suite.new_request(**changes))
        assert suite.first.fetch_userinfo(members["access_token"]).json["sub"] == suite.person.id
        url = suite.world.client.discovery["userinfo_endpoint"]
        assert suite.world.client.get(url, bearer_headers(members["access_token"])).status_int == 401


@modules("ensure-authorization-request-with-long-nonce", "ensure-authorization-request-with-long-state")
@every
def test_long_values_come_back_unmodified(suite: FapiSuite) -> None:
    for changes in ({"nonce": "n" * 384}, {"state": "s" * 384}):
        suite.tokens(suite.new_request(**changes))


@modules("user-rejects-authentication")
@every
def test_user_denies(suite: FapiSuite) -> None:
    sent = suite.new_request(suite.second, prompt="consent")
    url = suite.url(sent, suite.push(sent, suite.second))
    suite.browser.open(url, initiator=suite.second.party.origin)
    suite.browser.submit(button=("decision", "refuse"))
    members = suite.members(sent)
    assert (members["error"], members["state"]) == ("access_denied", sent.parameters["state"])


@modules("test-claims-parameter-identity-claims")
@every
def test_claims_parameter_is_honored(suite: FapiSuite) -> None:
    sent = suite.new_request(claims='{"userinfo": {"name": {"essential": true}}, "id_token": {"name": null}}')
    members = suite.tokens(sent)
    claims = suite.first.party.check_id_token(members["id_token"], sent)
    assert claims["name"] == suite.first.fetch_userinfo(members["access_token"]).json["name"]


@modules("access-token-type-header-case-sensitivity")
@every
def test_scheme_of_the_token_is_case_insensitive(suite: FapiSuite) -> None:
    token = suite.tokens()["access_token"]
    for scheme in ("dpop", "DPOP", "DPoP") if suite.flow.binding == "dpop" else ("bearer", "BEARER", "Bearer"):
        assert suite.first.fetch_userinfo(token, scheme=scheme).status_int == 200


@modules(
    "check-dpop-proof-nbf-exp",
    "ensure-dpopproof-with-iat-10seconds-before-succeeds",
    "ensure-dpopproof-with-iat-10seconds-after-succeeds",
)
@with_dpop
def test_times_of_a_proof_may_differ_a_little(suite: FapiSuite) -> None:
    now, token = suite.world.clock.seconds, suite.tokens()["access_token"]
    for claims in ({"nbf": now, "exp": now + 300}, {"iat": now - 10}, {"iat": now + 10}):
        assert suite.first.fetch_userinfo(token, **claims).status_int == 200
        code, sent = suite.code()
        url = suite.world.client.discovery[TOKEN]
        proof = {"DPoP": suite.first.dpop.proof(url, **claims)}
        answer = suite.first.post(TOKEN, suite.first.code_form(code, sent), headers=proof)
        assert answer.status_int == 200, answer.text


@modules(
    "ensure-mismatched-dpop-jkt-fails",
    "ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt",
    "ensure-token-endpoint-fails-with-mismatched-dpop-jkt",
    "ensure-dpopproof-at-par-endpoint-binding-success",
    "ensure-dpop-auth-code-binding-success",
)
@with_dpop
def test_code_is_bound_to_the_key_of_its_request(suite: FapiSuite) -> None:
    """RFC 9449 §10, §10.1: by the parameter, or by a proof with the pushed request."""
    first, other = suite.first.dpop, DpopKey(suite.world)
    other.nonce = first.nonce
    named = suite.new_request(dpop_jkt=first.thumbprint)
    assert error_of(suite.push(suite.new_request(dpop_jkt=other.thumbprint), proves_key=True)) == "invalid_request"
    for sent, options in ((named, {}), (suite.new_request(), {"proves_key": True})):
        code, _ = suite.code(sent, **options)
        suite.first.dpop = other
        assert error_of(suite.first.redeem(code, sent)) in ("invalid_grant", "invalid_dpop_proof")
        suite.first.dpop = first
        assert suite.first.redeem(code, sent).status_int == 200


@modules(
    "ensure-different-nonce-inside-and-outside-request-object",
    "ensure-different-state-inside-and-outside-request-object",
    "state-only-outside-request-object-not-used",
)
@every
def test_parameters_beside_the_reference_are_ignored(suite: FapiSuite) -> None:
    sent = suite.new_request()
    members = suite.open(sent, suite.push(sent), state="outside", nonce="outside", redirect_uri="https://evil.example")
    assert members["state"] == sent.parameters["state"]
    tokens = suite.first.redeem(members["code"], sent).json
    suite.first.party.check_id_token(tokens["id_token"], sent)
    sent = suite.new_request(state=None)
    assert "state" not in suite.open(sent, suite.push(sent), state="outside")


@modules(
    "ensure-request-object-without-redirect-uri-fails",
    "ensure-redirect-uri-in-authorization-request",
    "ensure-registered-redirect-uri",
    "plain-fapi-tolerate-unregistered-redirect-uri",
    "ensure-response-type-code-idtoken-fails",
    "ensure-response-type-token-fails",
    "par-ensure-pkce-required",
    "par-plain-pkce-rejected",
)
@every
def test_invalid_request_is_refused_when_it_is_pushed(suite: FapiSuite) -> None:
    """Unregistered addresses too, which RFC 9126 §2.4 would let the service allow."""
    redirect_uri = suite.first.party.redirect_uri
    for changes in (
        {"redirect_uri": None},
        {"redirect_uri": f"{redirect_uri}/unregistered"},
        {"code_challenge_method": "plain"},
    ):
        suite.check_refused_when_pushed(suite.form(suite.new_request(**changes)))
    suite.check_refused_when_pushed(suite.form(without_verifier(suite.new_request())))
    for response_type in ("code id_token", "token"):
        sent = suite.new_request(response_type=response_type)
        suite.check_refused_when_pushed(suite.form(sent), "unsupported_response_type", "unauthorized_client")


@modules("ensure-unsigned-authorization-request-without-using-par-fails")
@every
def test_request_in_the_address_is_refused(suite: FapiSuite) -> None:
    sent = suite.new_request()
    suite.browser.open(sent.url, initiator=suite.first.party.origin)
    assert suite.members(sent)["error"] == "invalid_request"


@modules("ensure-client-id-in-token-endpoint", "ensure-authorization-code-is-bound-to-client")
@every
def test_code_is_bound_to_its_client(suite: FapiSuite) -> None:
    code, sent = suite.code()
    form = suite.first.code_form(code, sent)
    answer = suite.first.request_token({**form, "client_id": suite.second.client_id})
    assert error_of(answer) in ("invalid_client", "invalid_request")
    assert error_of(suite.second.request_token(form)) == "invalid_grant"
    assert suite.first.request_token(form).status_int == 200


@modules("ensure-holder-of-key-required")
@every
def test_token_without_a_key_is_not_issued(suite: FapiSuite) -> None:
    code, sent = suite.code()
    # Without a certificate, a client that authenticates with it is unknown.
    errors = ("invalid_client",) if suite.flow.authentication == suite.flow.binding else ("invalid_request",)
    assert error_of(suite.first.redeem(code, sent, proves_key=False)) in errors


@modules("attempt-reuse-authorization-code-after-one-second")
@every
def test_replayed_code_revokes_the_token(suite: FapiSuite) -> None:
    code, sent = suite.code()
    token = suite.first.redeem(code, sent).json["access_token"]
    suite.world.clock.advance(1)
    assert error_of(suite.first.redeem(code, sent)) == "invalid_grant"
    assert suite.first.fetch_userinfo(token).status_int == 401


@modules("ensure-token-endpoint-fails-with-expired-auth-code")
@every
def test_code_ends_after_a_minute(suite: FapiSuite) -> None:
    code, sent = suite.code()
    suite.world.clock.advance(61)
    assert error_of(suite.first.redeem(code, sent)) == "invalid_grant"


@modules(
    "ensure-signed-client-assertion-with-RS256-fails",
    "ensure-client-assertion-with-exp-is-5-minutes-in-past-fails",
    "ensure-client-assertion-with-wrong-aud-fails",
    "ensure-client-assertion-with-no-sub-fails",
    "ensure-client-assertion-in-token-endpoint",
    "ensure-invalid-client-assertions-fail",
    "par-test-array-as-audience-fails",
    "par-test-par-endpoint-url-as-audience-fails",
    "par-test-token-endpoint-url-as-audience-fails",
    "par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted",
    "par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails",
)
@with_assertions
def test_invalid_client_assertions_are_refused(suite: FapiSuite) -> None:
    """At both endpoints; the code stays usable."""
    discovery, now = suite.world.client.discovery, suite.world.clock.seconds
    code, sent = suite.code()
    for claims in (
        {"key": RSA_KEY},
        {"exp": now - 300},
        {"aud": "https://other.example"},
        {"aud": discovery[PAR]},
        {"aud": discovery[TOKEN]},
        {"aud": [suite.world.issuer, "https://other.example"]},
        {"aud": None},
        {"sub": None},
        {"sub": suite.second.client_id},
        {"iss": None},
        {"jti": None},
        {"exp": None},
        {"nbf": now + 70, "exp": now + 120},
        {"iat": now + 70, "exp": now + 120},
    ):
        assert error_of(suite.push(suite.new_request(), **claims)) == "invalid_client", claims
        assert error_of(suite.first.redeem(code, sent, **claims)) == "invalid_client", claims
    for form in ({}, {"client_id": suite.first.client_id}):
        answer = suite.first.dpop.post(discovery[TOKEN], {**suite.first.code_form(code, sent), **form})
        assert error_of(answer) == "invalid_client"
    assert suite.push(suite.new_request(), nbf=now + 8, iat=now + 8).status_int == 201
    assert suite.first.redeem(code, sent).status_int == 200


@modules("dpop-negative-tests")
@with_dpop
def test_invalid_proofs_are_refused(suite: FapiSuite) -> None:
    """RFC 9449 §4.3; valid ones with other spellings are accepted."""
    world, key, token = suite.world, suite.first.dpop, suite.tokens()["access_token"]
    url, now = world.client.discovery["userinfo_endpoint"], world.clock.seconds
    other = DpopKey(world)
    other.nonce = key.nonce

    def get(*proofs: str, scheme: str = "DPoP") -> int:
        status: int = world.client.get(
            url, {"Authorization": f"{scheme} {token}", "DPoP": ", ".join(proofs)}
        ).status_int
        return status

    def proof(**changes: Any) -> str:
        return key.proof(changes.pop("url", url), changes.pop("method", "GET"), token=token, **changes)

    private = {**key.jwk, "d": key.jwk["x"]}
    invalid = [
        (proof(), proof()),
        ("a.b.c",),
        *((proof(header={name: None}),) for name in ("typ", "alg", "jwk")),
        *((proof(**{name: None}),) for name in ("jti", "htm", "htu", "iat", "ath")),
        (proof(header={"typ": "JWT"}),),
        (proof(header={"alg": "none"}),),
        (proof(header={"alg": "RS256"}),),
        (proof()[:-8] + "AAAAAAAA",),
        (proof(header={"jwk": private}),),
        (proof(method="PUT"),),
        (proof(url="https://other.example/"),),
        (proof(iat=now - 3600),),
        (proof(iat=now + 3600),),
        (proof(ath="x"),),
        (other.proof(url, "GET", token=token),),
    ]
    assert {get(*proofs) for proofs in invalid} <= {400, 401}
    assert world.client.get(url, bearer_headers(token)).status_int == 401
    used = proof()
    assert (get(used), get(used)) == (200, 401)
    scheme, _, rest = url.partition("://")
    for accepted in (
        proof(url=f"{url}?query#fragment"),
        proof(url=f"{scheme.upper()}://{rest.partition('/')[0].upper()}:443/{rest.partition('/')[2]}"),
        proof(header={"extra": "x"}, extra="x"),
    ):
        assert get(accepted) == 200


@modules("refresh-token")
@every
def test_refresh_token_is_bound_to_its_client(suite: FapiSuite) -> None:
    """It is not rotated, so a lost response costs nothing (FAPI 2.0 Security Profile §5.3.2.1)."""
    token = suite.tokens(suite.new_request(scope="openid offline_access"))
    form = {"grant_type": "refresh_token", "refresh_token": token["refresh_token"]}
    answer = suite.first.request_token(form)
    assert answer.status_int == 200, answer.text
    suite.first.party.check_id_token(answer.json["id_token"], access_token=answer.json["access_token"])
    suite.world.clock.advance(30)
    assert suite.first.request_token(form).status_int == 200
    assert error_of(suite.first.request_token(form, proves_key=False)) in (
        ("invalid_client",) if suite.flow.authentication == suite.flow.binding else ("invalid_request", "invalid_grant")
    )
    assert error_of(suite.second.request_token(form)) == "invalid_grant"
    assert suite.first.request_token(form).status_int == 200


@modules("par-ensure-reused-request-uri-prior-to-auth-completion-succeeds")
@every
def test_request_uri_is_used_up_by_the_first_visit(suite: FapiSuite) -> None:
    """A recommendation would let a second visit before the sign-in succeed: plans.py has a remark."""
    sent, browser = suite.new_request(), Browser(suite.world)
    url = suite.url(sent, suite.push(sent))
    assert browser.open(url, initiator=suite.first.party.origin).status_int == 200
    check_page(browser.open(url, initiator=suite.first.party.origin), 400)


@modules(
    "par-attempt-reuse-request_uri",
    "par-attempt-to-use-expired-request_uri",
    "par-attempt-to-use-request_uri-for-different-client",
)
@every
def test_request_uri_counts_once_for_its_client_for_a_while(suite: FapiSuite) -> None:
    sent = suite.new_request()
    url = suite.url(sent, suite.push(sent))
    check_page(suite.browser.open(url.replace(suite.first.client_id, suite.second.client_id)), 400)
    suite.browser.open(url, initiator=suite.first.party.origin)
    assert "code" in suite.members(sent)
    check_page(suite.browser.open(url, initiator=suite.first.party.origin), 400)
    pushed = suite.push(sent)
    assert pushed.json["expires_in"] < 600
    suite.world.clock.advance(pushed.json["expires_in"])
    check_page(suite.browser.open(suite.url(sent, pushed)), 400)


@modules("par-authorization-request-containing-request_uri-form-param", "par-attempt-invalid-http-method")
@every
def test_pushed_request_has_no_reference_and_is_posted(suite: FapiSuite) -> None:
    form = suite.form(suite.new_request())
    suite.check_refused_when_pushed({**form, "request_uri": "urn:ietf:params:oauth:request_uri:x"})
    for method in ("GET", "PUT"):
        answer = suite.world.client.request(method, suite.world.client.discovery[PAR])
        assert answer.status_int == 405


@modules("ensure-pkce-code-verifier-required", "incorrect-pkce-code-verifier-rejected")
@every
def test_code_verifier_is_required(suite: FapiSuite) -> None:
    for verifier in (None, "x" * 43):
        code, sent = suite.code()
        assert error_of(suite.first.redeem(code, replace(sent, verifier=verifier))) == "invalid_grant"


@modules(
    "ensure-request-object-with-multiple-aud-succeeds",
    "ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted",
)
@signed
def test_valid_request_objects_are_accepted(suite: FapiSuite) -> None:
    now = suite.world.clock.seconds
    for claims in ({"aud": [suite.world.issuer, "https://other.example"]}, {"nbf": now + 8}):
        assert suite.first.post(PAR, suite.form(suite.new_request(), **claims)).status_int == 201


@modules(
    "ensure-request-object-without-exp-fails",
    "ensure-request-object-without-nbf-fails",
    "ensure-expired-request-object-fails",
    "ensure-request-object-with-bad-aud-fails",
    "ensure-request-object-with-exp-over-60-fails",
    "ensure-request-object-with-nbf-over-60-fails",
    "ensure-signed-request-object-with-RS256-fails",
    "ensure-request-object-signature-algorithm-is-not-none",
    "ensure-request-object-with-invalid-signature-fails",
    "ensure-matching-key-in-authorization-request",
    "ensure-unsigned-request-at-par-endpoint-fails",
    "par-authorization-request-containing-request_uri",
)
@signed
def test_invalid_request_objects_are_refused(suite: FapiSuite) -> None:
    """FAPI 2.0 Message Signing §5.3.1."""
    now, sent = suite.world.clock.seconds, suite.new_request()
    for claims in (
        {"exp": None},
        {"nbf": None},
        {"nbf": now - 600, "exp": now - 300},
        {"aud": "https://other.example"},
        {"aud": None},
        {"exp": now + 70 * 60},
        {"nbf": now - 70 * 60},
        {"request_uri": "urn:ietf:params:oauth:request_uri:x"},
        {"iss": suite.second.client_id},
    ):
        suite.check_refused_when_pushed(suite.form(sent, **claims), "invalid_request_object", "invalid_request")
    right = suite.form(sent)
    header, claims_part, signature = right["request"].split(".")
    own_key = suite.first.key
    for text in (
        f"{encode_jwt_segment({'alg': 'none', 'typ': SIGNED_TYPE})}.{claims_part}.",
        f"{header}.{claims_part}.{signature[:-8]}AAAAAAAA",
    ):
        suite.check_refused_when_pushed({**right, "request": text}, "invalid_request_object")
    for key in (RSA_KEY, PrivateKey.generate(algorithm="ES256")):
        suite.first.key = key
        form = suite.form(sent)
        suite.first.key = own_key
        suite.check_refused_when_pushed(form, "invalid_request_object")
    suite.check_refused_when_pushed(sent.parameters, "invalid_request")
