"""Groups of an organization: list, forms and page."""

from collections.abc import Sequence

from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.plugins.console.actions import REACTIVATION_HINT, Action, Deactivation, Reactivation
from identity.plugins.console.badges import state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.groups import GROUP_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    active_badge,
    list_tab,
)
from identity.plugins.console.resource_types import GROUP, ORGANIZATION, ResourcePage
from identity.plugins.console.resources.activity import GroupActivityPage, activity_tab
from identity.plugins.console.resources.group_grants import GROUP_GRANTS
from identity.plugins.console.resources.group_managers import GROUP_MANAGERS
from identity.plugins.console.resources.group_mappings import MAPPINGS_OF_GROUP
from identity.plugins.console.resources.group_members import GROUP_MEMBERS
from identity.services.commands.groups import AddGroup, ChangeGroup


def _rows(page: ConsolePage, groups: Sequence[Group]) -> Sequence[Cells]:
    counts = page.services.storage.groups.count_members([group.id for group in groups])
    return [
        (
            page.components.named(group.name, GROUP.path_of(group), group.description, square=True),
            str(counts.get(group.id, 0)),
            page.render_badge(state_badge(group.active, page.translator)),
            page.template_macros.when(group.created_at),
        )
        for group in groups
    ]


GROUPS = ResourceList(
    path="/groups",
    permission="group.read",
    section="groups",
    title=_("Groups"),
    lead=_("People and service users who have the same roles together."),
    columns=(_("Name"), _("Members"), _("State"), _("Created")),
    sort_orders=(("name", _("Name")), ("created_at", _("Created"))),
    fetch=lambda page, request: page.services.groups.page(page.entity_of(Organization).id, request),
    rows=_rows,
    empty_title=_("No groups yet"),
    empty_text=_("Give roles to a group, and each of its members has them. Add the first one."),
    create="group.write",
    entity_label=_("group"),
)

_FIELDS = form_fields(Group, GROUP_FIELDS)

_CREATE = CreateForm(
    title=_("New group"),
    lead=_("Members and roles are added on the next page."),
    fields=_FIELDS,
    command=AddGroup,
    create=lambda page, command: GROUP.path_of(
        page.services.groups.add(page.entity_of(Organization).id, command, principal=page.principal)
    ),
)

_EDIT = EditForm[Group, ChangeGroup](
    fields=_FIELDS,
    command=ChangeGroup,
    change=lambda page, group, command, version: page.services.groups.change(
        group.id, command, expected_version=version, principal=page.principal
    ),
)


def _loss(page: ConsolePage, group: Group) -> Sequence[str]:
    count = page.services.storage.groups.count_members([group.id]).get(group.id, 0)
    loss = ngettext_lazy("{n} member loses its roles at once.", "{n} members lose its roles at once.", count)
    return [loss] if count else []


def _removal_impact(page: ResourcePage[Group], group: Group) -> Sequence[str]:
    count = len(page.services.group_mappings.list_of_group(group.id))
    mappings = ngettext_lazy("{n} group mapping is removed.", "{n} group mappings are removed.", count)
    return [_("This cannot be undone."), *_loss(page, group), *([mappings] if count else [])]


def _deactivation_impact(page: ResourcePage[Group], group: Group) -> Sequence[str]:
    return [*_loss(page, group), REACTIVATION_HINT]


_ACTIONS = (
    Deactivation[Group](
        run=lambda page, group: page.services.groups.deactivate(group.id, principal=page.principal),
        title=_("Deactivate the group “{name}”?"),
        description=_("Its members lose its roles until you reactivate it."),
        impact=_deactivation_impact,
        submit_label=_("Deactivate group"),
    ),
    Reactivation[Group](
        run=lambda page, group: page.services.groups.reactivate(group.id, principal=page.principal),
        title=_("Reactivate the group “{name}”?"),
        description=_("Its members have its roles again."),
        impact=(_("Its members have its roles again, as far as these have not ended."),),
        submit_label=_("Reactivate group"),
    ),
    Action[Group](
        path="/delete",
        run=lambda page, group: page.services.groups.remove(group.id, principal=page.principal),
        title=_("Remove the group “{name}”?"),
        label=_("Remove"),
        button=_("Remove …"),
        description=_("Permanently removes the group. Its members stay, without its roles."),
        impact=_removal_impact,
        submit_label=_("Remove group"),
        confirm=lambda page, group: group.name,
        done=lambda page, group: page.parent_breadcrumbs[-1][1],
    ),
)


def _descriptions(page: DetailPage[Group], group: Group) -> Descriptions:
    return [
        *page.field_descriptions(group, GROUP_FIELDS),
        (_("Created"), page.template_macros.when(group.created_at)),
        (_("Group id"), page.template_macros.identifier(group.id)),
    ]


def _overview_sections(page: DetailPage[Group], group: Group) -> Sections:
    """What the group gives and who fills it, the first rows of each."""
    return [*_role_sections(page, group), page.list_section(GROUP_MEMBERS), page.list_section(MAPPINGS_OF_GROUP)]


def _role_sections(page: DetailPage[Group], group: Group) -> Sections:
    return [page.list_section(GROUP_GRANTS), page.list_section(GROUP_MANAGERS)]


_PAGES = ResourcePages(
    type=GROUP,
    lead=lambda page, group: [_("Group"), *([page.organization.name] if page.organization else [])],
    badges=active_badge,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Overview"), sections=_overview_sections),
        list_tab(GROUP_MEMBERS),
        ResourceTab(label=_("Roles"), path="/roles", permission=GROUP_GRANTS.permission, sections=_role_sections),
        list_tab(MAPPINGS_OF_GROUP),
        activity_tab(page=GroupActivityPage),
    ),
    avatar=lambda page, group: group.name,
    actions=_ACTIONS,
)

ROUTES = (
    list_route(GROUPS, ORGANIZATION),
    create_route(_CREATE, GROUPS, ORGANIZATION),
    edit_route(GROUP, _EDIT),
    list_route(GROUP_GRANTS, GROUP),
    list_route(GROUP_MANAGERS, GROUP),
    *_PAGES.routes(),
)
