"""An application with a FAPI 2.0 profile: it signs its client assertions and requests, and proves a DPoP key."""

import json
from collections.abc import Mapping
from dataclasses import replace
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from identity.crypto.jwt import sign, unverified_claims
from identity.crypto.signature_keys import PrivateKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.world import World
from tests.plugins.dpop_proofs import DpopKey

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KEY = PrivateKey.generate(algorithm=SignatureAlgorithm.ES256)
#: What the profile needs of an application; the key set is that of ``KEY``.
SETTINGS: Mapping[str, Any] = {
    "authentication_method": "private_key_jwt",
    "jwks": json.dumps({"keys": [KEY.public_key().to_jwk("one")]}),
    "response_types": ("code",),
    "id_token_signed_response_alg": SignatureAlgorithm.ES256,
}


class FapiClient:
    """Its methods send valid requests; arguments change single members, None leaves one out."""

    def __init__(self, world: World, profile: str | None = "fapi2", **members: Any) -> None:
        self.world, self.key, self.dpop = world, KEY, DpopKey(world)
        self.party = RelyingParty.register(world, **{**SETTINGS, "security_profile": profile, **members})

    @property
    def client_id(self) -> str:
        return self.party.client_id

    def assertion(self, key: PrivateKey | None = None, **claims: Any) -> str:
        now = self.world.clock.seconds
        right = {"iss": self.client_id, "sub": self.client_id, "aud": self.world.issuer, "iat": now, "exp": now + 60}
        members = {**right, "jti": token_urlsafe(12), **claims}
        values = {name: value for name, value in members.items() if value is not None}
        return sign(values, key or self.key, key_id="one", typ="JWT")

    def new_request(self, **changes: Any) -> SentAuthorizationRequest:
        return self.party.new_request(**changes)

    def request_object(self, sent: SentAuthorizationRequest, **claims: Any) -> str:
        now = self.world.clock.seconds
        right = {"iss": self.client_id, "aud": self.world.issuer, "nbf": now, "exp": now + 300}
        members = {**sent.parameters, **right, **claims}
        values = {name: value for name, value in members.items() if value is not None}
        return sign(values, self.key, key_id="one", typ="oauth-authz-req+jwt")

    def post(self, endpoint: str, form: Mapping[str, str], *, proves_key: bool = False, **assertion: Any) -> Any:
        """The response to an authenticated form; ``assertion`` changes claims of the client assertion."""
        url = self.world.client.discovery[endpoint]
        form = {**form, **self.assertion_form(**assertion)}
        return self.dpop.post(url, form) if proves_key else self.world.client.post(url, form, {})

    def assertion_form(self, **assertion: Any) -> dict[str, str]:
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": self.assertion(**assertion)}

    def push(self, form: Mapping[str, str], **assertion: Any) -> Any:
        return self.post("pushed_authorization_request_endpoint", form, **assertion)

    def pushed_url(self, sent: SentAuthorizationRequest, form: Mapping[str, str] | None = None) -> str:
        """The address that refers to the request, which is pushed now."""
        answer = self.push(sent.parameters if form is None else form)
        assert answer.status_int == 201, answer.text
        return f"{sent.endpoint}?{urlencode({'client_id': self.client_id, 'request_uri': answer.json['request_uri']})}"

    def sign_in(self, browser: Browser, **changes: Any) -> tuple[str, SentAuthorizationRequest]:
        """The code of a sign-in by a signed-in browser, and its request."""
        sent = self.new_request(**changes)
        page = browser.open(self.pushed_url(sent), initiator=self.party.origin)
        return self.party.extract_code(page, sent), sent

    def request_token(self, form: Mapping[str, str], *, proves_key: bool = True, **assertion: Any) -> Any:
        return self.post("token_endpoint", form, proves_key=proves_key, **assertion)

    def redeem(self, code: str, sent: SentAuthorizationRequest, **options: Any) -> Any:
        return self.request_token(self.code_form(code, sent), **options)

    @staticmethod
    def code_form(code: str, sent: SentAuthorizationRequest) -> dict[str, str]:
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": sent.parameters["redirect_uri"],
            "code_verifier": sent.verifier or "",
        }


def without_verifier(sent: SentAuthorizationRequest) -> SentAuthorizationRequest:
    """The same request without PKCE."""
    parameters = {name: value for name, value in sent.parameters.items() if not name.startswith("code_challenge")}
    return replace(sent, parameters=parameters, verifier=None)


def read_jarm(location: str) -> dict[str, Any]:
    """The unverified members of a signed response in a query."""
    [(name, text)] = parse_qsl(urlsplit(location).query)
    assert name == "response"
    return dict(unverified_claims(text))
