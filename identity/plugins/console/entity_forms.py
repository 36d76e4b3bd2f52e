"""CreateForm and EditForm: what the forms of an entity change, and the pages that show them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from pyramid.request import Request
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form
from identity.plugins.console.console_page import Breadcrumbs, ConsolePage
from identity.plugins.console.form_fields import FormField, NumberField, SelectField
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import ResourceList
from identity.plugins.console.resource_types import AnyResourceType, EntityT, ResourcePage, ResourceType
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands import Command

CommandT = TypeVar("CommandT", bound=Command)


@dataclass(frozen=True, kw_only=True)
class CreateForm(Generic[CommandT]):
    """``create`` returns the path of the page that shows the new entity, or a response with its secret."""

    title: str
    fields: tuple[FormField, ...]
    command: type[CommandT]
    create: Callable[["CreatePage", CommandT], str | Response]
    submit_label: str = _("Create")
    lead: str = ""


class CreatePage(ConsoleFormPage):
    """Creates an entity and redirects to its page. ``parent`` is the type of the entity to which the list belongs that
    gets it.
    """

    is_creation = True
    title = lead = submit_label = ""
    is_instance_page = False
    #: The id that was sent with the form.
    submission_id: str = ""

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        form: CreateForm[Any],
        resource_list: ResourceList[Any],
        parent: AnyResourceType,
    ) -> None:
        self.form, self.resource_list, self.parent, self.form_fields = form, resource_list, parent, form.fields
        self.title, self.lead, self.submit_label = form.title, form.lead, form.submit_label
        super().__init__(context, request)
        self.is_instance_page = parent.is_instance_page(self)

    @property
    def section(self) -> str:
        return self.resource_list.section_of(self, self.parent)

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        path = self.request.path.removesuffix("/new")
        return [*self.resource_list.parents(self, self.parent), (self.resource_list.title, path)]

    def initial_values(self) -> Mapping[str, FieldValue]:
        """The command's defaults for fields with options."""
        usual = {name: item.default for name, item in self.form.command.model_fields.items()}
        return {
            field.name: field.format_value(usual[field.command_member])
            for field in self.form_fields
            if isinstance(field, SelectField | NumberField)
        }

    def submit(self, form: Form) -> Response:
        command = self.build_command(self.form.command, form)
        self.redeem_submission_id(form)
        self.submission_id = form.text(SUBMISSION_ID_FIELD) or self.submission_id
        created = self.form.create(self, command)
        return created if isinstance(created, Response) else self.redirect(self.path_with_flash(created))


def create_route(
    form: CreateForm[Any],
    resource_list: ResourceList[Any],
    parent: AnyResourceType,
    page: type[CreatePage] = CreatePage,
) -> ConsoleRoute:
    page_factory = partial(page, form=form, resource_list=resource_list, parent=parent)
    return parent.route(f"{resource_list.path}/new", page_factory, resource_list.create)


@dataclass(frozen=True, kw_only=True)
class EditForm(Generic[EntityT, CommandT]):
    """``change`` applies the command to the entity, if its version is still the one that the form showed."""

    fields: tuple[FormField, ...] = ()
    command: type[CommandT]
    change: Callable[[ConsolePage, EntityT, CommandT, int], object]
    title: str = _("Change {name}")


class EditPage(ResourcePage[EntityT], ConsoleFormPage):
    """Changes an entity and redirects to its page."""

    title = ""

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: ResourceType[EntityT],
        form: EditForm[EntityT, Any],
    ) -> None:
        self.form, self.form_fields, self.title = form, form.fields, form.title
        super().__init__(context, request, resource_type=resource_type)

    @cached_property
    def stored(self) -> EntityT:
        return self.entity

    def initial_values(self) -> Mapping[str, FieldValue]:
        return self.entity_values(self.entity)

    def submit(self, form: Form) -> Response:
        command = self.build_command(self.form.command, form)
        self.form.change(self, self.entity, command, form.version())
        return self.redirect(self.path_with_flash(self.success_path))


def edit_route(
    kind: ResourceType[EntityT], form: EditForm[EntityT, Any], page: type[EditPage[EntityT]] = EditPage
) -> ConsoleRoute:
    return kind.route("/edit", partial(page, resource_type=kind, form=form), "write")
