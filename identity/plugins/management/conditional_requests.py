"""Conditional requests (RFC 9110 §13)."""

import hashlib
import re

from identity.http.error_views import MalformedRequest
from identity.plugins.management.representation import Representation

_TAG = r'(?:W/)?"[\x21\x23-\x7e]{0,200}"'
_LIST = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*\Z")
_TAG_PATTERN = re.compile(_TAG)
_LONGEST = 2000


def version_etag(representation: Representation) -> str | None:
    """The entity tag of a representation with a version: the version in quotes."""
    version = getattr(representation, "version", None)
    return None if version is None else f'"{version}"'


def representation_etag(representation: Representation) -> str:
    return version_etag(representation) or text_etag(representation.model_dump_json())


def text_etag(text: str) -> str:
    """The entity tag of a representation without a version: a digest."""
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def matches_if_match(if_match: str, tag: str) -> bool:
    """Strong comparison (§13.1.1). Raises MalformedRequest."""
    return if_match.strip() == "*" or tag in _parse_etags(if_match, "If-Match")


def matches_if_none_match(if_none_match: str, tag: str) -> bool:
    """Weak comparison (§13.1.2). Raises MalformedRequest."""
    if if_none_match.strip() == "*":
        return True
    return tag in {parse_etag.removeprefix("W/") for parse_etag in _parse_etags(if_none_match, "If-None-Match")}


def _parse_etags(header: str, name: str) -> list[str]:
    if len(header) > _LONGEST or not _LIST.match(header):
        raise MalformedRequest(f'{name} must be a list of entity tags such as "3", or *.')
    return _TAG_PATTERN.findall(header)
