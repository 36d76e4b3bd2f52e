"""Keys that sign and verify: generation and formats, as thin wrappers without per-request cost.

A key is bound to one algorithm. Nothing that a token says selects another.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from identity.crypto import base64url
from identity.domain.errors import Invalid
from identity.domain.signature_algorithms import SignatureAlgorithm

GENERATED_BITS = (2048, 3072, 4096)
ACCEPTED_BITS = range(2048, 8192 + 1)

# NIST SP 800-56B §6.2 requires an odd exponent above 2^16. Its upper bound is 2^256, but OpenSSL refuses exponents
# above 64 bits with long moduli, so such a key could be uploaded but never verify anything.
ACCEPTED_EXPONENTS = range(2**16 + 1, 2**64, 2)

# An 8192 bit key takes 1.5 kB of PEM.
MAX_KEY_TEXT_LENGTH = 16384

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
#: Algorithms by curve: a key on a curve has only one.
EC_ALGORITHMS = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}

_PEM_LABEL = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,64})-----")
_PRIVATE_MEMBERS = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))

NativePublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
NativePrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class InvalidKey(Exception):
    """The bytes or text contain no key of the expected kind; the message never quotes them."""


def key_algorithms(native: object) -> tuple[str, ...]:
    """The algorithms to which a key of this type can be bound, the usual one first; none for other types."""
    if isinstance(native, rsa.RSAPublicKey | rsa.RSAPrivateKey):
        return RSA_ALGORITHMS
    if isinstance(native, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey):
        algorithm = EC_ALGORITHMS.get(native.curve.name)
        return () if algorithm is None else (algorithm,)
    if isinstance(native, ed25519.Ed25519PublicKey | ed25519.Ed25519PrivateKey):
        return (SignatureAlgorithm.EDDSA,)
    return ()


def _require_algorithm(native: object, algorithm: str | None) -> str:
    """The algorithm of the key, by default the usual one of its type. Raises InvalidKey if it has another type."""
    possible = key_algorithms(native)
    if not possible or algorithm not in (None, *possible):
        raise InvalidKey(f"not a key for {algorithm or 'any supported algorithm'}")
    return possible[0] if algorithm is None else algorithm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicKey:
    """A public key, parsed, and its only algorithm; ``native`` is the object of `cryptography`."""

    native: NativePublicKey
    algorithm: str = SignatureAlgorithm.RS256

    def __post_init__(self) -> None:
        """Raises InvalidKey if the key cannot verify the algorithm."""
        _require_algorithm(self.native, self.algorithm)

    @property
    def bits(self) -> int:
        """The length of the modulus, or of the coordinates, in bits."""
        return 256 if isinstance(self.native, ed25519.Ed25519PublicKey) else self.native.key_size

    def to_der(self) -> bytes:
        """DER of the SubjectPublicKeyInfo (RFC 5280 §4.1.2.7); the form that is stored."""
        return self.native.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def from_der(cls, der: bytes, algorithm: str = SignatureAlgorithm.RS256) -> "PublicKey":
        """The key in the form that ``to_der`` writes. Raises InvalidKey."""
        try:
            native: Any = load_der_public_key(der)
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidKey("not a public key in DER form") from None
        return cls(native, algorithm)

    def to_pem(self) -> str:
        """PEM of the SubjectPublicKeyInfo ("BEGIN PUBLIC KEY")."""
        return self.native.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")

    def to_jwk(self, kid: str) -> dict[str, str]:
        """The JSON Web Key (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2), with public members only."""
        native = self.native
        if isinstance(native, rsa.RSAPublicKey):
            numbers = native.public_numbers()
            members = {"n": _encode_uint(numbers.n), "e": _encode_uint(numbers.e)}
            kty = "RSA"
        elif isinstance(native, ec.EllipticCurvePublicKey):
            point, size = native.public_numbers(), (native.key_size + 7) // 8
            x, y = (base64url.encode(number.to_bytes(size, "big")) for number in (point.x, point.y))
            members, kty = {"crv": f"P-{native.key_size}", "x": x, "y": y}, "EC"
        else:
            members, kty = {"crv": "Ed25519", "x": base64url.encode(native.public_bytes_raw())}, "OKP"
        return {"kty": kty, "use": "sig", "alg": str(self.algorithm), "kid": kid, **members}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicKey):
            return NotImplemented
        return self.algorithm == other.algorithm and self.native == other.native

    def __hash__(self) -> int:
        return hash(self.to_der())

    def __repr__(self) -> str:
        return f"PublicKey({self.algorithm}, bits={self.bits})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivateKey:
    """A private key, parsed, and its only algorithm; ``native`` is the object of `cryptography`."""

    native: NativePrivateKey
    algorithm: str = SignatureAlgorithm.RS256

    def __post_init__(self) -> None:
        """Raises InvalidKey if the key cannot sign with the algorithm."""
        _require_algorithm(self.native, self.algorithm)

    @property
    def bits(self) -> int:
        return self.public_key().bits

    @classmethod
    def generate(cls, bits: int = 2048, algorithm: str = SignatureAlgorithm.RS256) -> "PrivateKey":
        """A new key; ``bits`` is for RSA, whose public exponent is 65537.

        Raises ValueError unless ``bits`` is one of GENERATED_BITS.
        """
        if algorithm == SignatureAlgorithm.ES256:
            return cls(ec.generate_private_key(ec.SECP256R1()), algorithm)
        if algorithm == SignatureAlgorithm.EDDSA:
            return cls(ed25519.Ed25519PrivateKey.generate(), algorithm)
        if bits not in GENERATED_BITS:
            raise ValueError(f"RSA keys have {', '.join(map(str, GENERATED_BITS))} bits, not {bits}")
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=bits), algorithm)

    def public_key(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.native.public_key(), self.algorithm)

    def to_der(self) -> bytes:
        """DER of the unencrypted PKCS #8 form (RFC 5958). Pass it only to a Sealer."""
        return self.native.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    @classmethod
    def from_der(cls, der: bytes, algorithm: str = SignatureAlgorithm.RS256) -> "PrivateKey":
        """The key in the form that ``to_der`` writes.

        Only for bytes that were just unsealed, because the consistency of the numbers is not checked. Raises
        InvalidKey.
        """
        try:
            # The check takes 27 ms instead of 2 µs. It protects against a manipulated key, whose faulty signatures
            # would reveal the primes; but the seal has authenticated these bytes as written by the service.
            native: Any = load_der_private_key(der, password=None, unsafe_skip_rsa_key_validation=True)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InvalidKey("not a private key in DER form") from None
        return cls(native, algorithm)

    def to_pem(self) -> str:
        """PEM as in key files: RSA keys in the PKCS #1 form (RFC 8017 §A.1.2, "BEGIN RSA PRIVATE KEY"), which all
        programs read, others in the PKCS #8 form ("BEGIN PRIVATE KEY")."""
        is_rsa = isinstance(self.native, rsa.RSAPrivateKey)
        form = PrivateFormat.TraditionalOpenSSL if is_rsa else PrivateFormat.PKCS8
        return self.native.private_bytes(Encoding.PEM, form, NoEncryption()).decode("ascii")

    @classmethod
    def from_pem(cls, text: str, algorithm: str | None = None) -> "PrivateKey":
        """The key in a PEM file, PKCS #1, SEC 1 or PKCS #8, fully checked (27 ms for RSA); for clients. Without
        ``algorithm`` it is the usual one for the type of key: RS256, ES256, EdDSA.

        Raises InvalidKey, also if the key is encrypted.
        """
        try:
            native: Any = load_pem_private_key(text.strip().encode("utf-8", "surrogatepass"), password=None)
        except TypeError:
            raise InvalidKey("the private key is encrypted") from None
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidKey("not a private key in PEM form") from None
        return cls(native, _require_algorithm(native, algorithm))

    def __repr__(self) -> str:
        return f"PrivateKey({self.algorithm}, bits={self.bits})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExternalKey:
    """A private key that never leaves the signer of this name. ``sign_bytes`` returns the signature in the form of JWS
    (RFC 7518 §3), and raises SignerUnavailable."""

    public: PublicKey
    signer: str
    sign_bytes: Callable[[bytes], bytes]

    @property
    def algorithm(self) -> str:
        return self.public.algorithm

    def public_key(self) -> PublicKey:
        """The public half."""
        return self.public

    def __repr__(self) -> str:
        return f"ExternalKey({self.algorithm}, {self.signer})"


