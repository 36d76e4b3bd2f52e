"""Group mappings: of an identity provider or directory, where they are added, changed and removed, and of a group."""

from collections.abc import Sequence
from dataclasses import replace

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.permissions import INSTANCE_WRITE
from identity.http import route_contexts
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.group_mappings import GROUP_MAPPING_FIELDS
from identity.plugins.console.form_fields import SelectField
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.mapping_sources import (
    can_save,
    editor_cells,
    entry_attribute_field,
    find_source,
    source_breadcrumbs,
    source_of,
    source_path,
    source_section,
    text_field,
)
from identity.plugins.console.resource_types import DIRECTORY, GROUP, UPSTREAM_PROVIDER, ResourceType
from identity.services.commands.groups import AddGroupMapping, ChangeGroupMapping
from identity.storage.paging import PageRequest, ResultPage, SortKeys, iterate_rows, page_in_memory, sortable_timestamp

_ORDERS: SortKeys[GroupMapping] = {"created_at": lambda mapping: sortable_timestamp(mapping.created_at)}


def mapping_label(mapping: GroupMapping) -> str:
    return f"{mapping.claim} = {mapping.value}"


def _rows(page: ConsolePage, mappings: Sequence[GroupMapping]) -> Sequence[Cells]:
    """With the group on the provider's page, with the provider on the group's."""
    storage, of_group = page.services.storage, isinstance(page.context.entity, Group)
    groups = storage.groups.find_many({mapping.group_id for mapping in mappings})
    counts = page.services.group_mappings.count_members(*mappings)
    editors = editor_cells(page, page.services.group_mappings, mappings, _("Adds no members"))
    may_read = page.has_permission("upstream_provider.read" if of_group else "group.read")

    def other_link(mapping: GroupMapping) -> EntityLink:
        if of_group:
            source = source_of(page, mapping)
            return EntityLink(source.name, source_path(page, source) if may_read else "")
        group = groups[mapping.group_id]
        return EntityLink(group.name, GROUP.path_of(group) if may_read else "")

    return [
        (
            page.template_macros.code(mapping_label(mapping)),
            page.entity_link(other_link(mapping)),
            str(counts.get(mapping.id, 0)),
            editors[mapping.id],
            page.row_buttons(_MAPPING.path_of(mapping), mapping_label(mapping), remove=_("Remove …"))
            if can_save(page, mapping)
            else "",
        )
        for mapping in mappings
        if mapping.group_id in groups
    ]


def _fetch_of_source(page: ConsolePage, request: PageRequest) -> ResultPage[GroupMapping]:
    mappings = page.services.group_mappings.list_of_source(find_source(page))
    return page_in_memory(mappings, request, _ORDERS)


def _fetch_of_group(page: ConsolePage, request: PageRequest) -> ResultPage[GroupMapping]:
    return page_in_memory(page.services.group_mappings.list_of_group(page.entity_of(Group).id), request, _ORDERS)


GROUP_MAPPINGS = ResourceList(
    path="/group-mappings",
    permission="upstream_provider.read",
    title=_("Group mappings"),
    lead=_("People with a value in a claim of the provider become members of a group when they sign in."),
    columns=(_("Claim"), _("Group"), _("Members"), _("Acts for")),
    has_row_buttons=True,
    is_searchable=False,
    has_state_filter=False,
    fetch=_fetch_of_source,
    rows=_rows,
    empty_title=_("No group mappings yet"),
    empty_text=_("Map a value of a claim to a group, and the provider decides who its members are."),
    create="upstream_provider.write",
    create_label=_("Add group mapping"),
    all_label=_("All group mappings"),
)

DIRECTORY_GROUP_MAPPINGS = replace(
    GROUP_MAPPINGS,
    lead=_("People with a value in an attribute of their entry become members of a group when they sign in."),
    columns=(_("Attribute of the entry"), *GROUP_MAPPINGS.columns[1:]),
    empty_text=_("Map a value, such as the name of a group, and the directory decides who the members are."),
    create=INSTANCE_WRITE,
)

