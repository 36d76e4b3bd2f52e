"""Conditional requests (RFC 9110 §13): which version a client has, and which one it wants to change."""

import hashlib
import re

from identity.http.errors import Malformed
from identity.plugins.management.representation import Representation

_TAG = r'(?:W/)?"[\x21\x23-\x7e]{0,200}"'
_LIST = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*\Z")
_ONE = re.compile(_TAG)
_LONGEST = 2000


def tag_of_version(shown: Representation) -> str | None:
    """The entity tag of what has a version: this, in quotes."""
    version = getattr(shown, "version", None)
    return None if version is None else f'"{version}"'


def tag_of(shown: Representation) -> str:
    """The entity tag of one thing."""
    return tag_of_version(shown) or tag_of_text(shown.model_dump_json())


def tag_of_text(text: str) -> str:
    """The entity tag of what has no version."""
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def may_change(if_match: str, tag: str) -> bool:
    """True if the client speaks of the present version (§13.1.1, strong comparison). Raises Malformed."""
    return if_match.strip() == "*" or tag in _tags(if_match, "If-Match")


def is_known(if_none_match: str, tag: str) -> bool:
    """True if the client has the present version (§13.1.2, weak comparison). Raises Malformed."""
    if if_none_match.strip() == "*":
        return True
    return tag in {one.removeprefix("W/") for one in _tags(if_none_match, "If-None-Match")}


def _tags(header: str, name: str) -> list[str]:
    if len(header) > _LONGEST or not _LIST.match(header):
        raise Malformed(f'{name} must be a list of entity tags such as "3", or *.')
    return _ONE.findall(header)
