"""Key sets of clients and issuers: public keys as JSON (RFC 7517 §5), here or at a URL."""

import json
from typing import Any
from urllib.parse import urlsplit

from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable

#: Algorithms of assertions that are verified with a public key: the one of the key, never only the header's choice.
ASSERTION_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")

_MAX_KEY_SET_LENGTH = 16 * 1024
_MAX_URL_LENGTH = 2000
#: Members of private and symmetric keys (RFC 7518 §6).
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def key_set_error(text: str) -> str | None:
    """A JWK set with public keys only, possibly empty text. Whether the keys are usable is another question."""
    if not text:
        return None
    if len(text) > _MAX_KEY_SET_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=_MAX_KEY_SET_LENGTH)
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not keys or not all(isinstance(key, dict) for key in keys) or "\0" in text:
        return gettext_lazy('Enter a JWK set: a JSON object with a list of public keys as "keys".')
    if any(_PRIVATE_MEMBERS & key.keys() for key in keys):
        return gettext_lazy("This contains a private or symmetric key. Replace it, and enter only public keys.")
    return None


def key_set_url_error(text: str) -> str | None:
    """An https URL, possibly empty; http for this machine only."""
    if not text:
        return None
    wrong = gettext_lazy("Enter an address that starts with https://.")
    if len(text) > _MAX_URL_LENGTH or not text.isascii() or not is_printable(text) or set(text) & set(' #@\\"<>'):
        return wrong
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return wrong
    return None if host and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)) else wrong


def assertion_algorithm_error(text: str) -> str | None:
    """The only algorithm of assertions; empty for any."""
    if not text or text in ASSERTION_ALGORITHMS:
        return None
    return gettext_lazy("Choose from {names}.", names=", ".join(ASSERTION_ALGORITHMS))
