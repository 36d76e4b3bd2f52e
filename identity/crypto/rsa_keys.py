"""RSA keys: generation and formats, as thin wrappers without per-request cost."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
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

GENERATED_BITS = (2048, 3072, 4096)
ACCEPTED_BITS = range(2048, 8192 + 1)

# NIST SP 800-56B §6.2 requires an odd exponent above 2^16. Its upper bound is 2^256, but OpenSSL refuses exponents
# above 64 bits with long moduli, so such a key could be uploaded but never verify anything.
ACCEPTED_EXPONENTS = range(2**16 + 1, 2**64, 2)

# An 8192 bit key takes 1.5 kB of PEM.
MAX_KEY_TEXT_LENGTH = 16384

_PEM_LABEL = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,64})-----")
_PRIVATE_MEMBERS = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))


class InvalidKey(Exception):
    """The bytes or text contain no RSA key of the expected kind; the message never quotes them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RsaPublicKey:
    """An RSA public key, parsed; ``native`` is the object of `cryptography`."""

    native: rsa.RSAPublicKey

    @property
    def bits(self) -> int:
        """The length of the modulus in bits."""
        return self.native.key_size

    def to_der(self) -> bytes:
        """DER of the SubjectPublicKeyInfo (RFC 5280 §4.1.2.7); the form that is stored."""
        return self.native.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def from_der(cls, der: bytes) -> "RsaPublicKey":
        """The key in the form that ``to_der`` writes. Raises InvalidKey."""
        try:
            native = load_der_public_key(der)
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidKey("not a public key in DER form") from None
        if not isinstance(native, rsa.RSAPublicKey):
            raise InvalidKey("not an RSA key")
        return cls(native)

    def to_pem(self) -> str:
        """PEM of the SubjectPublicKeyInfo ("BEGIN PUBLIC KEY")."""
        return self.native.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")

    def to_jwk(self, kid: str, alg: str = "RS256", use: str = "sig") -> dict[str, str]:
        """The JSON Web Key (RFC 7517 §4, RFC 7518 §6.3.1), with public members only."""
        numbers = self.native.public_numbers()
        return {
            "kty": "RSA",
            "use": use,
            "alg": alg,
            "kid": kid,
            "n": _encode_uint(numbers.n),
            "e": _encode_uint(numbers.e),
        }

    def __eq__(self, other: object) -> bool:
        return self.native == other.native if isinstance(other, RsaPublicKey) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_der())

    def __repr__(self) -> str:
        return f"PublicKey(bits={self.bits})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RsaPrivateKey:
    """An RSA private key, parsed; ``native`` is the object of `cryptography`."""

    native: rsa.RSAPrivateKey

    @property
    def bits(self) -> int:
        """The length of the modulus in bits."""
        return self.native.key_size

    @classmethod
    def generate(cls, bits: int = 2048) -> "RsaPrivateKey":
        """A new RSA key with the public exponent 65537.

        Raises ValueError unless ``bits`` is one of GENERATED_BITS.
        """
        if bits not in GENERATED_BITS:
            raise ValueError(f"RSA keys have {', '.join(map(str, GENERATED_BITS))} bits, not {bits}")
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=bits))

    def public_key(self) -> RsaPublicKey:
        """The public half."""
        return RsaPublicKey(self.native.public_key())

    def to_der(self) -> bytes:
        """DER of the unencrypted PKCS #8 form (RFC 5958). Pass it only to a Sealer."""
        return self.native.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    @classmethod
    def from_der(cls, der: bytes) -> "RsaPrivateKey":
        """The key in the form that ``to_der`` writes.

        Only for bytes that were just unsealed, because the consistency of the numbers is not checked. Raises
        InvalidKey.
        """
        try:
            # The check takes 27 ms instead of 2 µs. It protects against a manipulated key, whose faulty signatures
            # would reveal the primes; but the seal has authenticated these bytes as written by the service.
            native = load_der_private_key(der, password=None, unsafe_skip_rsa_key_validation=True)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InvalidKey("not a private key in DER form") from None
        return cls(_load_private_key(native))

    def to_pkcs1_pem(self) -> str:
        """PEM of the PKCS #1 form (RFC 8017 §A.1.2, "BEGIN RSA PRIVATE KEY"), as in key files."""
        pem = self.native.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return pem.decode("ascii")

    @classmethod
    def from_pem(cls, text: str) -> "RsaPrivateKey":
        """The key in a PEM file, PKCS #1 or PKCS #8, fully checked (27 ms); for clients.

        Raises InvalidKey, also if the key is encrypted.
        """
        try:
            native = load_pem_private_key(text.encode("utf-8", "surrogatepass"), password=None)
        except TypeError:
            raise InvalidKey("the private key is encrypted") from None
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidKey("not a private key in PEM form") from None
        return cls(_load_private_key(native))

    def __repr__(self) -> str:
        return f"PrivateKey(bits={self.bits})"


