"""Key sets of clients and issuers: public keys as JSON (RFC 7517 §5), here or at a URL."""

import json
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.validators import is_https_url

_MAX_KEY_SET_LENGTH = 16 * 1024
_MAX_URL_LENGTH = 2000
#: Members of private and symmetric keys (RFC 7518 §6).
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


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
    if not text or (text.isascii() and is_https_url(text, max_length=_MAX_URL_LENGTH, forbidden=' #@\\"<>')):
        return None
    return gettext_lazy("Enter an address that starts with https://.")


def assertion_algorithm_error(text: str) -> str | None:
    """The only algorithm of assertions; empty for any."""
    if not text or text in SignatureAlgorithm.names():
        return None
    return gettext_lazy("Choose from {names}.", names=", ".join(SignatureAlgorithm.names()))
