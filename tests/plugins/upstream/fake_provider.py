"""A fake OpenID provider whose responses a test can falsify."""

import json
import time
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from identity.crypto import base64url, jwt
from identity.crypto.secrets import new_token
from identity.crypto.signature_keys import PrivateKey
from identity.outbound_http import OutboundResponse
from identity.testing.jwt_assertions import pkce_challenge

ISSUER = "https://login.elsewhere.example"
CLIENT_ID, SECRET = "identity", "s3cret/with+signs"


@dataclass
class FakeProvider:
    """Issues correct tokens except for ``claims``, ``header`` and ``key``; ``answers`` replace responses by path."""

    now: Any
    issuer: str = ISSUER
    subject: str = "248289761001"
    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    #: The client secret that is compared; None accepts every client.
    secret: str | None = None
    requests: list[tuple[str, str, dict[str, str], Mapping[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = {"one": rsa.generate_private_key(public_exponent=65537, key_size=2048)}
        self.signs_with = "one"
        self.dates = False
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        self.elliptic = ec.generate_private_key(ec.SECP256R1())

    # --- requests of browsers ----------------------------------------------------------------------------------------

    def approve(self, url: str, **changed: str | None) -> str:
        """Sign in at the provider; returns the redirect URL, with changed parameters."""
        request = dict(parse_qsl(urlsplit(url).query))
        assert url.startswith(f"{self.issuer}/authorize?"), url
        assert request["client_id"] == CLIENT_ID
        assert request["response_type"] == "code"
        assert request["code_challenge_method"] == "S256"
        code = new_token()
        self.codes[code] = request
        response = {"code": code, "state": request["state"], "iss": self.issuer} | changed
        query = urlencode({name: value for name, value in response.items() if value is not None})
        return f"{request['redirect_uri']}?{query}"

    # --- requests of the service -------------------------------------------------------------------------------------

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> OutboundResponse:
        """The HTTP client interface of the service."""
        path = url.removeprefix(self.issuer)
        form = dict(parse_qsl((body or b"").decode(), keep_blank_values=True))
        self.requests.append((method, path, form, dict(headers)))
        if path in self.answers:
            answer = self.answers[path]
            if isinstance(answer, Exception):
                raise answer
            return answer() if callable(answer) else answer
        if path == "/.well-known/openid-configuration":
            return _json(self.discovery())
        if path == "/keys":
            return _json(self.key_set())
        if path == "/token":
            return self.token(form, headers)
        if path == "/userinfo":
            subject = self.tokens.get(headers.get("Authorization", "").removeprefix("Bearer "))
            return _json({"sub": subject, **self.userinfo}) if subject else OutboundResponse(401, b"")
        return OutboundResponse(404, b"")

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def key_set(self) -> dict[str, Any]:
        keys = [PrivateKey(key).public_key().to_jwk(kid) for kid, key in self.keys.items()]
        numbers = self.elliptic.public_key().public_numbers()
        point = {name: base64url.encode(getattr(numbers, name).to_bytes(32, "big")) for name in ("x", "y")}
        return {"keys": [*keys, {"kty": "EC", "crv": "P-256", "kid": "elliptic", "use": "sig", **point}]}

    def token(self, form: Mapping[str, str], headers: Mapping[str, str]) -> OutboundResponse:
        if self.secret is not None and _client_secret(form, headers) != self.secret:
            return _json({"error": "invalid_client"}, 401)
        auth_request = self.codes.pop(form.get("code", ""), None)
        right = (
            auth_request is not None
            and form.get("redirect_uri") == auth_request["redirect_uri"]
            and pkce_challenge(form.get("code_verifier", "")) == auth_request["code_challenge"]
        )
        if not right or auth_request is None:
            return _json({"error": "invalid_grant"}, 400)
        self.dates = "max_age" in auth_request
        access_token = new_token()
        self.tokens[access_token] = self.subject
        return _json(
            {
                "access_token": access_token,
                "token_type": "Bearer",
                "expires_in": 300,
                "id_token": self.id_token(auth_request["nonce"]),
            }
        )

    def id_token(self, nonce: str) -> str:
        """A correct ID token; it contains auth_time if requested."""
        now = int(self.now().timestamp())
        claims = {
            "iss": self.issuer, "sub": self.subject, "aud": CLIENT_ID, "nonce": nonce, "iat": now, "exp": now + 300,
            **({"auth_time": now} if self.dates else {}),
            **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.signs_with == "elliptic":
            return jwt.sign(claims, PrivateKey(self.elliptic, "ES256"), key_id="elliptic")
        header = {"alg": "RS256", "kid": self.signs_with, **self.header}
        return signed(header, claims, self.keys.get(self.signs_with) or self.keys["one"])


def _client_secret(form: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """The secret of either method (RFC 6749 §2.3.1)."""
    basic = headers.get("Authorization", "").removeprefix("Basic ")
    return unquote_plus(b64decode(basic).decode().partition(":")[2]) if basic else form.get("client_secret", "")


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], key: rsa.RSAPrivateKey) -> str:
    """A token with exactly this header, signed with RS256."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    text = ".".join(base64url.encode(json.dumps(part).encode()) for part in (header, claims))
    if header.get("alg") == "none":
        return f"{text}."
    return f"{text}.{base64url.encode(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _json(value: object, status: int = 200) -> OutboundResponse:
    return OutboundResponse(status, json.dumps(value).encode())


def never() -> OutboundResponse:
    """A response that times out."""
    raise TimeoutError(time.ctime())