def _load_private_key(native: object) -> rsa.RSAPrivateKey:
    if not isinstance(native, rsa.RSAPrivateKey):
        raise InvalidKey("not an RSA key")
    return native


def parse_rsa_public_key(text: str) -> RsaPublicKey:
    """Parse an uploaded RSA public key: PEM ("PUBLIC KEY", "RSA PUBLIC KEY") or a single JSON Web Key.

    For everything else, raises Invalid; its message for ``public_key`` says what to upload instead.
    """
    text = text.strip()
    if len(text) > MAX_KEY_TEXT_LENGTH:
        _raise_invalid_key(
            f"This is longer than {MAX_KEY_TEXT_LENGTH} characters; upload one RSA public key, as PEM or JWK."
        )
    if "PRIVATE KEY-----" in text:
        _raise_invalid_key("This is a private key; upload the public half, and keep the private half to yourself.")
    key = _parse_jwk(text) if text.startswith("{") else _parse_pem(text)
    _require_strength(key)
    return key


def _raise_invalid_key(sentence: str) -> NoReturn:
    raise Invalid({"public_key": sentence})


def _parse_pem(text: str) -> RsaPublicKey:
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
        native = load_pem_public_key(text.encode("utf-8", "surrogatepass"))
    except (ValueError, UnsupportedAlgorithm):
        _raise_invalid_key("This PEM file is damaged or holds no RSA public key.")
    if not isinstance(native, rsa.RSAPublicKey):
        _raise_invalid_key("This is not an RSA key; upload an RSA public key of 2048 bits or more.")
    return RsaPublicKey(native)


def _parse_jwk(text: str) -> RsaPublicKey:
    try:
        jwk = json.loads(text)
    except (ValueError, RecursionError):
        _raise_invalid_key("This is not valid JSON; upload one RSA public key, as PEM or JWK.")
    if "keys" in jwk:
        _raise_invalid_key("This is a JWK set; upload exactly one of its keys.")
    if not _PRIVATE_MEMBERS.isdisjoint(jwk):
        _raise_invalid_key("This is a private key; upload the public half, and keep the private half to yourself.")
    if jwk.get("kty") != "RSA":
        _raise_invalid_key('This is not an RSA key: the JWK member "kty" must be "RSA".')
    if jwk.get("use", "sig") != "sig":
        _raise_invalid_key('This key is not meant for signatures: leave the JWK member "use" out or set it to "sig".')
    if jwk.get("alg", "RS256") != "RS256":
        _raise_invalid_key(
            'This key is meant for another algorithm: leave the JWK member "alg" out or set it to "RS256".'
        )
    try:
        return RsaPublicKey(rsa.RSAPublicNumbers(e=_decode_uint(jwk, "e"), n=_decode_uint(jwk, "n")).public_key())
    except ValueError:
        _raise_invalid_key(
            'The numbers of this key are damaged: "n" and "e" must be those of an RSA key, in base64url.'
        )


def _decode_uint(jwk: Mapping[str, Any], member: str) -> int:
    text = jwk.get(member)
    if not isinstance(text, str):
        raise ValueError(member)
    return int.from_bytes(base64url.decode(text), "big")


def _encode_uint(number: int) -> str:
    """Base64urlUInt (RFC 7518 §2): the fewest bytes that hold the number."""
    return base64url.encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _require_strength(key: RsaPublicKey) -> None:
    numbers = key.native.public_numbers()
    if key.bits not in ACCEPTED_BITS:
        _raise_invalid_key(
            f"This key has {key.bits} bits; upload one of {ACCEPTED_BITS[0]} to {ACCEPTED_BITS[-1]} bits."
        )
    if numbers.e not in ACCEPTED_EXPONENTS:
        _raise_invalid_key(
            "The public exponent of this key is unsafe or unusual; create a key with the exponent 65537."
        )
    if numbers.n % 2 == 0:
        _raise_invalid_key("This is not an RSA key: its modulus is an even number.")
