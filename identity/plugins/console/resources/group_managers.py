"""Manager roles of a group: list, add in two steps, change, remove."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import NotFound
from identity.domain.groups import Group, GroupManager
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, ResourceKey
from identity.domain.search import matches_query
from identity.http import route_contexts
from identity.http.list_parameters import MAX_PAGE_SIZE
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, ResourceList
from identity.plugins.console.memberships import load_resource_links
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_types import GROUP, EntityTitledPage, ResourceType
from identity.plugins.console.resources.managers import ManagerRolesPage, manager_role_options
from identity.plugins.console.role_selection import (
    RoleOptions,
    RolesFormPage,
    SelectionCandidate,
    SelectThenRolesPage,
)
from identity.services.commands.groups import AddGroupManager, ChangeGroupManager
from identity.storage.paging import PageRequest, ResultPage

_LEVEL_LABELS = {
    ManagerLevel.ORGANIZATION: _("Organization"),
    ManagerLevel.PROJECT: _("Project"),
    ManagerLevel.PROJECT_GRANT: _("Project grant"),
}
_LEVEL_ICONS = {
    ManagerLevel.ORGANIZATION: "organization",
    ManagerLevel.PROJECT: "project",
    ManagerLevel.PROJECT_GRANT: "grant",
}


def _rows(page: ConsolePage, managers: Sequence[GroupManager]) -> Sequence[Cells]:
    links = load_resource_links(page, {manager.resource for manager in managers})
    may_write = page.has_permission("group.write")
    return [
        (
            page.entity_cell(named := links[manager.resource], is_person=False),
            page.render_manager_roles(manager.roles),
            page.template_macros.when(manager.created_at),
            page.render_end(manager) or page.render_placeholder(_("No end")),
            page.row_buttons(f"{CONSOLE_PATH}/group-managers/{manager.id}", named.name, remove=_("Remove …"))
            if may_write
            else "",
        )
        for manager in managers
        if manager.resource in links
    ]


GROUP_MANAGERS = ResourceList(
    path="/managers",
    permission="group.read",
    title=_("Manager roles"),
    lead=_("What all members manage, with everything below it."),
    columns=(_("Where"), _("Roles"), _("Since"), _("Until")),
    has_row_buttons=True,
    is_searchable=False,
    has_state_filter=False,
    fetch=lambda page, request: page.services.group_managers.page(page.entity_of(Group).id, request),
    rows=_rows,
    empty_title=_("No manager roles yet"),
    empty_text=_("Select what the members manage, and choose what they may do there."),
    create="group.write",
    create_label=_("Add manager roles"),
)


class AddGroupManagerPage(EntityTitledPage[Group], SelectThenRolesPage):
    """The selection is a level and an id: ``project:123``."""

    hint = ManagerRolesPage.hint
    no_options_message = ManagerRolesPage.no_options_message
    selection_param = "resource"
    selection_title = _("Select what the group manages")
    reselect_label = _("Select something else")
    roles_title = _("Choose manager roles at {name}")
    search_hint = _("Any part of its name.")
    list_breadcrumb = (GROUP_MANAGERS.title, GROUP_MANAGERS.path)

    @cached_property
    def selected_resource(self) -> Resource:
        """Raises NotFound unless it is the group's organization, a project of it, or a project grant that it holds."""
        level, _separator, id = self.selected_id.partition(":")
        if level not in _LEVEL_LABELS:
            raise NotFound("resource", self.selected_id)
        resource = self.services.access_control.get_resource(ResourceKey(ManagerLevel(level), id))
        if resource.holder_id != self.entity.organization_id:
            raise NotFound("resource", self.selected_id)
        return resource

    @property
    def selected_name(self) -> str:
        key = self.selected_resource.key
        return load_resource_links(self, {key})[key].name

    @property
    def facts(self) -> Descriptions:
        return [(_LEVEL_LABELS[self.selected_resource.key.level], self.selected_name)]

    def role_options(self) -> RoleOptions:
        return manager_role_options(self, self.selected_resource)

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        """The organization, its projects, and the project grants that it holds, where the caller adds managers."""
        storage, organization_id = self.services.storage, self.entity.organization_id
        projects = self.filter_page(storage.projects.page(organization_id, page_request))
        every = PageRequest(limit=MAX_PAGE_SIZE, active=True)
        grants = self.filter_page(storage.project_grants.page("organization_id", organization_id, every))
        keys = [
            *self._organization_keys(page_request),
            *(ResourceKey(ManagerLevel.PROJECT, project.id) for project in projects),
        ]
        links = dict(load_resource_links(self, keys))
        held_grants = {
            key: link
            for key, link in load_resource_links(
                self, [ResourceKey(ManagerLevel.PROJECT_GRANT, grant.id) for grant in grants]
            ).items()
            if not page_request.query or page_request.query.casefold() in link.name.casefold()
        }
        found = [self._candidate(key, link) for key, link in (links | held_grants).items() if self._may_add_at(key)]
        return ResultPage(tuple(found), projects.next_cursor)

    def _organization_keys(self, page_request: PageRequest) -> Iterator[ResourceKey]:
        organization: Organization = self.services.organizations.get(self.entity.organization_id)
        if matches_query(page_request.query, organization):
            yield ResourceKey(ManagerLevel.ORGANIZATION, organization.id)

    def _may_add_at(self, key: ResourceKey) -> bool:
        access = self.services.access_control
        return bool(access.is_permitted(self.principal, f"{key.level}_manager.write", access.get_resource(key)))

    def _candidate(self, key: ResourceKey, link: EntityLink) -> SelectionCandidate:
        note = self.translator.gettext(_LEVEL_LABELS[key.level])
        return SelectionCandidate(
            link.name, note, _LEVEL_ICONS[key.level], self.selection_path(f"{key.level}:{key.id}")
        )

    def submit(self, form: Form) -> Response:
        key = self.selected_resource.key
        command = self.build_command(AddGroupManager, form, level=key.level, resource_id=key.id)
        self.redeem_submission_id(form)
        self.services.group_managers.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(self.success_path))


