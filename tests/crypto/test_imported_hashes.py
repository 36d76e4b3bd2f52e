"""Password hashes of other systems: every notation is verified, none is stored, and bounds are kept."""

import base64
import hashlib
import json

import argon2
import bcrypt
import pytest

from identity.crypto.argon2id import Argon2Cost
from identity.crypto.imported_hashes import parse_foreign_hash, verify_imported

COST = Argon2Cost(memory_kib=19456, iterations=2)
PASSWORD = "pässwörd"
SALT = b"0123456789abcdef"


def _b64(value: bytes, *, pad: bool = False) -> str:
    text = base64.b64encode(value).decode()
    return text if pad else text.rstrip("=")


def _pbkdf2(name: str, iterations: int, salt: bytes = SALT) -> bytes:
    return hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, iterations)


def _scrypt() -> bytes:
    return hashlib.scrypt(PASSWORD.encode(), salt=SALT, n=1024, r=8, p=1, dklen=32)


def _keycloak(algorithm: str, digest: bytes, iterations: int, **more: object) -> str:
    data = {"hashIterations": iterations, "algorithm": algorithm, **more}
    secret = {"value": _b64(digest, pad=True), "salt": _b64(SALT, pad=True)}
    return json.dumps({"secretData": json.dumps(secret), "credentialData": json.dumps(data)})


def _argon2(kind: argon2.Type) -> str:
    return argon2.low_level.hash_secret(PASSWORD.encode(), SALT, 1, 1024, 1, 32, kind).decode()


HASHES = {
    "argon2i": _argon2(argon2.Type.I),
    "argon2id": _argon2(argon2.Type.ID),
    "django argon2": f"argon2{_argon2(argon2.Type.ID)}",
    "pbkdf2 phc": f"$pbkdf2-sha256$i=1000,l=32${_b64(SALT)}${_b64(_pbkdf2('sha256', 1000))}",
    "pbkdf2 passlib": f"$pbkdf2-sha512$1000${_b64(SALT)}${_b64(_pbkdf2('sha512', 1000))}".replace("+", "."),
    "pbkdf2 django": f"pbkdf2_sha256$1000$saltsalt${_b64(_pbkdf2('sha256', 1000, b'saltsalt'), pad=True)}",
    "pbkdf2 keycloak": _keycloak("pbkdf2-sha256", _pbkdf2("sha256", 1000), 1000),
    "argon2 keycloak": _keycloak(
        "argon2",
        argon2.low_level.hash_secret_raw(PASSWORD.encode(), SALT, 2, 1024, 1, 32, argon2.Type.ID),
        2,
        additionalParameters={
            "hashLength": ["32"],
            "memory": ["1024"],
            "type": ["id"],
            "version": ["1.3"],
            "parallelism": ["1"],
        },
    ),
    "scrypt phc": f"$scrypt$ln=10,r=8,p=1${_b64(SALT)}${_b64(_scrypt())}",
    "scrypt django": f"scrypt$1024${SALT.decode()}$8$1${_b64(_scrypt(), pad=True)}",
}
#: From Firebase's own scrypt tool: the password is user1password.
FIREBASE = (
    "$firescrypt$ln=14,r=8,p=1$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
    "$Bw==$jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="
)


@pytest.mark.parametrize("name", HASHES)
def test_imported_hash_accepts_only_its_password(name: str) -> None:
    found = parse_foreign_hash(HASHES[name])
    stored = found.seal(COST)
    assert found.digest.hex() not in stored
    assert HASHES[name] not in stored
    result = verify_imported(stored, PASSWORD, cost=COST)
    assert (result.is_match, result.needs_rehash) == (True, True)
    assert not verify_imported(stored, "password", cost=COST).is_match


def test_bcrypt_hashes() -> None:
    plain = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    inner = bcrypt.hashpw(hashlib.sha256(PASSWORD.encode()).hexdigest().encode(), bcrypt.gensalt(4)).decode()
    for text in (plain, plain.replace("$2b$", "$2y$"), f"bcrypt${plain}", f"bcrypt_sha256${inner}"):
        stored = parse_foreign_hash(text).seal(COST)
        assert verify_imported(stored, PASSWORD, cost=COST).is_match
        assert not verify_imported(stored, PASSWORD + "!", cost=COST).is_match
    assert not verify_imported(stored, "x" * 200, cost=COST).is_match


def test_firebase_hash() -> None:
    stored = parse_foreign_hash(FIREBASE).seal(COST)
    assert verify_imported(stored, "user1password", cost=COST).is_match
    assert not verify_imported(stored, "user2password", cost=COST).is_match


@pytest.mark.parametrize(
    "text",
    [
        hashlib.md5(b"x", usedforsecurity=False).hexdigest(),
        hashlib.sha256(b"x").hexdigest(),
        "{SHA}" + _b64(hashlib.sha1(b"x", usedforsecurity=False).digest()),
        "md5$salt$0123456789abcdef0123456789abcdef",
        "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
        f"$pbkdf2-sha256$i=1000$${_b64(bytes(32))}",
        f"$pbkdf2-sha256$i=10${_b64(SALT)}${_b64(bytes(32))}",
        f"$pbkdf2-sha256$i=999999999${_b64(SALT)}${_b64(bytes(32))}",
        f"$scrypt$ln=30,r=8,p=1${_b64(SALT)}${_b64(bytes(32))}",
        f"$argon2id$v=19$m=99999999,t=1,p=1${_b64(SALT)}${_b64(bytes(32))}",
        "$2b$20$" + "a" * 53,
        "$5$rounds=5000$saltsalt$x",
        "{}",
        "{" * 2000,
        "$",
        "",
        "x" * 10_000,
        '{"secretData": 1, "credentialData": []}',
        "$pbkdf2-sha256$i=a$b$c",
    ],
)
def test_weak_oversized_and_damaged_hashes_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$") as refused:
        parse_foreign_hash(text)
    assert type(refused.value) is ValueError


def test_damaged_stored_hash_matches_nothing() -> None:
    stored = parse_foreign_hash(HASHES["pbkdf2 django"]).seal(COST)
    for damaged in ("$imported$", stored[:-20], stored[:40], stored.replace("$argon2id$", "$argon2i$")):
        assert not verify_imported(damaged, PASSWORD, cost=COST).is_match