#: A tab of the group's page.
MAPPINGS_OF_GROUP = ResourceList(
    path="/mappings",
    permission="group.read",
    title=_("Mappings"),
    lead=_("Claims of identity providers and directories that make people members when they sign in."),
    columns=(_("Claim"), _("Source"), _("Members"), _("Acts for")),
    has_row_buttons=True,
    is_searchable=False,
    has_state_filter=False,
    fetch=_fetch_of_group,
    rows=_rows,
    empty_title=_("No mappings"),
    empty_text=_(
        "Managers alone decide who the members are. Mappings are added on the page of an identity provider or of a "
        "directory."
    ),
)


def _group_options(page: ConsolePage) -> Sequence[Sequence[object]]:
    organization_id = find_source(page).organization_id
    groups = iterate_rows(lambda request: page.services.groups.page(organization_id, request))
    return [("", ""), *((group.id, group.name) for group in groups)]


_TEXT_FIELDS = (text_field(GROUP_MAPPING_FIELDS, "claim"), text_field(GROUP_MAPPING_FIELDS, "value"))
_GROUP_LABEL = GROUP_MAPPING_FIELDS["group_id"]
_GROUP_FIELD = SelectField(
    "group",
    _GROUP_LABEL.label,
    member_name="group_id",
    required_message=_GROUP_LABEL.required_message,
    options=_group_options,
)
_VALUE_HINT = _("One of its values. Names of groups (DN) are compared regardless of case and spaces.")


_RIGHTS = _("You need the right to give every role of the group. The mapping acts with the rights that you have then.")


def _create(page: ConsolePage, command: AddGroupMapping) -> str:
    source = find_source(page)
    page.services.group_mappings.add(source, command, principal=page.principal)
    return source_path(page, source)


_CREATE = CreateForm(
    title=_("New group mapping"),
    lead=_RIGHTS,
    fields=(*_TEXT_FIELDS, _GROUP_FIELD),
    command=AddGroupMapping,
    create=_create,
    submit_label=_("Add"),
)

_CREATE_OF_DIRECTORY = replace(
    _CREATE,
    title=_("New group mapping of a directory"),
    fields=(entry_attribute_field(_TEXT_FIELDS[0]), replace(_TEXT_FIELDS[1], hint=_VALUE_HINT), _GROUP_FIELD),
)

_MAPPING = ResourceType(
    model=GroupMapping,
    path="/group-mappings/{group_mapping}",
    context=route_contexts.group_mapping_context,
    permission_prefix="upstream_provider",
    section=source_section,
    name=lambda page, mapping: mapping_label(mapping),
    message_values=lambda page, mapping: {
        "name": mapping_label(mapping),
        "group": page.services.groups.get(mapping.group_id).name,
    },
    parents=source_breadcrumbs,
    has_page=False,
)

_EDIT = EditForm[GroupMapping, ChangeGroupMapping](
    title=_("Change the mapping {name} to {group}"),
    fields=_TEXT_FIELDS,
    command=ChangeGroupMapping,
    change=lambda page, mapping, command, version: page.services.group_mappings.change(
        mapping.id, command, expected_version=version, principal=page.principal
    ),
)


def mapped_members_impact(page: ConsolePage, mappings: Sequence[GroupMapping]) -> Sequence[str]:
    """How many members are removed with the mappings; empty for none."""
    count = sum(page.services.group_mappings.count_members(*mappings).values())
    return (
        [
            ngettext_lazy(
                "{n} membership that a mapping added ends at once.",
                "{n} memberships that mappings added end at once.",
                count,
            )
        ]
        if count
        else []
    )


_REMOVE = Action[GroupMapping](
    path="/delete",
    run=lambda page, mapping: page.services.group_mappings.remove(mapping.id, principal=page.principal),
    title=_("Remove the mapping {name} to the group “{group}”?"),
    impact=lambda page, mapping: [
        _("It makes nobody a member of the group any more."),
        *mapped_members_impact(page, [mapping]),
    ],
    submit_label=_("Remove mapping"),
)

ROUTES = (
    list_route(GROUP_MAPPINGS, UPSTREAM_PROVIDER),
    create_route(_CREATE, GROUP_MAPPINGS, UPSTREAM_PROVIDER),
    list_route(DIRECTORY_GROUP_MAPPINGS, DIRECTORY),
    create_route(_CREATE_OF_DIRECTORY, DIRECTORY_GROUP_MAPPINGS, DIRECTORY),
    edit_route(_MAPPING, _EDIT),
    *action_routes(_MAPPING, _REMOVE),
)
