"""Project roles of a group: list, grant in two steps, change, remove."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyramid.response import Response

from identity.domain.groups import Group, GroupGrant
from identity.domain.messages import gettext_lazy as _
from identity.domain.projects import Project, ProjectGrant
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, ResourceList
from identity.plugins.console.resource_types import GROUP, ResourceType
from identity.plugins.console.resources.held_grants import GrantProjectPage, project_link
from identity.plugins.console.resources.user_grants import source_role_options
from identity.plugins.console.role_selection import RoleOptions, RolesFormPage
from identity.services.commands.groups import AddGroupGrant, ChangeGroupGrant


def _rows(page: ConsolePage, grants: Sequence[GroupGrant]) -> Sequence[Cells]:
    projects = page.services.storage.projects.find_many({grant.project_id for grant in grants})
    may_write = page.has_permission("group.write")
    return [
        (
            page.entity_cell(named := project_link(grant, projects.get(grant.project_id)), is_person=False),
            page.render_role_names(grant.roles) or page.render_placeholder(_("None")),
            page.template_macros.when(grant.created_at),
            page.render_end(grant) or page.render_placeholder(_("No end")),
            page.row_buttons(f"{CONSOLE_PATH}/group-grants/{grant.id}", named.name, remove=_("Remove …"))
            if may_write
            else "",
        )
        for grant in grants
    ]


GROUP_GRANTS = ResourceList(
    path="/grants",
    permission="group.read",
    title=_("Project roles"),
    lead=_("Roles in projects that all members have, which applications receive as claims."),
    columns=(_("Project"), _("Roles"), _("Since"), _("Until")),
    has_row_buttons=True,
    has_state_filter=False,
    fetch=lambda page, request: page.services.group_grants.page(page.entity_of(Group).id, request),
    rows=_rows,
    empty_title=_("No project roles yet"),
    empty_text=_("Select a project and choose the roles that the members get."),
    create="group.write",
    create_label=_("Add project roles"),
)


class AddGroupGrantPage(GrantProjectPage):
    list_breadcrumb = (GROUP_GRANTS.title, GROUP_GRANTS.path)

    @property
    def cancel_path(self) -> str:
        return self.success_path

    @property
    def success_path(self) -> str:
        return f"{self.resource_path}{GROUP_GRANTS.path}"

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddGroupGrant, form, project_id=self.selected_project.id)
        self.redeem_submission_id(form)
        self.services.group_grants.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(self.success_path))


@dataclass(frozen=True)
class _OpenedGroupGrant:
    """Project roles with their group. ``source`` is the project or the project grant that they derive from."""

    grant: GroupGrant
    group: Group
    project: Project
    source: Project | ProjectGrant


def _open_grant(page: ConsolePage) -> _OpenedGroupGrant:
    """Raises NotFound."""
    grant, services = page.entity_of(GroupGrant), page.services
    project = services.projects.get(grant.project_id)
    source = project if grant.project_grant_id is None else services.project_grants.get(grant.project_grant_id)
    return _OpenedGroupGrant(grant, services.groups.get(grant.group_id), project, source)


_GRANT = ResourceType(
    model=_OpenedGroupGrant,
    path="/group-grants/{group_grant}",
    context=route_contexts.group_grant_context,
    permission_prefix="group",
    section="groups",
    message_values=lambda page, opened: {
        "name": opened.group.name,
        "project": opened.project.name,
        "roles": ", ".join(sorted(opened.grant.roles)),
    },
    parents=lambda page, opened: [
        *GROUP.breadcrumbs(page, opened.group),
        (GROUP_GRANTS.title, f"{GROUP.path_of(opened.group)}{GROUP_GRANTS.path}"),
    ],
    has_page=False,
    find=_open_grant,
)


class GroupGrantEditPage(RolesFormPage, EditPage[_OpenedGroupGrant]):
    def initial_values(self) -> dict[str, FieldValue]:
        return self.entity_values(self.entity.grant)

    @property
    def current_until(self) -> datetime | None:
        return self.entity.grant.until

    @property
    def lead(self) -> str:
        return self.entity.project.name

    def role_options(self) -> RoleOptions:
        return source_role_options(self, self.entity.source)


_EDIT = EditForm[_OpenedGroupGrant, ChangeGroupGrant](
    title=_("Choose roles for {name}"),
    command=ChangeGroupGrant,
    change=lambda page, opened, command, version: page.services.group_grants.change(
        opened.grant.id, command, expected_version=version, principal=page.principal
    ),
)


def _removal_impact(page: Any, opened: _OpenedGroupGrant) -> Sequence[str]:
    return [_("All members lose {roles} in {project} at once.")] if opened.grant.roles else []


_REMOVE = Action[_OpenedGroupGrant](
    path="/delete",
    run=lambda page, opened: page.services.group_grants.remove(opened.grant.id, principal=page.principal),
    title=_("Remove the roles of {project} from the group “{name}”?"),
    impact=_removal_impact,
    submit_label=_("Remove roles"),
)

ROUTES = (
    GROUP.page_route(f"{GROUP_GRANTS.path}/new", AddGroupGrantPage, "write"),
    edit_route(_GRANT, _EDIT, GroupGrantEditPage),
    *action_routes(_GRANT, _REMOVE),
)
