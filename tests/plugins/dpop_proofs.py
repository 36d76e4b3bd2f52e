"""Clients that prove a key with DPoP (RFC 9449)."""

import hashlib
import json
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from identity.testing.jwt_assertions import base64url, encode_jwt_segment
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.world import World


class DpopKey:
    """A key on P-256, and the proofs that it signs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._key = ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        x, y = (base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        self.jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
        self.nonce: str | None = None

    @property
    def thumbprint(self) -> str:
        """RFC 7638."""
        members = json.dumps(dict(sorted(self.jwk.items())), separators=(",", ":"))
        return base64url(hashlib.sha256(members.encode()).digest())

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        data = f"{encode_jwt_segment(header)}.{encode_jwt_segment(claims)}"
        r, s = decode_dss_signature(self._key.sign(data.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{data}.{base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def proof(
        self, url: str, method: str = "POST", *, token: str | None = None, header: Mapping[str, Any] = {}, **claims: Any
    ) -> str:
        """A valid proof; ``header`` and ``claims`` override members, None leaves one out."""
        right: dict[str, Any] = {
            "jti": token_urlsafe(12),
            "htm": method,
            "htu": url,
            "iat": self.world.clock.seconds,
            "nonce": self.nonce,
        }
        if token is not None:
            right["ath"] = base64url(hashlib.sha256(token.encode()).digest())
        members = {name: value for name, value in (right | claims).items() if value is not None}
        return self.sign({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk} | dict(header), members)

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Any:
        """The response to a form with a proof; like a client, it sends a nonce that it is asked for."""
        headers = dict(headers or {})
        answer = self.world.client.post(url, form, headers | {"DPoP": self.proof(url)})
        if answer.status_int == 400 and answer.json.get("error") == "use_dpop_nonce":
            self.nonce = answer.headers["DPoP-Nonce"]
            answer = self.world.client.post(url, form, headers | {"DPoP": self.proof(url)})
        return answer

    def redeem(self, party: RelyingParty, code: str, authorization: SentAuthorizationRequest) -> Any:
        """The token endpoint's response to a code."""
        form = {"code": code, "redirect_uri": party.redirect_uri, "code_verifier": authorization.verifier or ""}
        return self.request_token(party, {"grant_type": "authorization_code", **form})

    def request_token(self, party: RelyingParty, form: Mapping[str, str]) -> Any:
        """The token endpoint's response to a form of this application."""
        headers = {} if party.secret is None else {"Authorization": party.credentials.header}
        form = form if party.secret is not None else {"client_id": party.client_id, **form}
        return self.post(self.world.client.discovery["token_endpoint"], form, headers)

    def get(self, url: str, token: str, *, scheme: str = "DPoP", **overrides: Any) -> Any:
        """The response of a resource to this token with a proof."""
        proof = self.proof(url.partition("?")[0], "GET", token=token, **overrides)
        return self.world.client.get(url, {"Authorization": f"{scheme} {token}", "DPoP": proof})