@dataclass(frozen=True)
class _OpenedGroupManager:
    """Manager roles with their group and the name of what it manages."""

    manager: GroupManager
    group: Group
    resource: EntityLink


def _open_manager(page: ConsolePage) -> _OpenedGroupManager:
    manager = page.entity_of(GroupManager)
    links = load_resource_links(page, {manager.resource})
    named = links.get(manager.resource, EntityLink(manager.resource.id))
    return _OpenedGroupManager(manager, page.services.groups.get(manager.group_id), named)


_MANAGER = ResourceType(
    model=_OpenedGroupManager,
    path="/group-managers/{group_manager}",
    context=route_contexts.group_manager_context,
    permission_prefix="group",
    section="groups",
    message_values=lambda page, opened: {
        "name": opened.group.name,
        "resource": opened.resource.name,
        "roles": ", ".join(sorted(opened.manager.roles)),
    },
    parents=lambda page, opened: [
        *GROUP.breadcrumbs(page, opened.group),
        (GROUP_MANAGERS.title, f"{GROUP.path_of(opened.group)}{GROUP_MANAGERS.path}"),
    ],
    has_page=False,
    find=_open_manager,
)


class GroupManagerEditPage(RolesFormPage, EditPage[_OpenedGroupManager]):
    hint = ManagerRolesPage.hint
    no_options_message = ManagerRolesPage.no_options_message

    def initial_values(self) -> dict[str, FieldValue]:
        return self.entity_values(self.entity.manager)

    @property
    def current_until(self) -> datetime | None:
        return self.entity.manager.until

    @property
    def lead(self) -> str:
        return self.entity.resource.name

    def role_options(self) -> RoleOptions:
        return manager_role_options(self, self.services.access_control.get_resource(self.entity.manager.resource))


_EDIT = EditForm[_OpenedGroupManager, ChangeGroupManager](
    title=_("Choose roles for {name}"),
    command=ChangeGroupManager,
    change=lambda page, opened, command, version: page.services.group_managers.change(
        opened.manager.id, command, expected_version=version, principal=page.principal
    ),
)

_REMOVE = Action[_OpenedGroupManager](
    path="/delete",
    run=lambda page, opened: page.services.group_managers.remove(opened.manager.id, principal=page.principal),
    title=_("Remove the manager roles at {resource} from the group “{name}”?"),
    impact=(_("All members lose {roles} of {resource} at once."),),
    submit_label=_("Remove roles"),
)

ROUTES = (
    GROUP.page_route(f"{GROUP_MANAGERS.path}/new", AddGroupManagerPage, "write"),
    edit_route(_MANAGER, _EDIT, GroupManagerEditPage),
    *action_routes(_MANAGER, _REMOVE),
)
