"""Password hashes of other systems: parsed, stored only as an argon2id hash of their digest, and verified.

What is stored names the scheme with its parameters, and hashes the foreign digest with argon2id. So a copy of the
database costs an attacker as much as our own hashes, whatever the other system used.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import argon2
from argon2.exceptions import Argon2Error, VerificationError, VerifyMismatchError
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from identity.crypto.argon2id import MAX_PARALLELISM, NO_MATCH, Argon2Cost, HashVerification, cached_hasher
from identity.domain.messages import gettext_lazy

#: Begins a stored hash of this kind.
IMPORTED_PREFIX = "$imported$"
MAX_HASH_LENGTH = 4096

_MIN_SALT, _MAX_SALT = 8, 64
_MIN_DIGEST, _MAX_DIGEST = 16, 64
_MAX_KEY = 128
#: Upper bounds: one verification takes some tenths of a second and at most 128 MiB.
_MAX_BCRYPT_COST = 12
_MIN_BCRYPT_COST = 4
_MIN_PBKDF2_ITERATIONS, _MAX_PBKDF2_ITERATIONS = 1000, 1_500_000
_MAX_SCRYPT_BYTES = 128 * 2**20
_MAX_SCRYPT_WORK = 2**21
_MAX_ARGON2_KIB = 128 * 1024
_MAX_ARGON2_WORK = 2**19
#: bcrypt ignores what follows; its library refuses longer passwords.
_BCRYPT_PASSWORD_LENGTH = 72

_TOO_LONG = gettext_lazy("This hash is too long.")
_UNREADABLE = gettext_lazy("This hash is incomplete or damaged.")
_UNKNOWN = gettext_lazy("This kind of hash is not known. Use argon2, bcrypt, scrypt or PBKDF2.")
_TOO_WEAK = gettext_lazy(
    "Fast hashes such as MD5 and SHA-1, and hashes without a salt, are not accepted: invite the person."
)
_OUT_OF_BOUNDS = gettext_lazy("The parameters of this hash are outside of what the service verifies.")

_PBKDF2_ALGORITHMS = {"sha1": "sha1", "sha256": "sha256", "sha512": "sha512"}
_FAST_NAMES = re.compile(
    r"(?:\{?(?:s?md5|s?sha\d*|unsalted_\w+|md4|ntlm|lanman|crypt)\}?)(?:\$|$|\})|\$1\$|\$apr1\$|\$sha1\$", re.IGNORECASE
)
_BARE_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}\Z")
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})\Z")
_ARGON2_TYPES = {"argon2d": argon2.Type.D, "argon2i": argon2.Type.I, "argon2id": argon2.Type.ID}


@dataclass(frozen=True, slots=True)
class HashScheme:
    """How a foreign digest is computed, without salt and digest. People of one system usually share it.

    ``cost`` are the numbers of the scheme, ``key`` is the signer key of Firebase, in hexadecimal."""

    name: str
    cost: tuple[int, ...]
    size: int
    key: str = ""

    @property
    def text(self) -> str:
        return json.dumps([self.name, self.cost, self.size, self.key])

    @classmethod
    def from_text(cls, text: str) -> "HashScheme":
        name, cost, size, key = json.loads(text)
        return cls(name, tuple(cost), size, key)

    def digest(self, password: str, salt: bytes) -> bytes:
        """Slow. The password is taken as it was typed, as the other system did."""
        return _DIGESTS[self.name](self, password.encode("utf-8", "surrogatepass"), salt)


@dataclass(frozen=True, slots=True, repr=False)
class ForeignHash:
    """A password hash of another system."""

    scheme: HashScheme
    salt: bytes
    digest: bytes

    def seal(self, cost: Argon2Cost) -> str:
        """What is stored: scheme, salt, and argon2id of the digest. Slow."""
        head = json.dumps([self.scheme.text, self.salt.hex()]).encode()
        encoded = base64.urlsafe_b64encode(head).decode().rstrip("=")
        return f"{IMPORTED_PREFIX}{encoded}{cached_hasher(cost).hash(self.digest)}"


def verify_imported(
    stored: str, password: str, *, cost: Argon2Cost, decoys: Collection[HashScheme] = ()
) -> HashVerification:
    """Compare the password with a sealed foreign hash. A match needs a rehash, so that ours replaces it. ``decoys`` are
    computed besides, unless they are the scheme of the hash: see ``compute_decoys``."""
    found = _open(stored)
    if found is None:
        compute_decoys(password, decoys)
        cached_hasher(cost).hash(b"")
        return NO_MATCH
    scheme, salt, sealed = found
    compute_decoys(password, [decoy for decoy in decoys if decoy != scheme])
    digest = _compute(scheme, password, salt)
    try:
        cached_hasher(cost).verify(sealed, digest)
    except VerifyMismatchError:
        return NO_MATCH
    except (VerificationError, ValueError):
        cached_hasher(cost).hash(b"")
        return NO_MATCH
    return HashVerification(is_match=True, needs_rehash=True)


def compute_decoys(password: str, decoys: Collection[HashScheme]) -> None:
    """The work of these schemes, so that no account, unknown or not, is recognized by the time that it takes."""
    for decoy in decoys:
        _compute(decoy, password, bytes(16))


def _compute(scheme: HashScheme, password: str, salt: bytes) -> bytes:
    try:
        return scheme.digest(password, salt)
    except (ValueError, Argon2Error):
        # The other system could not have had this password.
        return b""


def _open(stored: str) -> tuple[HashScheme, bytes, str] | None:
    """Scheme, salt and the argon2id hash; None if damaged or beyond the bounds."""
    head, separator, rest = stored.removeprefix(IMPORTED_PREFIX).partition("$")
    try:
        text, salt = json.loads(_decode_base64(head))
        scheme = HashScheme.from_text(text)
        _require_bounds(scheme, bytes.fromhex(salt))
    except (ValueError, TypeError, KeyError):
        return None
    return scheme, bytes.fromhex(salt), separator + rest


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_foreign_hash(text: str) -> ForeignHash:
    """The hash in the notation of its system: PHC strings, modular crypt format, Django, Keycloak's JSON, Firebase.

    Raises ValueError with a sentence for the manager who imports it."""
    text = text.strip()
    if len(text) > MAX_HASH_LENGTH:
        raise ValueError(_TOO_LONG)
    if _BARE_DIGEST.match(text) or _FAST_NAMES.match(text):
        raise ValueError(_TOO_WEAK)
    try:
        found = _parse(text)
        _require_bounds(found.scheme, found.salt)
    except (LookupError, TypeError, AttributeError, binascii.Error, UnicodeError, RecursionError):
        raise ValueError(_UNREADABLE) from None
    except json.JSONDecodeError:
        raise ValueError(_UNREADABLE) from None
    except ValueError as problem:
        # Numbers that are none, beside sentences of ours.
        raise ValueError(problem.args[0] if problem.args and problem.args[0] in _SENTENCES else _UNREADABLE) from None
    if not _MIN_DIGEST <= len(found.digest) <= _MAX_DIGEST:
        raise ValueError(_UNREADABLE)
    return found


def _parse(text: str) -> ForeignHash:
    if text.startswith("{"):
        return _parse_keycloak(json.loads(text))
    name = text.removeprefix("$").partition("$")[0]
    if name in ("2a", "2b", "2y"):
        return _parse_bcrypt(text)
    if name in _ARGON2_TYPES and text.startswith("$"):
        return _parse_argon2(text)
    if not text.startswith("$"):
        return _parse_django(name, text)
    if name == "scrypt":
        return _parse_scrypt(text)
    if name == "firescrypt":
        return _parse_firebase(text)
    if name == "pbkdf2" or name.startswith("pbkdf2-"):
        return _parse_pbkdf2(name, text)
    raise ValueError(_UNKNOWN)


def _parse_bcrypt(text: str, name: str = "bcrypt") -> ForeignHash:
    match = _BCRYPT.match(text)
    if match is None:
        raise ValueError(_UNREADABLE)
    cost, salt, digest = match.groups()
    return ForeignHash(HashScheme(name, (int(cost),), len(digest)), salt.encode(), digest.encode())


def _parse_argon2(text: str) -> ForeignHash:
    _, name, *more = text.split("$")
    version, parameters, salt, digest = more if len(more) == 4 else ("v=16", *more)
    numbers = _numbers(parameters)
    decoded = _decode_base64(digest)
    cost = (int(version.removeprefix("v=")), numbers["m"], numbers["t"], numbers["p"])
    return ForeignHash(HashScheme(name, cost, len(decoded)), _decode_base64(salt), decoded)


def _parse_scrypt(text: str) -> ForeignHash:
    _, _, parameters, salt, digest = text.split("$")
    numbers, decoded = _numbers(parameters), _decode_base64(digest)
    scheme = HashScheme("scrypt", (numbers["ln"], numbers["r"], numbers["p"]), len(decoded))
    return ForeignHash(scheme, _decode_base64(salt), decoded)


def _parse_firebase(text: str) -> ForeignHash:
    """``$firescrypt$ln=14,r=8,p=1$salt$hash$salt separator$signer key``."""
    _, _, parameters, salt, digest, separator, key = text.split("$")
    numbers, decoded, signer = _numbers(parameters), _decode_base64(digest), _decode_base64(key)
    if not 16 <= len(signer) <= _MAX_KEY or len(decoded) != len(signer):
        raise ValueError(_UNREADABLE)
    scheme = HashScheme("firescrypt", (numbers["ln"], numbers["r"], numbers.get("p", 1)), len(decoded), signer.hex())
    return ForeignHash(scheme, _decode_base64(salt) + _decode_base64(separator), decoded)


def _parse_pbkdf2(name: str, text: str) -> ForeignHash:
    """PHC (``i=1000,l=32``) and passlib (a number alone, ``.`` instead of ``+``)."""
    _, _, parameters, salt, digest = text.split("$")
    iterations = _numbers(parameters)["i"] if "=" in parameters else int(parameters)
    decoded = _decode_base64(digest)
    algorithm = _PBKDF2_ALGORITHMS[name.partition("-")[2] or "sha1"]
    scheme = HashScheme(f"pbkdf2-{algorithm}", (iterations,), len(decoded))
    return ForeignHash(scheme, _decode_base64(salt), decoded)


def _parse_django(name: str, text: str) -> ForeignHash:
    """Django's encoded passwords: ``algorithm$…``; salts are text."""
    rest = text[len(name) + 1 :]
    if name in ("pbkdf2_sha256", "pbkdf2_sha1"):
        iterations, salt, digest = rest.split("$")
        decoded = base64.b64decode(digest, validate=True)
        scheme = HashScheme(f"pbkdf2-{name.partition('_')[2]}", (int(iterations),), len(decoded))
        return ForeignHash(scheme, salt.encode(), decoded)
    if name == "scrypt":
        work, salt, block, parallel, digest = rest.split("$")
        decoded = base64.b64decode(digest, validate=True)
        n = int(work)
        scheme = HashScheme("scrypt", (n.bit_length() - 1, int(block), int(parallel)), len(decoded))
        if n != 1 << scheme.cost[0]:
            raise ValueError(_UNREADABLE)
        return ForeignHash(scheme, salt.encode(), decoded)
    if name == "argon2":
        return _parse_argon2(f"${rest}")
    if name in ("bcrypt", "bcrypt_sha256"):
        return _parse_bcrypt(rest, "bcrypt" if name == "bcrypt" else "bcrypt-sha256")
    raise ValueError(_UNKNOWN)


