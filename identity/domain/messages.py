"""Translatable messages."""

from collections.abc import Mapping

#: Languages of the pages; the first is the fallback.
LANGUAGES = ("en", "de", "fr", "es", "it", "zh")


class Message(str):
    """An English sentence, usable as a string; ``template`` and ``values`` are used to translate it. ``plural`` is the
    template for several objects, whose number ``n`` is among the values; empty otherwise."""

    __slots__ = ("plural", "template", "values")

    template: str
    plural: str
    values: Mapping[str, object]


def gettext_lazy(template: str, /, **values: object) -> Message:
    """The sentence with each ``{name}`` of the template replaced by the value of that name. The template is the message
    id: always a whole sentence, never a fragment."""
    message = Message(template.format(**values) if values else template)
    message.template, message.plural, message.values = template, "", values
    return message


def ngettext_lazy(singular: str, plural: str, n: int, /, **values: object) -> Message:
    """The sentence about ``n`` objects; both templates contain ``{n}`` and the singular is the message id."""
    values = {"n": n, **values}
    message = Message((singular if n == 1 else plural).format(**values))
    message.template, message.plural, message.values = singular, plural, values
    return message