def parse_public_key(text: str, algorithm: str | None = None) -> PublicKey:
    """Parse an uploaded public key: PEM ("PUBLIC KEY", "RSA PUBLIC KEY") or a single JSON Web Key.

    Its algorithm is ``algorithm``, else the one that the JWK names, else the usual one of its type. For everything
    else, raises Invalid; its message for ``public_key`` or ``algorithm`` says what to change.
    """
    text = text.strip()
    if len(text) > MAX_KEY_TEXT_LENGTH:
        _raise_invalid_key(
            f"This is longer than {MAX_KEY_TEXT_LENGTH} characters; upload one public key, as PEM or JWK."
        )
    if "PRIVATE KEY-----" in text:
        _raise_invalid_key("This is a private key; upload the public half, and keep the private half to yourself.")
    native, named = _parse_jwk(text) if text.startswith("{") else (_parse_pem(text), None)
    if isinstance(native, rsa.RSAPublicKey):
        _require_strength(native)
    possible = [name for name in key_algorithms(native) if SignatureAlgorithm.from_name(name)]
    if not possible:
        _raise_invalid_key("This type of key is not supported; upload an RSA, P-256 or Ed25519 public key.")
    if named is not None and named not in possible:
        _raise_invalid_key(
            'This key is meant for another algorithm: leave the JWK member "alg" out or set it to'
            f" {' or '.join(possible)}."
        )
    if algorithm is not None and algorithm not in ([named] if named else possible):
        raise Invalid({"algorithm": f"This key is for {named or ' or '.join(possible)}."})
    return PublicKey(native, algorithm or named or possible[0])


