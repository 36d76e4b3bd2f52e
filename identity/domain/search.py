"""Search in names and addresses, by any part of them."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

#: Limit of an object's search text in bytes, because indexes have limits.
_TEXT_LENGTH = 2000
#: Terms of a query; the rest of the query counts as one more.
_MAX_TERMS = 8
#: Letters that Unicode does not decompose into a base letter and an accent.
_LETTERS = str.maketrans("łøđðħıŧŋƶǥƀɨ", "loddhitnzgbi") | str.maketrans({"æ": "ae", "œ": "oe", "þ": "th"})
#: Shorter prefixes of an id would match names such as "ada" and "bea".
_ID = re.compile(r"[0-9a-f-]{8,36}\Z")


def search_text(*names: str) -> str:
    """The search text of an object with these names: folded, one line for each."""
    lines: list[str] = []
    for name in names:
        line = _folded(name)
        if line and not any(line in other for other in lines):
            lines.append(line)
    text = "".join(f"{line}\n" for line in lines)
    return text.encode()[:_TEXT_LENGTH].decode(errors="ignore")


def user_search_text(user_name: str, *names: str) -> str:
    """The same for a user. The user name ends with the character that follows it in a login name."""
    return search_text(f"{user_name}@", *names)


def search_terms(query: str) -> tuple[str, ...]:
    """The terms that a text must contain, in any order, to match the query."""
    return tuple(dict.fromkeys(_folded(query).split(maxsplit=_MAX_TERMS)))


def split_login_name_term(term: str) -> tuple[str, str] | None:
    """For a term with a login name: the end of the user name's line, and the start of the organization's primary
    domain."""
    name, at, domain = term.partition("@")
    return (f"{name}@\n", domain) if name and at and domain else None


def id_prefix(query: str) -> str | None:
    """The query as a prefix of an id, if it can be one."""
    start = query.strip().lower()
    return start if _ID.match(start) else None


def text_matches(query: str, text: str) -> bool:
    """True if the text contains every term of the query."""
    return all(term in text for term in search_terms(query))


class Searchable(Protocol):
    @property
    def id(self) -> str:
        pass

    @property
    def search_text(self) -> str:
        pass


def matches_query(query: str, searchable: Searchable, domain: str = "") -> bool:
    """True if the query matches; for users ``domain`` is the primary domain of their organization."""
    terms, start = search_terms(query), id_prefix(query)
    if not terms or (start is not None and searchable.id.startswith(start)):
        return True
    text = searchable.search_text
    return all(term in text or _is_login_name(term, text, domain) for term in terms)


def _is_login_name(term: str, text: str, domain: str) -> bool:
    parts = split_login_name_term(term)
    return parts is not None and parts[0] in text and domain.startswith(parts[1])


def _folded(text: str) -> str:
    """Without case, accents and repeated spaces: "Zoë  Straße" becomes "zoe strasse", "Michał" becomes "michal"."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    letters = "".join(item for item in decomposed if unicodedata.category(item) != "Mn").translate(_LETTERS)
    return " ".join(letters.split())


#: Longest stored start of a word, in characters; queries are cut alike.
_TERM_LENGTH = 60
#: Words of one object; a search text of 2000 bytes may have more.
_MAX_INDEX_TERMS = 30
_PUNCTUATION = re.compile(r"[\W_]+")
#: "mueller" and "müller" find each other.
_UMLAUTS = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"))


def index_terms(text: str) -> tuple[str, ...]:
    """The words of a search text by whose starts ``PrefixQuery`` finds the object, sorted. Words with punctuation count
    as a whole and in parts: "anna.muller@acme.example" is also found as "muller". A start of another word is left out,
    since whatever finds it finds the other."""
    terms: list[str] = []
    for token in text.split():
        # The host of an address says nothing about one person.
        parts = _PUNCTUATION.split(token.partition("@")[0])
        terms += [token.rstrip("@"), *parts]
    ordered = sorted({term[:_TERM_LENGTH] for term in terms if term})
    pairs = zip(ordered, [*ordered[1:], ""], strict=True)
    longest = [term for term, following in pairs if not following.startswith(term)]
    return tuple(longest[:_MAX_INDEX_TERMS])


@dataclass(frozen=True, slots=True)
class PrefixQuery:
    """A search by the starts of words, in any order. Each element of ``terms`` are the spellings of one term of the
    query, of which one has to match; the longest term comes first. Without terms it matches nothing."""

    terms: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, query: str) -> "PrefixQuery":
        spellings: dict[str, tuple[str, ...]] = {}
        for typed in query.split(maxsplit=_MAX_TERMS)[:_MAX_TERMS]:
            for term in search_terms(typed):
                spellings.setdefault(term[:_TERM_LENGTH], tuple(dict.fromkeys((term[:_TERM_LENGTH], *_respelt(typed)))))
        return cls(tuple(sorted(spellings.values(), key=lambda term: -len(term[0]))))

    def first_match(self, text: str) -> str | None:
        """The first word of the search text that the longest term matches, if the other terms match as well."""
        indexed = index_terms(text)
        first = [next((item for item in indexed if item.startswith(spellings)), None) for spellings in self.terms]
        return first[0] if first and None not in first else None


def _respelt(typed: str) -> Iterator[str]:
    """The term with umlauts written as two letters, or the reverse."""
    composed = unicodedata.normalize("NFKC", typed).casefold()
    wide, narrow = composed, composed
    for letter, pair in _UMLAUTS:
        wide, narrow = wide.replace(letter, pair), narrow.replace(pair, pair[0])
    yield from (_folded(spelling)[:_TERM_LENGTH] for spelling in (wide, narrow) if _folded(spelling))
