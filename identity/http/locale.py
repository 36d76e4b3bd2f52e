"""Which language to speak with a person: what the request asks for, then what the browser prefers, then English."""

from urllib.parse import parse_qsl

from pyramid.request import Request

from identity.domain.words import LANGUAGES

#: The parameter that asks for languages (OpenID Connect Core §3.1.2.1).
UI_LOCALES = "ui_locales"

_MOST_TAGS = 20
_LONGEST = 200


def language_of(request: Request, asked: str = "") -> str:
    """The language for this request. ``asked`` are language tags that count before those in the address."""
    return choose(asked, in_address(request), accept_language=request.environ.get("HTTP_ACCEPT_LANGUAGE", ""))


def in_address(request: Request) -> str:
    """The language tags that the address asks for; empty if that is no text, or one that not every database holds."""
    try:
        asked: str = request.GET.get(UI_LOCALES, "")[:_LONGEST]
    except UnicodeDecodeError:
        return ""
    return asked if asked.isprintable() else ""


def in_query(query: str) -> str:
    """The same by the query of the address, as WSGI has it."""
    if UI_LOCALES not in query:
        return ""
    try:
        asked = dict(parse_qsl(query, keep_blank_values=True, errors="strict")).get(UI_LOCALES, "")[:_LONGEST]
    except (UnicodeDecodeError, ValueError):
        return ""
    return asked if asked.isprintable() else ""


def choose(*asked: str, accept_language: str = "") -> str:
    """The first language we speak out of space-delimited tags (BCP 47), each list before the next.

    A tag fits by its first part: de-CH is German, zh-Hans Chinese.
    """
    for tags in asked:
        for tag in tags.split(" ")[:_MOST_TAGS]:
            if (known := _known(tag)) is not None:
                return known
    for tag in _by_preference(accept_language):
        if (known := _known(tag)) is not None:
            return known
    return LANGUAGES[0]


def _known(tag: str) -> str | None:
    language = tag.strip().partition("-")[0].lower()
    return language if language in LANGUAGES else None


def _by_preference(header: str) -> list[str]:
    """The tags of an Accept-Language header (RFC 9110 §12.5.4), best first, without those of weight 0."""
    weighted = []
    for place, item in enumerate(header.split(",")[:_MOST_TAGS]):
        tag, _, parameter = item.partition(";")
        weight = _weight(parameter)
        if weight > 0:
            weighted.append((-weight, place, tag))
    return [tag for _, _, tag in sorted(weighted)]


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
