"""AskingPage: a page with a form that only asks. It is sent by GET, so its answer has an address of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyramid.response import Response

from identity.pages.forms import Drawn
from identity.plugins.console.console_page import ConsolePage


class AskingPage(ConsolePage):
    """What was asked stands in the fields again, with what is wrong beside each."""

    #: The fields of the form, in its order.
    fields: ClassVar[tuple[str, ...]]

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        #: What is wrong, by field; filled while the page is made.
        self.problems: dict[str, str] = {}

    def asked(self) -> Mapping[str, str]:
        """What was asked, by field; what was not is left out."""
        given = {name: self.request.GET.get(name, "").strip() for name in self.fields}
        return {name: value for name, value in given.items() if value}

    def get(self) -> Response:
        """The page; 422 if something in the form is wrong."""
        shown = self.show()
        if not isinstance(shown, Mapping):
            return shown
        form = Drawn(
            action=self.request.path,
            token="",
            words=self.words,
            fields=self.fields,
            values=self.asked(),
            problems=self.problems,
        )
        return self.draw({**shown, "form": form, "failed": form.failed}, status=422 if self.problems else 200)
