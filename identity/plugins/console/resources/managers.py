"""Managers of instance, organization, project and project grant: add in two steps, change, remove."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.managers import Manager, ManagerRole
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.users import Subject
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import Action, ActionPage, action_routes
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.memberships import load_resource_links
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_types import ResourcePage, ResourceType
from identity.plugins.console.role_selection import RoleOptions, RolesFormPage, SelectUserThenRolesPage
from identity.plugins.console.user_display import display_user, display_users
from identity.services.commands.managers import AddManager, ChangeManager


def _rows(page: ConsolePage, managers: Sequence[Manager]) -> Sequence[Cells]:
    users, may_write = display_users(page, managers), page.has_permission("manager.write")
    return [
        (
            page.entity_cell(user := users[manager.user_id]),
            page.render_manager_roles(manager.roles) + page.render_end(manager),
            page.template_macros.when(manager.created_at),
            page.row_buttons(f"{CONSOLE_PATH}/managers/{manager.id}", user.name, remove=_("Remove …"))
            if may_write
            else "",
        )
        for manager in managers
        if manager.user_id in users
    ]


MANAGERS = ResourceList(
    path="/managers",
    permission="manager.read",
    title=_("Managers"),
    lead=_("Users who manage it and everything below it."),
    columns=(_("User"), _("Roles"), _("Since")),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: page.services.managers.page(page.resource, request, principal=page.principal),
    rows=_rows,
    empty_title=_("No managers yet"),
    empty_text=_("Add a user and choose what it may do here."),
    create="manager.write",
    create_label=_("Add manager"),
    all_label=_("All managers …"),
)


def _managed_resource(page: ConsolePage) -> EntityLink:
    key = page.resource.key
    return load_resource_links(page, {key})[key]


def _section(page: ConsolePage, entity: object) -> str:
    sections = {ManagerLevel.INSTANCE: "instance", ManagerLevel.ORGANIZATION: ""}
    return sections.get(page.resource.key.level, "projects")


def _is_instance_page(page: ConsolePage) -> bool:
    return page.resource.key.level is ManagerLevel.INSTANCE


def _list_breadcrumbs(resource: EntityLink) -> Breadcrumbs:
    return [(resource.name, resource.href), (MANAGERS.title, f"{resource.href}{MANAGERS.path}")]


#: What can be managed, as the pages about its managers show it.
_MANAGED = tuple(
    ResourceType[Any](
        model=object,
        path=path,
        context=context,
        permission_prefix="manager",
        section=_section,
        is_instance_page=_is_instance_page,
        parents=lambda page, entity: _list_breadcrumbs(_managed_resource(page))[:1],
        has_page=False,
    )
    for path, context in (
        ("/instance", route_contexts.instance_context),
        ("/organizations/{organization}", route_contexts.organization_context),
        ("/projects/{project}", route_contexts.project_context),
        ("/project-grants/{project_grant}", route_contexts.project_grant_context),
    )
)


def manager_role_options(page: ConsolePage, resource: Resource) -> RoleOptions:
    """The roles that the caller may grant at the resource."""
    roles: Sequence[ManagerRole] = page.services.access_control.list_grantable_roles(page.principal, resource)
    t, code = page.translator.gettext, page.template_macros.code
    return [
        (
            role.name,
            Markup("{} {}").format(t(role.label), code(role.name)) if role.label else role.name,
            t(role.description),
        )
        for role in roles
    ]


class ManagerRolesPage(RolesFormPage):
    hint = _("You can grant roles whose permissions you have yourself.")
    no_options_message = _("There is no role here that you could grant: you lack their permissions.")

    @cached_property
    def managed_resource(self) -> EntityLink:
        return _managed_resource(self)

    @property
    def lead(self) -> str:
        return self.managed_resource.name

    @property
    def title_suffix(self) -> str:
        return self.managed_resource.name

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return _list_breadcrumbs(self.managed_resource)

    def role_options(self) -> RoleOptions:
        return manager_role_options(self, self.resource)

    @property
    def success_path(self) -> str:
        return f"{self.managed_resource.href}{MANAGERS.path}"


class AddManagerPage(ManagerRolesPage, ResourcePage[Any], SelectUserThenRolesPage):
    includes_other_organizations = True

    @property
    def title_suffix(self) -> str:
        return _("Managers of {resource}", resource=self.managed_resource.name)

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
            message = _(
                "{name} belongs to {organization}, whose managers can rename, reset or deactivate "
                "this account. Granting a role here means trusting them.",
                name=subject.user.display_name,
                organization=subject.organization.name,
            )
            messages.append(message)
        if self.resource.key.level is ManagerLevel.INSTANCE:
            messages.append(_("People with a role at the instance sign in only with methods that the instance allows."))
        ended = self.services.managers.count_sessions_to_end(subject.user.id, self.resource)
        if ended:
            messages.append(ngettext_lazy("{n} session of this user ends.", "{n} sessions of this user end.", ended))
        if ended and subject.user.id == self.subject.user.id:
            messages.append(_("Your own session is among them."))
        return messages

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddManager, form, user_id=self.selected_subject.user.id)
        self.redeem_submission_id(form)
        self.services.managers.add(self.resource, command, principal=self.principal)
        return self.redirect(self.path_with_flash(self.success_path))


@dataclass(frozen=True)
class _OpenedManager:
    """A manager with their user, named as far as the caller may see them, and what they manage."""

    manager: Manager
    user: EntityLink
    resource: EntityLink


def _open_manager(page: ConsolePage) -> _OpenedManager:
    manager = page.entity_of(Manager)
    subject = page.services.storage.users.find_subject(manager.user_id)
    user = EntityLink(manager.user_id) if subject is None else display_user(page, subject)
    return _OpenedManager(manager, user, _managed_resource(page))


_MANAGER = ResourceType(
    model=_OpenedManager,
    path="/managers/{manager}",
    context=route_contexts.manager_context,
    permission_prefix="manager",
    section=_section,
    is_instance_page=_is_instance_page,
    message_values=lambda page, opened: {
        "name": opened.user.name,
        "resource": opened.resource.name,
        "roles": ", ".join(sorted(opened.manager.roles)),
    },
    parents=lambda page, opened: _list_breadcrumbs(opened.resource),
    has_page=False,
    find=_open_manager,
)


class ManagerEditPage(ManagerRolesPage, EditPage[_OpenedManager]):
    def initial_values(self) -> dict[str, FieldValue]:
        return self.entity_values(self.entity.manager)

    @property
    def current_until(self) -> datetime | None:
        return self.entity.manager.until

    @property
    def facts(self) -> Descriptions:
        user = self.entity.user
        if not user.secondary_text:
            return []
        return [(_("User"), user.name), (_("Login name"), user.secondary_text)]


class RemoveManagerPage(ActionPage[_OpenedManager]):
    @property
    def title_suffix(self) -> str:
        return self.entity.resource.name


_EDIT = EditForm[_OpenedManager, ChangeManager](
    title=_("Choose roles for {name}"),
    command=ChangeManager,
    change=lambda page, opened, command, version: page.services.managers.change(
        opened.manager.id, command, expected_version=version, principal=page.principal
    ),
)

_REMOVE = Action[_OpenedManager](
    path="/delete",
    run=lambda page, opened: page.services.managers.remove(opened.manager.id, principal=page.principal),
    done=lambda page, opened: f"{opened.resource.href}{MANAGERS.path}",
    title=_("Remove the manager {name} of {resource}?"),
    impact=(_("{name} loses {roles} of {resource} at once."),),
    submit_label=_("Remove manager"),
    page=RemoveManagerPage,
)

ROUTES = (
    # On other pages the list is a tab.
    list_route(MANAGERS, _MANAGED[0]),
    *(managed.page_route("/managers/new", AddManagerPage, "write") for managed in _MANAGED),
    edit_route(_MANAGER, _EDIT, ManagerEditPage),
    *action_routes(_MANAGER, _REMOVE),
)
