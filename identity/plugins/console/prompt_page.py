"""Pages with a form that is sent by GET, so that each result has a URL."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyramid.response import Response

from identity.pages.forms import FormState
from identity.plugins.console.console_page import ConsolePage


class PromptPage(ConsolePage):
    """Redisplays the submitted values with the problems beside their fields."""

    #: In the order of the form.
    fields: ClassVar[tuple[str, ...]]

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        #: Problems by field, filled while rendering.
        self.problems: dict[str, str] = {}

    def query(self) -> Mapping[str, str]:
        """Submitted values by field, without empty ones."""
        values = {name: self.request.GET.get(name, "").strip() for name in self.fields}
        return {name: value for name, value in values.items() if value}

    def get(self) -> Response:
        """Status 422 if a field has a problem."""
        variables = self.template_variables()
        if not isinstance(variables, Mapping):
            return variables
        form = FormState(
            action=self.request.path,
            token="",
            translator=self.translator,
            fields=self.fields,
            values=self.query(),
            errors=self.problems,
        )
        return self.render({**variables, "form": form, "failed": form.has_errors}, status=422 if self.problems else 200)
