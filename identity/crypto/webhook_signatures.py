"""Signatures of webhook messages by the Standard Webhooks specification, with symmetric secrets."""

import base64
import binascii
import hashlib
import hmac
import secrets

from identity.domain.messages import gettext_lazy

_PREFIX = "whsec_"
_LENGTHS = range(24, 65)
_NEW_LENGTH = 32


def new_webhook_secret() -> str:
    """A new signing secret, as its receiver gets it."""
    return f"{_PREFIX}{base64.b64encode(secrets.token_bytes(_NEW_LENGTH)).decode()}"


def webhook_secret_error(text: str) -> str | None:
    """A secret is ``whsec_`` and 24 to 64 bytes in base64."""
    try:
        valid = text.startswith(_PREFIX) and len(_key(text)) in _LENGTHS
    except (binascii.Error, ValueError):
        valid = False
    return None if valid else gettext_lazy("Enter whsec_ and 24 to 64 random bytes in base64.")


def sign_webhook_message(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature in the header ``webhook-signature``."""
    signed = hmac.digest(_key(secret), f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
