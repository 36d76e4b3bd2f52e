"""Issuers outside of the service, whose documents it fetches."""

import json
from dataclasses import dataclass, field
from typing import Any

from identity.crypto.secrets import new_token
from identity.crypto.signature_keys import PrivateKey
from identity.key_sets import KeySetCache, KeySetClient
from identity.outbound_http import OutboundResponse
from identity.testing.jwt_assertions import OMITTED, sign_assertion
from identity.testing.world import World

GITHUB = "https://token.actions.githubusercontent.com"
MAIN = "repo:acme/app:ref:refs/heads/main"


@dataclass
class OutsideIssuer:
    """An issuer with one key, its discovery document and its key set, as the service fetches them."""

    world: World
    issuer: str = GITHUB
    use: str = "sig"
    documents: dict[str, Any] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = self.world.key_pool.next()
        jwk = PrivateKey(self.key).public_key().to_jwk("one")
        self.key_set = {"keys": [{**jwk, "use": self.use}, {"kty": "EC", "use": "x509-svid", "kid": "other"}]}
        self.documents = {
            f"{self.issuer}/.well-known/openid-configuration": {
                "issuer": self.issuer, "jwks_uri": f"{self.issuer}/.well-known/jwks"
            },
            f"{self.issuer}/.well-known/jwks": self.key_set,
        }  # fmt: skip
        self.world.identity.process_state.key_sets = KeySetClient(self, cache=KeySetCache())

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        self.requests.append(url)
        document = self.documents.get(url)
        return OutboundResponse(404, b"") if document is None else OutboundResponse(200, json.dumps(document).encode())

    def token(self, header: Any = None, sign: Any = None, **changed: Any) -> str:
        now = int(self.world.clock().timestamp())
        claims = {"iss": self.issuer, "aud": self.world.issuer, "sub": MAIN, "iat": now, "nbf": now, "exp": now + 300}
        claims = {**claims, "jti": new_token(), **changed}
        claims = {name: value for name, value in claims.items() if value is not OMITTED}
        return sign_assertion(claims, self.key, key_id="one", header=header, sign=sign)
