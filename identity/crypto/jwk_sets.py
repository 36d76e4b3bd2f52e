"""Public keys of other parties as JWK sets (RFC 7517 §5)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from identity.crypto import base64url
from identity.crypto.signature_keys import ACCEPTED_BITS, ACCEPTED_EXPONENTS, InvalidKey

#: No legitimate issuer publishes more keys.
MAX_KEYS = 100
_MAX_KEY_ID_LENGTH = 500

_CURVES: Mapping[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
#: Algorithms that a key can verify, by type and curve (RFC 7518 §3.1), without shared secrets.
_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
#: Members of private and symmetric keys (RFC 7518 §6).
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
#: Required members of a public key, by type (RFC 7638 §3.2, RFC 8037 §2).
_THUMBPRINT_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
#: Both names of one algorithm (RFC 9864 §2.2).
_ED25519_ALGORITHMS = frozenset({"EdDSA", "Ed25519"})
_ALGORITHMS_BY_CURVE = {"P-256": frozenset({"ES256"}), "P-384": frozenset({"ES384"}), "P-521": frozenset({"ES512"})}


@dataclass(frozen=True, slots=True, repr=False)
class JwkPublicKey:
    """A public key of another party: its id (empty if it has none) and the algorithms that it can verify."""

    #: The algorithms that some key can verify.
    ALGORITHMS: ClassVar[frozenset[str]] = _RSA_ALGORITHMS.union(_ED25519_ALGORITHMS, *_ALGORITHMS_BY_CURVE.values())

    id: str
    algorithms: frozenset[str]
    native: rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

    def __repr__(self) -> str:
        return f"ForeignKey({self.id!r})"

    @classmethod
    def parse(cls, jwk: Mapping[str, Any]) -> "JwkPublicKey":
        """A single key. Raises InvalidKey, also for a private or symmetric key, a key for another use, and an unsafe
        one."""
        key = None if _PRIVATE_MEMBERS & jwk.keys() else _parse_jwk(jwk)
        if key is None:
            raise InvalidKey("no public key that verifies signatures")
        return key

    @classmethod
    def parse_set(cls, text: bytes) -> "tuple[JwkPublicKey, ...]":
        """The keys that can verify signatures; unsafe keys and keys for other uses are skipped.

        Raises InvalidKey if the text is not a JWK set.
        """
        try:
            keys = json.loads(text)["keys"]
        except (ValueError, RecursionError, LookupError, TypeError):
            raise InvalidKey("no key set") from None
        if not isinstance(keys, list) or len(keys) > MAX_KEYS:
            raise InvalidKey("no key set")
        return tuple(
            jwk_public_key for key in keys if isinstance(key, dict) and (jwk_public_key := _parse_jwk(key)) is not None
        )


def jwk_thumbprint(jwk: Mapping[str, Any]) -> str:
    """The SHA-256 thumbprint of a public key (RFC 7638 §3), as base64url. Raises InvalidKey."""
    names = _THUMBPRINT_MEMBERS.get(str(jwk.get("kty")), ())
    members = {name: jwk.get(name) for name in names}
    if not members or not all(isinstance(value, str) for value in members.values()):
        raise InvalidKey("no public key")
    canonical = json.dumps(members, separators=(",", ":"), sort_keys=True)
    return base64url.encode(hashlib.sha256(canonical.encode("ascii", "backslashreplace")).digest())


def _parse_jwk(jwk: Mapping[str, Any]) -> JwkPublicKey | None:
    key_id, use, algorithm = jwk.get("kid", ""), jwk.get("use", "sig"), jwk.get("alg")
    if use != "sig" or not isinstance(key_id, str) or len(key_id) > _MAX_KEY_ID_LENGTH:
        return None
    if not isinstance(algorithm, str | None):
        return None
    try:
        if jwk.get("kty") == "RSA":
            native: Any = _parse_rsa_jwk(jwk)
            algorithms = _RSA_ALGORITHMS
        elif jwk.get("kty") == "EC":
            native, algorithms = _ec_public_key(jwk["crv"], jwk["x"], jwk["y"]), _ALGORITHMS_BY_CURVE[jwk["crv"]]
        elif (jwk.get("kty"), jwk.get("crv")) == ("OKP", "Ed25519"):
            native = ed25519.Ed25519PublicKey.from_public_bytes(base64url.decode(jwk["x"]))
            algorithms = _ED25519_ALGORITHMS
        else:
            return None
    except (ValueError, LookupError, TypeError, UnsupportedAlgorithm):
        return None
    # A key that names an algorithm is for that one only (RFC 7517 §4.4).
    named = _ED25519_ALGORITHMS if algorithm in _ED25519_ALGORITHMS else {algorithm}
    return JwkPublicKey(key_id, algorithms if algorithm is None else algorithms & named, native)


def _parse_rsa_jwk(jwk: Mapping[str, Any]) -> rsa.RSAPublicKey:
    numbers = rsa.RSAPublicNumbers(e=_decode_uint(jwk["e"]), n=_decode_uint(jwk["n"]))
    if numbers.n.bit_length() not in ACCEPTED_BITS or numbers.e not in ACCEPTED_EXPONENTS or numbers.n % 2 == 0:
        raise ValueError("unsafe")
    return numbers.public_key()


# A client proves the same key with each request. Whether the point is on the curve takes an eighth of a verification.
@lru_cache(1024)
def _ec_public_key(curve: str, x: str, y: str) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicNumbers(_decode_uint(x), _decode_uint(y), _CURVES[curve]).public_key()


def _decode_uint(text: Any) -> int:
    if not isinstance(text, str) or len(text) > 2000:
        raise ValueError("no number")
    return int.from_bytes(base64url.decode(text), "big")
