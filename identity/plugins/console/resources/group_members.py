"""Members of a group: list, add in two steps, change their end, remove."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyramid.response import Response

from identity.domain.groups import Group, GroupMember
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import Subject
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, ResourceList
from identity.plugins.console.resource_types import GROUP, EntityTitledPage, ResourceType
from identity.plugins.console.resources.group_mappings import mapping_label
from identity.plugins.console.role_selection import (
    UNTIL_FIELD,
    RoleOptions,
    RolesFormPage,
    SelectUserThenRolesPage,
)
from identity.plugins.console.user_display import display_users
from identity.services.commands.groups import AddGroupMember, ChangeGroupMember


def _rows(page: ConsolePage, members: Sequence[GroupMember]) -> Sequence[Cells]:
    users, may_write = display_users(page, members), page.has_permission("group.write")
    mappings = {mapping.id: mapping for mapping in page.services.group_mappings.list_of_group(page.entity_of(Group).id)}

    def source(member: GroupMember) -> object:
        if member.mapping_id not in mappings:
            return page.render_placeholder(_("By hand"))
        return page.template_macros.code(mapping_label(mappings[member.mapping_id]))

    return [
        (
            page.entity_cell(user := users[member.user_id]),
            source(member),
            page.template_macros.when(member.created_at),
            page.render_end(member) or page.render_placeholder(_("No end")),
            page.row_buttons(f"{CONSOLE_PATH}/group-members/{member.id}", user.name, remove=_("Remove …"))
            if may_write
            else "",
        )
        for member in members
        if member.user_id in users
    ]


#: A tab of the group's page.
GROUP_MEMBERS = ResourceList(
    path="/members",
    permission="group.read",
    title=_("Members"),
    lead=_("People and service users who have all roles of the group."),
    columns=(_("User"), _("Added"), _("Since"), _("Until")),
    has_row_buttons=True,
    has_state_filter=False,
    fetch=lambda page, request: page.services.group_members.page(page.entity_of(Group).id, request),
    rows=_rows,
    empty_title=_("No members yet"),
    empty_text=_("Add people and service users of the organization."),
    create="group.write",
    create_label=_("Add member"),
)


class _MembershipPage(RolesFormPage):
    """The form of a membership has its end only."""

    requires_role = False
    no_options_message = ""
    until_hint = _("The last day of the membership, in UTC. Leave it empty for no end.")

    def role_options(self) -> RoleOptions:
        return ()

    def parse_form(self, form: Form) -> dict[str, object]:
        return {"until": self._parse_until(form)}


class AddGroupMemberPage(_MembershipPage, EntityTitledPage[Group], SelectUserThenRolesPage):
    roles_title = _("Add {name} to the group")
    notes = (_("The user gets all roles of the group at once."),)

    @property
    def search_organization_id(self) -> str | None:
        return self.entity.organization_id

    def is_selectable(self, subject: Subject) -> bool:
        home = subject.organization.id
        return home == self.entity.organization_id and self._can_see_organization(home)

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddGroupMember, form, user_id=self.selected_subject.user.id)
        self.redeem_submission_id(form)
        self.services.group_members.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(self.success_path))


@dataclass(frozen=True)
class _OpenedMember:
    """A membership with its group and the name of the member."""

    member: GroupMember
    group: Group
    name: str


def _open_member(page: ConsolePage) -> _OpenedMember:
    member = page.entity_of(GroupMember)
    user = display_users(page, [member]).get(member.user_id, EntityLink(member.user_id))
    return _OpenedMember(member, page.services.groups.get(member.group_id), user.name)


_MEMBER = ResourceType(
    model=_OpenedMember,
    path="/group-members/{group_member}",
    context=route_contexts.group_member_context,
    permission_prefix="group",
    section="groups",
    message_values=lambda page, opened: {"name": opened.name, "group": opened.group.name},
    parents=lambda page, opened: GROUP.breadcrumbs(page, opened.group),
    has_page=False,
    find=_open_member,
)


class GroupMemberEditPage(_MembershipPage, EditPage[_OpenedMember]):
    def initial_values(self) -> dict[str, FieldValue]:
        until = self.current_until
        return {
            UNTIL_FIELD: "" if until is None else str(until.date()),
            Form.VERSION_FIELD: str(self.entity.member.version),
        }

    @property
    def current_until(self) -> datetime | None:
        return self.entity.member.until

    @property
    def lead(self) -> str:
        return self.entity.group.name


_EDIT = EditForm[_OpenedMember, ChangeGroupMember](
    title=_("Change the membership of {name}"),
    command=ChangeGroupMember,
    change=lambda page, opened, command, version: page.services.group_members.change(
        opened.member.id, command, expected_version=version, principal=page.principal
    ),
)

_REMOVE = Action[_OpenedMember](
    path="/delete",
    run=lambda page, opened: page.services.group_members.remove(opened.member.id, principal=page.principal),
    title=_("Remove {name} from the group “{group}”?"),
    impact=lambda page, opened: [
        _("{name} loses the roles of the group at once."),
        *([_("A mapping adds {name} again at the next sign-in.")] if opened.member.mapping_id else []),
    ],
    submit_label=_("Remove member"),
)

ROUTES = (
    GROUP.page_route(f"{GROUP_MEMBERS.path}/new", AddGroupMemberPage, "write"),
    edit_route(_MEMBER, _EDIT, GroupMemberEditPage),
    *action_routes(_MEMBER, _REMOVE),
)
