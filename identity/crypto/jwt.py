"""JSON Web Tokens: strict parsing, verification and signing with the algorithm of the key.

Only this module imports joserfc and parses JWTs. Reading a token takes two steps: ``UnverifiedToken.parse``, whose
result is good only for finding the key; its ``verify`` checks the signature.
"""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NoReturn

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from identity import instrumentation
from identity.crypto import base64url
from identity.crypto.jwk_sets import JwkPublicKey
from identity.crypto.signature_keys import EC_ALGORITHMS, RSA_ALGORITHMS, ExternalKey, PrivateKey, PublicKey
from identity.domain.signature_algorithms import SignatureAlgorithm

#: The algorithm of tokens that are signed with a shared secret.
HS256 = "HS256"

# Header parameters that contain or reference a key, or change how the token is parsed (RFC 8725 §3.10, RFC 7797).
REFUSED_HEADER_PARAMETERS = frozenset(("b64", "crit", "jku", "jwk", "x5c", "x5t", "x5t#S256", "x5u"))

MAX_DEPTH = 8

# Possessive, and accepts a missing end quote, so that every text takes linear time.
_JSON_STRING = re.compile(r'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)


class MalformedToken(Exception):
    """The text is not an acceptable JWT; ``reason`` quotes nothing from it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = why


class InvalidTokenSignature(Exception):
    """The signature does not match this key and algorithm."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = why


@dataclass(frozen=True, slots=True, repr=False)
class UnverifiedToken:
    """A parsed token before verification: anyone could have written ``header`` and ``claims``.

    Use it only to find the key. Trust only the result of ``verify``.
    """

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]
    has_embedded_key: bool = False

    def __repr__(self) -> str:
        return "UnverifiedToken()"

    @classmethod
    def parse(cls, text: str, *, max_length: int = 8192, has_embedded_key: bool = False) -> "UnverifiedToken":
        """Parse a token without checking its signature.

        Accepted is a signed JWT in compact form (RFC 7515 §7.1) of at most ``max_length`` characters: three parts of
        canonical base64url, the first two UTF-8 JSON objects without repeated names, at most MAX_DEPTH deep, without
        NaN, infinity, integers beyond 64 bits, NUL or lone surrogates; ``alg`` present, it and ``kid`` and ``typ``
        strings, none of REFUSED_HEADER_PARAMETERS. With ``has_embedded_key`` the header must have a ``jwk``, with
        which the sender proves nothing but to have the key (RFC 9449 §4.2).

        Raises MalformedToken, and nothing else, for every other string.
        """
        if len(text) > max_length:
            raise MalformedToken(f"longer than {max_length} characters")
        parts = text.split(".", 3)
        if len(parts) != 3 or "" in parts:
            raise MalformedToken("not three parts")
        header, claims, signature = parts
        _decode_segment(signature, "signature")
        token = cls(text, _parse_json_object(header, "header"), _parse_json_object(claims, "payload"), has_embedded_key)
        _check_header(token)
        return token

    def verify(self, key: PublicKey) -> dict[str, Any]:
        """The claims, if the signature is valid for ``key`` and its algorithm.

        Does not check any claim: not exp, not aud, not typ. Raises InvalidTokenSignature, also if the header names
        another algorithm than exactly the key's; MalformedToken if the token did not come from ``parse`` and would not
        pass it.
        """
        return _verify_signature(self, key.algorithm, key.native)

    def verify_with_jwk(self, key: JwkPublicKey, *, algorithm: str) -> dict[str, Any]:
        """The same for a key that another party published, whose type determines the algorithms.

        Raises InvalidTokenSignature, MalformedToken; ValueError if the key cannot verify ``algorithm``.
        """
        if algorithm not in key.algorithms:
            raise ValueError(f"the key does not verify {algorithm}")
        return _verify_signature(self, algorithm, key.native)

    def verify_with_secret(self, secret: str) -> dict[str, Any]:
        """The same for a secret that both sides know, with HS256 alone (OpenID Connect Core §10.1). The secret must be
        random: anyone who has a token can search for a weak one."""
        _check_header(self)
        if self.header["alg"] != HS256:
            raise InvalidTokenSignature(f"alg is not {HS256}")
        signing_input, _, signature = self.text.rpartition(".")
        expected = hmac.digest(secret.encode(), signing_input.encode("ascii"), "sha256")
        if not hmac.compare_digest(expected, _decode_segment(signature, "signature")):
            raise InvalidTokenSignature("signature does not match")
        return _parse_json_object(self.text.split(".")[1], "payload")

    def verify_with_unknown_key(self) -> None:
        """Verify nothing, with the work of a verification, so that an unknown key takes as long as a wrong
        signature."""
        if self.header["alg"] == HS256:
            with suppress(InvalidTokenSignature, MalformedToken):
                self.verify_with_secret("")
            return
        algorithm = SignatureAlgorithm.from_name(self.header["alg"]) or SignatureAlgorithm.RS256
        with suppress(MalformedToken):
            _has_signature(self.text, _primitives(algorithm), _unknown_key(algorithm).native)

    @staticmethod
    def left_half_hash(value: str, algorithm: str) -> str:
        """``at_hash`` or ``c_hash`` of a token or code, with the hash of the signing algorithm (OIDC Core §3.1.3.6).

        Raises ValueError for an unknown algorithm.
        """
        hashed: bytes = _primitives(algorithm).hash(value.encode("ascii")).digest()
        return base64url.encode(hashed[: len(hashed) // 2])


def unverified_claims(text: str, *, max_length: int = 16384) -> dict[str, Any]:
    """Claims of a JWT that is refused anyway, with any signature or none (RFC 7519 §6); empty if unreadable.

    For audit events only. Never grant anything based on them.
    """
    parts = text.split(".", 3)
    if len(text) > max_length or len(parts) != 3:
        return {}
    try:
        return _parse_json_object(parts[1], "payload")
    except MalformedToken:
        return {}


@lru_cache(maxsize=64)
def _decode_header(part: str) -> Mapping[str, Any]:
    return _parse_json_object(part, "header")


def unverified_key_id(text: str) -> str | None:
    """The kid in the header of a JWT that this service signed; None if it has none."""
    try:
        key_id = _decode_header(text.partition(".")[0]).get("kid")
    except MalformedToken:
        return None
    return key_id if isinstance(key_id, str) else None


def _verify_signature(token: UnverifiedToken, algorithm: str, native: Any) -> dict[str, Any]:
    primitives = _primitives(algorithm)
    _check_header(token)
    if token.header["alg"] not in primitives.names:
        raise InvalidTokenSignature(f"alg is not {algorithm}")
    if not _has_signature(token.text, primitives, native):
        raise InvalidTokenSignature("signature does not match")
    # Parsed again from the signed text: the dict in the token may have been modified since.
    return _parse_json_object(token.text.split(".")[1], "payload")


def _has_signature(text: str, primitives: "_Primitives", native: Any) -> bool:
    signing_input, _, signature = text.rpartition(".")
    data = _decode_segment(signature, "signature")
    try:
        return bool(primitives.model.verify(signing_input.encode("ascii"), data, primitives.key(native, native)))
    except (JoseError, ValueError):
        return False


@cache
def _unknown_key(algorithm: SignatureAlgorithm) -> PublicKey:
    """A key whose private key is discarded."""
    return PrivateKey.generate(algorithm=algorithm).public_key()


def sign(claims: Mapping[str, Any], key: PrivateKey | ExternalKey, *, key_id: str, typ: str | None = None) -> str:
    """The token in compact form, signed with the key's algorithm; without ``typ`` the header has none.

    Raises ValueError or TypeError if the claims cannot be serialized as JSON; SignerUnavailable if the key is outside.
    """
    algorithm = key.algorithm
    primitives = _primitives(algorithm)
    signing_input = f"{_encode_header(algorithm, key_id, typ)}.{_encode_segment(dict(claims))}"
    data = signing_input.encode("ascii")
    with instrumentation.measure_duration(instrumentation.Measurement.SIGNATURE, algorithm):
        if isinstance(key, PrivateKey):
            signature = primitives.model.sign(data, primitives.key(key.native, key.native))
        else:
            signature = key.sign_bytes(data)
    return f"{signing_input}.{base64url.encode(signature)}"


class _BareKey:
    """joserfc's keys without their JWK dictionary.

    joserfc derives the dictionary at the first use, only to check whether the key is restricted to some use. That
    would take 11 µs for each public key and leave the numbers of each private key in memory as strings.
    """

    raw_value: Any

    def get(self, k: str, default: str | list[str] | None = None) -> str | list[str] | None:
        return default

    def get_op_key(self, operation: str) -> Any:
        """The native key. Its type, PrivateKey or PublicKey, determines the possible operations."""
        return self.raw_value


class _BareRsaKey(_BareKey, RSAKey):
    pass


class _BareEcKey(_BareKey, ECKey):
    pass


class _BareOkpKey(_BareKey, OKPKey):
    pass


@dataclass(frozen=True, slots=True)
class _Primitives:
    """What an algorithm is made of: joserfc's model and type of key, the hash, and its names in headers."""

    model: Any
    key: Callable[[Any, Any], Any]
    hash: Callable[[bytes], Any]
    names: tuple[str, ...]


def _load_primitives() -> dict[str, _Primitives]:
    hashes = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}
    key_types = {
        **dict.fromkeys(RSA_ALGORITHMS, _BareRsaKey),
        **dict.fromkeys(EC_ALGORITHMS.values(), _BareEcKey),
        SignatureAlgorithm.EDDSA: _BareOkpKey,
    }
    # joserfc warns about EdDSA, which can also mean Ed448. A key is always Ed25519.
    models = {name: "Ed25519" if name == SignatureAlgorithm.EDDSA else name for name in key_types}
    registry = JWSRegistry(algorithms=list(models.values()))
    return {
        name: _Primitives(
            registry.get_alg(models[name]),
            key_type,
            # Ed25519 uses SHA-512 (RFC 8032 §5.1).
            hashes.get(name[-3:], hashlib.sha512),
            # RFC 9864 §2.2 names what EdDSA is here.
            (name, "Ed25519") if name == SignatureAlgorithm.EDDSA else (name,),
        )
        for name, key_type in key_types.items()
    }


_PRIMITIVES = _load_primitives()
_PRIMITIVES["Ed25519"] = _PRIMITIVES[SignatureAlgorithm.EDDSA]


def _primitives(algorithm: str) -> _Primitives:
    primitives = _PRIMITIVES.get(algorithm)
    if primitives is None:
        raise ValueError(f"{algorithm!r} is not one of {', '.join(_PRIMITIVES)}")
    return primitives


def _check_header(token: UnverifiedToken) -> None:
    header = token.header
    accepted = {"jwk"} if token.has_embedded_key else frozenset[str]()
    if REFUSED_HEADER_PARAMETERS & header.keys() != accepted:
        raise MalformedToken("header has a parameter that is not accepted, or lacks the key")
    if token.has_embedded_key and not isinstance(header["jwk"], dict):
        raise MalformedToken("header has a jwk that is no object")
    if "alg" not in header:
        raise MalformedToken("header lacks alg")
    for name in ("alg", "kid", "typ"):
        if not isinstance(header.get(name, ""), str):
            raise MalformedToken(f"header has a {name} that is not a string")


def _decode_segment(part: str, name: str) -> bytes:
    try:
        return base64url.decode(part)
    except ValueError:
        raise MalformedToken(f"{name} is not canonical base64url") from None


def _encode_segment(members: dict[str, Any]) -> str:
    return base64url.encode(_ENCODER.encode(members).encode("ascii"))


@lru_cache(maxsize=64)
def _encode_header(algorithm: str, key_id: str, typ: str | None) -> str:
    header = {"alg": str(algorithm), "kid": key_id}
    return _encode_segment(header if typ is None else {**header, "typ": typ})


def _parse_json_object(part: str, name: str) -> dict[str, Any]:
    data = _decode_segment(part, name)
    try:
        text = data.decode("utf-8")
        if text.count("{") + text.count("[") > MAX_DEPTH:
            _check_depth(text)
        value = _DECODER.decode(text)
        # Valid UTF-8 contains no surrogates and JSON no raw NUL, so only an escape can produce one.
        if "\\u" in text:
            _check_strings(value)
    except MalformedToken as error:
        raise MalformedToken(f"{name} {error.reason}") from None
    except (ValueError, RecursionError):
        raise MalformedToken(f"{name} is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise MalformedToken(f"{name} is not a JSON object")
    return value


def _check_depth(text: str) -> None:
    """Checked in the text, before the parser recurses into deeply nested input."""
    depth = 0
    for character in _JSON_STRING.sub("", text):
        if character in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedToken(f"is more than {MAX_DEPTH} levels deep")
        elif character in "}]":
            depth -= 1


def _check_strings(value: object) -> None:
    if isinstance(value, str):
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
            raise MalformedToken("has NUL or a lone surrogate in a string")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_strings(name)
            _check_strings(member)
    elif isinstance(value, list):
        for member in value:
            _check_strings(member)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedToken("repeats a member name")
    return members


def _parse_integer(text: str) -> int:
    # Dates, databases and most JSON parsers do not support more than 64 bits.
    number = int(text) if len(text) <= 20 else 2**64
    if not -(2**63) <= number < 2**63:
        raise MalformedToken("has an integer beyond 64 bits")
    return number


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise MalformedToken("has a number beyond all bounds")
    return number


def _reject_constant(text: str) -> NoReturn:
    raise MalformedToken("has NaN or infinity, which are not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    parse_constant=_reject_constant,
)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
