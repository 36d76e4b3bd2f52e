"""The language of pages: what the request asks for, then what the browser prefers, then English."""

from urllib.parse import parse_qsl

from pyramid.request import Request

from identity.domain.messages import LANGUAGES

#: The parameter that requests languages (OpenID Connect Core §3.1.2.1).
UI_LOCALES_PARAM = "ui_locales"

_MAX_TAGS = 20
_MAX_HEADER_LENGTH = 200


def ui_locales_from_query(query: str) -> str:
    """The language tags in a query string, as WSGI has it; empty if they cannot be decoded or stored by every
    database."""
    if UI_LOCALES_PARAM not in query:
        return ""
    try:
        requested = dict(parse_qsl(query, keep_blank_values=True, errors="strict")).get(UI_LOCALES_PARAM, "")[
            :_MAX_HEADER_LENGTH
        ]
    except (UnicodeDecodeError, ValueError):
        return ""
    return requested if requested.isprintable() else ""


def choose_language(*requested: str, accept_language: str = "") -> str:
    """The first available language of space-delimited tags (BCP 47), each list before the next. A tag matches by its
    first part: de-CH is German, zh-Hans Chinese."""
    for tags in requested:
        for tag in tags.split(" ")[:_MAX_TAGS]:
            if (known := _supported_language(tag)) is not None:
                return known
    for tag in _parse_accept_language(accept_language):
        if (known := _supported_language(tag)) is not None:
            return known
    return LANGUAGES[0]


def _supported_language(tag: str) -> str | None:
    language = tag.strip().partition("-")[0].lower()
    return language if language in LANGUAGES else None


def _parse_accept_language(header: str) -> list[str]:
    """The tags of an Accept-Language header (RFC 9110 §12.5.4), best first, without those of weight 0."""
    weighted = []
    for position, item in enumerate(header.split(",")[:_MAX_TAGS]):
        tag, _, parameter = item.partition(";")
        weight = _quality_value(parameter)
        if weight > 0:
            weighted.append((-weight, position, tag))
    return [tag for _, _, tag in sorted(weighted)]


def _quality_value(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


class RequestLanguage:
    """The language of a request."""

    @staticmethod
    def negotiate(request: Request, preferred_tags: str = "") -> str:
        """The language for this request. ``preferred_tags`` are language tags that precede those in the URL."""
        return choose_language(
            preferred_tags,
            RequestLanguage.requested(request),
            accept_language=request.environ.get("HTTP_ACCEPT_LANGUAGE", ""),
        )

    @staticmethod
    def requested(request: Request) -> str:
        """The language tags in the URL, see ``ui_locales_from_query``."""
        return ui_locales_from_query(request.environ.get("QUERY_STRING", ""))
