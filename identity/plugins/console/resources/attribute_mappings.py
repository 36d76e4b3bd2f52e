"""Attribute mappings of an identity provider or directory: list, add, change, remove."""

from collections.abc import Sequence
from dataclasses import replace

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import INSTANCE_WRITE
from identity.http import route_contexts
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.attribute_mappings import ATTRIBUTE_MAPPING_FIELDS
from identity.plugins.console.form_fields import SelectField
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.mapping_sources import (
    can_save,
    editor_cells,
    entry_attribute_field,
    find_source,
    source_breadcrumbs,
    source_path,
    source_section,
    text_field,
)
from identity.plugins.console.resource_types import DIRECTORY, UPSTREAM_PROVIDER, ResourceType
from identity.services.commands.attributes import AddAttributeMapping, ChangeAttributeMapping
from identity.storage.paging import PageRequest, ResultPage, page_in_memory, sortable_timestamp


def _rows(page: ConsolePage, mappings: Sequence[AttributeMapping]) -> Sequence[Cells]:
    definitions = page.services.storage.attributes.find_many({mapping.attribute_id for mapping in mappings})
    editors = editor_cells(page, page.services.attribute_mappings, mappings, _("Changes nothing"))
    return [
        (
            page.template_macros.code(mapping.claim),
            definitions[mapping.attribute_id].label,
            editors[mapping.id],
            page.row_buttons(_MAPPING.path_of(mapping), mapping.claim, remove=_("Remove …"))
            if can_save(page, mapping)
            else "",
        )
        for mapping in mappings
        if mapping.attribute_id in definitions
    ]


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[AttributeMapping]:
    mappings = page.services.attribute_mappings.list_of_source(find_source(page))
    return page_in_memory(mappings, request, {"created_at": lambda mapping: sortable_timestamp(mapping.created_at)})


ATTRIBUTE_MAPPINGS = ResourceList(
    path="/attribute-mappings",
    permission="upstream_provider.read",
    title=_("Attribute mappings"),
    lead=_("The value of a claim of the provider becomes the value of an attribute when people sign in."),
    columns=(_("Claim"), _("Attribute"), _("Acts for")),
    has_row_buttons=True,
    is_searchable=False,
    has_state_filter=False,
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No attribute mappings yet"),
    empty_text=_("Map a claim to an attribute, and the provider keeps its values up to date."),
    create="upstream_provider.write",
    create_label=_("Add attribute mapping"),
    all_label=_("All attribute mappings"),
)


DIRECTORY_ATTRIBUTE_MAPPINGS = replace(
    ATTRIBUTE_MAPPINGS,
    lead=_("The value in an attribute of their entry becomes the value of an attribute here when people sign in."),
    columns=(_("Attribute of the entry"), *ATTRIBUTE_MAPPINGS.columns[1:]),
    empty_text=_("Map an attribute of the entry, and the directory keeps the values up to date."),
    create=INSTANCE_WRITE,
)


def _attribute_options(page: ConsolePage) -> Sequence[Sequence[object]]:
    definitions = page.services.attributes.list_definitions(find_source(page).organization_id)
    return [("", ""), *((definition.id, definition.label) for definition in definitions)]


_CLAIM_FIELD = text_field(ATTRIBUTE_MAPPING_FIELDS, "claim")
_ATTRIBUTE_LABEL = ATTRIBUTE_MAPPING_FIELDS["attribute_id"]
_ATTRIBUTE_FIELD = SelectField(
    "attribute",
    _ATTRIBUTE_LABEL.label,
    _ATTRIBUTE_LABEL.hint,
    member_name="attribute_id",
    required_message=_ATTRIBUTE_LABEL.required_message,
    options=_attribute_options,
)


def _create(page: ConsolePage, command: AddAttributeMapping) -> str:
    source = find_source(page)
    page.services.attribute_mappings.add(source, command, principal=page.principal)
    return source_path(page, source)


_CREATE = CreateForm(
    title=_("New attribute mapping"),
    lead=_("You need the right to change people. The mapping acts with the rights that you have then."),
    fields=(_CLAIM_FIELD, _ATTRIBUTE_FIELD),
    command=AddAttributeMapping,
    create=_create,
    submit_label=_("Add"),
)

_CREATE_OF_DIRECTORY = replace(
    _CREATE,
    title=_("New attribute mapping of a directory"),
    fields=(entry_attribute_field(_CLAIM_FIELD), _ATTRIBUTE_FIELD),
)

_MAPPING = ResourceType(
    model=AttributeMapping,
    path="/attribute-mappings/{attribute_mapping}",
    context=route_contexts.attribute_mapping_context,
    permission_prefix="upstream_provider",
    section=source_section,
    name=lambda page, mapping: mapping.claim,
    message_values=lambda page, mapping: {
        "name": mapping.claim,
        "attribute": page.services.attributes.get(mapping.attribute_id).label,
    },
    parents=source_breadcrumbs,
    has_page=False,
)

_EDIT = EditForm[AttributeMapping, ChangeAttributeMapping](
    title=_("Change the mapping {name} to {attribute}"),
    fields=(_CLAIM_FIELD,),
    command=ChangeAttributeMapping,
    change=lambda page, mapping, command, version: page.services.attribute_mappings.change(
        mapping.id, command, expected_version=version, principal=page.principal
    ),
)

_REMOVE = Action[AttributeMapping](
    path="/delete",
    run=lambda page, mapping: page.services.attribute_mappings.remove(mapping.id, principal=page.principal),
    title=_("Remove the mapping {name} to the attribute “{attribute}”?"),
    impact=(_("Values that people have stay."),),
    submit_label=_("Remove mapping"),
)

ROUTES = (
    list_route(ATTRIBUTE_MAPPINGS, UPSTREAM_PROVIDER),
    create_route(_CREATE, ATTRIBUTE_MAPPINGS, UPSTREAM_PROVIDER),
    list_route(DIRECTORY_ATTRIBUTE_MAPPINGS, DIRECTORY),
    create_route(_CREATE_OF_DIRECTORY, DIRECTORY_ATTRIBUTE_MAPPINGS, DIRECTORY),
    edit_route(_MAPPING, _EDIT),
    *action_routes(_MAPPING, _REMOVE),
)
