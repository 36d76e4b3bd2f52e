"""Pages of actions on selected rows: one asks for confirmation or for what to choose, then shows a result for each row.

Each row is a transaction of its own and is judged by the same service call as the action on a single entity, with the
caller's rights: a refused row leaves nothing behind and stops no other. The caller's own row comes last, because it
may take the rights that the others need.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.request import Request
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import Denied, DomainError, Invalid
from identity.domain.messages import gettext_lazy as _
from identity.http.error_views import record_access_refusal
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.plugins.console.actions import CONFIRMATION_FIELD, check_confirmation
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.bulk_actions import BulkAction, BulkActions, count_done
from identity.plugins.console.console_page import Breadcrumbs
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import MAX_SELECTED_ROWS, SELECTED_PARAM, ResourceList
from identity.plugins.console.resource_types import AnyResourceType, ResourcePage
from identity.plugins.console.role_selection import SelectThenRolesPage
from identity.plugins.console.routes import ConsoleRoute


class SelectedRowsPage(ResourcePage[Any], ConsoleFormPage):
    """The query names the rows; ``entity`` is the one to which the list belongs."""

    template = "console/selected_rows.html"
    is_creation = True

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: AnyResourceType,
        resource_list: ResourceList[Any],
        action: BulkAction[Any],
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.resource_list, self.action = resource_list, action
        if action.confirms_by_name:
            self.fields = (CONFIRMATION_FIELD,)

    @property
    def _bulk(self) -> BulkActions[Any]:
        if self.resource_list.bulk is None:
            raise TypeError(f"{self.request.path} has no actions")
        return self.resource_list.bulk

    @cached_property
    def rows(self) -> Sequence[Any]:
        """Empty for callers who may not read the list."""
        if not self.has_permission(self.resource_list.permission):
            return ()
        ids = dict.fromkeys(self.request.GET.getall(SELECTED_PARAM)[:MAX_SELECTED_ROWS])
        return self._bulk.find(self, list(ids))

    @cached_property
    def links(self) -> Sequence[EntityLink]:
        return self._bulk.links(self, self.rows)

    @property
    def title(self) -> str:
        return self.action.title(len(self.rows))

    @property
    def section(self) -> str:
        return self.resource_list.section_of(self, self.resource_type)

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        above = self.resource_list.parents(self, self.resource_type)
        return [*above, (self.resource_list.title, f"{self.resource_path}{self.resource_list.path}")]

    @property
    def cancel_path(self) -> str:
        return self.breadcrumbs[-1][1]

    def get(self) -> Response:
        return super().get() if self.rows else self.redirect(self.cancel_path)

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "bulk_lead": self.translate(self.action.lead),
            "label": self.translate(self.action.submit_label),
            "danger": self.action.is_destructive,
            "results": [(self.entity_cell(link), "") for link in self.links],
            "is_done": False,
            "name_to_type": self._confirmation_text,
        }

    @property
    def _confirmation_text(self) -> str:
        return self.entity_name if self.action.confirms_by_name else ""

    def submit(self, form: Form) -> Response:
        """Raises Invalid for the form as a whole, and Conflict if it was sent before."""
        check_confirmation(form, self._confirmation_text)
        values, links = self.parse_form(form), self.links
        self.redeem_submission_id(form)
        self.request.commit()
        ordered = sorted(self.rows, key=lambda row: self.principal.id in (row.id, getattr(row, "user_id", None)))
        results = {row.id: self._run(row, values) for row in ordered}
        variables = {
            "title": self.translate(count_done(sum(done for done, _ in results.values()), len(results))),
            "results": [
                (self.entity_cell(link), results[row.id][1]) for row, link in zip(self.rows, links, strict=True)
            ],
            "is_done": True,
            "back": self.cancel_path,
        }
        return self.render(variables, template=SelectedRowsPage.template)

    def _run(self, row: Any, values: Mapping[str, Any]) -> tuple[bool, Markup]:
        """Whether the row was changed or needed no change, and the result to show."""
        try:
            changed = self.request.run_once(f"row {row.id}", lambda: self.action.run(self, row, values) is not False)
        except DomainError as refusal:
            if isinstance(refusal, Denied):
                record_access_refusal(self.request, str(refusal))
            self.request.roll_back()
            return False, self._reason(refusal)
        done = self.action.done if changed else _("No change needed")
        return True, self.render_badge(Badge(self.translate(done), "success" if changed else ""))

    def _reason(self, refusal: DomainError) -> Markup:
        reasons: Iterable[str] = refusal.fields.values() if isinstance(refusal, Invalid) else refusal.args[:1]
        return Markup(" ").join(map(self.translate, reasons))


class SelectedRowsChoicePage(SelectedRowsPage, SelectThenRolesPage):
    """Selects what the rows get or lose, such as a group, before the confirmation."""

    template = "console/role_selection.html"
    requires_role: ClassVar[bool] = False
    no_options_message: ClassVar[str] = ""
    #: False if there is no end to choose.
    has_until: ClassVar[bool] = True

    @property
    def lead(self) -> str:
        return self.entity_name

    @property
    def facts(self) -> Sequence[tuple[str, Any]]:
        names = self.translator.format_list([link.name for link in self.links])
        return [*super().facts, (_("Selected"), names)]

    @property
    def title(self) -> str:
        return _(self.roles_title, name=self.selected_name) if self.selected_id else self.action.title(len(self.rows))

    def template_variables(self) -> Mapping[str, object]:
        variables = dict(SelectThenRolesPage.template_variables(self))
        if variables.get("label"):
            variables["label"] = self.translate(self.action.submit_label)
        if not self.has_until:
            variables["until"] = None
        return {**variables, "danger": self.action.is_destructive}

    def parse_form(self, form: Form) -> dict[str, object]:
        """Also what was selected, under the name of its parameter. Raises NotFound unless the caller may select it."""
        self.selected_name  # noqa: B018 - refuses what may not be selected
        return {**SelectThenRolesPage.parse_form(self, form), self.selection_param: self.selected_id}


def selected_rows_routes(resource_list: ResourceList[Any], parent: AnyResourceType) -> tuple[ConsoleRoute, ...]:
    """The routes of all actions on selected rows of a list."""
    routes = []
    for action in () if resource_list.bulk is None else resource_list.bulk.actions:
        page_class: type[SelectedRowsPage] = action.page or SelectedRowsPage
        page = partial(page_class, resource_type=parent, resource_list=resource_list, action=action)
        routes.append(parent.route(f"{resource_list.path}/selected/{action.path}", page, action.permission))
    return tuple(routes)