def _raise_invalid_key(sentence: str) -> NoReturn:
    raise Invalid({"public_key": sentence})


def _parse_pem(text: str) -> Any:
    labels = _PEM_LABEL.findall(text)
    if not labels:
        _raise_invalid_key('This is neither a PEM file ("-----BEGIN PUBLIC KEY-----") nor a JSON Web Key.')
    if any("CERTIFICATE" in label for label in labels):
        _raise_invalid_key(
            'This is a certificate; upload its public key alone ("openssl x509 -pubkey -noout -in FILE").'
        )
    if len(labels) > 1:
        _raise_invalid_key("This file holds several PEM blocks; upload exactly one public key.")
    if labels[0] not in ("PUBLIC KEY", "RSA PUBLIC KEY"):
        _raise_invalid_key('This PEM file is no public key: it must begin with "-----BEGIN PUBLIC KEY-----".')
    try:
        return load_pem_public_key(text.encode("utf-8", "surrogatepass"))
    except (ValueError, UnsupportedAlgorithm):
        _raise_invalid_key("This PEM file is damaged or holds no public key.")


def _parse_jwk(text: str) -> tuple[Any, str | None]:
    """The key, and the algorithm that it names."""
    try:
        jwk = json.loads(text)
    except (ValueError, RecursionError):
        _raise_invalid_key("This is not valid JSON; upload one public key, as PEM or JWK.")
    if "keys" in jwk:
        _raise_invalid_key("This is a JWK set; upload exactly one of its keys.")
    if not _PRIVATE_MEMBERS.isdisjoint(jwk):
        _raise_invalid_key("This is a private key; upload the public half, and keep the private half to yourself.")
    if jwk.get("use", "sig") != "sig":
        _raise_invalid_key('This key is not meant for signatures: leave the JWK member "use" out or set it to "sig".')
    key_type = (jwk.get("kty"), jwk.get("crv"))
    try:
        if key_type[0] == "RSA":
            native: Any = rsa.RSAPublicNumbers(e=_decode_uint(jwk, "e"), n=_decode_uint(jwk, "n")).public_key()
        elif key_type == ("EC", "P-256"):
            x, y = _decode_uint(jwk, "x"), _decode_uint(jwk, "y")
            native = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        elif key_type == ("OKP", "Ed25519"):
            native = ed25519.Ed25519PublicKey.from_public_bytes(_decode_bytes(jwk, "x"))
        else:
            _raise_invalid_key(
                "This type of key is not supported: it must be RSA, or EC with the curve P-256, or OKP with Ed25519."
            )
    except ValueError:
        _raise_invalid_key("The numbers of this key are damaged: they must be those of a public key, in base64url.")
    if "alg" not in jwk:
        return native, None
    return native, SignatureAlgorithm.from_name(str(jwk["alg"])) or str(jwk["alg"])


def _decode_bytes(jwk: Mapping[str, Any], member: str) -> bytes:
    text = jwk.get(member)
    if not isinstance(text, str):
        raise ValueError(member)
    return base64url.decode(text)


def _decode_uint(jwk: Mapping[str, Any], member: str) -> int:
    return int.from_bytes(_decode_bytes(jwk, member), "big")


def _encode_uint(number: int) -> str:
    """Base64urlUInt (RFC 7518 §2): the fewest bytes that hold the number."""
    return base64url.encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _require_strength(key: rsa.RSAPublicKey) -> None:
    numbers = key.public_numbers()
    if key.key_size not in ACCEPTED_BITS:
        _raise_invalid_key(
            f"This key has {key.key_size} bits; upload one of {ACCEPTED_BITS[0]} to {ACCEPTED_BITS[-1]} bits."
        )
    if numbers.e not in ACCEPTED_EXPONENTS:
        _raise_invalid_key(
            "The public exponent of this key is unsafe or unusual; create a key with the exponent 65537."
        )
    if numbers.n % 2 == 0:
        _raise_invalid_key("This is not an RSA key: its modulus is an even number.")
