"""Signed assertions, valid and invalid: JOSE built by hand, as an attacker would, and decoded.

For example:

    claims = assertion_claims(user_id, issuer, now)
    assertion = sign_assertion(claims, key, key_id=key_id)                                            # valid
    assertion = sign_assertion(claims | {"exp": now - 1}, key, key_id=key_id)                         # expired
    assertion = sign_assertion(claims, key, key_id=key_id, header={"alg": "none"}, sign=no_signature) # unsigned
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

#: Marks a claim or header parameter to be left out.
OMITTED: Final = object()

#: Creates the signature of a signing input.
Signer = Callable[[bytes], bytes]


def assertion_claims(user_id: str, audience: object, now: int, **overrides: Any) -> dict[str, Any]:
    """The claims of service description §2.3, valid for five minutes; ``overrides`` change, add or leave out claims."""
    right: dict[str, Any] = {"iss": user_id, "sub": user_id, "aud": audience, "iat": now, "exp": now + 300}
    return _without_left_out(right | overrides)


def sign_assertion(
    claims: Mapping[str, Any] | str | bytes,
    key: RSAPrivateKey,
    *,
    key_id: object,
    header: Mapping[str, Any] | str | bytes | None = None,
    sign: Signer | None = None,
) -> str:
    """The assertion in compact form.

    ``header`` changes single parameters, or replaces the header if it is a string. Claims and header may be strings,
    to be invalid in ways that no dict can be. ``sign`` replaces RS256 with ``key``.
    """
    if header is None or isinstance(header, Mapping):
        header = _without_left_out({"alg": "RS256", "kid": key_id, **(header or {})})
    signing_input = f"{encode_jwt_segment(header)}.{encode_jwt_segment(claims)}"
    signature = (sign or rs256(key))(signing_input.encode())
    return f"{signing_input}.{base64url(signature)}"


def encode_jwt_segment(part: Mapping[str, Any] | str | bytes) -> str:
    if isinstance(part, Mapping):
        part = json.dumps(part)
    return base64url(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)


def base64url(data: bytes) -> str:
    """Base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_jwt_unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a JWT, without verifying its signature."""
    header, claims, _ = token.split(".")
    return _json(header), _json(claims)


def rs256(key: RSAPrivateKey) -> Signer:
    """RSASSA-PKCS1-v1_5 with SHA-256, the only accepted algorithm."""
    return lambda data: key.sign(data, padding.PKCS1v15(), hashes.SHA256())


def ps256(key: RSAPrivateKey) -> Signer:
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
    return lambda data: key.sign(data, pss, hashes.SHA256())


def hs256(secret: bytes) -> Signer:
    """HMAC with SHA-256; with the public key as secret it is the classic algorithm confusion attack (RFC 8725 §2.1)."""
    return lambda data: hmac.new(secret, data, hashlib.sha256).digest()


def no_signature(data: bytes) -> bytes:
    return b""


def pkce_challenge(verifier: str) -> str:
    """The PKCE challenge of a verifier (RFC 7636 §4.2)."""
    return base64url(hashlib.sha256(verifier.encode()).digest())


def left_half_hash(token: str) -> str:
    """at_hash or c_hash for RS256: the left half of the SHA-256 (OpenID Connect Core §3.1.3.6)."""
    return base64url(hashlib.sha256(token.encode()).digest()[:16])


def verify_jwt(token: str, keys: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a JWT with an RS256 or ES256 signature of one of these published keys.

    Written from the RFCs, so that the service is not verified by its own code. Raises InvalidSignature.
    """
    signing_input, _, signature = token.rpartition(".")
    header, claims = decode_jwt_unverified(token)
    (key,) = (key for key in keys if key["kid"] == header["kid"])
    assert (header["alg"], key["kty"]) in (("RS256", "RSA"), ("ES256", "EC")), header
    signed, data = _decode_part(signature), signing_input.encode()
    first, second = (int.from_bytes(_decode_part(key[name])) for name in (("e", "n") if "n" in key else ("x", "y")))
    if key["kty"] == "RSA":
        RSAPublicNumbers(first, second).public_key().verify(signed, data, padding.PKCS1v15(), hashes.SHA256())
    else:
        assert len(signed) == 64, "the signature is not R and S"
        pair = encode_dss_signature(int.from_bytes(signed[:32]), int.from_bytes(signed[32:]))
        public_key = ec.EllipticCurvePublicNumbers(first, second, ec.SECP256R1()).public_key()
        public_key.verify(pair, data, ec.ECDSA(hashes.SHA256()))
    return header, claims


def _without_left_out(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not OMITTED}


def _json(part: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(_decode_part(part))
    return value


def _decode_part(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
