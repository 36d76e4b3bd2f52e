"""A plugin that adds a factor: a code word sent by text message."""

from pathlib import Path
from typing import ClassVar

from pyramid.config import Configurator
from pyramid.response import Response

from identity import hookimpl
from identity.domain.messages import gettext_lazy
from identity.pages.factor_pages import EnrolPage, ProvePage
from identity.pages.forms import Form
from identity.provider.factor import Factor
from tests.house.plugin_fixtures import Plain

RIGHT = "xyzzy"


class SampleFactor(Factor):
    name: ClassVar[str] = "word"
    label: ClassVar[str] = gettext_lazy("Word")
    hint: ClassVar[str] = gettext_lazy("Word")
    methods: ClassVar[tuple[str, ...]] = ("sms",)


class ProveSampleFactorPage(ProvePage):
    template = "sample_factor/prove.html"
    factor = SampleFactor
    fields = ("word",)

    def submit(self, form: Form) -> Response:
        return self.prove(lambda: self._verified(form.text("word")), gettext_lazy("Word"), field="word")

    def _verified(self, code: str) -> tuple[str, ...] | None:
        for enrolment in self.enrolments:
            if enrolment.value["word"] == code:
                self.request.services.factors.update_after_use(enrolment, enrolment.value)
                return SampleFactor.methods
        return None


class EnrolSampleFactorPage(EnrolPage):
    template = "sample_factor/enrol.html"
    factor = SampleFactor

    def submit(self, form: Form) -> Response:
        return self.enrol({"word": RIGHT}, SampleFactor.methods)


class SampleFactorPlugin(Plain):
    @hookimpl
    def identity_factors(self) -> list[Factor]:
        return [SampleFactor()]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.add_page_templates(str(Path(__file__).parent / "templates"))
        config.add_factor_pages(ProveSampleFactorPage, EnrolSampleFactorPage)
