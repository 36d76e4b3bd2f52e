"""A page with a form that is sent by GET, so that its answer has an address of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyramid.response import Response

from identity.pages.forms import FormState
from identity.plugins.console.console_page import ConsolePage


class PromptPage(ConsolePage):
    """What was asked stands in the fields again, with what is wrong beside each."""

    #: The fields of the form, in its order.
    fields: ClassVar[tuple[str, ...]]

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        #: What is wrong, by field; filled while the page is made.
        self.problems: dict[str, str] = {}

    def query(self) -> Mapping[str, str]:
        """What was asked, by field; what was not is left out."""
        given = {name: self.request.GET.get(name, "").strip() for name in self.fields}
        return {name: value for name, value in given.items() if value}

    def get(self) -> Response:
        """The page; 422 if something in the form is wrong."""
        shown = self.template_variables()
        if not isinstance(shown, Mapping):
            return shown
        form = FormState(
            action=self.request.path,
            token="",
            translator=self.translator,
            fields=self.fields,
            values=self.query(),
            errors=self.problems,
        )
        return self.render({**shown, "form": form, "failed": form.has_errors}, status=422 if self.problems else 200)
