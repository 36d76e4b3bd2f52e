"""Base64url without padding (RFC 7515 §2), in canonical form only."""

import binascii

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")


def encode(data: bytes) -> str:
    """Base64url text without padding."""
    return binascii.b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """Raises ValueError for everything that ``encode`` does not produce: padding, other characters (which the
    standard library skips silently) and stray bits in the last character.
    """
    try:
        data = binascii.a2b_base64(text.encode("ascii").translate(_STANDARD) + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("not base64url") from None
    if encode(data) != text:
        raise ValueError("not canonical base64url")
    return data
