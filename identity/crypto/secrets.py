"""Creates identifiers, tokens and one-time passwords, and the digests that are stored and compared instead."""

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping

import uuid_utils

TOKEN_LENGTH = 43  # 43 characters out of 62 have 256.03 bits
PASSWORD_GROUPS = 4
PASSWORD_GROUP_LENGTH = 5

_TOKEN_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

# 62 does not divide 256: without skipping bytes from 248 up, the first letters would be more frequent.
_TOKEN_CHARACTERS = bytes(_TOKEN_ALPHABET[byte % 62] for byte in range(256))
_REJECTED_BYTES = bytes(range(248, 256))

_CLIENT_ID = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# No i, l, o, 0, 1: they look alike on paper.
_PASSWORD_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # noqa: S105


def new_id() -> str:
    """A new identifier: a UUID version 7 (RFC 9562 §5.7) in the usual form with dashes.

    Ordered by time, so that index entries stay local. Not a secret: knowing one must never authorize anything.
    """
    return str(uuid_utils.uuid7())


def derive_id(*texts: str) -> str:
    """The identifier derived from these texts: a UUID version 8 (RFC 9562 §5.8). Its value cannot be chosen."""
    digest = hashlib.sha256(json.dumps(texts).encode()).digest()[:16]
    bits = int.from_bytes(digest, "big") & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
    return str(uuid_utils.UUID(int=bits))


def is_id(text: str) -> bool:
    """True for a text with the format of identifiers, which client ids never have."""
    return _ID.fullmatch(text) is not None


def is_client_id(text: str) -> bool:
    """True for a text with the format of client ids."""
    return _CLIENT_ID.fullmatch(text) is not None


def new_client_id() -> str:
    """A new client id: an identifier without its dashes, ``[0-9a-f]{32}``."""
    return uuid_utils.uuid7().hex


def new_token() -> str:
    """A new secret of 256 random bits: TOKEN_LENGTH characters out of ``[A-Za-z0-9]``."""
    # One call and a table look-up take a microsecond in total; 64 single choices would take thirty.
    token = b""
    while len(token) < TOKEN_LENGTH:
        token = os.urandom(64).translate(_TOKEN_CHARACTERS, _REJECTED_BYTES)
    return token[:TOKEN_LENGTH].decode("ascii")


def new_password() -> str:
    """A one-time password of 99 random bits that is easy to read out and type: ``k7wqa-h3mzp-9vtec-x4ns8``."""
    return "-".join(
        "".join(secrets.choice(_PASSWORD_ALPHABET) for _ in range(PASSWORD_GROUP_LENGTH))
        for _ in range(PASSWORD_GROUPS)
    )


def token_digest(token: str) -> bytes:
    """The 32 bytes of SHA-256 that are stored and looked up instead of a token.

    Only for secrets of 256 random bits; hash passwords with ``argon2id``. Accepts any string, including lone
    surrogates, because clients can send anything.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def constant_time_equal(a: bytes, b: bytes) -> bool:
    """True if the bytes are equal; the duration does not depend on where they differ."""
    return hmac.compare_digest(a, b)


#: Compared if there is no digest, so that an unknown client takes as long as a wrong secret.
_NO_SECRET = token_digest("no secret has this digest")


def find_matching_digest(digests: Mapping[str, bytes], secret: str) -> str | None:
    """The key of the digest that is this secret's, or None. All digests are compared, each in constant time."""
    presented = token_digest(secret)
    if not digests:
        constant_time_equal(_NO_SECRET, presented)
    matching = [key for key, digest in digests.items() if constant_time_equal(digest, presented)]
    return matching[0] if matching else None
