"""Actions on selected users and service users of a list."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pyramid.response import Response

from identity.domain.errors import DomainError, NotFound
from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.user_imports import format_csv_row
from identity.domain.users import HumanUser, ServiceUser, Subject, User
from identity.pages.transactional_mails import TransactionalMails
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.bulk_actions import BulkAction, BulkActions, deactivation, deletion, reactivation
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.resource_types import SERVICE_USER, USER
from identity.plugins.console.resources.held_grants import GrantProjectPage
from identity.plugins.console.role_selection import SelectionCandidate
from identity.plugins.console.selected_rows import SelectedRowsChoicePage, SelectedRowsPage
from identity.services.commands.groups import AddGroupMember
from identity.services.commands.user_grants import AddUserGrant
from identity.services.users import InitialCredential, UserState
from identity.storage.paging import PageRequest, ResultPage

UserT = TypeVar("UserT", HumanUser, ServiceUser)

_EXPORTED = ("user_name", "given_name", "family_name", "email", "phone", "preferred_language", "state")


def _find_users(page: ConsolePage, ids: Sequence[str], kind: type[UserT]) -> Sequence[UserT]:
    """Those of the organization."""
    found, organization_id = page.services.storage.users.find_subjects(ids), page.entity_of(Organization).id
    users = [found[identifier].user for identifier in ids if identifier in found]
    return [user for user in users if isinstance(user, kind) and user.organization_id == organization_id]


class _SelectedProjectPage(SelectedRowsChoicePage, GrantProjectPage):
    @property
    def roles_organization_id(self) -> str:
        return self.entity_of(Organization).id

    requires_role = True


class _GiveRolesPage(_SelectedProjectPage):
    roles_title = _("Choose roles of {name} to give")
    notes = (_("Roles that they have already stay."),)


class _TakeRolesPage(_SelectedProjectPage):
    has_until = False
    roles_title = _("Choose roles of {name} to take")
    notes = (_("Other roles stay, and so do those through groups."),)


class _SelectedGroupPage(SelectedRowsChoicePage):
    selection_param = "group_id"
    selection_title = _("Select a group")
    reselect_label = _("Select another group")
    search_hint = _("Any part of its name.")

    @property
    def selected_group(self) -> Group:
        """Raises NotFound for a group of another organization."""
        group = self.services.groups.get(self.selected_id)
        if group.organization_id != self.entity_of(Organization).id:
            raise NotFound("group", self.selected_id)
        return group

    @property
    def selected_name(self) -> str:
        return self.selected_group.name

    def role_options(self) -> Sequence[tuple[str, str, str]]:
        return ()

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        groups = self.services.groups.page(self.entity_of(Organization).id, page_request)
        return groups.with_items(
            SelectionCandidate(group.name, group.description, "groups", self.selection_path(group.id))
            for group in groups
        )


class _AddToGroupPage(_SelectedGroupPage):
    roles_title = _("Add to the group {name}")
    until_hint = _("The last day of the membership, in UTC. Leave it empty for no end.")
    notes: ClassVar = (_("They get all roles of the group at once."),)


class _RemoveFromGroupPage(_SelectedGroupPage):
    has_until = False
    roles_title = _("Remove from the group {name}")
    notes: ClassVar = (_("They lose the roles of the group at once."),)


def _add_to_group(page: ConsolePage, user: User, values: Mapping[str, Any]) -> bool:
    if any(group.id == values["group_id"] for group, _member in page.services.groups.list_of_user(user.id)):
        return False
    command = AddGroupMember(user_id=user.id, until=values["until"])
    page.services.group_members.add(values["group_id"], command, principal=page.principal)
    return True


#: For people and service users alike.
_ROLE_ACTIONS: tuple[BulkAction[Any], ...] = (
    BulkAction(
        path="give-roles",
        permission="user_grant.write",
        label=_("Give roles"),
        title=lambda n: ngettext_lazy("Give {n} user project roles", "Give {n} users project roles", n),
        submit_label=_("Give roles"),
        done=_("Roles given"),
        run=lambda page, user, values: page.services.user_grants.give_roles(
            AddUserGrant(
                user_id=user.id, project_id=values["project_id"], roles=values["roles"], until=values["until"]
            ),
            principal=page.principal,
        ),
        page=_GiveRolesPage,
    ),
    BulkAction(
        path="take-roles",
        permission="user_grant.write",
        label=_("Take roles"),
        title=lambda n: ngettext_lazy("Take project roles of {n} user", "Take project roles of {n} users", n),
        submit_label=_("Take roles"),
        done=_("Roles taken"),
        run=lambda page, user, values: page.services.user_grants.take_roles(
            user.id, values["project_id"], values["roles"], principal=page.principal
        ),
        is_destructive=True,
        page=_TakeRolesPage,
    ),
    BulkAction(
        path="add-to-group",
        permission="group.write",
        label=_("Add to group"),
        title=lambda n: ngettext_lazy("Add {n} user to a group", "Add {n} users to a group", n),
        submit_label=_("Add to group"),
        done=_("Added"),
        run=_add_to_group,
        page=_AddToGroupPage,
    ),
    BulkAction(
        path="remove-from-group",
        permission="group.write",
        label=_("Remove from group"),
        title=lambda n: ngettext_lazy("Remove {n} user from a group", "Remove {n} users from a group", n),
        submit_label=_("Remove from group"),
        done=_("Removed"),
        run=lambda page, user, values: page.services.group_members.remove_user(
            values["group_id"], user.id, principal=page.principal
        ),
        is_destructive=True,
        page=_RemoveFromGroupPage,
    ),
)


def _invite(page: ConsolePage, user: HumanUser, values: Mapping[str, Any]) -> None:
    if not page.services.mails.is_enabled or not user.profile.email:
        raise DomainError(
            _("A link can only be mailed to people with an email address, by a service that sends mails.")
        )
    is_new = page.services.users.user_states([user])[user.id] is UserState.INVITED
    link = page.services.users.issue_password_link(user.id, principal=page.principal, mailed_to=user.profile.email)
    subject = Subject(user, page.entity_of(Organization))
    mails = TransactionalMails(page.request, page.language)
    credential = InitialCredential("link", link)
    if not mails.queue_initial_credential(subject, credential, new=is_new, inviter=page.principal.subject):
        raise DomainError(_("This address got too many mails in the last hour."))


class _ExportPage(SelectedRowsPage):
    def get(self) -> Response:
        users = [user for user in self.rows if isinstance(user, HumanUser)]
        states = self.services.users.user_states(users)
        lines = [format_csv_row(list(_EXPORTED))]
        for user in users:
            known = user.profile
            cells = [user.user_name, known.given_name, known.family_name, known.email, known.phone, known.locale]
            lines.append(format_csv_row([*cells, states[user.id].value]))
        response = Response("".join(lines), content_type="text/csv", charset="utf-8")
        response.content_disposition = 'attachment; filename="users.csv"'
        response.cache_control = "no-store"
        return response


USER_BULK_ACTIONS = BulkActions[HumanUser](
    find=lambda page, ids: _find_users(page, ids, HumanUser),
    links=lambda page, users: [
        EntityLink(user.display_name, USER.path_of(user), secondary_text=user.user_name) for user in users
    ],
    actions=(
        BulkAction[HumanUser](
            path="invite",
            permission="user.write",
            label=_("Send links"),
            title=lambda n: ngettext_lazy("Send {n} person a link?", "Send {n} people a link?", n),
            lead=_("Each gets a mail with a new link to choose a password. Earlier links stop working."),
            submit_label=_("Send links"),
            done=_("Link sent"),
            run=_invite,
        ),
        *_ROLE_ACTIONS,
        deactivation(
            lambda page, user: page.services.users.deactivate(user.id, principal=page.principal),
            "user.write",
            lambda n: ngettext_lazy("Deactivate {n} user?", "Deactivate {n} users?", n),
            _("They are signed out and cannot sign in. You can reactivate the accounts later."),
        ),
        reactivation(
            lambda page, user: page.services.users.reactivate(user.id, principal=page.principal),
            "user.write",
            lambda n: ngettext_lazy("Reactivate {n} user?", "Reactivate {n} users?", n),
            _("They can sign in again, with the password from before."),
        ),
        deletion(
            lambda page, user: page.services.users.remove(user.id, principal=page.principal),
            "user.delete",
            lambda n: ngettext_lazy("Delete {n} user?", "Delete {n} users?", n),
            _(
                "This cannot be undone. The accounts are deleted with their roles, sessions and tokens, and"
                " applications no longer recognise these people. Accounts under a legal hold stay."
            ),
        ),
        BulkAction[HumanUser](
            path="export",
            permission="user.write",
            label=_("Export as CSV"),
            title=lambda n: _("Export as CSV"),
            page=_ExportPage,
        ),
    ),
)
SERVICE_USER_BULK_ACTIONS = BulkActions[ServiceUser](
    find=lambda page, ids: _find_users(page, ids, ServiceUser),
    links=lambda page, users: [
        EntityLink(user.display_name, SERVICE_USER.path_of(user), secondary_text=user.user_name) for user in users
    ],
    actions=(
        *_ROLE_ACTIONS,
        deactivation(
            lambda page, user: page.services.service_users.deactivate(user.id, principal=page.principal),
            "service_user.write",
            lambda n: ngettext_lazy("Deactivate {n} service user?", "Deactivate {n} service users?", n),
            _("Their keys, secrets and tokens stop working at once. You can reactivate them later."),
        ),
        reactivation(
            lambda page, user: page.services.service_users.reactivate(user.id, principal=page.principal),
            "service_user.write",
            lambda n: ngettext_lazy("Reactivate {n} service user?", "Reactivate {n} service users?", n),
            _("Their keys, secrets and tokens that have not expired work again."),
        ),
        deletion(
            lambda page, user: page.services.service_users.remove(user.id, principal=page.principal),
            "service_user.delete",
            lambda n: ngettext_lazy("Delete {n} service user?", "Delete {n} service users?", n),
            _(
                "This cannot be undone. Their keys, secrets, tokens and roles are deleted, and their programs stop"
                " working."
            ),
        ),
    ),
)
