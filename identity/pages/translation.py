"""Translator: messages in one language. English is the source; catalogs are read at first use."""

import gettext
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup, escape

from identity.domain.messages import LANGUAGES, Message

#: Each language's name in that language.

CATALOG_FILE = "LC_MESSAGES/identity.po"
LOCALE_DIR = Path(__file__).parent / "locale"


def _english_plural_form(n: int) -> int:
    return int(n != 1)


@dataclass(frozen=True)
class MessageCatalog:
    """Translations by message id; those of plural messages are tuples, indexed by ``plural_form(n)``."""

    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plural_form: Callable[[int], int] = _english_plural_form


#: List separators other than a comma and a space.
_COMMAS = {"zh": "、"}


@dataclass(frozen=True)
class Translator:
    """Messages of one language. Values are escaped when they are inserted, unless they are markup."""

    #: Each language by its own name.
    LANGUAGE_NAMES: ClassVar[Mapping[str, str]] = dict(
        zip(LANGUAGES, ("English", "Deutsch", "Français", "Español", "Italiano", "中文"), strict=True)
    )

    language: str
    catalog: MessageCatalog

    def gettext(self, text: str, /, **values: object) -> Markup:
        """The translated message; a Message brings its values along."""
        if isinstance(text, Markup):
            return text
        if isinstance(text, Message) and text.plural:
            return self._ngettext(text.template, text.plural, {**text.values, **values})
        template = text.template if isinstance(text, Message) else text
        parameters = {**text.values, **values} if isinstance(text, Message) else values
        found = self.catalog.messages.get(template, (template,))[0]
        return _interpolate(found, parameters)

    def gettext_plain(self, text: str, /, **values: object) -> str:
        """The translated message as plain text, for mails and JSON, without escaping."""
        return str(self.gettext(text, **values).unescape())

    def ngettext(self, singular: str, plural: str, n: int, /, **values: object) -> Markup:
        """The message for ``n`` items; its text has ``{n}``."""
        return self._ngettext(singular, plural, {"n": n, **values})

    def _ngettext(self, singular: str, plural: str, values: Mapping[str, Any]) -> Markup:
        found, n = self.catalog.messages.get(singular), values["n"]
        text = (
            found[self.catalog.plural_form(n)]
            if found is not None
            else (plural if _english_plural_form(n) else singular)
        )
        return _interpolate(text, {**values, "n": self.format_number(n)})

    def format_number(self, number: int) -> str:
        """With the separators of the language."""
        if -1000 < number < 1000:
            return str(number)
        from babel.numbers import get_group_symbol

        return f"{number:,}".replace(",", get_group_symbol(self.language))

    def format_list(self, parts: Iterable[str]) -> Markup:
        return Markup(_COMMAS.get(self.language, ", ")).join(parts)  # noqa: S704 - a constant


class MessageCatalogs:
    """The catalogs of a process, from our folder and those of plugins."""

    def __init__(self, folders: Iterable[Path] = (LOCALE_DIR,)) -> None:
        self.folders = list(folders)
        self._translators: dict[str, Translator] = {LANGUAGES[0]: Translator(LANGUAGES[0], MessageCatalog())}

    def translator(self, language: str) -> Translator:
        if language not in self._translators:
            self._translators[language] = Translator(language, _merge_catalogs(self.folders, language))
        return self._translators[language]


def _merge_catalogs(folders: Iterable[Path], language: str) -> MessageCatalog:
    merged: dict[str, tuple[str, ...]] = {}
    form_of: Callable[[int], int] = _english_plural_form
    for folder in folders:
        path = folder / language / CATALOG_FILE
        if path.exists():
            catalog = read_catalog(path, language)
            merged = {**catalog.messages, **merged}
            form_of = catalog.plural_form
    return MessageCatalog(merged, form_of)


@cache
def read_catalog(path: Path, language: str) -> MessageCatalog:
    """A .po file without untranslated messages. Cached, so that several applications in a process share it."""
    # Slow to import, and needed only for other languages than English.
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        read = read_po(file, locale=language)
    messages = {}
    for message in read:
        forms = _plural_texts(message.string)
        if message.id and not message.fuzzy and all(forms):
            messages[_plural_texts(message.id)[0]] = forms
    return MessageCatalog(messages, gettext.c2py(read.plural_expr))


def _plural_texts(text: Any) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, (tuple, list)) else (text,)


def _interpolate(text: str, values: Mapping[str, object]) -> Markup:
    sentence = Markup(escape(text))  # noqa: S704 - escaped on the spot
    return sentence.format(**values) if values else sentence
