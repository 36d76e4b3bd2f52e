"""Security 18.7: every parser of untrusted input takes linear time, and little of it for 64 KiB."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from identity.crypto import jwt
from identity.domain.applications import ApplicationType, redirect_uri_error, web_origin
from identity.domain.errors import DomainError
from identity.domain.names import display_name_error, domain_from_name, domain_name_error, name_key, user_name_error
from identity.http import language_negotiation, strict_json
from identity.http.error_views import MalformedRequest
from identity.plugins.management import conditional_requests
from identity.provider.bearer_token import parse_token_header
from identity.provider.errors import OAuthError
from identity.provider.parameters import Parameters
from identity.provider.scope import Scope
from identity.services.commands import field_types

pytestmark = pytest.mark.thorough

LONGEST = 64 * 1024

#: Repeated to the full length, between a prefix and a suffix that make the input invalid.
PARTS = (
    *("a", "a.", "a@", "1", "\ufdfa", "\u0301", "-", " ", "%41", "%", "/", "\\"),
    *('"', '"\\', "{", "[", '{"a":', ",", ";q=", "W/"),
)
FRAMES = (("", ""), ("", "!"), ("a", "\0"), ("a@", "@"), ("https://", "#"), ("com.", "/"), ("Bearer ", " x"), ('"', ""))
FRAMES_OF_TOKENS = (("", ".."), ("eyJhbGciOiJSUzI1NiJ9.", ".x"), ("a.", ".a"))


def _type(annotated: Any) -> Callable[[str], Any]:
    return TypeAdapter(annotated).validate_python


#: Every function that parses or validates untrusted text.
READERS: dict[str, Callable[[str], Any]] = {
    **{
        name: _type(kind)
        for name, kind in vars(field_types).items()
        if not name.startswith("_") and getattr(kind, "__metadata__", None)
    },
    "redirect_uri": lambda text: [redirect_uri_error(text, type=kind) for kind in ApplicationType],
    "web_origin": web_origin,
    "name": display_name_error,
    "name_key": name_key,
    "user_name": user_name_error,
    "domain": domain_name_error,
    "domain_from_name": lambda text: domain_from_name(text, "id.example.com"),
    "scope": lambda text: Scope.require_openid(tuple(text.split(" "))),
    "parameters": lambda text: Parameters.parse(text.encode("utf-8", "replace"), longest=LONGEST),
    "query": lambda text: Parameters.refuse_secrets(text.encode("utf-8", "replace")),
    "bearer": lambda text: parse_token_header(text, {"bearer"}),
    "json": strict_json.parse_json_object,
    "locales": lambda text: language_negotiation.choose_language(text, accept_language=text),
    "if_match": lambda text: conditional_requests.matches_if_match(text, '"1"'),
    "if_none_match": lambda text: conditional_requests.matches_if_none_match(text, '"1"'),
    "jwt": lambda text: jwt.UnverifiedToken.parse(text, max_length=LONGEST),
    "request_object": lambda text: jwt.unverified_claims(text, max_length=LONGEST),
}
EXPECTED = (DomainError, MalformedRequest, OAuthError, ValidationError, ValueError, jwt.MalformedToken, UnicodeError)


def texts(length: int) -> Iterable[str]:
    for beginning, end in (*FRAMES, *FRAMES_OF_TOKENS):
        for part in PARTS:
            yield beginning + part * ((length - len(beginning) - len(end)) // len(part)) + end


def cost(read: Callable[[str], Any], text: str) -> float:
    """The CPU time of this process in seconds."""
    started = time.process_time()
    with suppress(*EXPECTED):
        read(text)
    return time.process_time() - started


def steep(read: Callable[[str], Any]) -> Iterator[str]:
    """The beginnings of the texts whose cost grows faster than their length. For eight times the length, quadratic
    cost grows 64-fold; more than 24-fold counts."""
    for short, long in zip(texts(LONGEST // 8), texts(LONGEST), strict=True):
        # Below two milliseconds the clock is too coarse, and the delay is harmless.
        if cost(read, long) > 0.002 and all(is_steep(read, short, long) for _ in range(5)):
            yield long[:40]


def is_steep(read: Callable[[str], Any], short: str, long: str) -> bool:
    """Takes the least of several measurements, since another program may slow down a single run."""
    dear, cheap = (min(cost(read, text) for _ in range(3)) for text in (long, short))
    return dear > 0.002 and dear > 24 * cheap


@pytest.mark.parametrize("name", READERS)
def test_cost_grows_no_faster_than_the_text(name: str) -> None:
    assert list(steep(READERS[name])) == []


def test_quadratic_parsing_is_detected() -> None:
    """About as expensive as a careless regular expression."""
    assert next(steep(lambda text: [text.count("zz") for _ in range(len(text) // 64)]))
