"""Console pages on which managers try operations of the management API, with their session and their own permissions.

The API itself accepts no cookies: these pages run the operation within their own request.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyramid.config import Configurator
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy as _
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.forms import FieldValue, Form
from identity.pages.layout import NavigationGroup, NavigationItem
from identity.pages.page import FormPage
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.management.api_browser import TRY_PATH, OpenApiReader
from identity.plugins.management.json_schemas import JsonObject
from identity.plugins.management.openapi import documented_path
from identity.plugins.management.operation import Operation, OperationGroup
from identity.plugins.management.operation_runner import OperationResult, run_operation
from identity.plugins.management.operation_views import PATH_PREFIX, OperationView

_CONSOLE_PATH = "/console"
_ROUTE_NAME = "console.api"
_PARAMETER_PREFIX = "parameter-"
_BODY_FIELD = "body"
_CONFIRMATION_FIELD = "confirmed"


class ApiPage(SignedInPage):
    """The frame of both pages, with a way back to the console."""

    home_path = _CONSOLE_PATH

    def navigation(self) -> tuple[NavigationGroup, ...]:
        items = ((_("Overview"), _CONSOLE_PATH, "overview"), (_("Management API"), TRY_PATH, "apps"))
        return (
            NavigationGroup(
                items=tuple(
                    NavigationItem(
                        label=self.translator.gettext(label), href=path, icon=icon, is_current=path == TRY_PATH
                    )
                    for label, path, icon in items
                )
            ),
        )


class TryOperationPage(ApiPage, FormPage):
    """One operation: its parameters and body as a form, and the response below it."""

    template = "management/try_operation.html"

    def __init__(
        self, context: Any, request: Any, *, reader: OpenApiReader, views: Mapping[str, OperationView]
    ) -> None:
        super().__init__(context, request)
        self._reader, self._views = reader, views
        self._result: OperationResult | None = None

    @cached_property
    def view(self) -> OperationView:
        """Raises NotFound."""
        name = self.request.matchdict["operation"]
        view = self._views.get(name)
        if view is None or not _fits_form(view.operation):
            raise NotFound("operation", name)
        return view

    @property
    def operation(self) -> Operation:
        return self.view.operation

    @cached_property
    def document(self) -> JsonObject:
        """The operation in the OpenAPI document."""
        found: JsonObject = self._reader.document["paths"][documented_path(self.operation)][
            self.operation.method.lower()
        ]
        return found

    @cached_property
    def parameters(self) -> Sequence[JsonObject]:
        return [parameter for parameter in self.document["parameters"] if parameter.get("in") in ("path", "query")]

    @property
    def takes_body(self) -> bool:
        return "requestBody" in self.document

    @property
    def is_change(self) -> bool:
        return self.operation.method != "GET" and not self.operation.is_read_only

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]
        names = [_PARAMETER_PREFIX + parameter["name"] for parameter in self.parameters]
        names += [_BODY_FIELD] if self.takes_body else []
        return (*names, _CONFIRMATION_FIELD) if self.is_change else tuple(names)

    def initial_values(self) -> Mapping[str, FieldValue]:
        """Parameters may be in the query, as in links from other pages."""
        values: dict[str, FieldValue] = {
            _PARAMETER_PREFIX + parameter["name"]: self.request.GET.get(parameter["name"], "")
            for parameter in self.parameters
        }
        if self.takes_body:
            values[_BODY_FIELD] = json.dumps(self._reader.sample_body(self.document), indent=2, ensure_ascii=False)
        return values

    def template_variables(self) -> Mapping[str, object]:
        return {
            "list_path": TRY_PATH,
            "operation": self.operation,
            "entry": self.document,
            "path": PATH_PREFIX + documented_path(self.operation),
            "parameters": self.parameters,
            "prefix": _PARAMETER_PREFIX,
            "body_schema": self._reader.request_schema(self.document),
            "is_change": self.is_change,
            "guide_path": self.request.registry.application.settings.base_url + PATH_PREFIX + "/",
            "result": self._result,
        }

    def submit(self, form: Form) -> Response:
        """The page with the response. Raises Invalid for missing parameters, or without the confirmation."""
        values = {parameter["name"]: form.text(_PARAMETER_PREFIX + parameter["name"]) for parameter in self.parameters}
        in_path = {parameter["name"] for parameter in self.parameters if parameter["in"] == "path"}
        problems = {_PARAMETER_PREFIX + name: _("Enter a value.") for name in in_path if not values[name]}
        if self.is_change and not form.text(_CONFIRMATION_FIELD):
            problems[_CONFIRMATION_FIELD] = _("Confirm that this operation may change something.")
        if problems:
            raise Invalid(problems)
        self._result = run_operation(
            self.request,
            self.view,
            path_values={name: values[name] for name in in_path},
            query={name: value for name, value in values.items() if value and name not in in_path},
            body=form.text(_BODY_FIELD),
        )
        return self._redisplay(form, status=200)


class OperationListPage(ApiPage):
    """All operations, each with a link to its page."""

    template = "management/try_operations.html"

    def __init__(self, context: Any, request: Any, *, groups: Sequence[OperationGroup]) -> None:
        super().__init__(context, request)
        self._groups = groups

    def template_variables(self) -> Mapping[str, object]:
        groups = [
            (group, [operation for operation in group.operations if _fits_form(operation)]) for group in self._groups
        ]
        return {"groups": groups, "list_path": TRY_PATH, "documented_path": documented_path}


def _fits_form(operation: Operation) -> bool:
    """False for documents that are streamed: they are too large."""
    return not operation.is_streamed and not operation.accepts_stream


def add_console_pages(
    config: Configurator,
    groups: Sequence[OperationGroup],
    views: Sequence[OperationView],
    reader: OpenApiReader,
) -> None:
    by_name = {view.operation.name: view for view in views}
    options = {"permission": ANY_MANAGER_PERMISSION, "authenticate": "session"}
    config.add_page(_ROUTE_NAME, TRY_PATH, partial(OperationListPage, groups=groups), **options)
    page = partial(TryOperationPage, reader=reader, views=by_name)
    config.add_page(f"{_ROUTE_NAME}.operation", f"{TRY_PATH}/{{operation}}", page, **options)
