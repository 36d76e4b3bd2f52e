"""Managers of instance, organization, project and project grant: add in two steps, change, remove."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.managers import Manager, ManagerRole
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.permissions import ManagerLevel
from identity.domain.users import Subject
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import ResourceActionPage
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.form_page import EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.memberships import load_resource_links
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_page import ResourcePage, resource_routes
from identity.plugins.console.role_selection import RoleOptions, RolesFormPage, SelectUserThenRolesPage
from identity.plugins.console.routes import ConsoleRoute
from identity.plugins.console.user_display import display_user, display_users
from identity.services.commands.managers import AddManager, ChangeManager
from identity.storage.paging import PageRequest, ResultPage


class ResourceManagersPage(ConsolePage):
    @property
    def is_instance_page(self) -> bool:
        return self.level is ManagerLevel.INSTANCE

    @property
    def section(self) -> str:
        return {ManagerLevel.INSTANCE: "instance", ManagerLevel.ORGANIZATION: ""}.get(self.level, "projects")

    @property
    def level(self) -> ManagerLevel:
        return self.resource.key.level

    @property
    def title_suffix(self) -> str:
        return self.managed_resource_link.name

    @cached_property
    def managed_resource_link(self) -> EntityLink:
        key = self.resource.key
        return load_resource_links(self, {key})[key]

    @property
    def list_path(self) -> str:
        return f"{self.managed_resource_link.href}/managers"

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [(self.managed_resource_link.name, self.managed_resource_link.href)]


class ManagerListPage(ResourceManagersPage, ListPage):
    title = gettext_lazy("Managers")
    lead = gettext_lazy("Users who manage it, here and everything below.")
    columns = (gettext_lazy("User"), gettext_lazy("Roles"), gettext_lazy("Since"))
    has_row_buttons = True
    is_searchable = False
    empty_title = gettext_lazy("No managers yet")
    empty_text = gettext_lazy("Add a user and choose what it may do here.")
    read_permission, create_permission, create_label = "manager.read", "manager.write", gettext_lazy("Add manager")
    section_id, all_link_label = "managers", gettext_lazy("All managers …")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Manager]:
        return self.services.managers.page(self.resource, page_request, principal=self.principal)

    def build_rows(self, found: Sequence[Manager]) -> Sequence[Cells]:
        users, may_write = display_users(self, found), self.has_permission("manager.write")
        return [
            (
                self.entity_cell(user := users[manager.user_id]),
                self.render_role_names(manager.roles),
                self.template_macros.when(manager.created_at),
                self.row_buttons(f"{CONSOLE_PATH}/managers/{manager.id}", user.name, remove=gettext_lazy("Remove …"))
                if may_write
                else "",
            )
            for manager in found
            if manager.user_id in users
        ]


class _ManagerSubpage(ResourceManagersPage):
    @property
    def cancel_path(self) -> str:
        return self.list_path

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (ManagerListPage.title, self.list_path)]


class ManagerRolesPage(_ManagerSubpage, RolesFormPage):
    hint = gettext_lazy("You can grant roles whose permissions you hold yourself.")
    no_options_message = gettext_lazy("There is no role here whose permissions you hold yourself.")

    @property
    def lead(self) -> str:
        return self.managed_resource_link.name

    def role_options(self) -> RoleOptions:
        roles: Sequence[ManagerRole] = self.services.access_control.list_grantable_roles(self.principal, self.resource)
        return [(role.name, role.name, self.translator.gettext(role.description)) for role in roles]

    @property
    def success_path(self) -> str:
        return f"{self.managed_resource_link.href}#managers"


class AddManagerPage(ManagerRolesPage, SelectUserThenRolesPage):
    includes_other_organizations = True

    @property
    def title_suffix(self) -> str:
        return gettext_lazy("Managers of {resource}", resource=self.managed_resource_link.name)

    def is_selectable(self, subject: Subject) -> bool:
        home, holder = subject.organization.id, self.resource.grantee
        # Both sides of a project grant choose from their own users.
        chosen_here = holder is None or home in (self.resource.organization_id, holder.id)
        return chosen_here and self._can_see_organization(home)

    @property
    def search_organization_id(self) -> str | None:
        """The organization of the resource; for a project grant the side that the caller sees, the grantee first.
        All for managers of the instance.
        """
        holder = self.resource.grantee
        if holder is not None and self._can_see_organization(holder.id):
            return holder.id
        if holder is None and self.services.access_control.visible_organization_ids(self.principal) is None:
            return None
        return self.resource.organization_id

    @property
    def notes(self) -> Sequence[str]:
        subject, messages = self.selected_subject, []
        if self.resource.organization_id not in (None, subject.organization.id):
            message = gettext_lazy(
                "{name} belongs to {organization}, whose managers can rename, reset or deactivate this account. A role"
                " here trusts them.",
                name=subject.user.display_name,
                organization=subject.organization.name,
            )
            messages.append(message)
        if self.level is ManagerLevel.INSTANCE:
            messages.append(
                gettext_lazy("People with a role at the instance sign in only in ways that the instance allows.")
            )
        ended = self.services.managers.count_sessions_to_end(subject.user.id, self.resource)
        if ended:
            messages.append(ngettext_lazy("{n} session of this user ends.", "{n} sessions of this user end.", ended))
        if ended and subject.user.id == self.subject.user.id:
            messages.append(gettext_lazy("Your own session is among them."))
        return messages

    def submit(self, form: Form) -> Response:
        command = self.decode_command(AddManager, {"user_id": self.selected_subject.user.id, **self.parse_form(form)})
        self.redeem_submission_id(form)
        self.services.managers.add(self.resource, command, principal=self.principal)
        return self.redirect(self.path_with_flash(self.success_path))


class ManagerResourcePage(_ManagerSubpage, ResourcePage[Manager]):
    path, context_factory = "/managers/{manager}", route_contexts.manager_context
    permission_subject, service_name = "manager", "managers"

    @cached_property
    def user(self) -> EntityLink:
        """Named as far as the caller may see them."""
        subject = self.services.storage.users.find_subject(self.entity.user_id)
        return EntityLink(self.entity.user_id) if subject is None else display_user(self, subject)

    @property
    def message_values(self) -> Mapping[str, object]:
        roles = ", ".join(sorted(self.entity.roles))
        return {"name": self.user.name, "resource": self.managed_resource_link.name, "roles": roles}


class ManagerEditPage(ManagerResourcePage, ManagerRolesPage, EditPage):
    title = gettext_lazy("Choose roles for {name}")
    command = ChangeManager

    @property
    def facts(self) -> Descriptions:
        return (
            [(gettext_lazy("User"), self.user.name), (gettext_lazy("Login name"), self.user.secondary_text)]
            if self.user.secondary_text
            else []
        )


class RemoveManagerPage(ManagerResourcePage, ResourceActionPage):
    path_suffix, permission_verb = "/delete", "write"
    title = gettext_lazy("Remove the manager {name} of {resource}?")
    impact = (gettext_lazy("{name} loses {roles} of {resource} at once."),)
    submit_label = gettext_lazy("Remove manager")

    def perform(self) -> str:
        done_at = f"{self.managed_resource_link.href}#managers"
        self.services.managers.remove(self.entity.id, principal=self.principal)
        return done_at


_LEVEL_TARGETS = {
    "/instance": route_contexts.instance_context,
    "/organizations/{organization}": route_contexts.organization_context,
    "/projects/{project}": route_contexts.project_context,
    "/project-grants/{project_grant}": route_contexts.project_grant_context,
}

ROUTES = (
    *(
        ConsoleRoute(f"{path}/managers", ManagerListPage, "manager.read", target)
        for path, target in _LEVEL_TARGETS.items()
    ),
    *(
        ConsoleRoute(f"{path}/managers/new", AddManagerPage, "manager.write", target)
        for path, target in _LEVEL_TARGETS.items()
    ),
    *resource_routes(ManagerEditPage, RemoveManagerPage),
)
