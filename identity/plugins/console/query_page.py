"""Pages with a form that is sent by GET, so that each result has a URL."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.pages.forms import FormState
from identity.plugins.console.console_page import ConsolePage


class QueryPage(ConsolePage):
    """Redisplays the submitted values with the problems beside their fields."""

    #: In the order of the form.
    fields: tuple[str, ...]

    @cached_property
    def problems(self) -> dict[str, str]:
        """Problems by field, filled while rendering."""
        return {}

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
