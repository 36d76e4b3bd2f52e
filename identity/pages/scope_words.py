"""What scopes mean to people, in words: on the pages of a sign-in, and in the list of connected applications."""

from collections.abc import Collection

from markupsafe import Markup

from identity.domain.words import say
from identity.pages.translation import Words

#: In the order in which they are told.
_TOLD = {
    "profile": say("your name and profile"),
    "email": say("your email address"),
    "phone": say("your phone number"),
    "address": say("your postal address"),
}
_ORGANIZATION = ":user:resourceowner"
#: Who may sign in, and for which project: the first tells the application nothing, the second has words of its own.
_NOTHING = (":org:id:", ":org:domain:primary:", ":org:project:id:")


def received(scope: Collection[str], project: str, words: Words, namespaces: Collection[str]) -> list[Markup]:
    """What an application of this project learns of a person by these scopes; nothing but who it is, if empty."""
    found = [words.t(text) for word, text in _TOLD.items() if word in scope]
    if any(_is_of(word, namespaces, _ORGANIZATION) for word in scope):
        found.append(words.t("your organization"))
    if any(_asks_for_roles(word, namespaces) for word in scope):
        found.append(words.t("your roles in {project}", project=project))
    return found


def is_told(word: str, namespaces: Collection[str]) -> bool:
    """True if ``received`` has words for this scope, or it tells nothing."""
    return word in _TOLD or _asks_for_roles(word, namespaces) or _is_of(word, namespaces, _ORGANIZATION, *_NOTHING)


def _asks_for_roles(word: str, namespaces: Collection[str]) -> bool:
    return _is_of(word, namespaces, ":org:projects:roles", ":org:project:role:")


def _is_of(word: str, namespaces: Collection[str], *rests: str) -> bool:
    return word.startswith(tuple(f"{one}{rest}" for one in namespaces for rest in rests))
