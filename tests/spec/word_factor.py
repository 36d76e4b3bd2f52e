"""A plugin with a factor of its own: a word that somebody says who has it by text message."""

from pathlib import Path
from typing import ClassVar

from pyramid.config import Configurator
from pyramid.response import Response

from identity import hookimpl
from identity.domain.words import say
from identity.pages.factor_page import EnrolPage, ProvePage
from identity.pages.forms import Form
from identity.provider.factor import Factor
from tests.house.plugins import Plain

RIGHT = "xyzzy"


class Word(Factor):
    name: ClassVar[str] = "word"
    label: ClassVar[str] = say("Word")
    hint: ClassVar[str] = say("Word")
    methods: ClassVar[tuple[str, ...]] = ("sms",)


class ProveWord(ProvePage):
    template = "word/prove.html"
    factor = Word
    fields = ("word",)

    def submit(self, form: Form) -> Response:
        return self.prove(lambda: self._verified(form.one("word")), say("Word"), field="word")

    def _verified(self, word: str) -> tuple[str, ...] | None:
        for one in self.enrolments:
            if one.value["word"] == word:
                self.request.services.factors.update(one, one.value)
                return Word.methods
        return None


class EnrolWord(EnrolPage):
    template = "word/new.html"
    factor = Word

    def submit(self, form: Form) -> Response:
        return self.enrol({"word": RIGHT}, Word.methods)


class Plugin(Plain):
    @hookimpl
    def identity_factors(self) -> list[Factor]:
        return [Word()]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.add_page_templates(str(Path(__file__).parent / "templates"))
        config.add_factor_pages(ProveWord, EnrolWord)
