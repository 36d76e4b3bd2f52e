"""Searching: where a search looks, and what it finds there. It finds any part of a name or address."""

import re
import unicodedata
from typing import Protocol

#: What the text of one thing has at most, in bytes: indexes have limits.
_TEXT_LENGTH = 2000
#: How many words of a search are looked for one by one; what follows is one more.
_MAX_TERMS = 8
#: Letters that Unicode does not take apart into another one and an accent.
_LETTERS = str.maketrans("łøđðħıŧŋƶǥƀɨ", "loddhitnzgbi") | str.maketrans({"æ": "ae", "œ": "oe", "þ": "th"})
#: Shorter beginnings of an id would be found in names, "ada" and "bea" among them.
_ID = re.compile(r"[0-9a-f-]{8,36}\Z")


def search_text(*names: str) -> str:
    """Where searches for a thing of these names look: without case and accents, a line for each."""
    lines: list[str] = []
    for name in names:
        line = _folded(name)
        if line and not any(line in other for other in lines):
            lines.append(line)
    text = "".join(f"{line}\n" for line in lines)
    return text.encode()[:_TEXT_LENGTH].decode(errors="ignore")


def user_search_text(user_name: str, *names: str) -> str:
    """The same for a user. The user name ends with the sign that follows it in a login name."""
    return search_text(f"{user_name}@", *names)


def search_terms(query: str) -> tuple[str, ...]:
    """What a text has to hold, in any order, for the query to find it."""
    return tuple(dict.fromkeys(_folded(query).split(maxsplit=_MAX_TERMS)))


def split_login_name_term(term: str) -> tuple[str, str] | None:
    """What ends a line, and what an organization's primary domain starts with, where the word is a login name."""
    name, at, domain = term.partition("@")
    return (f"{name}@\n", domain) if name and at and domain else None


def id_prefix(query: str) -> str | None:
    """The query as the start of an id, if it can be one."""
    start = query.strip().lower()
    return start if _ID.match(start) else None


def text_matches(query: str, text: str) -> bool:
    """True if the text has every word of the query in it."""
    return all(search_term in text for search_term in search_terms(query))


class Searchable(Protocol):
    """What can be searched for."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def search_text(self) -> str:
        """Where searches look for it."""


def matches_query(query: str, searchable: Searchable, domain: str = "") -> bool:
    """True if the query finds it; users have the primary domain of their organization, too."""
    terms, start = search_terms(query), id_prefix(query)
    if not terms or (start is not None and searchable.id.startswith(start)):
        return True
    text = searchable.search_text
    return all(term in text or _is_login_name(term, text, domain) for term in terms)


def _is_login_name(term: str, text: str, domain: str) -> bool:
    parts = split_login_name_term(term)
    return parts is not None and parts[0] in text and domain.startswith(parts[1])


def _folded(text: str) -> str:
    """Without case, accents and surplus space: "Zoë  Straße" is "zoe strasse", and "Michał" is "michal"."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    letters = "".join(item for item in decomposed if unicodedata.category(item) != "Mn").translate(_LETTERS)
    return " ".join(letters.split())
