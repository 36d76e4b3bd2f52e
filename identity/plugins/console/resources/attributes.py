"""Attributes that an organization defines for its people: list, create, change, delete."""

from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from identity.domain.attributes import AttributeAccess, AttributeDefinition
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.search import search_text, text_matches
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.attributes import ATTRIBUTE_FIELDS
from identity.plugins.console.form_fields import change_field, form_fields
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import ATTRIBUTE, ORGANIZATION
from identity.services.commands.attributes import ChangeAttribute, CreateAttribute
from identity.services.provider_mappings import MappingSource
from identity.storage.paging import PageCursor, PageRequest, ResultPage, RowTotal, build_page, iterate_rows

_TYPE_LABELS = ATTRIBUTE_FIELDS["type"].value_labels


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[AttributeDefinition]:
    definitions = page.services.attributes.list_definitions(page.entity_of(Organization).id)
    found = [item for item in definitions if text_matches(request.query, search_text(item.key, item.label))]
    after = "" if request.cursor is None else request.cursor.id
    rest = [item for item in found if item.key > after]
    return build_page(rest, request.limit, lambda item: PageCursor(item.key, item.key), RowTotal(len(found)))


def _rows(page: ConsolePage, definitions: Sequence[AttributeDefinition]) -> Sequence[Cells]:
    may_write = page.has_permission("attribute.write")
    return [
        (
            page.template_macros.strong(definition.label),
            page.template_macros.code(definition.key),
            page.translate(_TYPE_LABELS[definition.type]),
            page.translate(_access_label(definition)),
            Markup(" ").join(map(page.render_badge, _badges(page, definition))) or page.render_placeholder(_("None")),
            page.row_buttons(ATTRIBUTE.path_of(definition), definition.label, remove=_("Delete …"))
            if may_write
            else "",
        )
        for definition in definitions
    ]


def _access_label(definition: AttributeDefinition) -> str:
    if definition.is_editable_by_person:
        return _("The person sees and changes it")
    return _("The person sees it") if definition.visible_to is AttributeAccess.PERSON else _("Managers only")


def _badges(page: ConsolePage, definition: AttributeDefinition) -> Sequence[Badge]:
    t = page.translator.gettext
    labels = (
        (definition.required, t("Required")),
        (definition.in_tokens, t("In tokens")),
        (definition.confidential, t("Confidential")),
    )
    return [Badge(label) for applies, label in labels if applies]


ATTRIBUTES = ResourceList(
    path="/attributes",
    permission="attribute.read",
    section="attributes",
    title=_("Attributes"),
    lead=_("Fields of your own for the people of this organization, such as a department or a staff number."),
    columns=(_("Label"), _("Key"), _("Type"), _("Access"), _("Rules")),
    has_row_buttons=True,
    has_state_filter=False,
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No attributes yet"),
    empty_text=_("Add a field, and it is part of every user's form. Applications get it if you release it."),
    create="attribute.write",
    entity_label=_("attribute"),
)


#: Choices are ordinary words, unlike other lists.
_FIELDS = change_field(
    form_fields(AttributeDefinition, ATTRIBUTE_FIELDS), "choices", required=False, attributes={"rows": 4}
)


def _create(page: ConsolePage, command: CreateAttribute) -> str:
    page.services.attributes.create(page.entity_of(Organization).id, command, principal=page.principal)
    return f"{page.base_path}{ATTRIBUTES.path}"


_CREATE = CreateForm(title=_("New attribute"), fields=_FIELDS, command=CreateAttribute, create=_create)
#: The key cannot be changed.
_EDIT = EditForm[AttributeDefinition, ChangeAttribute](
    fields=tuple(field for field in _FIELDS if field.name in ChangeAttribute.model_fields),
    command=ChangeAttribute,
    change=lambda page, definition, command, version: page.services.attributes.change(
        definition.id, command, expected_version=version, principal=page.principal
    ),
)


def _impact(page: ConsolePage, definition: AttributeDefinition) -> Sequence[str]:
    count = page.services.attributes.count_values(definition.id)
    lines: list[str] = [_("No user has a value.")]
    if count:
        lines = [ngettext_lazy("{n} user loses the value.", "{n} users lose their values.", count)]
    if definition.in_tokens:
        lines.append(_("Applications no longer get it."))
    mappings = _count_mappings(page, definition)
    if mappings:
        lines.append(
            ngettext_lazy("{n} attribute mapping is removed.", "{n} attribute mappings are removed.", mappings)
        )
    return [*lines, _("This cannot be undone.")]


def _count_mappings(page: ConsolePage, definition: AttributeDefinition) -> int:
    """Those of the organization's identity providers and directories, which are few."""
    services = page.services
    providers = iterate_rows(partial(services.storage.upstream_providers.page, definition.organization_id))
    organization = services.organizations.get(definition.organization_id)
    sources: tuple[MappingSource, ...] = (*providers, *services.directories.list_of_organization(organization))
    mappings = (item for source in sources for item in services.attribute_mappings.list_of_source(source))
    return sum(item.attribute_id == definition.id for item in mappings)


_DELETE = Action[AttributeDefinition](
    path="/delete",
    permission="delete",
    run=lambda page, definition: page.services.attributes.remove(definition.id, principal=page.principal),
    title=_("Delete the attribute “{name}”?"),
    impact=_impact,
    submit_label=_("Delete attribute"),
)

ROUTES = (
    list_route(ATTRIBUTES, ORGANIZATION),
    create_route(_CREATE, ATTRIBUTES, ORGANIZATION),
    edit_route(ATTRIBUTE, _EDIT),
    *action_routes(ATTRIBUTE, _DELETE),
)
