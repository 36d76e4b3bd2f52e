"""Message: a sentence for people that remembers how to be said in another language."""

from collections.abc import Mapping

#: The languages that pages speak; the first one where nothing else fits.
LANGUAGES = ("en", "de", "fr", "es", "it", "zh")


class Message(str):
    """An English sentence, usable as any string; ``template`` and ``values`` are what a catalog translates it by."""

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]


def say(template: str, /, **values: object) -> Message:
    """The sentence, with each ``{name}`` of the template replaced by the value of that name.

    The template is the message id: one whole sentence, never a part of one.
    """
    message = Message(template.format(**values) if values else template)
    message.template = template
    message.values = values
    return message
