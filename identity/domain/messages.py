"""Message: a sentence for people that remembers how to be said in another language."""

from collections.abc import Mapping

#: The languages that pages speak; the first one where nothing else fits.
LANGUAGES = ("en", "de", "fr", "es", "it", "zh")


class Message(str):
    """An English sentence, usable as any string; ``template`` and ``values`` are what a catalog translates it by.

    ``plural`` is the template for several things, where their number ``n`` is among the values; empty otherwise.
    """

    __slots__ = ("plural", "template", "values")

    template: str
    plural: str
    values: Mapping[str, object]


def gettext_lazy(template: str, /, **values: object) -> Message:
    """The sentence, with each ``{name}`` of the template replaced by the value of that name.

    The template is the message id: one whole sentence, never a part of one.
    """
    message = Message(template.format(**values) if values else template)
    message.template, message.plural, message.values = template, "", values
    return message


def ngettext_lazy(singular: str, plural: str, n: int, /, **values: object) -> Message:
    """The sentence about ``n`` things, which stands in both templates as ``{n}``; the singular is the message id."""
    values = {"n": n, **values}
    message = Message((singular if n == 1 else plural).format(**values))
    message.template, message.plural, message.values = singular, plural, values
    return message