def _parse_keycloak(value: Mapping[str, Any]) -> ForeignHash:
    """A credential of Keycloak, whose members ``secretData`` and ``credentialData`` are JSON texts or objects."""
    secret, data = (_object(value[name]) for name in ("secretData", "credentialData"))
    digest = base64.b64decode(secret["value"], validate=True)
    salt = base64.b64decode(secret["salt"], validate=True)
    iterations, algorithm = int(data["hashIterations"]), str(data["algorithm"])
    if algorithm == "argon2":
        more = {
            name: (item[0] if isinstance(item, list) else item) for name, item in data["additionalParameters"].items()
        }
        version = {"1.0": 16, "1.3": 19}[str(more["version"])]
        cost = (version, int(more["memory"]), iterations, int(more["parallelism"]))
        return ForeignHash(HashScheme(f"argon2{more['type']}", cost, len(digest)), salt, digest)
    name, _, function = algorithm.partition("-")
    if name != "pbkdf2":
        raise ValueError(_UNKNOWN)
    scheme = HashScheme(f"pbkdf2-{_PBKDF2_ALGORITHMS[function or 'sha1']}", (iterations,), len(digest))
    return ForeignHash(scheme, salt, digest)


def _object(value: Any) -> Mapping[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise ValueError(_UNREADABLE)
    return found


def _numbers(parameters: str) -> dict[str, int]:
    pairs = (item.split("=") for item in parameters.split(","))
    return {name: int(number) for name, number in pairs}


def _decode_base64(text: str) -> bytes:
    """Any of the alphabets in use, with or without padding."""
    standard = text.rstrip("=").replace(".", "+").replace("-", "+").replace("_", "/")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def _require_bounds(scheme: HashScheme, salt: bytes) -> None:
    """Raise ValueError unless the scheme can be verified without exhausting the machine."""
    if len(salt) < _MIN_SALT:
        raise ValueError(_TOO_WEAK)
    if scheme.name not in _DIGESTS:
        raise ValueError(_UNKNOWN)
    if len(salt) > _MAX_SALT or not _MIN_DIGEST <= scheme.size <= _MAX_KEY or not _is_within_bounds(scheme):
        raise ValueError(_OUT_OF_BOUNDS)


def _is_within_bounds(scheme: HashScheme) -> bool:
    if any(not isinstance(number, int) or number < 1 for number in scheme.cost):
        return False
    if scheme.name.startswith("bcrypt"):
        return _MIN_BCRYPT_COST <= scheme.cost[0] <= _MAX_BCRYPT_COST
    if scheme.name.startswith("pbkdf2"):
        return _MIN_PBKDF2_ITERATIONS <= scheme.cost[0] <= _MAX_PBKDF2_ITERATIONS
    if scheme.name.endswith("scrypt"):
        exponent, block, parallel = scheme.cost
        if exponent > 24 or block > 64 or parallel > 16:
            return False
        work = (1 << exponent) * block
        return 2**10 <= work * parallel <= _MAX_SCRYPT_WORK and 128 * work <= _MAX_SCRYPT_BYTES
    version, memory, passes, lanes = scheme.cost
    return (
        version in (16, 19)
        and 8 * lanes <= memory <= _MAX_ARGON2_KIB
        and memory * passes <= _MAX_ARGON2_WORK
        and lanes <= MAX_PARALLELISM
    )


# --- digests ----------------------------------------------------------------------------------------------------------


def _bcrypt_digest(scheme: HashScheme, password: bytes, salt: bytes) -> bytes:
    # Only for imported hashes.
    import bcrypt

    if scheme.name == "bcrypt-sha256":
        password = hashlib.sha256(password).hexdigest().encode()
    # A decoy has no salt of its own.
    salt_text = salt if len(salt) == 22 else b"." * 22
    hashed = bcrypt.hashpw(password[:_BCRYPT_PASSWORD_LENGTH], b"$2b$%02d$%s" % (scheme.cost[0], salt_text))
    return hashed[-31:]


def _pbkdf2_digest(scheme: HashScheme, password: bytes, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac(scheme.name.partition("-")[2], password, salt, scheme.cost[0], scheme.size)


def _scrypt_digest(scheme: HashScheme, password: bytes, salt: bytes) -> bytes:
    return _scrypt(scheme.cost, password, salt, scheme.size)


def _firebase_digest(scheme: HashScheme, password: bytes, salt: bytes) -> bytes:
    key = _scrypt(scheme.cost, password, salt, 32)
    # The derived key encrypts the project's signer key; Firebase's counter begins with zero.
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return encryptor.update(bytes.fromhex(scheme.key)) + encryptor.finalize()


def _scrypt(cost: tuple[int, ...], password: bytes, salt: bytes, size: int) -> bytes:
    exponent, block, parallel = cost
    return hashlib.scrypt(
        password, salt=salt, n=1 << exponent, r=block, p=parallel, dklen=size, maxmem=2 * _MAX_SCRYPT_BYTES
    )


def _argon2_digest(scheme: HashScheme, password: bytes, salt: bytes) -> bytes:
    version, memory, passes, lanes = scheme.cost
    return argon2.low_level.hash_secret_raw(
        password, salt, passes, memory, lanes, scheme.size, _ARGON2_TYPES[scheme.name], version
    )


_DIGESTS: Mapping[str, Callable[[HashScheme, bytes, bytes], bytes]] = {
    "bcrypt": _bcrypt_digest,
    "bcrypt-sha256": _bcrypt_digest,
    "scrypt": _scrypt_digest,
    "firescrypt": _firebase_digest,
    **dict.fromkeys((f"pbkdf2-{name}" for name in _PBKDF2_ALGORITHMS), _pbkdf2_digest),
    **dict.fromkeys(_ARGON2_TYPES, _argon2_digest),
}
_SENTENCES = frozenset({_TOO_LONG, _UNREADABLE, _UNKNOWN, _TOO_WEAK, _OUT_OF_BOUNDS})
